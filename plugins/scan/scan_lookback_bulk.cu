/*
 * scan, variant "lookback" on Hopper: the same pass, with a warp for each of its parts.
 *
 * Mapping  a persistent block per SM; one warp each claims and copies tiles and publishes their sums; 8
 *          sum tiles as soon as they land, 16 scan them, 3 or 5 rows of vectors each; 2 look back, in turn.
 * Memory   reads and writes everything once; the copy engine fills a ring of up to 5 tiles, results leave
 *          from registers.
 * Bound    memory: the sum of a tile is out one load latency after its claim, whatever is waited for.
 * Limits   sm_90 and room for 3 tiles in shared memory; a float result is a chain of at most 45 additions.
 *
 * Why nothing waits for ever: a tile is claimed only when there is a free slot to copy it to, and from the
 * claim to the publication of its sum only the copy is waited for. The look-back waits for tiles with lower
 * numbers, which were claimed before. Scanning waits for the look-back, and frees the slot.
 */
#include "gpurun/copy_engine.cuh"
#include "scan_lookback.cuh"

enum {
    BULK_SCAN_WARPS = 16,
    BULK_SUM_WARPS = 8,
    BULK_COPY_WARP = BULK_SCAN_WARPS + BULK_SUM_WARPS,
    BULK_PUBLISH_WARP,
    BULK_LOOK_WARP,
    BULK_LOOK_WARPS = 2, /* a tile each, as each waits for others' sums */
    BULK_WARPS = BULK_LOOK_WARP + BULK_LOOK_WARPS,
    BULK_BLOCK = BULK_WARPS * 32,
    BULK_SLOTS = 5, /* at most */
    BULK_SLOTS_MIN = 3,
    BULK_SHARED_STATIC = 2048, /* at least what struct bulk_ring takes */
    BULK_TILES_PER_SM = 2,     /* with fewer, scan_lookback.cu is quicker */
};

/* Vectors of a scanning thread: registers hold 16 unpacked elements of each. */
static inline __host__ __device__ constexpr int bulk_rows(size_t acc_bytes)
{
    return acc_bytes == 1 ? 3 : 5;
}

/* Elements of a tile. */
static inline __host__ __device__ constexpr int bulk_tile_elems(size_t acc_bytes)
{
    return BULK_SCAN_WARPS * bulk_rows(acc_bytes) * LOOKBACK_ROW / static_cast<int>(acc_bytes);
}

/* Bytes of the input that a tile is, and that a warp scans. */
#define BULK_TILE(IN, ACC)  (bulk_tile_elems(sizeof(ACC)) * static_cast<int>(sizeof(IN)))
#define BULK_CHUNK(IN, ACC) (BULK_TILE(IN, ACC) / BULK_SCAN_WARPS)

/* The four barriers of a slot complete once each time the slot is used, in this order: it is full, its
 * warps' sums are there, what is before it is there, and it is free again. */
template <typename ACC> struct bulk_ring {
    uint64_t full[BULK_SLOTS], summed[BULK_SLOTS], placed[BULK_SLOTS], empty[BULK_SLOTS];
    int64_t tiles[BULK_SLOTS]; /* below 0: there are no more */
    unsigned tags[BULK_SLOTS];
    ACC sums[BULK_SLOTS][BULK_SCAN_WARPS];
    ACC before[BULK_SLOTS];
};

/* A role's place in the ring. */
struct bulk_place {
    int slot;
    unsigned phase;
};

#if GPURUN_COPY_ENGINE

static __device__ __forceinline__ void bulk_step(struct bulk_place *at, int slots)
{
    if (++at->slot < slots)
        return;
    at->slot = 0;
    at->phase ^= 1;
}

/* --- copying ------------------------------------------------------------------------------------------ */

/* Fills a slot with those elements of the tile that exist: whole vectors by the copy engine, the few at
 * either end of the array one by one. Lane 0 alone does it all, so that its arrival covers its stores. */
template <typename IN, typename ACC>
static __device__ __forceinline__ void bulk_fill(const struct lookback_args<IN, ACC> &args,
                                                 int64_t tile, IN *slot, uint64_t *full)
{
    const int length = bulk_tile_elems(sizeof(ACC)), count = LOOKBACK_ALIGN / sizeof(IN);
    const int64_t first = tile * length;
    const int lane = threadIdx.x % 32;
    const int low = args.begin > first ? static_cast<int>(args.begin - first) : 0;
    const int high = args.end - first < length ? static_cast<int>(args.end - first) : length;
    const int low_whole = (low + count - 1) / count * count, high_whole = high / count * count;
    const int elems = high_whole > low_whole ? high_whole - low_whole : 0;
    const unsigned bytes = static_cast<unsigned>(elems * sizeof(IN));

    if (lane != 0)
        return;
    for (int i = low; i < low_whole && i < high; i++)
        slot[i] = args.in[first + i];
    for (int i = high_whole > low_whole ? high_whole : low_whole; i < high; i++)
        slot[i] = args.in[first + i];
    if (elems < length)
        gpurun_copy_fence(); /* the next copy to this slot comes after these stores */
    gpurun_barrier_arrive_expect(full, bytes);
    if (bytes > 0)
        gpurun_copy_bulk(slot + low_whole, args.in + first + low_whole, bytes, full);
}

/* Claims tiles as slots become free. Every block stops at its first claim past the last tile, so the very
 * last claim is known, and makes the counter ready for the next launch. */
template <typename IN, typename ACC>
static __device__ __forceinline__ void bulk_copy_role(const struct lookback_args<IN, ACC> &args,
                                                      struct bulk_ring<ACC> *ring,
                                                      unsigned char *slots, int slot_count)
{
    const lookback_word last = static_cast<lookback_word>(args.tiles) + gridDim.x - 1;
    struct bulk_place at = {0, 0};

    for (;;) {
        lookback_word claim = 0;

        if (threadIdx.x % 32 == 0) {
            gpurun_barrier_wait(&ring->empty[at.slot], at.phase ^ 1);
            claim = atomicAdd(args.counter, 1ull);
        }
        __syncwarp();
        claim = scan_warp_at(claim, 0);

        const int64_t tile = static_cast<int64_t>(claim & 0xffffffffull);
        const bool is_end = tile >= args.tiles;

        if (threadIdx.x % 32 == 0) {
            ring->tiles[at.slot] = is_end ? -1 : tile;
            ring->tags[at.slot] = static_cast<unsigned>(claim >> 32) + 1;
            if (is_end)
                gpurun_barrier_arrive(&ring->full[at.slot]);
            if (static_cast<lookback_word>(tile) == last)
                atomicExch(args.counter, ((claim >> 32) + 1) << 32);
        }
        if (is_end)
            return;
        bulk_fill(args, tile, reinterpret_cast<IN *>(slots + at.slot * BULK_TILE(IN, ACC)),
                  &ring->full[at.slot]);
        bulk_step(&at, slot_count);
    }
}

/* --- sums --------------------------------------------------------------------------------------------- */

/* A warp's vectors of its chunk in a slot. */
template <typename IN, typename ACC, int ROWS>
static __device__ __forceinline__ void bulk_read(const unsigned char *chunk,
                                                 union lookback_vector<IN, ACC> (&x)[ROWS])
{
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        lookback_copy(x[j].words, chunk + (j * 32 + threadIdx.x % 32) * sizeof(x[j]));
}

/* Number of the first element of the lane's first vector in a chunk. */
template <typename ACC>
static __device__ __forceinline__ int64_t bulk_first(int64_t tile, int chunk)
{
    const int64_t row = (tile * BULK_SCAN_WARPS + chunk) * bulk_rows(sizeof(ACC));

    return (row * 32 + threadIdx.x % 32) * static_cast<int>(LOOKBACK_VECTOR / sizeof(ACC));
}

template <typename IN, typename ACC>
static __device__ __forceinline__ bool bulk_is_whole(const struct lookback_args<IN, ACC> &args,
                                                     int64_t tile)
{
    const int64_t elems = bulk_tile_elems(sizeof(ACC));

    return tile * elems >= args.begin && (tile + 1) * elems <= args.end;
}

template <typename IN, typename ACC, int OP, int ROWS, bool EDGE>
static __device__ __forceinline__ ACC
bulk_chunk_sum(const struct lookback_args<IN, ACC> &args, int64_t first,
               const union lookback_vector<IN, ACC> (&x)[ROWS])
{
    ACC sum = args.identity;

#pragma unroll
    for (int j = 0; j < ROWS; j++)
        sum = scan_join<OP>(
            sum, lookback_join<IN, ACC, OP, EDGE>(args, lookback_row<ACC>(first, j), x[j]));
    return scan_warp_total<OP>(sum);
}

template <typename IN, typename ACC, int OP>
static __device__ __forceinline__ void bulk_sum_role(const struct lookback_args<IN, ACC> &args,
                                                     struct bulk_ring<ACC> *ring,
                                                     const unsigned char *slots, int slot_count)
{
    enum { ROWS = bulk_rows(sizeof(ACC)) };
    const int warp = threadIdx.x / 32 - BULK_SCAN_WARPS;

    for (struct bulk_place at = {0, 0};; bulk_step(&at, slot_count)) {
        gpurun_barrier_wait(&ring->full[at.slot], at.phase);

        const int64_t tile = ring->tiles[at.slot];

        if (tile < 0)
            return;
        for (int chunk = warp; chunk < BULK_SCAN_WARPS; chunk += BULK_SUM_WARPS) {
            const int64_t first = bulk_first<ACC>(tile, chunk);
            union lookback_vector<IN, ACC> x[ROWS];
            ACC sum;

            bulk_read(slots + at.slot * BULK_TILE(IN, ACC) + chunk * BULK_CHUNK(IN, ACC), x);
            if (bulk_is_whole(args, tile))
                sum = bulk_chunk_sum<IN, ACC, OP, ROWS, false>(args, first, x);
            else
                sum = bulk_chunk_sum<IN, ACC, OP, ROWS, true>(args, first, x);
            if (threadIdx.x % 32 == 0)
                ring->sums[at.slot][chunk] = sum;
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            gpurun_barrier_arrive(&ring->summed[at.slot]);
    }
}

template <typename IN, typename ACC, int OP>
static __device__ __forceinline__ void bulk_publish_role(const struct lookback_args<IN, ACC> &args,
                                                         struct bulk_ring<ACC> *ring,
                                                         int slot_count)
{
    const int lane = threadIdx.x % 32;

    for (struct bulk_place at = {0, 0};; bulk_step(&at, slot_count)) {
        gpurun_barrier_wait(&ring->full[at.slot], at.phase);

        const int64_t tile = ring->tiles[at.slot];
        const unsigned tag = ring->tags[at.slot];

        if (tile < 0)
            return;
        gpurun_barrier_wait(&ring->summed[at.slot], at.phase);

        const ACC sum =
            scan_warp_total<OP>(lane < BULK_SCAN_WARPS ? ring->sums[at.slot][lane] : args.identity);

        if (lane == 0)
            lookback_publish(args.sums + tile * lookback_words<ACC>(), tag, sum);
        __syncwarp();
        if (lane == 0)
            gpurun_barrier_arrive(&ring->empty[at.slot]);
    }
}

/* --- looking back ------------------------------------------------------------------------------------- */

/* Tiles before `tile` in the group that begins at `first`. */
static __device__ __forceinline__ int bulk_group_count(int64_t tile, int64_t first)
{
    return tile - first < LOOKBACK_GROUP ? static_cast<int>(tile - first)
                                         : static_cast<int>(LOOKBACK_GROUP);
}

/* Keeps what is before one group of tiles. */
template <typename ACC, int OP> struct bulk_seen {
    typename lookback_types<ACC, OP>::BASE base;
    int64_t first; /* tile of the group */
};

/* What is before a tile. Moves on to the tile's group; the next group is read while one is waited for. */
template <typename IN, typename ACC, int OP>
static __device__ __forceinline__ ACC bulk_look(const struct lookback_args<IN, ACC> &args,
                                                struct bulk_seen<ACC, OP> *seen, int64_t tile,
                                                unsigned tag)
{
    lookback_word words[LOOKBACK_SLOTS][lookback_words<ACC>()];
    lookback_word next[LOOKBACK_SLOTS][lookback_words<ACC>()];
    int count = bulk_group_count(tile, seen->first);

    lookback_fetch<ACC>(args.sums, seen->first, count, words);
    while (tile - seen->first >= LOOKBACK_GROUP) {
        const int64_t after = seen->first + LOOKBACK_GROUP;

        count = bulk_group_count(tile, after);
        lookback_fetch<ACC>(args.sums, after, count, next);
        lookback_take<OP>(&seen->base,
                          lookback_group<ACC, OP>(args.sums, seen->first, LOOKBACK_GROUP, tag,
                                                  args.identity, words));
        memcpy(words, next, sizeof(words));
        seen->first = after;
    }
    return scan_join<OP>(
        lookback_value<ACC>(seen->base),
        lookback_group<ACC, OP>(args.sums, seen->first, count, tag, args.identity, words));
}

/* The warps take tiles in turn. Each steps through all, so that it meets the end. */
template <typename IN, typename ACC, int OP>
static __device__ __forceinline__ void bulk_look_role(const struct lookback_args<IN, ACC> &args,
                                                      struct bulk_ring<ACC> *ring, int slot_count)
{
    struct bulk_seen<ACC, OP> seen;
    int turn = threadIdx.x / 32 - BULK_LOOK_WARP; /* 0: this warp's */

    seen.first = 0;
    lookback_begin(&seen.base, args.init);
    for (struct bulk_place at = {0, 0};; bulk_step(&at, slot_count)) {
        gpurun_barrier_wait(&ring->full[at.slot], at.phase);

        const int64_t tile = ring->tiles[at.slot];
        const unsigned tag = ring->tags[at.slot];

        if (tile < 0)
            return;
        if (turn == 0) {
            const ACC before = bulk_look(args, &seen, tile, tag);

            if (threadIdx.x % 32 == 0) {
                ring->before[at.slot] = before;
                gpurun_barrier_arrive(&ring->placed[at.slot]);
            }
        }
        turn = turn == 0 ? BULK_LOOK_WARPS - 1 : turn - 1;
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            gpurun_barrier_arrive(&ring->empty[at.slot]);
    }
}

/* --- scanning ----------------------------------------------------------------------------------------- */

template <typename IN, typename ACC, int OP, bool EDGE>
static __device__ __forceinline__ void
bulk_scan_chunk(const struct lookback_args<IN, ACC> &args, struct bulk_ring<ACC> *ring,
                struct bulk_place at, int64_t tile, const unsigned char *slots)
{
    enum { ROWS = bulk_rows(sizeof(ACC)) };
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t first = bulk_first<ACC>(tile, warp);
    union lookback_vector<IN, ACC> x[ROWS];
    ACC before[ROWS];

    bulk_read(slots + at.slot * BULK_TILE(IN, ACC) + warp * BULK_CHUNK(IN, ACC), x);
    lookback_rows<IN, ACC, OP, ROWS, EDGE>(args, first, x, before);
    gpurun_barrier_wait(&ring->summed[at.slot], at.phase);

    const ACC left = scan_warp_total<OP>(lane < warp ? ring->sums[at.slot][lane] : args.identity);

    gpurun_barrier_wait(&ring->placed[at.slot], at.phase);

    const ACC base = scan_join<OP>(ring->before[at.slot], left);

    __syncwarp();
    if (lane == 0)
        gpurun_barrier_arrive(&ring->empty[at.slot]);
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        lookback_write<IN, ACC, OP, EDGE>(args, lookback_row<ACC>(first, j), x[j],
                                          scan_join<OP>(base, before[j]));
}

template <typename IN, typename ACC, int OP>
static __device__ __forceinline__ void bulk_scan_role(const struct lookback_args<IN, ACC> &args,
                                                      struct bulk_ring<ACC> *ring,
                                                      const unsigned char *slots, int slot_count)
{
    for (struct bulk_place at = {0, 0};; bulk_step(&at, slot_count)) {
        gpurun_barrier_wait(&ring->full[at.slot], at.phase);

        const int64_t tile = ring->tiles[at.slot];

        if (tile < 0)
            return;
        if (bulk_is_whole(args, tile))
            bulk_scan_chunk<IN, ACC, OP, false>(args, ring, at, tile, slots);
        else
            bulk_scan_chunk<IN, ACC, OP, true>(args, ring, at, tile, slots);
    }
}

template <typename ACC> static __device__ __forceinline__ void bulk_begin(struct bulk_ring<ACC> *r)
{
    if (threadIdx.x == 0) {
        for (int slot = 0; slot < BULK_SLOTS; slot++) {
            gpurun_barrier_make(&r->full[slot], 1);
            gpurun_barrier_make(&r->summed[slot], BULK_SUM_WARPS);
            gpurun_barrier_make(&r->placed[slot], 1);
            /* Whoever reads what the copier writes: scanners, publisher, those who look back. */
            gpurun_barrier_make(&r->empty[slot], BULK_SCAN_WARPS + 1 + BULK_LOOK_WARPS);
        }
        gpurun_copy_fence();
    }
    __syncthreads();
}
#endif

template <typename IN, typename ACC, int OP>
static __global__ void __launch_bounds__(BULK_BLOCK, 1)
    scan_lookback_bulk_kernel(struct lookback_args<IN, ACC> args, int slot_count)
{
#if GPURUN_COPY_ENGINE
    extern __shared__ __align__(128) unsigned char bulk_slots[];
    __shared__ struct bulk_ring<ACC> ring;
    const int warp = threadIdx.x / 32;

    bulk_begin(&ring);
    if (warp < BULK_SCAN_WARPS)
        bulk_scan_role<IN, ACC, OP>(args, &ring, bulk_slots, slot_count);
    else if (warp < BULK_COPY_WARP)
        bulk_sum_role<IN, ACC, OP>(args, &ring, bulk_slots, slot_count);
    else if (warp == BULK_COPY_WARP)
        bulk_copy_role(args, &ring, bulk_slots, slot_count);
    else if (warp == BULK_PUBLISH_WARP)
        bulk_publish_role<IN, ACC, OP>(args, &ring, slot_count);
    else
        bulk_look_role<IN, ACC, OP>(args, &ring, slot_count);
#endif
}

static int bulk_job_tile(const struct gpurun_ctx *ctx)
{
    const struct scan_state *s = scan_state_of(ctx);

    return bulk_tile_elems(gpurun_dtype_bytes(s->acc)) *
           static_cast<int>(gpurun_dtype_bytes(s->dtype));
}

static int bulk_slot_count(const struct gpurun_ctx *ctx)
{
    const size_t bytes = ctx->device.shared_bytes, tile = bulk_job_tile(ctx);
    const size_t slots = bytes > BULK_SHARED_STATIC ? (bytes - BULK_SHARED_STATIC) / tile : 0;

    return slots < BULK_SLOTS ? static_cast<int>(slots) : static_cast<int>(BULK_SLOTS);
}

/* Older virtual code, compiled by the driver for this device, has an empty kernel. */
static bool bulk_was_compiled()
{
    struct cudaFuncAttributes attributes;

    return cudaFuncGetAttributes(&attributes,
                                 scan_lookback_bulk_kernel<uint32_t, uint32_t, SCAN_SUM>) ==
               cudaSuccess &&
           attributes.ptxVersion >= 90;
}

bool scan_lookback_bulk_fits(struct gpurun_ctx *ctx)
{
    const struct scan_state *s = scan_state_of(ctx);
    const size_t bytes = scan_options_of(ctx)->n * gpurun_dtype_bytes(s->dtype);

    return ctx->device.compute >= 90 && bulk_slot_count(ctx) >= BULK_SLOTS_MIN &&
           bytes / bulk_job_tile(ctx) >=
               static_cast<size_t>(BULK_TILES_PER_SM) * ctx->device.sm_count &&
           bulk_was_compiled();
}

template <typename IN, typename ACC, int OP>
static enum gpurun_status bulk_run(struct gpurun_ctx *ctx)
{
    const struct lookback_args<IN, ACC> args =
        lookback_args_of<IN, ACC>(ctx, bulk_tile_elems(sizeof(ACC)));
    const int slot_count = bulk_slot_count(ctx), shared_bytes = slot_count * BULK_TILE(IN, ACC);

    static_assert(sizeof(struct bulk_ring<ACC>) <= BULK_SHARED_STATIC, "the ring has room");
    GPURUN_CUDA_TRY(ctx, cudaFuncSetAttribute(scan_lookback_bulk_kernel<IN, ACC, OP>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              shared_bytes));
    scan_lookback_bulk_kernel<IN, ACC, OP>
        <<<static_cast<unsigned>(ctx->device.sm_count), BULK_BLOCK, shared_bytes,
           gpurun_cuda_stream(ctx)>>>(args, slot_count);
    GPURUN_LAUNCH_TRY(ctx);
    return GPURUN_OK;
}

enum gpurun_status scan_launch_lookback_bulk(struct gpurun_ctx *ctx)
{
    return SCAN_DISPATCH(ctx, bulk_run, ctx);
}
