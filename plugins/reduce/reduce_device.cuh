/*
 * What the kernels of reduce share: the job as they are given it, and the operations. An operation is a type
 * that names what an element is (IN) and what it is accumulated in (ACC), and says how one becomes the other
 * (take), how two results become one (join), and how the last one is written. none() joins without effect.
 */
#ifndef REDUCE_DEVICE_CUH
#define REDUCE_DEVICE_CUH

#include "gpurun/cuda.h"
#include "reduce.h"
#include "reduce_key.h"

struct reduce_job {
    const void *in;
    void *value;
    int64_t *index;
    int64_t n;
    uint64_t flip;
};

/* A best element so far; 64-bit keys throughout, so that no byte of it is padding. */
struct __align__(16) reduce_place_of
{
    uint64_t key;
    int64_t index;
};

/* reduce_key32 and reduce_key64, of reals without a branch: adding 0 joins the zeros. */
template <bool REAL>
static __device__ __forceinline__ uint32_t reduce_key(uint32_t bits, uint64_t flip)
{
    if constexpr (REAL) {
        const float x = __fadd_rn(__uint_as_float(bits), 0.0f);
        const int32_t b = __float_as_int(x);
        const uint32_t key = static_cast<uint32_t>((b >> 31 | INT32_MIN) ^ b);

        return x != x ? UINT32_MAX : key ^ static_cast<uint32_t>(flip);
    } else {
        return reduce_key32(bits, false, static_cast<uint32_t>(flip));
    }
}

template <bool REAL>
static __device__ __forceinline__ uint64_t reduce_key(uint64_t bits, uint64_t flip)
{
    if constexpr (REAL) {
        const double x = __dadd_rn(__longlong_as_double(static_cast<long long>(bits)), 0.0);
        const int64_t b = __double_as_longlong(x);
        const uint64_t key = static_cast<uint64_t>((b >> 63 | INT64_MIN) ^ b);

        return x != x ? UINT64_MAX : key ^ flip;
    } else {
        return reduce_key64(bits, false, flip);
    }
}

template <bool REAL>
static __device__ __forceinline__ uint32_t reduce_unkey(uint32_t key, uint64_t flip)
{
    return reduce_unkey32(key, REAL, static_cast<uint32_t>(flip));
}

template <bool REAL>
static __device__ __forceinline__ uint64_t reduce_unkey(uint64_t key, uint64_t flip)
{
    return reduce_unkey64(key, REAL, flip);
}

/* Sums; whole numbers are unsigned once they are accumulated, as they wrap. */
template <typename ELEMENT, typename NUMBER, bool IS_REAL, typename RESULT = NUMBER>
struct reduce_sum {
    typedef ELEMENT IN;
    typedef NUMBER ACC;
    static constexpr bool REAL_SUM = IS_REAL, PLACE = false, SUM = true;

    static __device__ __forceinline__ ACC none()
    {
        return 0;
    }
    static __device__ __forceinline__ ACC take(IN x, int64_t, uint64_t)
    {
        return static_cast<ACC>(x);
    }
    static __device__ __forceinline__ ACC join(ACC a, ACC b)
    {
        return a + b;
    }
    static __device__ __forceinline__ void write(const struct reduce_job &job, ACC total)
    {
        *static_cast<RESULT *>(job.value) = static_cast<RESULT>(total);
    }
};

/* min and max: the largest key. */
template <typename BITS, bool REAL> struct reduce_best {
    typedef BITS IN;
    typedef BITS ACC;
    static constexpr bool REAL_SUM = false, PLACE = false, SUM = false;

    static __device__ __forceinline__ ACC none()
    {
        return 0;
    }
    static __device__ __forceinline__ ACC take(IN x, int64_t, uint64_t flip)
    {
        return reduce_key<REAL>(x, flip);
    }
    static __device__ __forceinline__ ACC join(ACC a, ACC b)
    {
        return a > b ? a : b;
    }
    static __device__ __forceinline__ void write(const struct reduce_job &job, ACC key)
    {
        *static_cast<BITS *>(job.value) = reduce_unkey<REAL>(key, job.flip);
    }
};

/* argmin and argmax: the largest key, of equal ones the lowest index. */
template <typename BITS, bool REAL> struct reduce_place {
    typedef BITS IN;
    typedef struct reduce_place_of ACC;
    static constexpr bool REAL_SUM = false, PLACE = true, SUM = false;

    static __device__ __forceinline__ ACC at(BITS key, int64_t index)
    {
        const ACC place = {key, index};

        return place;
    }
    static __device__ __forceinline__ BITS key(IN x, uint64_t flip)
    {
        return reduce_key<REAL>(x, flip);
    }
    static __device__ __forceinline__ ACC none()
    {
        return at(0, INT64_MAX);
    }
    static __device__ __forceinline__ ACC take(IN x, int64_t index, uint64_t flip)
    {
        return at(key(x, flip), index);
    }
    static __device__ __forceinline__ ACC join(ACC a, ACC b)
    {
        return b.key > a.key || (b.key == a.key && b.index < a.index) ? b : a;
    }
    static __device__ __forceinline__ void write(const struct reduce_job &job, ACC place)
    {
        *job.index = place.index;
        *static_cast<BITS *>(job.value) = static_cast<const BITS *>(job.in)[place.index];
    }
};

typedef reduce_sum<uint32_t, uint32_t, false> reduce_sum_32;
typedef reduce_sum<int32_t, uint64_t, false> reduce_sum_int32_wide;
typedef reduce_sum<uint32_t, uint64_t, false> reduce_sum_uint32_wide;
typedef reduce_sum<uint64_t, uint64_t, false> reduce_sum_64;
typedef reduce_sum<float, float, true> reduce_sum_float;
typedef reduce_sum<float, double, true> reduce_sum_float_wide;
typedef reduce_sum<double, double, true> reduce_sum_double;
typedef reduce_best<uint32_t, false> reduce_best_32;
typedef reduce_best<uint32_t, true> reduce_best_float;
typedef reduce_best<uint64_t, false> reduce_best_64;
typedef reduce_best<uint64_t, true> reduce_best_double;
typedef reduce_place<uint32_t, false> reduce_place_32;
typedef reduce_place<uint32_t, true> reduce_place_float;
typedef reduce_place<uint64_t, false> reduce_place_64;
typedef reduce_place<uint64_t, true> reduce_place_double;

/* Calls function<OPERATION>(...) for a kind. */
#define REDUCE_DISPATCH(kind, function, ...)                                                       \
    ((kind) == REDUCE_SUM_32            ? function<reduce_sum_32>(__VA_ARGS__)                     \
     : (kind) == REDUCE_SUM_INT32_WIDE  ? function<reduce_sum_int32_wide>(__VA_ARGS__)             \
     : (kind) == REDUCE_SUM_UINT32_WIDE ? function<reduce_sum_uint32_wide>(__VA_ARGS__)            \
     : (kind) == REDUCE_SUM_64          ? function<reduce_sum_64>(__VA_ARGS__)                     \
     : (kind) == REDUCE_SUM_FLOAT       ? function<reduce_sum_float>(__VA_ARGS__)                  \
     : (kind) == REDUCE_SUM_FLOAT_WIDE  ? function<reduce_sum_float_wide>(__VA_ARGS__)             \
     : (kind) == REDUCE_SUM_DOUBLE      ? function<reduce_sum_double>(__VA_ARGS__)                 \
     : (kind) == REDUCE_BEST_32         ? function<reduce_best_32>(__VA_ARGS__)                    \
     : (kind) == REDUCE_BEST_FLOAT      ? function<reduce_best_float>(__VA_ARGS__)                 \
     : (kind) == REDUCE_BEST_64         ? function<reduce_best_64>(__VA_ARGS__)                    \
     : (kind) == REDUCE_BEST_DOUBLE     ? function<reduce_best_double>(__VA_ARGS__)                \
     : (kind) == REDUCE_PLACE_32        ? function<reduce_place_32>(__VA_ARGS__)                   \
     : (kind) == REDUCE_PLACE_FLOAT     ? function<reduce_place_float>(__VA_ARGS__)                \
     : (kind) == REDUCE_PLACE_64        ? function<reduce_place_64>(__VA_ARGS__)                   \
                                        : function<reduce_place_double>(__VA_ARGS__))

static inline struct reduce_job reduce_job_of(const struct gpurun_ctx *ctx)
{
    const struct reduce_state *s = reduce_state_of(ctx);
    struct reduce_job job;

    job.in = s->in->dev;
    job.value = s->value->dev;
    job.index = s->index ? static_cast<int64_t *>(s->index->dev) : NULL;
    job.n = reduce_options_of(ctx)->n;
    job.flip = s->flip;
    return job;
}

/* Bytes of one result, or a little more. */
static inline size_t reduce_acc_bytes(const struct gpurun_ctx *ctx)
{
    return reduce_is_place(reduce_state_of(ctx)->kind) ? sizeof(struct reduce_place_of)
                                                       : sizeof(uint64_t);
}

/* Whether one block per `tile` elements fits a grid. */
static inline enum gpurun_status reduce_check_grid(struct gpurun_ctx *ctx, int64_t tile)
{
    const int64_t n = reduce_options_of(ctx)->n;

    if (n / tile < INT32_MAX)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "n",
                       "one block per %lld elements: %lld elements are more than a grid holds",
                       static_cast<long long>(tile), static_cast<long long>(n));
}

#endif
