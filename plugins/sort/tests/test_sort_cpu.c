/*
 * The baseline against a merge sort of indices that shares nothing with it, on data and at sizes that each of its
 * steps could trip over. Arrays are allocated to the byte, so that a sanitizer sees any step outside them.
 */
#include "sort.h"
#include "sort_cpu_keys.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the other sort ---------------------------------------------------------------------------------- */

/* The other sort is not what sanitizers are to watch, and most of the time is spent in it. */
#define UNWATCHED __attribute__((no_sanitize("address", "undefined")))

/* Whether element a goes strictly before element b; NaN is last both ways. */
UNWATCHED static bool goes_before(enum gpurun_dtype dtype, bool descending, const void *data,
                                  int64_t a, int64_t b)
{
#define COMPARE(type)                                                                              \
    do {                                                                                           \
        const type x = ((const type *)data)[a], y = ((const type *)data)[b];                       \
        return descending ? x > y : x < y;                                                         \
    } while (0)
#define COMPARE_REAL(type)                                                                         \
    do {                                                                                           \
        const type x = ((const type *)data)[a], y = ((const type *)data)[b];                       \
        if (isnan(x) || isnan(y))                                                                  \
            return !isnan(x);                                                                      \
        return descending ? x > y : x < y;                                                         \
    } while (0)

    switch (dtype) {
    case GPURUN_INT32:
        COMPARE(int32_t);
    case GPURUN_UINT32:
        COMPARE(uint32_t);
    case GPURUN_INT64:
        COMPARE(int64_t);
    case GPURUN_UINT64:
        COMPARE(uint64_t);
    case GPURUN_FLOAT:
        COMPARE_REAL(float);
    default:
        COMPARE_REAL(double);
    }
}

struct order {
    enum gpurun_dtype dtype;
    bool descending;
    const void *data;
};

/* Sorts `from`, begin to end, into `to`; `from` is spoilt. Both hold the same indices at first. */
UNWATCHED static void merge_sort(const struct order *o, int64_t *from, int64_t *to, int64_t begin,
                                 int64_t end)
{
    const int64_t middle = begin + (end - begin) / 2;
    int64_t a = begin, b = middle;

    if (end - begin < 2)
        return;
    merge_sort(o, to, from, begin, middle);
    merge_sort(o, to, from, middle, end);
    for (int64_t i = begin; i < end; i++) {
        const bool take_b = a == middle || (b < end && goes_before(o->dtype, o->descending, o->data,
                                                                   from[b], from[a]));

        to[i] = take_b ? from[b++] : from[a++];
    }
}

static int64_t *sorted_indices(const struct order *o, int64_t n)
{
    int64_t *to = malloc((size_t)(n + 1) * sizeof(*to));
    int64_t *from = malloc((size_t)(n + 1) * sizeof(*from));

    for (int64_t i = 0; i < n; i++)
        from[i] = to[i] = i;
    merge_sort(o, from, to, 0, n);
    free(from);
    return to;
}

/* --- the baseline ---------------------------------------------------------------------------------------- */

static char reason[128];

static enum gpurun_status fake_fail(struct gpurun_ctx *ctx, enum gpurun_status status,
                                    const char *key, const char *format, ...)
{
    (void)ctx;
    snprintf(reason, sizeof(reason), "%s: %s", key, format);
    return status;
}

static const struct gpurun_core fake_core = {.struct_size = sizeof(struct gpurun_core),
                                             .fail = fake_fail};

struct run {
    struct order order;
    int64_t n;
    size_t value_bytes;
    int threads;
    void *sorted, *values;
    bool is_plain;
};

/* One state's room goes on to the next, so that runs find what others, larger and smaller ones, have left. */
static enum gpurun_status run_baseline(struct run *run, void *values)
{
    static void *room;
    static size_t room_bytes;
    enum gpurun_status status;
    struct gpurun_tensor keys = {.host = (void *)(uintptr_t)run->order.data}, in = {.host = values},
                         sorted = {.host = run->sorted}, out = {.host = run->values};
    struct sort_options options = {.n = run->n};
    struct sort_state state = {
        .keys = &keys,
        .sorted = &sorted,
        .values = run->value_bytes ? &in : NULL,
        .sorted_values = run->value_bytes ? &out : NULL,
        .elem_bytes = gpurun_dtype_bytes(run->order.dtype),
        .value_bytes = run->value_bytes,
        .map = sort_map_for(run->order.dtype, run->order.descending),
        .room = room,
        .room_bytes = room_bytes,
        .is_plain = run->is_plain,
    };
    struct gpurun_ctx ctx = {
        .core = &fake_core, .options = &options, .state = &state, .threads = run->threads};

    status = sort_run_cpu(&ctx);
    room = state.room;
    room_bytes = state.room_bytes;
    return status;
}

static void *values_of(int64_t n, size_t bytes)
{
    char *values = malloc((size_t)n * bytes + 1);

    for (int64_t i = 0; i < n && bytes > 0; i++)
        memcpy(values + (size_t)i * bytes, &i, bytes); /* the low bytes come first */
    return values;
}

/* Elements of 4 or 8 bytes, or of none, in the other sort's order. */
static void *in_order(const void *from, size_t bytes, const int64_t *truth, int64_t n)
{
    void *to = malloc((size_t)n * bytes + 1);

    for (int64_t i = 0; i < n && bytes == 4; i++)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[truth[i]];
    for (int64_t i = 0; i < n && bytes == 8; i++)
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[truth[i]];
    return to;
}

/* Every bit of n elements. */
static void expect_bits(const char *what, const struct run *run, const void *got, const void *right,
                        size_t bytes)
{
    int64_t i = 0;

    if (memcmp(got, right, (size_t)run->n * bytes) == 0)
        return;
    while (memcmp((const char *)got + (size_t)i * bytes, (const char *)right + (size_t)i * bytes,
                  bytes) == 0)
        i++;
    ck_abort_msg("%s: %s n %lld descending %d values %zu threads %d plain %d: element %lld", what,
                 gpurun_dtype_name(run->order.dtype), (long long)run->n, run->order.descending,
                 run->value_bytes, run->threads, run->is_plain, (long long)i);
}

/* By `first_threads` threads up to `threads`; keys alone by the first of them without vectors too. */
static void expect_by_all(const char *what, struct order order, int64_t n, size_t value_bytes,
                          int first_threads, int threads)
{
    const size_t bytes = gpurun_dtype_bytes(order.dtype);
    struct run run = {order,
                      n,
                      value_bytes,
                      first_threads,
                      malloc((size_t)n * bytes + 1),
                      malloc((size_t)n * value_bytes + 1),
                      false};
    int64_t *truth = sorted_indices(&order, n);
    void *values = values_of(n, value_bytes);
    void *right = in_order(order.data, bytes, truth, n);
    void *right_values = in_order(values, value_bytes, truth, n);

    while (run.threads <= threads) {
        memset(run.sorted, 0xa5, (size_t)n * bytes);
        memset(run.values, 0xa5, (size_t)n * value_bytes);
        ck_assert_int_eq(run_baseline(&run, values), GPURUN_OK);
        expect_bits(what, &run, run.sorted, right, bytes);
        expect_bits(what, &run, run.values, right_values, value_bytes);
        run.is_plain = !run.is_plain && value_bytes == 0 && run.threads == first_threads;
        run.threads += !run.is_plain;
    }
    free(run.sorted);
    free(run.values);
    free(values);
    free(right);
    free(right_values);
    free(truth);
}

static void expect(const char *what, struct order order, int64_t n, size_t value_bytes, int threads)
{
    expect_by_all(what, order, n, value_bytes, threads, threads);
}

/* --- data ------------------------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *seed)
{
    uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static double draw_uniform(uint64_t *seed)
{
    return (double)(draw(seed) >> 11) * 0x1p-53;
}

static double draw_normal(uint64_t *seed)
{
    const double radius = sqrt(-2 * log(draw_uniform(seed) + 0x1p-60));

    return radius * cos(6.283185307179586 * draw_uniform(seed));
}

enum shape {
    ANY_BITS, /* of reals: every NaN, infinity, subnormal */
    NORMAL,
    CONSTANT,
    TWO_VALUES,
    ASCENDING,
    ORGAN_PIPE,
    ALL_WIDTHS,
    FAR_OUT,     /* one in a thousand anywhere, the others close together */
    ONE_FAR_OUT, /* that no sample sees */
    SPECIAL,     /* reals: zeros of either sign, NaNs of any payload, a few numbers */
    SHAPES,
};

/* The i-th of n numbers. */
static double shaped(enum shape shape, int64_t i, int64_t n, uint64_t *seed)
{
    const uint64_t random = draw(seed);

    switch (shape) {
    case NORMAL:
        return 1000 * draw_normal(seed);
    case CONSTANT:
        return -7;
    case TWO_VALUES:
        return random % 2 ? 1e6 : -3;
    case ASCENDING:
        return (double)(i - n / 3);
    case ORGAN_PIPE:
        return (double)(i < n / 2 ? i : n - i);
    case ALL_WIDTHS:
        return (double)(int64_t)(random >> random % 64 >> 33);
    case FAR_OUT:
        return (double)(int32_t)(random % 1000 == 0 ? random >> 32 : random >> 44);
    case ONE_FAR_OUT:
        return i == n / 2 ? 2e9 : (double)(random % 3);
    default:
        return (double)(random % 9) - 4;
    }
}

/* -0 and NaNs of either sign and of any payload among the numbers. */
static uint64_t special_bits(size_t bytes, uint64_t bits, uint64_t *seed)
{
    const uint64_t random = draw(seed), sign = UINT64_C(1) << (8 * bytes - 1);
    const uint64_t infinity = bytes == 4 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000);

    switch (random % 8) {
    case 0:
        return random & sign;
    case 1:
        return (random & sign) | infinity | (random >> 8 & 0xffff) | 1;
    default:
        return bits;
    }
}

static void *make_data(enum gpurun_dtype dtype, enum shape shape, int64_t n, uint64_t *seed)
{
    const size_t bytes = gpurun_dtype_bytes(dtype);
    char *data = malloc((size_t)n * bytes + 1);

    for (int64_t i = 0; i < n; i++) {
        const double x = shaped(shape, i, n, seed);
        const bool is_unsigned = dtype == GPURUN_UINT32 || dtype == GPURUN_UINT64;
        const float narrow = (float)x;
        uint64_t bits = (uint64_t)(int64_t)x;

        if (is_unsigned && x < 0)
            bits = (uint64_t)(int64_t)-x;
        if (dtype == GPURUN_FLOAT)
            memcpy(&bits, &narrow, sizeof(narrow));
        if (dtype == GPURUN_DOUBLE)
            memcpy(&bits, &x, sizeof(x));
        if (shape == ANY_BITS)
            bits = draw(seed);
        if (shape == SPECIAL && gpurun_dtype_is_real(dtype))
            bits = special_bits(bytes, bits, seed);
        memcpy(data + (size_t)i * bytes, &bits, bytes);
    }
    return data;
}

static const char *const shape_names[] = {"any bits",    "normal",     "constant",   "two values",
                                          "ascending",   "organ pipe", "all widths", "far out",
                                          "one far out", "special"};

static void expect_shape(enum gpurun_dtype dtype, bool descending, enum shape shape, int64_t n,
                         size_t values, int threads, uint64_t *seed)
{
    void *data = make_data(dtype, shape, n, seed);

    expect(shape_names[shape], (struct order){dtype, descending, data}, n, values, threads);
    free(data);
}

/* --- tests -------------------------------------------------------------------------------------------------- */

/* The other sort itself, by hand. */
START_TEST(the_other_sort_is_right)
{
    static const float data[] = {2, -0.0f, NAN, 0, -1, 2, -NAN};
    static const int64_t up[] = {4, 1, 3, 0, 5, 2, 6}, down[] = {0, 5, 1, 3, 4, 2, 6};
    int64_t *order = sorted_indices(&(struct order){GPURUN_FLOAT, false, data}, 7);

    ck_assert_mem_eq(order, up, sizeof(up));
    free(order);
    order = sorted_indices(&(struct order){GPURUN_FLOAT, true, data}, 7);
    ck_assert_mem_eq(order, down, sizeof(down));
    free(order);
}
END_TEST

START_TEST(small_arrays)
{
    static const int64_t sizes[] = {0,  1,  2,  3,    CPU_FEW - 1, CPU_FEW, CPU_FEW + 1,
                                    63, 64, 65, 1023, 1024,        1025,    4099};
    uint64_t seed = (uint64_t)_i;

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++)
        for (int shape = 0; shape < SHAPES; shape++)
            for (int way = 0; way < 6; way++)
                expect_shape((enum gpurun_dtype)_i, way % 2, (enum shape)shape, sizes[i],
                             (size_t)(way / 2 * 4), 1, &seed);
}
END_TEST

/* Around the largest array that is sorted in the cache at once, and one with more buckets. */
START_TEST(keys_at_the_edge_of_the_cache)
{
    const int64_t cached = KEYS_CACHE_BYTES / (int64_t)gpurun_dtype_bytes((enum gpurun_dtype)_i);
    const int64_t sizes[] = {cached - 1, cached, cached + 1};
    static const enum shape shapes[] = {NORMAL, SPECIAL};
    uint64_t seed = (uint64_t)_i << 8;

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++)
        for (size_t k = 0; k < GPURUN_COUNT(shapes); k++)
            expect_shape((enum gpurun_dtype)_i, (i + k) % 2, shapes[k], sizes[i], 0, 1 + (int)k,
                         &seed);
    for (int shape = 0; shape < SHAPES; shape++)
        expect_shape((enum gpurun_dtype)_i, shape % 2, (enum shape)shape, cached * 5 / 4 + 1, 0,
                     1 + shape / 2 % 4, &seed);
    expect_shape((enum gpurun_dtype)_i, false, SPECIAL, cached * 3 / 2 + 77, 0, 3, &seed);
}
END_TEST

/* Buckets that one pass leaves larger than the cache are cut again, by one thread and by all. */
START_TEST(keys_that_a_sample_cannot_tell_apart)
{
    const int64_t n = 500009;
    uint64_t seed = 5, *data = malloc((size_t)n * sizeof(*data));

    /* Nearly all in one cell of the first plan, and in one of the second. */
    for (int64_t i = 0; i < n; i++) {
        const uint64_t random = draw(&seed);
        data[i] = i % 5000 == 0 ? random : i % 50 == 0 ? random >> 24 : random >> 44;
    }
    expect_by_all("nested", (struct order){GPURUN_UINT64, false, data}, n, 0, 1, 3);
    expect("nested", (struct order){GPURUN_UINT64, true, data}, n, 0, 2);
    free(data);
}
END_TEST

/* Every size up to two networks and a few vectors: what is padded, cut, or no whole vector. */
START_TEST(keys_that_vectors_hold)
{
    const int64_t most = 2 * 16 * 32 / (int64_t)gpurun_dtype_bytes((enum gpurun_dtype)_i) + 20;
    uint64_t seed = (uint64_t)_i << 40;

    for (int64_t n = 0; n <= most; n++)
        for (int shape = n % 3; shape < SHAPES; shape += 3)
            expect_shape((enum gpurun_dtype)_i, n / 3 % 2, (enum shape)shape, n, 0, 1, &seed);
}
END_TEST

/* Around the most 8-byte keys that vectors sort at once, in an order that is none for digits; and by threads, which
 * share smaller ones too. */
START_TEST(keys_that_vectors_sort_whole)
{
    const enum gpurun_dtype dtype = _i % 2 ? GPURUN_DOUBLE : GPURUN_INT64;
    uint64_t seed = (uint64_t)_i;

    expect_shape(dtype, _i / 2, NORMAL, KEYS_WHOLE64 + _i % 3 - 1, 0, 1, &seed);
    expect_shape(dtype, _i / 2, SPECIAL, KEYS_WHOLE64 + 1, 0, 1, &seed);
    for (int shape = 0; shape < SHAPES; shape++)
        expect_shape(dtype, _i / 2, (enum shape)shape, KEYS_SHARED + shape % 3 - 1, 0, 2, &seed);
}
END_TEST

static void *allocated(int64_t n)
{
    return malloc((size_t)n * sizeof(uint64_t) + 1);
}

/* No samples, or soon none: pivots are then the middles of ranges. */
START_TEST(vectors_whose_samples_deceive)
{
    static void (*const sorts[])(const struct vector_job *) = {sort_cpu_vector32, sort_cpu_vector64,
                                                               sort_cpu_vector_real64};
    static const enum gpurun_dtype dtypes[] = {GPURUN_FLOAT, GPURUN_INT64, GPURUN_DOUBLE};
    const enum gpurun_dtype dtype = dtypes[_i];
    const size_t bytes = gpurun_dtype_bytes(dtype);
    const int64_t n = 5003;
    void *to = allocated(n), *other = allocated(n);
    uint64_t seed = (uint64_t)_i;

    for (int k = 0; sort_cpu_vector_is_here() && k < 4 * (SPECIAL - NORMAL); k++) {
        const bool descending = k % 2;
        const uint64_t flip = descending ? _i == 2 ? UINT64_C(1) << 63 : UINT64_MAX : 0;
        const struct vector_turn turn = {flip, _i == 0};
        void *data = make_data(dtype, (enum shape)(NORMAL + k / 4), n, &seed);
        int64_t *truth = sorted_indices(&(struct order){dtype, descending, data}, n);
        void *right = in_order(data, bytes, truth, n);

        sorts[_i](&(struct vector_job){data, to, other, n, turn, turn, k / 2 % 2 * 3});
        ck_assert_mem_eq(to, right, (size_t)n * bytes);
        free(right);
        free(truth);
        free(data);
    }
    free(to);
    free(other);
}
END_TEST

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Doubles next to zero, and zeros of either sign, which a range's middle must not take for different ones. */
START_TEST(middles_of_zeros)
{
    static const double values[] = {0.0, -0.0, 0x1p-1074, -0x1p-1074, 0x1p-1073};
    const struct vector_turn none = {0, false};
    double data[300], to[300], other[300];

    for (unsigned set = 1; sort_cpu_vector_is_here() && set < 1 << GPURUN_COUNT(values); set++) {
        uint64_t seed = set;

        for (int i = 0; i < 300;) {
            const size_t value = draw(&seed) % GPURUN_COUNT(values);

            if (set >> value & 1)
                data[i++] = values[value];
        }
        sort_cpu_vector_real64(&(struct vector_job){data, to, other, 300, none, none, 0});
        qsort(data, 300, sizeof *data, compare_doubles);
        for (int i = 0; i < 300; i++)
            ck_assert(to[i] == data[i]);
    }
}
END_TEST

/* As many values as are counted, and one more; one that no sample sees; and a zero and a NaN that keys do not tell. */
START_TEST(keys_of_few_values)
{
    static const float strange[] = {1.0f, -0.0f, NAN, INFINITY};
    static const int64_t sizes[] = {2047, 2048, 300007};
    float *reals = malloc(300007 * sizeof(*reals));
    int64_t *wholes = malloc(300007 * sizeof(*wholes));
    uint64_t seed = 3;

    for (size_t k = 0; k < 4 * GPURUN_COUNT(sizes); k++) {
        const int64_t n = sizes[k / 4], count = k % 4 == 0 ? KEYS_FEW : KEYS_FEW + 1 - 20 * (k % 3);

        for (int64_t i = 0; i < n; i++) {
            const int64_t value = (int64_t)(draw(&seed) % (uint64_t)count) - 9;

            wholes[i] = value * INT64_C(0x100000001);
            reals[i] = (float)value / 4;
        }
        for (int descending = 0; descending < 2; descending++) {
            expect_by_all("few", (struct order){GPURUN_INT64, descending, wholes}, n, 0, 1, 3);
            expect_by_all("few", (struct order){GPURUN_FLOAT, descending, reals}, n, 0, 1, 3);
        }
        reals[n / 3] = strange[k % 4];
        wholes[n - 1] = INT64_MIN;
        expect("one more", (struct order){GPURUN_INT64, k % 2 == 0, wholes}, n, 0, 2);
        expect("one strange", (struct order){GPURUN_FLOAT, k % 2 == 0, reals}, n, 0, 2);
    }
    free(reals);
    free(wholes);
}
END_TEST

/* Around the most keys that one digit orders, of every shape. */
START_TEST(keys_of_one_digit)
{
    const int64_t most = KEYS_LONE_BYTES / (int64_t)gpurun_dtype_bytes((enum gpurun_dtype)_i);
    uint64_t seed = (uint64_t)_i << 24;

    for (int64_t n = most - 1; n <= most + 1; n++)
        for (int shape = 0; shape < SHAPES; shape++)
            expect_shape((enum gpurun_dtype)_i, (n + shape) % 2, (enum shape)shape, n, 0, 1, &seed);
}
END_TEST

/* More small buckets than a pass in memory takes. */
START_TEST(keys_of_many_buckets)
{
    const int64_t n = (int64_t)KEYS_SMALL_SHARES * KEYS_SMALL_BYTES / 4 * 17 / 16;
    uint64_t seed = 11;

    expect_shape(GPURUN_FLOAT, true, NORMAL, n, 0, 2, &seed);
}
END_TEST

/* Keys are counted when there are two for each number of their range. */
enum { WIDEST = 2 * KEYS_DENSE };

/* n numbers whose bits are `width` apart at most, with both ends, from `least` on; half of them are the first few. */
static void *make_dense(size_t bytes, int64_t n, uint64_t least, uint64_t width, uint64_t *seed)
{
    char *data = malloc((size_t)n * bytes);

    for (int64_t i = 0; i < n; i++) {
        const uint64_t random = draw(seed);
        const uint64_t far = (random >> 8) % (width + 1), near = far % (width / 16 + 1);
        const uint64_t bits = least + (i == 1 ? 0 : i == n - 2 ? width : random % 2 ? near : far);

        memcpy(data + (size_t)i * bytes, &bits, bytes);
    }
    return data;
}

/* The widest range that is counted, of the fewest keys, and one more; fewer keys, and one too few. On either side of
 * zero, the large ones on one: whole numbers around it, and reals, whose bits run from it. */
START_TEST(keys_of_a_small_range)
{
    static const struct {
        int64_t n;
        uint64_t width;
    } cases[] = {
        {WIDEST, KEYS_DENSE - 1}, {WIDEST + 2, KEYS_DENSE}, {10002, 5000}, {10001, 5000}, {9, 2}};
    const enum gpurun_dtype dtype = (enum gpurun_dtype)_i;
    const size_t bytes = gpurun_dtype_bytes(dtype);
    const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    const bool is_real = gpurun_dtype_is_real(dtype);
    uint64_t seed = (uint64_t)_i << 32;

    for (size_t k = 0; k < 2 * GPURUN_COUNT(cases); k++) {
        const int64_t n = cases[k / 2].n;
        const uint64_t width = cases[k / 2].width, below = is_real ? sign + 1 : 0 - width / 2;
        void *data;

        if (n >= WIDEST && k % 2 != (size_t)_i % 2)
            continue;
        data = make_dense(bytes, n, k % 2 ? below : 0, width, &seed);
        expect_by_all("dense", (struct order){dtype, (k + k / 2) % 2, data}, n, 0, 1,
                      n > WIDEST ? 1 : 3);
        memcpy((char *)data + (size_t)(n / 2) * bytes, &sign, bytes); /* of reals, -0 */
        expect("dense, with the sign alone", (struct order){dtype, k % 2, data}, n, 0, 2);
        free(data);
    }
}
END_TEST

/* Reals that are whole numbers from `least` on, `width` apart at most, with both ends. */
static void *make_whole(enum gpurun_dtype dtype, int64_t n, double least, uint64_t width,
                        uint64_t *seed)
{
    double *data = malloc((size_t)n * sizeof(*data));

    for (int64_t i = 0; i < n; i++) {
        const uint64_t far = (draw(seed) >> 8) % (width + 1);
        const uint64_t place = i == 1 ? 0 : i == n - 2 ? width : i % 2 ? far : far % 100;
        const double number = least + (double)place;

        if (dtype == GPURUN_FLOAT)
            ((float *)(void *)data)[i] = (float)number;
        else
            data[i] = number;
    }
    return data;
}

static void put_real(enum gpurun_dtype dtype, void *data, int64_t i, double real)
{
    if (dtype == GPURUN_FLOAT)
        ((float *)data)[i] = (float)real;
    else
        ((double *)data)[i] = real;
}

/* The widest range that is counted, and one more; on both sides of zero, and as far out as they are counted and beyond.
 * Then one that is no whole number, in the first piece and in the last, or that its key does not tell. */
START_TEST(whole_numbers_as_reals)
{
    static const double leasts[] = {
        1, -KEYS_DENSE / 2, -3, -0x1p24 + 5000, 0x1p31 - 300000, -0x1p31, 0x1p31 - 1000, 0x1p40};
    static const double strange[] = {0.5, -0.0, NAN, INFINITY, -INFINITY};
    const enum gpurun_dtype dtype = _i % 2 ? GPURUN_FLOAT : GPURUN_DOUBLE;
    const double least = leasts[_i / 2];
    const int64_t few = 20011;
    uint64_t seed = (uint64_t)_i;
    void *data;

    data = make_whole(dtype, WIDEST, least, KEYS_DENSE - 1, &seed);
    expect_by_all("whole", (struct order){dtype, _i / 2 % 2, data}, WIDEST, 0, 1, 2);
    free(data);
    data = make_whole(dtype, WIDEST + 2, least, KEYS_DENSE, &seed);
    expect("whole", (struct order){dtype, _i / 2 % 2, data}, WIDEST + 2, 0, 2);
    free(data);
    data = make_whole(dtype, few, least, 5000, &seed);
    for (size_t k = 0; k < 2 * GPURUN_COUNT(strange); k++) {
        const int64_t at = k % 2 ? few - 1 : 3;

        put_real(dtype, data, at, strange[k / 2] + (k < 2 ? least : 0));
        expect("all but one", (struct order){dtype, k / 2 % 2, data}, few, 0, 2);
        put_real(dtype, data, at, least + 1);
    }
    free(data);
}
END_TEST

START_TEST(pairs_at_the_edge_of_the_cache)
{
    static const int64_t sizes[] = {CPU_CACHED - 1, CPU_CACHED, CPU_CACHED + 1};
    uint64_t seed = (uint64_t)_i << 16;

    for (size_t i = 0; i < GPURUN_COUNT(sizes); i++)
        for (int shape = (int)i % 2; shape < SHAPES; shape += 2)
            expect_shape((enum gpurun_dtype)_i, shape / 2 % 2, (enum shape)shape, sizes[i],
                         4 + 4 * (i % 2), 1 + (int)(draw(&seed) % 4), &seed);
}
END_TEST

START_TEST(the_baseline_says_when_memory_is_short)
{
    static uint32_t one = 1, result;
    struct run run = {
        {GPURUN_UINT32, false, &one}, INT64_C(1) << 50, 0, 1, &result, &result, false};

    for (; run.value_bytes <= 8; run.value_bytes += 4) {
        reason[0] = '\0';
        ck_assert_int_eq(run_baseline(&run, &one), GPURUN_NO_MEMORY);
        ck_assert_str_eq(reason, "n: no host memory for a second copy of the data");
    }
}
END_TEST

static Suite *sort_cpu_suite(void)
{
    Suite *suite = suite_create("sort baseline");
    TCase *run = tcase_create("against another sort");
    const int first = GPURUN_INT32, last = GPURUN_DOUBLE + 1;

    tcase_set_timeout(run, 60);
    tcase_add_test(run, the_other_sort_is_right);
    tcase_add_loop_test(run, small_arrays, first, last);
    tcase_add_loop_test(run, keys_at_the_edge_of_the_cache, first, last);
    tcase_add_test(run, keys_that_a_sample_cannot_tell_apart);
    tcase_add_loop_test(run, keys_of_one_digit, first, last);
    tcase_add_loop_test(run, keys_that_vectors_hold, first, last);
    tcase_add_loop_test(run, keys_that_vectors_sort_whole, 0, 4);
    tcase_add_loop_test(run, vectors_whose_samples_deceive, 0, 3);
    tcase_add_test(run, middles_of_zeros);
    tcase_add_test(run, keys_of_many_buckets);
    tcase_add_loop_test(run, keys_of_a_small_range, first, last);
    tcase_add_test(run, keys_of_few_values);
    tcase_add_loop_test(run, whole_numbers_as_reals, 0, 16);
    tcase_add_loop_test(run, pairs_at_the_edge_of_the_cache, first, last);
    tcase_add_test(run, the_baseline_says_when_memory_is_short);
    suite_add_tcase(suite, run);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(sort_cpu_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
