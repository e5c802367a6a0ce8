/*
 * The one kernel of scalar, unrolled and vector: they differ in how wide an access is, and in how many of them a
 * thread has in flight.
 *
 * Mapping  a block works through pieces of 64 KiB, one after the other where there are fewer blocks than pieces;
 *          threads take neighbouring packs.
 * Memory   every element is touched once. What lies in front of the first pack of a piece, or behind its
 *          last, is touched by single elements, in the same pass.
 */
#ifndef BANDWIDTH_DEVICE_CUH
#define BANDWIDTH_DEVICE_CUH

#include "bandwidth_piece.h"
#include "gpurun/cuda.h"

enum { BANDWIDTH_BLOCK_MOST = 1024, BANDWIDTH_WARPS_MOST = 32 };

struct bandwidth_job {
    const uint32_t *in, *addend;
    uint32_t *out;
    uint64_t *sums;
    int64_t n, pieces;
    uint32_t value;
    int past; /* see bandwidth_piece_at */
};

/* --- one access --- */

static __device__ __forceinline__ uint32_t bandwidth_load(const uint32_t *from)
{
    return __ldg(from);
}

/* Each byte is wanted once: past the L1, so that lines on their way do not wait for room there. */
static __device__ __forceinline__ uint4 bandwidth_load(const uint4 *from)
{
    uint4 v;

    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from));
    return v;
}

static __device__ __forceinline__ uint64_t bandwidth_sum(uint32_t x)
{
    return x;
}

static __device__ __forceinline__ uint64_t bandwidth_sum(uint4 v)
{
    return static_cast<uint64_t>(v.x) + v.y + v.z + v.w;
}

/* --- one element --- */

/* What is stored; the product is rounded, then the sum. */
template <int KIND, bool REAL>
static __device__ __forceinline__ uint32_t bandwidth_apply(uint32_t x, uint32_t addend,
                                                           uint32_t value)
{
    if constexpr (KIND == BANDWIDTH_WRITE)
        return value;
    if constexpr (KIND == BANDWIDTH_COPY)
        return x;
    const uint32_t product =
        REAL ? __float_as_uint(__fmul_rn(__uint_as_float(value), __uint_as_float(x))) : value * x;

    if constexpr (KIND == BANDWIDTH_SCALE)
        return product;
    return REAL ? __float_as_uint(__fadd_rn(__uint_as_float(addend), __uint_as_float(product)))
                : addend + product;
}

template <int KIND, bool REAL>
static __device__ __forceinline__ uint4 bandwidth_apply(uint4 x, uint4 addend, uint32_t value)
{
    return make_uint4(bandwidth_apply<KIND, REAL>(x.x, addend.x, value),
                      bandwidth_apply<KIND, REAL>(x.y, addend.y, value),
                      bandwidth_apply<KIND, REAL>(x.z, addend.z, value),
                      bandwidth_apply<KIND, REAL>(x.w, addend.w, value));
}

/* --- a piece --- */

/* The pack of an array that begins at element `begin`, number `at` behind it. */
template <typename PACK>
static __device__ __forceinline__ const PACK *bandwidth_pack(const uint32_t *array, int64_t begin,
                                                             int at)
{
    return reinterpret_cast<const PACK *>(array + begin) + at;
}

/* LOADS packs of a thread, a block's width apart: all are loaded before the first is used. FULL: all of them are
 * there. Returns the sum of what `read` has read. */
template <typename PACK, int LOADS, int KIND, bool REAL, bool FULL>
static __device__ __forceinline__ uint64_t bandwidth_batch(const struct bandwidth_job &job,
                                                           const struct bandwidth_piece &piece,
                                                           int first)
{
    const int64_t begin = piece.begin + piece.head;
    const int step = static_cast<int>(blockDim.x);
    PACK x[LOADS] = {}, addend[LOADS] = {};
    uint64_t sum = 0;

#pragma unroll
    for (int l = 0; l < LOADS; l++) {
        if (!FULL && first + l * step >= piece.packs)
            continue;
        if constexpr (KIND != BANDWIDTH_WRITE)
            x[l] = bandwidth_load(bandwidth_pack<PACK>(job.in, begin, first + l * step));
        if constexpr (KIND == BANDWIDTH_TRIAD)
            addend[l] = bandwidth_load(bandwidth_pack<PACK>(job.addend, begin, first + l * step));
    }
#pragma unroll
    for (int l = 0; l < LOADS; l++) {
        if (!FULL && first + l * step >= piece.packs)
            continue;
        if constexpr (KIND == BANDWIDTH_READ)
            sum += bandwidth_sum(x[l]);
        else
            reinterpret_cast<PACK *>(job.out + begin)[first + l * step] =
                bandwidth_apply<KIND, REAL>(x[l], addend[l], job.value);
    }
    return sum;
}

/* The single elements of a piece: fewer than two packs of them, or all. */
template <int WIDTH, int KIND, bool REAL>
static __device__ __forceinline__ uint64_t bandwidth_ends(const struct bandwidth_job &job,
                                                          const struct bandwidth_piece &piece)
{
    const int singles = bandwidth_singles(piece, WIDTH);
    uint64_t sum = 0;

    for (int i = static_cast<int>(threadIdx.x); i < singles; i += static_cast<int>(blockDim.x)) {
        const int64_t at = piece.begin + bandwidth_single_at(piece, WIDTH, i);
        const uint32_t x = KIND == BANDWIDTH_WRITE ? 0 : bandwidth_load(job.in + at);
        const uint32_t addend = KIND == BANDWIDTH_TRIAD ? bandwidth_load(job.addend + at) : 0;

        if constexpr (KIND == BANDWIDTH_READ)
            sum += x;
        else
            job.out[at] = bandwidth_apply<KIND, REAL>(x, addend, job.value);
    }
    return sum;
}

/* The block's sum, in thread 0; all threads must call it. Two calls may follow each other. */
static __device__ __forceinline__ uint64_t bandwidth_block_sum(uint64_t mine)
{
    __shared__ uint64_t shared[BANDWIDTH_WARPS_MOST];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, distance);
    __syncthreads(); /* the call before has been read */
    if (lane == 0)
        shared[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        mine = lane < warps ? shared[lane] : 0;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            mine += __shfl_down_sync(0xffffffffu, mine, distance);
    }
    return mine;
}

/* One block per multiprocessor will do: to fit two of 1024 threads, the compiler would store some packs before
 * it loads the others. */
template <typename PACK, int LOADS, int KIND, bool REAL>
static __global__ void __launch_bounds__(BANDWIDTH_BLOCK_MOST, 1)
    bandwidth_kernel(struct bandwidth_job job)
{
    constexpr int width = sizeof(PACK) / sizeof(uint32_t);
    const int batch = LOADS * static_cast<int>(blockDim.x);

    for (int64_t number = blockIdx.x; number < job.pieces; number += gridDim.x) {
        const struct bandwidth_piece piece = bandwidth_piece_at(job.n, number, width, job.past);
        uint64_t sum = bandwidth_ends<width, KIND, REAL>(job, piece);

#pragma unroll 1
        for (int begin = 0; begin < piece.packs; begin += batch) {
            const int first = begin + static_cast<int>(threadIdx.x);

            sum += begin + batch <= piece.packs
                       ? bandwidth_batch<PACK, LOADS, KIND, REAL, true>(job, piece, first)
                       : bandwidth_batch<PACK, LOADS, KIND, REAL, false>(job, piece, first);
        }
        if constexpr (KIND == BANDWIDTH_READ) {
            sum = bandwidth_block_sum(sum);
            if (threadIdx.x == 0)
                job.sums[number] = sum;
        }
    }
}

/* --- launching --- */

/* How many elements behind a place of packs the arrays begin. */
static int bandwidth_past(const struct bandwidth_job *job, size_t pack_bytes)
{
    const void *const arrays[] = {job->in, job->addend, job->out};
    int past = 0;
    bool is_known = false;

    for (const void *array : arrays) {
        const int here =
            static_cast<int>(reinterpret_cast<uintptr_t>(array) % pack_bytes / sizeof(uint32_t));

        if (array == NULL)
            continue;
        if (is_known && here != past)
            return BANDWIDTH_APART;
        past = here;
        is_known = true;
    }
    return past;
}

static struct bandwidth_job bandwidth_job_of(const struct gpurun_ctx *ctx, size_t pack_bytes)
{
    const struct bandwidth_state *s = bandwidth_state_of(ctx);
    struct bandwidth_job job = {};

    job.in = static_cast<const uint32_t *>(s->in ? s->in->dev : NULL);
    job.addend = static_cast<const uint32_t *>(s->addend ? s->addend->dev : NULL);
    job.out = static_cast<uint32_t *>(s->out ? s->out->dev : NULL);
    job.sums = static_cast<uint64_t *>(s->sums ? s->sums->dev : NULL);
    job.n = bandwidth_options_of(ctx)->n;
    job.pieces = s->pieces;
    job.value = s->value;
    job.past = bandwidth_past(&job, pack_bytes);
    return job;
}

/* grid = 0: a block for each piece, as far as a grid goes. */
static unsigned bandwidth_blocks(const struct gpurun_ctx *ctx)
{
    const int64_t grid = bandwidth_options_of(ctx)->grid, pieces = bandwidth_state_of(ctx)->pieces;
    const int64_t most = grid > 0 ? grid * ctx->device.sm_count : INT32_MAX;

    return static_cast<unsigned>(pieces < most ? pieces : most);
}

template <typename PACK, int LOADS, int KIND, bool REAL>
static enum gpurun_status bandwidth_run(struct gpurun_ctx *ctx)
{
    bandwidth_kernel<PACK, LOADS, KIND, REAL>
        <<<bandwidth_blocks(ctx), static_cast<unsigned>(bandwidth_options_of(ctx)->block), 0,
           gpurun_cuda_stream(ctx)>>>(bandwidth_job_of(ctx, sizeof(PACK)));
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

/* One pass of the job's kind. triad loads two packs for one, and has half as many of each in flight. */
template <typename PACK, int LOADS> static enum gpurun_status bandwidth_pass(struct gpurun_ctx *ctx)
{
    constexpr int pairs = LOADS > 1 ? LOADS / 2 : 1;
    const bool is_real = bandwidth_state_of(ctx)->is_real;

    switch (bandwidth_options_of(ctx)->kind) {
    case BANDWIDTH_READ:
        return bandwidth_run<PACK, LOADS, BANDWIDTH_READ, false>(ctx);
    case BANDWIDTH_WRITE:
        return bandwidth_run<PACK, LOADS, BANDWIDTH_WRITE, false>(ctx);
    case BANDWIDTH_COPY:
        return bandwidth_run<PACK, LOADS, BANDWIDTH_COPY, false>(ctx);
    case BANDWIDTH_SCALE:
        return is_real ? bandwidth_run<PACK, LOADS, BANDWIDTH_SCALE, true>(ctx)
                       : bandwidth_run<PACK, LOADS, BANDWIDTH_SCALE, false>(ctx);
    default:
        return is_real ? bandwidth_run<PACK, pairs, BANDWIDTH_TRIAD, true>(ctx)
                       : bandwidth_run<PACK, pairs, BANDWIDTH_TRIAD, false>(ctx);
    }
}

#endif
