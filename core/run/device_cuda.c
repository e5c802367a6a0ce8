#include "run/device.h"

#include "job/memory.h"
#include "run/device_kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDS_LOST = 4 };

static const double HOLD_LIMIT_S = 0.25, PROBE_LIMIT_S = 0.02;

/* Mapped host memory that a hold kernel looks at. */
struct gate {
    unsigned let_go, ran_out;
};

struct device {
    int index;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    unsigned *sink; /* see device_launch_read */
    struct gate *gate, *gate_dev;
    unsigned turn; /* of the last hold */
    bool can_hold, is_held;
    unsigned holds, ran_out; /* so far */
};

struct device_graph {
    cudaGraphExec_t exec;
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

    /* Every kernel is on the device before the first timed launch, unless the user wants it otherwise. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
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
    cudaFreeHost(d->gate);
    free(d);
}

/* --- timing --- */

static enum gpurun_status hold(struct device *d, double limit_s, struct why *why)
{
    d->turn++;
    TRY(device_launch_hold(&d->gate_dev->let_go, d->turn, (unsigned long long)(limit_s * 1e9),
                           &d->gate_dev->ran_out, d->stream));
    return GPURUN_OK;
}

static void let_go(struct device *d)
{
    __atomic_store_n(&d->gate->let_go, d->turn, __ATOMIC_RELEASE);
}

/* Of the last hold, once its kernel has ended. */
static bool has_run_out(const struct device *d)
{
    return d->turn != 0 && __atomic_load_n(&d->gate->ran_out, __ATOMIC_ACQUIRE) == d->turn;
}

/* A debugger, a sanitizer or CUDA_LAUNCH_BLOCKING make each launch wait for the one before: every hold would
 * then end by its limit. */
static enum gpurun_status probe_hold(struct device *d, struct why *why)
{
    /* More than once: a busy host may have been kept from letting go. */
    for (int i = 0; i < 3 && !d->can_hold; i++) {
        GPURUN_TRY(hold(d, PROBE_LIMIT_S, why));
        TRY(device_launch_spin(0, d->stream));
        let_go(d);
        TRY(cudaStreamSynchronize(d->stream));
        d->can_hold = !has_run_out(d);
    }
    return GPURUN_OK;
}

/* Some tools that make launches wait let the probe through: then no hold has ever been let go in time. */
static void count_hold(struct device *d, bool has_run_out)
{
    d->holds++;
    d->ran_out += has_run_out;
    if (d->ran_out >= HOLDS_LOST && d->ran_out == d->holds)
        d->can_hold = false;
}

static bool can_hold(struct device *d, struct why *why)
{
    if (!d->can_hold)
        why_fail(why, GPURUN_UNSUPPORTED,
                 "each launch waits for the one before it to end (CUDA_LAUNCH_BLOCKING, a debugger "
                 "or a sanitizer)");
    return d->can_hold;
}

static enum gpurun_status timer_start(struct device *d, bool is_held, struct why *why)
{
    d->is_held = is_held;
    d->turn += !is_held; /* of an earlier hold nothing is asked any more */
    if (is_held)
        GPURUN_TRY(hold(d, HOLD_LIMIT_S, why));
    TRY(cudaEventRecord(d->start, d->stream));
    return GPURUN_OK;
}

static enum gpurun_status timer_stop(struct device *d, double *ms, bool *ran_out, struct why *why)
{
    const cudaError_t error = cudaEventRecord(d->stop, d->stream);
    float elapsed = 0;

    let_go(d);
    TRY(error);
    TRY(cudaEventSynchronize(d->stop));
    TRY(cudaEventElapsedTime(&elapsed, d->start, d->stop));
    *ms = elapsed;
    *ran_out = has_run_out(d);
    if (d->is_held)
        count_hold(d, *ran_out);
    return GPURUN_OK;
}

static enum gpurun_status spin(struct device *d, double seconds, struct why *why)
{
    TRY(device_launch_spin((unsigned long long)(seconds * 1e9), d->stream));
    return GPURUN_OK;
}

/* --- graphs --- */

/* What cannot be in a graph is no fault of the device. */
static enum gpurun_status cannot(cudaError_t error, const char *what, struct why *why)
{
    cudaGetLastError();
    return why_fail(why, GPURUN_UNSUPPORTED, "%s: %s (%s)", what, cudaGetErrorString(error),
                    cudaGetErrorName(error));
}

static enum gpurun_status record_work(struct device *d, device_work *work, void *user, int repeats,
                                      cudaGraph_t *graph, struct why *why)
{
    enum gpurun_status status = GPURUN_OK;
    cudaError_t error = cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal);

    if (error != cudaSuccess)
        return cannot(error, "cudaStreamBeginCapture", why);
    for (int i = 0; i < repeats && status == GPURUN_OK; i++)
        status = work(user);
    error = cudaStreamEndCapture(d->stream, graph);
    if (status != GPURUN_OK) {
        cudaGetLastError();
        return GPURUN_UNSUPPORTED;
    }
    return error == cudaSuccess ? GPURUN_OK : cannot(error, "cudaStreamEndCapture", why);
}

static void graph_free(struct device_graph *graph)
{
    if (graph == NULL)
        return;
    if (graph->exec != NULL)
        cudaGraphExecDestroy(graph->exec);
    free(graph);
}

static enum gpurun_status graph_launch(struct device *d, struct device_graph *graph,
                                       struct why *why)
{
    TRY(cudaGraphLaunch(graph->exec, d->stream));
    return GPURUN_OK;
}

static enum gpurun_status start_graph(struct device *d, cudaGraph_t recorded,
                                      struct device_graph *graph, struct why *why)
{
    cudaError_t error = cudaGraphInstantiateWithFlags(&graph->exec, recorded, 0);

    if (error != cudaSuccess)
        return cannot(error, "cudaGraphInstantiate", why);
    error = cudaGraphLaunch(graph->exec, d->stream);
    if (error != cudaSuccess)
        return cannot(error, "cudaGraphLaunch", why);
    TRY(cudaStreamSynchronize(d->stream));
    return GPURUN_OK;
}

static enum gpurun_status graph_make(struct device *d, device_work *work, void *user, int repeats,
                                     struct device_graph **out, struct why *why)
{
    struct device_graph *graph = allocate(1, sizeof *graph);
    cudaGraph_t recorded = NULL;
    enum gpurun_status status = record_work(d, work, user, repeats, &recorded, why);

    if (status == GPURUN_OK)
        status = start_graph(d, recorded, graph, why);
    if (recorded != NULL)
        cudaGraphDestroy(recorded);
    if (status != GPURUN_OK) {
        graph_free(graph);
        graph = NULL;
    }
    *out = graph;
    return status;
}

/* --- opening --- */

static enum gpurun_status open_parts(struct device *d, struct why *why)
{
    TRY(cudaSetDevice(d->index));
    TRY(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    TRY(cudaEventCreate(&d->start));
    TRY(cudaEventCreate(&d->stop));
    TRY(cudaMalloc((void **)&d->sink, sizeof *d->sink));
    TRY(cudaHostAlloc((void **)&d->gate, sizeof *d->gate, cudaHostAllocMapped));
    *d->gate = (struct gate){0};
    TRY(cudaHostGetDevicePointer((void **)&d->gate_dev, d->gate, 0));
    return probe_hold(d, why);
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
    .can_hold = can_hold,
    .graph_make = graph_make,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
    .spin = spin,
};
