/*
 * The baseline of scan on results that go past the cache, held against a running sum; and on reals, whose bits must
 * be the same for any number of threads. Then scans whose every bit is given: maxima, minima, and sums of bytes.
 */
#include "gpurun/key.h"
#include "scan.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMS = 5000077 };

/* What answers are held against is not what sanitizers are to watch, and most of the time would be spent in it. */
#define UNWATCHED __attribute__((no_sanitize("address", "undefined")))

/* Element i of the input; sums of them wrap in 32 bits. */
static int32_t value_at(int64_t i)
{
    return (int32_t)((uint32_t)i * 2654435761u);
}

static void *make_input(enum gpurun_dtype dtype)
{
    int64_t *in = malloc((ELEMS + 1) * sizeof(*in));

    for (int64_t i = 0; i < ELEMS; i++) {
        if (dtype == GPURUN_INT64)
            in[i] = value_at(i);
        else
            ((int32_t *)in)[i] = value_at(i);
    }
    return in;
}

UNWATCHED static void expect_sums(const void *out, enum gpurun_dtype dtype, bool is_exclusive)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < ELEMS; i++) {
        const uint64_t before = sum, with = sum += (uint64_t)(int64_t)value_at(i);
        const uint64_t right = is_exclusive ? before : with;
        const uint64_t is =
            dtype == GPURUN_INT64 ? ((const uint64_t *)out)[i] : ((const uint32_t *)out)[i];

        if (is != (dtype == GPURUN_INT64 ? right : (uint32_t)right))
            ck_abort_msg("element %lld", (long long)i);
    }
}

/* Both kinds, results of 4 and 8 bytes, one part and two, at a multiple of 16 bytes and beside one. */
START_TEST(sums_past_the_cache)
{
    static const enum gpurun_dtype dtypes[][2] = {
        {GPURUN_INT32, GPURUN_INT32}, {GPURUN_INT32, GPURUN_INT64}, {GPURUN_INT64, GPURUN_INT64}};
    const enum gpurun_dtype dtype = dtypes[_i / 4][0], acc = dtypes[_i / 4][1];
    const size_t skip = gpurun_dtype_bytes(acc) * (size_t)(_i / 2 % 2);
    void *input = make_input(dtype);
    char *output = malloc((ELEMS + 1) * gpurun_dtype_bytes(acc));
    struct gpurun_tensor in = {.host = input}, out = {.host = output + skip};
    struct scan_options options = {
        .n = ELEMS, .dtype = dtype, .op = SCAN_SUM, .accumulate = dtype != acc};
    struct scan_state state = {.in = &in, .out = &out, .dtype = dtype, .acc = acc};
    struct gpurun_ctx ctx = {.options = &options, .state = &state, .threads = 1 + _i % 2};

    for (int is_exclusive = 0; is_exclusive < 2; is_exclusive++) {
        options.kind = is_exclusive ? SCAN_EXCLUSIVE : SCAN_INCLUSIVE;
        ck_assert_int_eq(scan_run_cpu(&ctx), GPURUN_OK);
        expect_sums(out.host, acc, is_exclusive);
    }
    free(input);
    free(output);
}
END_TEST

enum { REALS = 1000003 };

/* Reals of both signs and many magnitudes. */
static double real_at(int64_t i)
{
    return ldexp((double)value_at(i), (int)(i * 7 % 40) - 60);
}

static void *make_reals(enum gpurun_dtype dtype)
{
    double *in = malloc(REALS * sizeof(*in));

    for (int64_t i = 0; i < REALS; i++) {
        if (dtype == GPURUN_DOUBLE)
            in[i] = real_at(i);
        else
            ((float *)in)[i] = (float)real_at(i);
    }
    return in;
}

/* Sums as the proof bounds them, in long double, which holds these exactly enough. */
UNWATCHED static void expect_reals(const void *in, const void *out, enum gpurun_dtype dtype,
                                   enum gpurun_dtype acc, bool is_exclusive)
{
    const long double unit = acc == GPURUN_DOUBLE ? 0x1p-53L : 0x1p-24L;
    long double sum = 0, magnitude = 0;

    for (int64_t i = 0; i < REALS; i++) {
        const long double before = sum, x = dtype == GPURUN_DOUBLE
                                                ? (long double)((const double *)in)[i]
                                                : (long double)((const float *)in)[i];
        const long double is = acc == GPURUN_DOUBLE ? (long double)((const double *)out)[i]
                                                    : (long double)((const float *)out)[i];

        sum += x;
        magnitude += fabsl(x);
        if (!(fabsl(is - (is_exclusive ? before : sum)) <= SCAN_CHAIN * unit * magnitude))
            ck_abort_msg("element %lld", (long long)i);
    }
}

START_TEST(reals_by_any_number_of_threads)
{
    static const enum gpurun_dtype dtypes[][2] = {{GPURUN_FLOAT, GPURUN_FLOAT},
                                                  {GPURUN_FLOAT, GPURUN_DOUBLE},
                                                  {GPURUN_DOUBLE, GPURUN_DOUBLE}};
    const enum gpurun_dtype dtype = dtypes[_i / 2][0], acc = dtypes[_i / 2][1];
    const size_t bytes = REALS * gpurun_dtype_bytes(acc);
    struct gpurun_tensor in = {.host = make_reals(dtype)}, out = {.host = malloc(bytes)};
    struct scan_options options = {
        .n = REALS, .dtype = dtype, .op = SCAN_SUM, .accumulate = dtype != acc, .kind = _i % 2};
    struct scan_state state = {.in = &in, .out = &out, .dtype = dtype, .acc = acc, .is_real = true};
    struct gpurun_ctx ctx = {.options = &options, .state = &state, .threads = 1};
    void *alone = malloc(bytes);

    ck_assert_int_eq(scan_run_cpu(&ctx), GPURUN_OK);
    expect_reals(in.host, out.host, dtype, acc, _i % 2);
    memcpy(alone, out.host, bytes);
    for (ctx.threads = 2; ctx.threads <= 32; ctx.threads *= 2) {
        memset(out.host, 0xa5, bytes);
        ck_assert_int_eq(scan_run_cpu(&ctx), GPURUN_OK);
        ck_assert_msg(memcmp(alone, out.host, bytes) == 0, "%d threads", ctx.threads);
    }
    free(in.host);
    free(out.host);
    free(alone);
}
END_TEST

/* Numbers that slowly rise, or fall, by ever fewer parts of the range, so that results go on changing; of reals also
 * zeros of either sign, and infinities that change nothing. */
UNWATCHED static void put_element(void *in, enum gpurun_dtype dtype, int64_t i, bool falls)
{
    static const double strange[] = {-INFINITY, 0.0, -0.0, -1.0};
    const uint32_t random = (uint32_t)value_at(i * i + i);
    const double rising = log2((double)i + 1) / 26 + (double)(random >> 8) * 0x1p-29;
    const double level = fmin(falls ? 1 - rising : rising, 1 - 0x1p-53);
    const double real = random % 3 == 0 ? strange[random >> 8 & 3] : (rising - 0.5) * 1e30;

    if (dtype == GPURUN_UINT8)
        ((uint8_t *)in)[i] = (uint8_t)(level * 0x1p8);
    else if (dtype == GPURUN_INT32)
        ((int32_t *)in)[i] = (int32_t)(level * 0x1p32 - 0x1p31);
    else if (dtype == GPURUN_UINT32)
        ((uint32_t *)in)[i] = (uint32_t)(level * 0x1p32);
    else if (dtype == GPURUN_INT64)
        ((int64_t *)in)[i] = (int64_t)(level * 0x1p64 - 0x1p63);
    else if (dtype == GPURUN_UINT64)
        ((uint64_t *)in)[i] = (uint64_t)(level * 0x1p64);
    else if (dtype == GPURUN_FLOAT)
        ((float *)in)[i] = (float)(falls ? -real : real);
    else
        ((double *)in)[i] = falls ? -real : real;
}

static void put_nan(void *in, enum gpurun_dtype dtype, int64_t i, uint32_t payload)
{
    const uint32_t narrow = 0x7fc00000 | payload;
    const uint64_t wide = UINT64_C(0xfff8000000000000) | payload;

    if (dtype == GPURUN_FLOAT)
        memcpy((float *)in + i, &narrow, sizeof narrow);
    else if (dtype == GPURUN_DOUBLE)
        memcpy((double *)in + i, &wide, sizeof wide);
}

/* Of equal numbers the later one, of NaNs the first. */
#define EXPECT_SCAN(type, start)                                                                   \
    do {                                                                                           \
        type before = (type)(start);                                                               \
        const type *out = s->out->host;                                                            \
        type *all = malloc((size_t)(o->n + 1) * sizeof *all);                                      \
                                                                                                   \
        for (int64_t i = 0; i < o->n; i++) {                                                       \
            const type x = ((const type *)s->in->host)[i];                                         \
            const bool goes_on =                                                                   \
                before != before || (o->op == SCAN_MAX ? before > x : before < x);                 \
            const type with = o->op == SCAN_SUM ? (type)(before + x) : goes_on ? before : x;       \
                                                                                                   \
            all[i] = o->kind == SCAN_EXCLUSIVE ? before : with;                                    \
            before = with;                                                                         \
        }                                                                                          \
        if (memcmp(out, all, (size_t)o->n * sizeof *all) != 0)                                     \
            for (int64_t i = 0; i < o->n; i++)                                                     \
                if (memcmp(&out[i], &all[i], sizeof *all) != 0)                                    \
                    ck_abort_msg("element %lld of %lld", (long long)i, (long long)o->n);           \
        free(all);                                                                                 \
    } while (0)

UNWATCHED static void expect_scan(const struct scan_options *o, const struct scan_state *s)
{
    switch (s->dtype) {
    case GPURUN_UINT8:
        EXPECT_SCAN(uint8_t, s->init.whole);
        break;
    case GPURUN_INT32:
        EXPECT_SCAN(int32_t, s->init.whole);
        break;
    case GPURUN_UINT32:
        EXPECT_SCAN(uint32_t, s->init.whole);
        break;
    case GPURUN_INT64:
        EXPECT_SCAN(int64_t, s->init.whole);
        break;
    case GPURUN_UINT64:
        EXPECT_SCAN(uint64_t, s->init.whole);
        break;
    case GPURUN_FLOAT:
        EXPECT_SCAN(float, s->init.real);
        break;
    default:
        EXPECT_SCAN(double, s->init.real);
        break;
    }
}

/* What does not change any number under an operation. */
static struct scan_number identity_of(enum gpurun_dtype dtype, enum scan_op op)
{
    const size_t bits = 8 * gpurun_dtype_bytes(dtype);
    const bool is_signed = dtype == GPURUN_INT32 || dtype == GPURUN_INT64;
    const uint64_t largest = UINT64_MAX >> (64 - bits) >> is_signed;

    if (op == SCAN_SUM)
        return (struct scan_number){0, 0};
    if (op == SCAN_MIN)
        return (struct scan_number){largest, INFINITY};
    return (struct scan_number){is_signed ? ~largest : 0, -INFINITY};
}

/* By one thread and by three, from the identity and from a number. */
static void expect_scans(struct scan_options *o, struct scan_state *s)
{
    struct gpurun_ctx ctx = {.options = o, .state = s};

    for (int way = 0; way < 4; way++) {
        ctx.threads = way % 2 ? 3 : 1;
        s->init = way / 2 ? (struct scan_number){100, 0.5} : s->identity;
        ck_assert_int_eq(scan_run_cpu(&ctx), GPURUN_OK);
        expect_scan(o, s);
    }
}

static const enum gpurun_dtype ordered[] = {GPURUN_UINT8, GPURUN_INT32,  GPURUN_UINT32,
                                            GPURUN_INT64, GPURUN_UINT64, GPURUN_FLOAT,
                                            GPURUN_DOUBLE};

/* Every size up to a few vectors, around a piece and of several from a start beside a vector's, and past the cache; then
 * reals with more and more NaNs. */
START_TEST(scans_of_every_bit)
{
    enum { MANY = (1 << 24) + 77 };
    static const int64_t sizes[] = {16383, 16384, 16385, 70001};
    const enum scan_op op = _i == 0 ? SCAN_SUM : _i % 2 ? SCAN_MAX : SCAN_MIN;
    const enum gpurun_dtype dtype = _i == 0 ? GPURUN_UINT8 : ordered[(_i - 1) / 2];
    const size_t bytes = gpurun_dtype_bytes(dtype);
    const int64_t past_cache = MANY / (int64_t)bytes;
    char *input = malloc((MANY + 1) * bytes), *output = malloc((MANY + 1) * bytes);
    struct gpurun_tensor in = {.host = input}, out = {.host = output};
    struct scan_options options = {.dtype = dtype, .op = op};
    struct scan_state state = {.in = &in,
                               .out = &out,
                               .dtype = dtype,
                               .acc = dtype,
                               .is_real = gpurun_dtype_is_real(dtype),
                               .identity = identity_of(dtype, op)};

    for (int64_t i = 0; i <= past_cache; i++)
        put_element(input, dtype, i, op == SCAN_MIN);
    for (options.kind = 0; options.kind < 2; options.kind++) {
        for (options.n = 0; options.n < 140; options.n++)
            expect_scans(&options, &state);
        in.host = input + bytes;
        out.host = output + bytes;
        for (size_t k = 0; k < GPURUN_COUNT(sizes); k++) {
            options.n = sizes[k];
            expect_scans(&options, &state);
        }
        in.host = input;
        out.host = output;
        options.n = past_cache;
        expect_scans(&options, &state);
    }
    for (options.kind = 0; options.kind < 2 && state.is_real; options.kind++)
        for (int64_t at = 0; at < 70; at += 3) {
            put_nan(input, dtype, 50000 - at, 1 + (uint32_t)at);
            put_nan(input, dtype, 50001 + at, 9);
            options.n = 50100;
            expect_scans(&options, &state);
        }
    free(input);
    free(output);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scan_cpu");
    TCase *large = tcase_create("large");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(large, 120);
    tcase_add_loop_test(large, sums_past_the_cache, 0, 12);
    tcase_add_loop_test(large, reals_by_any_number_of_threads, 0, 6);
    tcase_add_loop_test(large, scans_of_every_bit, 0, 15);
    suite_add_tcase(suite, large);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
