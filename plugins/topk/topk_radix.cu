/*
 * topk, variant "radix": finds the k-th key digit by digit, then gathers what is not below it.
 *
 * Mapping  blocks stride over a row with 32 bytes per thread in flight; one block per row picks a digit.
 * Memory   reads the input once per digit of 11 bits and once to gather; histograms in shared memory.
 * Bound    memory: 4 reads for 4-byte elements, 7 for 8-byte ones, one more when ties must be broken.
 * Limits   any k; distinct has kernels of its own (topk_radix_distinct.cu), k up to 4096.
 *
 * Ties are broken by going on with the digits of the index, counted down from the end of the row so that the
 * largest wins there too. Every pass is skipped, on the device, once all that match are needed.
 */
#include "topk_pairs.cuh"
#include "topk_radix.h"
#include "topk_sort.h"

enum {
    RADIX_BITS = 11,
    RADIX_BINS = 1 << RADIX_BITS,
    RADIX_PICK_BLOCK = RADIX_BINS / 2, /* two bins per thread */
    RADIX_STASH = 256, /* selected indices that a warp holds back to write them together */
};

typedef unsigned long long radix_count; /* what 64-bit atomicAdd takes */

/* What is known of the k-th element of a row: the upper bits of its key, then of its index. */
struct radix_state {
    uint64_t key_prefix, key_mask;
    uint64_t tail_prefix, tail_mask; /* of tail = tail_last - index */
    int64_t need,
        match;         /* how many of those that match the prefixes are selected, and how many do */
    radix_count taken; /* written by the gather kernel so far */
};

/* A digit of the key (is_tail = false) or of the tail. */
struct radix_digit {
    int shift, bits;
    bool is_tail;
};

struct radix_scratch {
    struct radix_state *states; /* one per row */
    radix_count *bins;          /* RADIX_BINS per row, zero between passes */
    struct topk_pairs pairs;
};

struct radix_plan {
    int64_t rows_at_once;
    size_t state_bytes, bin_bytes, sort_bytes;
};

/* --- digits -------------------------------------------------------------------------------------- */

/* Bits of the largest index of a row. */
static inline __host__ __device__ int radix_tail_bits(int64_t n)
{
    int bits = 0;

    while (bits < 63 && (n - 1) >> bits > 0)
        bits++;
    return bits;
}

/* The digit-th from the top of a number of `total` bits. */
static inline __host__ __device__ struct radix_digit radix_digit_at(int digit, int total,
                                                                    bool is_tail)
{
    const int above = total - digit * RADIX_BITS;
    const int bits = above < RADIX_BITS ? above : static_cast<int>(RADIX_BITS);
    const struct radix_digit d = {above - bits, bits, is_tail};

    return d;
}

/* Takes the digit that was found into what is known. */
static inline __host__ __device__ void radix_narrow(struct radix_state *s, struct radix_digit d,
                                                    int value, int64_t above, int64_t match)
{
    const uint64_t prefix = static_cast<uint64_t>(value) << d.shift;
    const uint64_t mask = ((UINT64_C(1) << d.bits) - 1) << d.shift;

    s->key_prefix |= d.is_tail ? 0 : prefix;
    s->key_mask |= d.is_tail ? 0 : mask;
    s->tail_prefix |= d.is_tail ? prefix : 0;
    s->tail_mask |= d.is_tail ? mask : 0;
    s->need -= above;
    s->match = match;
}

/* The indices whose tails match, from *begin to *end. */
static inline __host__ __device__ void radix_range(const struct radix_state *s, int64_t n,
                                                   int64_t *begin, int64_t *end)
{
    const int64_t last = (INT64_C(1) << radix_tail_bits(n)) - 1;
    const int64_t most = static_cast<int64_t>(s->tail_prefix | (~s->tail_mask & last));
    const int64_t least = static_cast<int64_t>(s->tail_prefix);

    *begin = last - most;
    *end = last - least < n ? last - least + 1 : n;
}

/* --- kernels -------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(RADIX_BLOCK)
    topk_radix_begin_kernel(struct topk_rows rows, struct radix_scratch scratch)
{
    const int64_t row = blockIdx.x;

    for (int bin = threadIdx.x; bin < RADIX_BINS; bin += RADIX_BLOCK)
        scratch.bins[row * RADIX_BINS + bin] = 0;
    if (threadIdx.x == 0) {
        const struct radix_state s = {0, 0, 0, 0, rows.k, rows.n, 0};

        scratch.states[row] = s;
        rows.count[row] = rows.k;
    }
}

/* Counts the values of a digit among the elements that match. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(RADIX_BLOCK, GPURUN_SM_THREADS / RADIX_BLOCK)
    topk_radix_count_kernel(struct topk_rows rows, struct radix_scratch scratch,
                            struct radix_digit digit)
{
    enum { ITEMS = RADIX_BYTES / sizeof(BITS) };
    __shared__ unsigned bins[RADIX_BINS];
    const int64_t row = blockIdx.y, tile = static_cast<int64_t>(RADIX_BLOCK) * ITEMS;
    const int64_t tail_last = (INT64_C(1) << radix_tail_bits(rows.n)) - 1;
    const struct radix_state s = scratch.states[row];
    const BITS mask = static_cast<BITS>(s.key_mask), prefix = static_cast<BITS>(s.key_prefix);
    const unsigned digit_mask = (1u << digit.bits) - 1;
    int64_t begin, end;
    BITS bits[ITEMS];

    if (s.need == s.match)
        return;
    for (int bin = threadIdx.x; bin < RADIX_BINS; bin += RADIX_BLOCK)
        bins[bin] = 0;
    __syncthreads();

    radix_range(&s, rows.n, &begin, &end);
    for (int64_t base = begin + blockIdx.x * tile; base < end; base += gridDim.x * tile) {
        topk_load(topk_row<BITS>(rows, row), base, end, bits);
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int64_t i = base + threadIdx.x + j * RADIX_BLOCK;
            const BITS key = topk_key<REAL>(bits[j], rows.flip);
            const uint64_t number = digit.is_tail ? static_cast<uint64_t>(tail_last - i) : key;

            if (i < end && (key & mask) == prefix)
                atomicAdd(&bins[static_cast<unsigned>(number >> digit.shift) & digit_mask], 1u);
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < RADIX_BINS; bin += RADIX_BLOCK)
        if (bins[bin] > 0)
            atomicAdd(&scratch.bins[row * RADIX_BINS + bin], static_cast<radix_count>(bins[bin]));
}

/* Finds the value of the digit that the k-th element has, and clears the bins. */
static __global__ void __launch_bounds__(RADIX_PICK_BLOCK)
    topk_radix_pick_kernel(struct radix_scratch scratch, struct radix_digit digit)
{
    __shared__ int64_t sums[RADIX_PICK_BLOCK / 32];
    const int64_t row = blockIdx.x;
    const int high = RADIX_BINS - 1 - 2 * threadIdx.x, low = high - 1;
    radix_count *bins = scratch.bins + row * RADIX_BINS;
    struct radix_state *s = &scratch.states[row];
    const int64_t need = s->need, match = s->match;
    const int64_t in_high = bins[high], in_low = bins[low];
    int64_t total;

    if (need == match)
        return;

    const int64_t above = topk_prefix(in_high + in_low, sums, &total);

    if (above < need && need <= above + in_high)
        radix_narrow(s, digit, high, above, in_high);
    else if (above + in_high < need && need <= above + in_high + in_low)
        radix_narrow(s, digit, low, above + in_high, in_low);
    bins[high] = 0;
    bins[low] = 0;
}

/* Appends a warp's stashed indices to the row's answer, in any order. All lanes call it. */
static __device__ __forceinline__ void radix_flush(const struct topk_rows &rows, int64_t row,
                                                   struct radix_state *state, const int64_t *stash,
                                                   int held)
{
    const int lane = threadIdx.x % 32;
    radix_count at = 0;

    __syncwarp();
    if (lane == 0 && held > 0)
        at = atomicAdd(&state->taken, static_cast<radix_count>(held));
    at = __shfl_sync(0xffffffffu, at, 0);
    for (int j = lane; j < held; j += 32)
        rows.indices[row * rows.k + static_cast<int64_t>(at) + j] = stash[j];
    __syncwarp();
}

/* Writes the indices of the selected elements. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(RADIX_BLOCK, GPURUN_SM_THREADS / RADIX_BLOCK)
    topk_radix_gather_kernel(struct topk_rows rows, struct radix_scratch scratch)
{
    enum { ITEMS = RADIX_BYTES / sizeof(BITS) };
    __shared__ int64_t stashes[RADIX_BLOCK / 32][RADIX_STASH];
    int64_t *stash = stashes[threadIdx.x / 32];
    const unsigned lower_lanes = (1u << threadIdx.x % 32) - 1;
    const int64_t row = blockIdx.y, tile = static_cast<int64_t>(RADIX_BLOCK) * ITEMS;
    const uint64_t tail_last = (UINT64_C(1) << radix_tail_bits(rows.n)) - 1;
    const struct radix_state s = scratch.states[row];
    const BITS mask = static_cast<BITS>(s.key_mask), prefix = static_cast<BITS>(s.key_prefix);
    int held = 0;
    BITS bits[ITEMS];

    for (int64_t base = blockIdx.x * tile; base < rows.n; base += gridDim.x * tile) {
        topk_load(topk_row<BITS>(rows, row), base, rows.n, bits);
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int64_t i = base + threadIdx.x + j * RADIX_BLOCK;
            const BITS known = topk_key<REAL>(bits[j], rows.flip) & mask;
            const bool tail_fits = ((tail_last - i) & s.tail_mask) >= s.tail_prefix;
            const bool is_selected =
                i < rows.n && (known > prefix || (known == prefix && tail_fits));
            const unsigned selected = __ballot_sync(0xffffffffu, is_selected);

            if (selected == 0)
                continue;
            if (held > RADIX_STASH - 32) {
                radix_flush(rows, row, &scratch.states[row], stash, held);
                held = 0;
            }
            if (is_selected)
                stash[held + __popc(selected & lower_lanes)] = i;
            held += __popc(selected);
        }
    }
    radix_flush(rows, row, &scratch.states[row], stash, held);
}

/* Puts the elements whose indices were gathered where the answer or its sort wants them. */
template <typename BITS, bool REAL>
static __global__ void __launch_bounds__(RADIX_BLOCK)
    topk_radix_emit_kernel(struct topk_rows rows, struct topk_pairs pairs)
{
    const int64_t slot = static_cast<int64_t>(blockIdx.x) * RADIX_BLOCK + threadIdx.x;
    const int64_t row = blockIdx.y, at = row * rows.k + slot;

    if (slot >= rows.k)
        return;

    const int64_t index = rows.indices[at];

    topk_emit<BITS, REAL>(rows, pairs, at, topk_row<BITS>(rows, row)[index], index);
}

/* --- launching ------------------------------------------------------------------------------------ */

static struct radix_plan radix_plan_for(const struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);
    const size_t bins = RADIX_BINS * sizeof(radix_count);
    struct radix_plan plan;

    plan.rows_at_once =
        topk_rows_at_once(o, sizeof(struct radix_state) + bins + topk_sort_scratch(ctx, 1));
    plan.state_bytes = plan.rows_at_once * sizeof(struct radix_state);
    plan.bin_bytes = plan.rows_at_once * bins;
    plan.sort_bytes = topk_sort_scratch(ctx, plan.rows_at_once);
    return plan;
}

/* All digits of the key or of the tail, best first. */
template <typename BITS, bool REAL>
static void radix_find(struct topk_rows rows, struct radix_scratch scratch, dim3 grid, bool is_tail,
                       cudaStream_t stream)
{
    const int total = is_tail ? radix_tail_bits(rows.n) : static_cast<int>(8 * sizeof(BITS));

    for (int digit = 0; digit * RADIX_BITS < total; digit++) {
        const struct radix_digit d = radix_digit_at(digit, total, is_tail);

        topk_radix_count_kernel<BITS, REAL><<<grid, RADIX_BLOCK, 0, stream>>>(rows, scratch, d);
        topk_radix_pick_kernel<<<grid.y, RADIX_PICK_BLOCK, 0, stream>>>(scratch, d);
    }
}

template <typename BITS, bool REAL>
static enum gpurun_status radix_run(struct gpurun_ctx *ctx, struct radix_plan plan)
{
    const struct topk_options *o = topk_options_of(ctx);
    const cudaStream_t stream = gpurun_cuda_stream(ctx);
    char *free_scratch = static_cast<char *>(ctx->scratch);
    struct radix_scratch scratch;

    scratch.states = static_cast<struct radix_state *>(topk_carve(&free_scratch, plan.state_bytes));
    scratch.bins = static_cast<radix_count *>(topk_carve(&free_scratch, plan.bin_bytes));
    scratch.pairs.items = o->sorted ? free_scratch : NULL;
    scratch.pairs.is_wide = topk_sort_is_wide(ctx);
    for (int64_t first = 0; first < o->rows; first += plan.rows_at_once) {
        const int64_t left = o->rows - first;
        const unsigned count =
            static_cast<unsigned>(left < plan.rows_at_once ? left : plan.rows_at_once);
        const struct topk_rows rows = topk_rows_from(ctx, first);
        const dim3 grid(radix_blocks(ctx, count), count);
        const dim3 slots(static_cast<unsigned>((rows.k + RADIX_BLOCK - 1) / RADIX_BLOCK), count);

        topk_radix_begin_kernel<<<count, RADIX_BLOCK, 0, stream>>>(rows, scratch);
        radix_find<BITS, REAL>(rows, scratch, grid, false, stream);
        radix_find<BITS, REAL>(rows, scratch, grid, true, stream);
        topk_radix_gather_kernel<BITS, REAL><<<grid, RADIX_BLOCK, 0, stream>>>(rows, scratch);
        topk_radix_emit_kernel<BITS, REAL><<<slots, RADIX_BLOCK, 0, stream>>>(rows, scratch.pairs);
        GPURUN_LAUNCH_TRY(ctx);
        if (o->sorted)
            GPURUN_TRY(topk_launch_sort(ctx, free_scratch, first, count));
    }
    return GPURUN_OK;
}

enum gpurun_status topk_radix_supported(struct gpurun_ctx *ctx)
{
    const struct topk_options *o = topk_options_of(ctx);

    if (!o->distinct)
        return topk_sort_supported(ctx);
    if (o->k <= RADIX_DISTINCT_K_MAX)
        return GPURUN_OK;
    return gpurun_fail(
        ctx, GPURUN_UNSUPPORTED, "k",
        "distinct keeps a bitmap of 8 KiB for each of k values: k = %lld is above %d",
        static_cast<long long>(o->k), RADIX_DISTINCT_K_MAX);
}

size_t topk_radix_scratch(struct gpurun_ctx *ctx)
{
    const struct radix_plan plan = radix_plan_for(ctx);

    if (topk_options_of(ctx)->distinct)
        return topk_radix_distinct_scratch(ctx);
    return topk_align(plan.state_bytes) + topk_align(plan.bin_bytes) + plan.sort_bytes;
}

enum gpurun_status topk_launch_radix(struct gpurun_ctx *ctx)
{
    if (topk_options_of(ctx)->distinct)
        return topk_launch_radix_distinct(ctx);
    return TOPK_DISPATCH(topk_state_of(ctx), radix_run, ctx, radix_plan_for(ctx));
}
