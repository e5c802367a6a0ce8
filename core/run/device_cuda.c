#include "run/device.h"

#include "job/memory.h"
#include "run/device_kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct device {
    int index;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    unsigned *sink; /* see device_launch_read */
};

static enum gpurun_status check(cudaError_t error, const char *what, struct why *why)
{
    if (error == cudaSuccess)
        return GPURUN_OK;
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* not sticky: the device goes on */
        return why_fail(why, GPURUN_NO_MEMORY, "%s: %s", what, cudaGetErrorString(error));
    }
    return why_fail(why, GPURUN_DEVICE, "%s: %s (%s)", what, cudaGetErrorString(error),
                    cudaGetErrorName(error));
}

#define TRY(call) GPURUN_TRY(check((call), #call, why))

static int count(struct why *why)
{
    int devices = 0;
    cudaError_t error;

    /* Every kernel is on the device before the first timed launch. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    error = cudaGetDeviceCount(&devices);
    if (error == cudaErrorInsufficientDriver)
        why_fail(why, GPURUN_UNSUPPORTED, "no NVIDIA driver, or one older than CUDA %d.%d",
                 CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else if (error != cudaSuccess)
        why_fail(why, GPURUN_UNSUPPORTED, "%s", cudaGetErrorString(error));
    else if (devices == 0)
        why_fail(why, GPURUN_UNSUPPORTED, "no CUDA device is visible");
    return error == cudaSuccess ? devices : 0;
}

static enum gpurun_status info(int index, struct device_info *out, struct why *why)
{
    struct cudaDeviceProp p;
    const unsigned char *u = (const unsigned char *)p.uuid.bytes;

    TRY(cudaGetDeviceProperties(&p, index));
    *out = (struct device_info){.limits = {.compute = 10 * p.major + p.minor,
                                           .sm_count = p.multiProcessorCount,
                                           .shared_bytes = p.sharedMemPerBlockOptin,
                                           .l2_bytes = (size_t)p.l2CacheSize,
                                           .global_bytes = p.totalGlobalMem}};
    snprintf(out->name, sizeof out->name, "%s", p.name);
    snprintf(out->uuid, sizeof out->uuid,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    TRY(cudaDriverGetVersion(&out->driver));
    TRY(cudaRuntimeGetVersion(&out->runtime));
    return GPURUN_OK;
}

static void close_device(struct device *d)
{
    if (d == NULL)
        return;
    if (d->stop != NULL)
        cudaEventDestroy(d->stop);
    if (d->start != NULL)
        cudaEventDestroy(d->start);
    if (d->stream != NULL)
        cudaStreamDestroy(d->stream);
    cudaFree(d->sink);
    free(d);
}

static enum gpurun_status open_parts(struct device *d, struct why *why)
{
    TRY(cudaSetDevice(d->index));
    TRY(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    TRY(cudaEventCreate(&d->start));
    TRY(cudaEventCreate(&d->stop));
    TRY(cudaMalloc((void **)&d->sink, sizeof *d->sink));
    return GPURUN_OK;
}

static enum gpurun_status open_device(int index, struct device **out, struct why *why)
{
    struct device *d = allocate(1, sizeof *d);
    enum gpurun_status status;

    d->index = index;
    status = open_parts(d, why);
    if (status != GPURUN_OK) {
        close_device(d);
        d = NULL;
    }
    *out = d;
    return status;
}

static gpurun_stream stream(struct device *d)
{
    return d->stream;
}

static size_t free_bytes(struct device *d)
{
    size_t available = 0, total = 0;

    (void)d;
    if (cudaMemGetInfo(&available, &total) != cudaSuccess)
        return 0;
    return available;
}

static enum gpurun_status alloc(struct device *d, size_t bytes, void **out, struct why *why)
{
    char what[80];

    (void)d;
    snprintf(what, sizeof what, "%zu bytes of device memory", bytes);
    return check(cudaMalloc(out, bytes), what, why);
}

static enum gpurun_status alloc_managed(struct device *d, size_t bytes, void **out, struct why *why)
{
    char what[80];

    (void)d;
    snprintf(what, sizeof what, "%zu bytes of managed memory", bytes);
    return check(cudaMallocManaged(out, bytes, cudaMemAttachGlobal), what, why);
}

static enum gpurun_status alloc_host(struct device *d, size_t bytes, bool mapped, void **out,
                                     struct why *why)
{
    char what[80];

    (void)d;
    snprintf(what, sizeof what, "%zu bytes of page-locked memory", bytes);
    return check(cudaHostAlloc(out, bytes, mapped ? cudaHostAllocMapped : cudaHostAllocDefault),
                 what, why);
}

static enum gpurun_status device_view(struct device *d, void *mapped_host, void **out,
                                      struct why *why)
{
    (void)d;
    TRY(cudaHostGetDevicePointer(out, mapped_host, 0));
    return GPURUN_OK;
}

static void release(struct device *d, void *pointer)
{
    (void)d;
    cudaFree(pointer);
}

static void release_host(struct device *d, void *pointer)
{
    (void)d;
    cudaFreeHost(pointer);
}

static enum gpurun_status copy(struct device *d, void *to, const void *from, size_t bytes,
                               struct why *why)
{
    if (bytes > 0)
        TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, d->stream));
    return GPURUN_OK;
}

static enum gpurun_status fill(struct device *d, void *pointer, int byte, size_t bytes,
                               struct why *why)
{
    if (bytes > 0)
        TRY(cudaMemsetAsync(pointer, byte, bytes, d->stream));
    return GPURUN_OK;
}

static enum gpurun_status prefetch(struct device *d, void *pointer, size_t bytes, bool to_host,
                                   struct why *why)
{
#if CUDART_VERSION >= 13000
    const struct cudaMemLocation where = {.type = to_host ? cudaMemLocationTypeHost
                                                          : cudaMemLocationTypeDevice,
                                          .id = to_host ? 0 : d->index};

    if (bytes > 0)
        TRY(cudaMemPrefetchAsync(pointer, bytes, where, 0, d->stream));
#else
    if (bytes > 0)
        TRY(cudaMemPrefetchAsync(pointer, bytes, to_host ? cudaCpuDeviceId : d->index, d->stream));
#endif
    return GPURUN_OK;
}

static enum gpurun_status read_all(struct device *d, const void *pointer, size_t bytes,
                                   struct why *why)
{
    TRY(device_launch_read(pointer, bytes, d->sink, d->stream));
    return GPURUN_OK;
}

static enum gpurun_status sync_stream(struct device *d, struct why *why)
{
    TRY(cudaStreamSynchronize(d->stream));
    return GPURUN_OK;
}

static enum gpurun_status timer_start(struct device *d, struct why *why)
{
    TRY(cudaEventRecord(d->start, d->stream));
    return GPURUN_OK;
}

static enum gpurun_status timer_stop(struct device *d, double *ms, struct why *why)
{
    float elapsed = 0;

    TRY(cudaEventRecord(d->stop, d->stream));
    TRY(cudaEventSynchronize(d->stop));
    TRY(cudaEventElapsedTime(&elapsed, d->start, d->stop));
    *ms = elapsed;
    return GPURUN_OK;
}

const struct device_api device_api = {
    .count = count,
    .info = info,
    .open = open_device,
    .close = close_device,
    .stream = stream,
    .free_bytes = free_bytes,
    .alloc = alloc,
    .alloc_managed = alloc_managed,
    .alloc_host = alloc_host,
    .device_view = device_view,
    .release = release,
    .release_host = release_host,
    .copy = copy,
    .fill = fill,
    .prefetch = prefetch,
    .read = read_all,
    .sync = sync_stream,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
};
