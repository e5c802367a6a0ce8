/*
 * Times three calls of CUB, and a kernel of a few microseconds in batches, by CUDA events, with nothing of gpurun in
 * it, so that gpurun's readings of the same can be held against these.
 *
 *     event_timing N          prints, per line: name, median in milliseconds
 *
 * Each sample of CUB is one call between two events, behind a kernel that spins until the host has enqueued all of
 * it, and behind the same call, so that the cache holds what it leaves itself. Each call is warmed up, then sampled;
 * whose turn it is goes round.
 *
 * A batch is 1,000 launches of a kernel of one thread that waits 9,000 cycles and copies an element: one after the
 * other on a stream, and launched ahead (programmatic stream serialization), where the device prepares a launch while
 * the one before runs.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

enum { CALLS = 3, WARMUP = 20, SAMPLES = 41, SPIN_CYCLES = 100000 };

enum { BATCH = 1000, BATCHES = 21, WAIT_CYCLES = 9000 };

struct buffers {
    void *in, *out, *temp;
    size_t temp_bytes;
    int64_t n;
};

typedef cudaError_t (*call_function)(const struct buffers *b, void *temp, size_t *temp_bytes);

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "event_timing: %s: %s\n", what, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
}

static cudaError_t call_reduce(const struct buffers *b, void *temp, size_t *temp_bytes)
{
    return cub::DeviceReduce::Reduce(temp, *temp_bytes, static_cast<const int32_t *>(b->in),
                                     static_cast<int64_t *>(b->out), b->n,
                                     cuda::std::plus<int64_t>{}, int64_t{0});
}

static cudaError_t call_scan(const struct buffers *b, void *temp, size_t *temp_bytes)
{
    return cub::DeviceScan::InclusiveScan(temp, *temp_bytes, static_cast<const int32_t *>(b->in),
                                          static_cast<int32_t *>(b->out),
                                          cuda::std::plus<int32_t>{}, static_cast<uint32_t>(b->n));
}

static cudaError_t call_sort(const struct buffers *b, void *temp, size_t *temp_bytes)
{
    return cub::DeviceRadixSort::SortKeys(temp, *temp_bytes, static_cast<const uint32_t *>(b->in),
                                          static_cast<uint32_t *>(b->out), b->n);
}

static const struct {
    const char *name;
    call_function call;
} calls[CALLS] = {
    {"reduce", call_reduce},
    {"scan", call_scan},
    {"sort", call_sort},
};

/* Bits of a counter, mixed (Steele, Lea and Flood's SplitMix). */
static __global__ void fill_kernel(uint32_t *to, int64_t n)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    uint64_t x = static_cast<uint64_t>(i) * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    if (i < n)
        to[i] = static_cast<uint32_t>(x >> 32);
}

static __global__ void spin_kernel(void)
{
    const long long start = clock64();

    while (clock64() - start < SPIN_CYCLES)
        ;
}

/* What tests/fakes/wait.cu does. */
static __global__ void wait_kernel(const float *in, float *out)
{
    const long long start = clock64();

    while (clock64() - start < WAIT_CYCLES)
        ;
    *out = *in;
}

static float sample(const struct buffers *b, call_function call, cudaEvent_t start,
                    cudaEvent_t stop)
{
    size_t temp_bytes = b->temp_bytes;
    float ms;

    check(call(b, b->temp, &temp_bytes), "call");
    spin_kernel<<<1, 1>>>();
    check(cudaEventRecord(start), "record");
    check(call(b, b->temp, &temp_bytes), "call");
    check(cudaEventRecord(stop), "record");
    check(cudaEventSynchronize(stop), "synchronise");
    check(cudaEventElapsedTime(&ms, start, stop), "elapsed time");
    return ms;
}

/* What a launch takes in a batch, in milliseconds. */
static float sample_batch(const struct buffers *b, bool ahead, cudaEvent_t start, cudaEvent_t stop)
{
    cudaLaunchAttribute serialization = {};
    cudaLaunchConfig_t config = {};
    float ms;

    serialization.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    serialization.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = config.blockDim = 1;
    config.attrs = &serialization;
    config.numAttrs = ahead;
    check(cudaEventRecord(start), "record");
    for (int i = 0; i < BATCH; i++)
        check(cudaLaunchKernelEx(&config, wait_kernel, static_cast<const float *>(b->in),
                                 static_cast<float *>(b->out)),
              "launch");
    check(cudaEventRecord(stop), "record");
    check(cudaEventSynchronize(stop), "synchronise");
    check(cudaEventElapsedTime(&ms, start, stop), "elapsed time");
    return ms / BATCH;
}

static void print_batch(const char *name, const struct buffers *b, bool ahead, cudaEvent_t start,
                        cudaEvent_t stop)
{
    float ms[BATCHES];

    for (int i = 0; i < BATCHES; i++)
        ms[i] = sample_batch(b, ahead, start, stop);
    std::sort(ms, ms + BATCHES);
    printf("%s %.5f\n", name, ms[BATCHES / 2]);
}

static void make_buffers(struct buffers *b)
{
    const size_t bytes = static_cast<size_t>(b->n) * sizeof(uint32_t);

    check(cudaMalloc(&b->in, bytes), "allocate");
    check(cudaMalloc(&b->out, bytes), "allocate");
    fill_kernel<<<static_cast<unsigned>((b->n + 255) / 256), 256>>>(static_cast<uint32_t *>(b->in),
                                                                    b->n);
    check(cudaGetLastError(), "fill");
    for (int c = 0; c < CALLS; c++) {
        size_t temp_bytes = 0;

        check(calls[c].call(b, NULL, &temp_bytes), "size");
        b->temp_bytes = std::max(b->temp_bytes, temp_bytes);
    }
    check(cudaMalloc(&b->temp, b->temp_bytes), "allocate");
}

int main(int argc, char **argv)
{
    struct buffers b = {};
    float ms[CALLS][WARMUP + SAMPLES];
    cudaEvent_t start, stop;

    b.n = argc == 2 ? atoll(argv[1]) : 0;
    if (b.n < 1 || b.n > INT32_MAX) {
        fprintf(stderr, "usage: event_timing N, from 1 to 2^31 - 1\n");
        return 125;
    }
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    make_buffers(&b);
    for (int i = 0; i < WARMUP + SAMPLES; i++)
        for (int c = 0; c < CALLS; c++)
            ms[c][i] = sample(&b, calls[c].call, start, stop);
    for (int c = 0; c < CALLS; c++) {
        float *samples = ms[c] + WARMUP;

        std::sort(samples, samples + SAMPLES);
        printf("%s %.5f\n", calls[c].name, samples[SAMPLES / 2]);
    }
    print_batch("batch", &b, false, start, stop);
    print_batch("batch_ahead", &b, true, start, stop);
    return EXIT_SUCCESS;
}
