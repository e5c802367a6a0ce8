/* Golden values come from tests/data/make_generate.py, which has the formulas and none of this
 * code. */
#include "run/generate.h"

#include <check.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For long loops: ck_assert tells the parent process of each success. */
#define CHECK_CHEAPLY(condition)                                                                   \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("not so: %s", #condition);                                                \
    } while (0)

/* LLVM's OpenMP runtime keeps its thread teams, which LeakSanitizer takes for a leak. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libomp";
}

static struct generator parse(const char *text)
{
    struct generator g;
    struct why why = {""};

    ck_assert_msg(generator_parse(text, &g, &why) == GPURUN_OK, "%s: %s", text, why.text);
    return g;
}

/* Fills one dimension. */
static void fill(const struct generator *g, uint64_t seed, const char *tensor,
                 enum gpurun_dtype dtype, void *data, int64_t elems, int threads)
{
    const struct gpurun_tensor t = {
        .name = tensor, .dtype = dtype, .rank = 1, .dims = {elems}, .elems = elems, .host = data};

    generator_fill(g, seed, &t, threads);
}

/* Parses, checks, allocates and fills. */
static void *make(const char *text, uint64_t seed, const char *tensor, enum gpurun_dtype dtype,
                  int64_t elems, int threads)
{
    const struct generator g = parse(text);
    void *data = calloc((size_t)elems + 1, gpurun_dtype_bytes(dtype));
    struct why why = {""};

    ck_assert_msg(generator_check(&g, dtype, &why) == GPURUN_OK, "%s: %s", text, why.text);
    ck_assert_ptr_nonnull(data);
    fill(&g, seed, tensor, dtype, data, elems, threads);
    return data;
}

/* --- golden values ------------------------------------------------------------------------------- */

static enum gpurun_dtype find_dtype(const char *name)
{
    for (int i = 0; i < GPURUN_DTYPE_COUNT; i++)
        if (strcmp(name, gpurun_dtype_name((enum gpurun_dtype)i)) == 0)
            return (enum gpurun_dtype)i;
    ck_abort_msg("no dtype %s", name);
}

/* Dimensions, as in 3x5. */
static void parse_dims(const char *text, struct gpurun_tensor *t)
{
    char *end;

    for (t->elems = 1; *text != '\0'; text = *end == 'x' ? end + 1 : end) {
        ck_assert_int_lt(t->rank, GPURUN_RANK_MAX);
        t->dims[t->rank] = strtoll(text, &end, 10);
        ck_assert_ptr_ne(text, end);
        t->elems *= t->dims[t->rank++];
    }
}

/* One line: generator|seed|tensor|dtype|dimensions|hex bits ... */
static void check_golden(char *line)
{
    char *fields[6], *at = line, *end;
    struct gpurun_tensor t = {.rank = 0};
    struct generator g;
    struct why why = {""};
    size_t bytes;

    for (int i = 0; i < 6; i++)
        ck_assert_ptr_nonnull(fields[i] = strsep(&at, "|"));
    t.name = fields[2];
    t.dtype = find_dtype(fields[3]);
    parse_dims(fields[4], &t);
    bytes = gpurun_dtype_bytes(t.dtype);
    t.host = calloc((size_t)t.elems, bytes);
    g = parse(fields[0]);
    ck_assert_msg(generator_check(&g, t.dtype, &why) == GPURUN_OK, "%s: %s", fields[0], why.text);
    generator_fill(&g, strtoull(fields[1], NULL, 10), &t, 2);
    at = fields[5];
    for (int i = 0;; i++, at = end) {
        const uint64_t expected = strtoull(at, &end, 16);
        uint64_t bits = 0;

        if (end == at)
            break;
        memcpy(&bits, (char *)t.host + (size_t)i * bytes, bytes);
        ck_assert_msg(bits == expected, "%s %s: element %d is %" PRIx64 ", not %" PRIx64, fields[0],
                      fields[3], i, bits, expected);
    }
    free(t.host);
}

START_TEST(test_golden)
{
    FILE *stream = fopen(TEST_DATA "/generate.txt", "r");
    char line[4096];
    int lines = 0;

    ck_assert_ptr_nonnull(stream);
    for (; fgets(line, sizeof line, stream) != NULL; lines++)
        check_golden(line);
    fclose(stream);
    ck_assert_int_ge(lines, 100);
}
END_TEST

/* --- properties ---------------------------------------------------------------------------------- */

static const char *const every[] = {
    "uniform",          "uniform max=100", "normal",         "ascending", "descending",
    "constant value=7", "few-distinct",    "zipf count=100", "special",   "quadratic"};

/* The same bits for any number of threads, and for a shorter array: element i depends on i
 * alone. Only descending starts at the element count. */
START_TEST(test_threads)
{
    enum { ELEMS = 100003, SHORT = 5001 };

    for (int d = 0; d < GPURUN_DTYPE_COUNT; d++) {
        const enum gpurun_dtype dtype = (enum gpurun_dtype)d;
        const size_t bytes = gpurun_dtype_bytes(dtype);
        void *one = make(every[_i], 42, "in", dtype, ELEMS, 1);

        for (int threads = 0; threads < 8; threads += 3) {
            void *many = make(every[_i], 42, "in", dtype, ELEMS, threads);
            void *few = make(every[_i], 42, "in", dtype, SHORT, threads);

            ck_assert_msg(memcmp(one, many, ELEMS * bytes) == 0, "%s: %d threads", every[_i],
                          threads);
            if (strcmp(every[_i], "descending") != 0)
                ck_assert_msg(memcmp(one, few, SHORT * bytes) == 0, "%s: shorter", every[_i]);
            free(many);
            free(few);
        }
        free(one);
    }
}
END_TEST

/* Nothing is written for no elements, and nothing after the last one. */
START_TEST(test_bounds)
{
    for (int d = 0; d < GPURUN_DTYPE_COUNT; d++) {
        const size_t bytes = gpurun_dtype_bytes((enum gpurun_dtype)d);
        const struct generator g = parse(every[_i]);

        for (int64_t elems = 0; elems < 5000; elems += elems < 3 ? 1 : 2045) {
            unsigned char *data = malloc((size_t)elems * bytes + 8);

            memset(data, 0xa5, (size_t)elems * bytes + 8);
            fill(&g, 1, "in", (enum gpurun_dtype)d, data, elems, 2);
            for (size_t i = 0; i < 8; i++)
                ck_assert_uint_eq(data[(size_t)elems * bytes + i], 0xa5);
            free(data);
        }
    }
}
END_TEST

/* Seeds and tensor names give unrelated data: of 10000 equal places about 2^-32 of each pair
 * agree. */
START_TEST(test_seeds_differ)
{
    enum { ELEMS = 10000 };
    int32_t *a = make("uniform", 1, "A", GPURUN_INT32, ELEMS, 1);
    int32_t *b = make("uniform", 1, "B", GPURUN_INT32, ELEMS, 1);
    int32_t *c = make("uniform", 2, "A", GPURUN_INT32, ELEMS, 1);
    int same = 0;

    for (int i = 0; i < ELEMS; i++)
        same += (a[i] == b[i]) + (a[i] == c[i]) + (i > 0 && a[i] == a[i - 1]);
    ck_assert_int_le(same, 1);
    free(a);
    free(b);
    free(c);
}
END_TEST

/* Chi-square against equal counts. For `bins` - 1 degrees of freedom it has that mean and twice
 * that variance; six deviations are beyond doubt, and too small a value would be as wrong as too
 * large a one. */
static void check_chi_square(const int64_t *counts, const double *expected, int bins,
                             const char *what)
{
    const double freedom = bins - 1;
    double chi = 0;

    for (int i = 0; i < bins; i++)
        chi += ((double)counts[i] - expected[i]) * ((double)counts[i] - expected[i]) / expected[i];
    ck_assert_msg(fabs(chi - freedom) < 6 * sqrt(2 * freedom), "%s: chi-square %g for %g", what,
                  chi, freedom);
}

static void check_equal_counts(const int64_t *counts, int bins, int64_t elems, const char *what)
{
    double expected[1024];

    for (int i = 0; i < bins; i++)
        expected[i] = (double)elems / bins;
    check_chi_square(counts, expected, bins, what);
}

enum { SAMPLE = 1000000 };

START_TEST(test_uniform_integers)
{
    int32_t *small = make("uniform min=-50 max=49", 3, "in", GPURUN_INT32, SAMPLE, 2);
    int32_t *wide = make("uniform", 3, "in", GPURUN_INT32, SAMPLE, 2);
    uint64_t *huge = make("uniform max=13.5T", 3, "in", GPURUN_UINT64, SAMPLE, 2);
    int64_t counts[3][256] = {{0}};

    for (int i = 0; i < SAMPLE; i++) {
        CHECK_CHEAPLY(small[i] >= -50 && small[i] <= 49);
        CHECK_CHEAPLY(huge[i] <= UINT64_C(13500000000000));
        counts[0][small[i] + 50]++;
        counts[1][wide[i] & 0xff]++;
        counts[2][huge[i] % 3]++;
    }
    check_equal_counts(counts[0], 100, SAMPLE, "values");
    check_equal_counts(counts[1], 256, SAMPLE, "low bytes");
    check_equal_counts(counts[2], 3, SAMPLE, "modulo 3");
    free(small);
    free(wide);
    free(huge);
}
END_TEST

/* The span for which 64 random bits alone would favour one value in three by two to one. */
START_TEST(test_uniform_widest_span)
{
    uint64_t *data =
        make("uniform min=0 max=13835058055282163711", 5, "in", GPURUN_UINT64, SAMPLE, 2);
    int64_t counts[3] = {0};

    for (int i = 0; i < SAMPLE; i++)
        counts[data[i] % 3]++;
    check_equal_counts(counts, 3, SAMPLE, "modulo 3");
    free(data);
}
END_TEST

START_TEST(test_uniform_reals)
{
    float *unit = make("uniform", 3, "in", GPURUN_FLOAT, SAMPLE, 2);
    double *range = make("uniform min=-3 max=5", 3, "in", GPURUN_DOUBLE, SAMPLE, 2);
    int64_t counts[2][128] = {{0}};

    for (int i = 0; i < SAMPLE; i++) {
        CHECK_CHEAPLY(unit[i] >= 0 && unit[i] < 1);
        CHECK_CHEAPLY(range[i] >= -3 && range[i] < 5);
        counts[0][(int)(unit[i] * 128)]++;
        counts[1][(int)((range[i] + 3) * 16)]++;
    }
    check_equal_counts(counts[0], 128, SAMPLE, "float");
    check_equal_counts(counts[1], 128, SAMPLE, "double");
    free(unit);
    free(range);
}
END_TEST

/* Ranges of a few neighbouring floats: rounding reaches max, which must not come out. */
START_TEST(test_uniform_narrow_reals)
{
    float *data = make("uniform min=1 max=1.0000003", 3, "in", GPURUN_FLOAT, 10000, 2);
    float *same = make("uniform min=0.1 max=0.1", 3, "in", GPURUN_FLOAT, 100, 2);
    int64_t seen[4] = {0};

    for (int i = 0; i < 10000; i++) {
        const float steps = (data[i] - 1) / FLT_EPSILON;

        CHECK_CHEAPLY(steps == 0 || steps == 1 || steps == 2);
        seen[(int)steps]++;
    }
    ck_assert(seen[0] > 0 && seen[1] > 0);
    for (int i = 0; i < 100; i++)
        CHECK_CHEAPLY(same[i] == 0.1f);
    free(data);
    free(same);
}
END_TEST

/* Mean, deviation, the share within one deviation, and kurtosis: 3 - 6/5/12 for the sum of 12. */
START_TEST(test_normal)
{
    double *data = make("normal mean=10 sd=2", 7, "in", GPURUN_DOUBLE, SAMPLE, 2);
    double sum = 0, squares = 0, fourth = 0;
    int within = 0;

    for (int i = 0; i < SAMPLE; i++) {
        const double z = (data[i] - 10) / 2;

        CHECK_CHEAPLY(fabs(z) < 6);
        sum += z;
        squares += z * z;
        fourth += z * z * z * z;
        within += fabs(z) <= 1;
    }
    ck_assert_double_eq_tol(sum / SAMPLE, 0, 6e-3);
    ck_assert_double_eq_tol(squares / SAMPLE, 1, 9e-3);
    ck_assert_double_eq_tol(fourth / SAMPLE, 2.9, 0.06);
    ck_assert_double_eq_tol((double)within / SAMPLE, 0.681, 3e-3);
    free(data);
}
END_TEST

START_TEST(test_normal_integers)
{
    int8_t *bytes = make("normal mean=0 sd=1000", 7, "in", GPURUN_INT8, 10000, 2);
    int64_t *wide = make("normal", 7, "in", GPURUN_INT64, 10000, 2);
    uint64_t *ends = make("normal mean=0 sd=1e25", 7, "in", GPURUN_UINT64, 10000, 2);
    int low = 0, high = 0, negative = 0, first = 0, last = 0;

    for (int i = 0; i < 10000; i++) {
        low += bytes[i] == INT8_MIN;
        high += bytes[i] == INT8_MAX;
        negative += wide[i] < 0;
        first += ends[i] == 0;
        last += ends[i] == UINT64_MAX;
    }
    ck_assert(low > 4000 && high > 4000 && low + high < 10000);
    ck_assert(negative > 4700 && negative < 5300);
    ck_assert(first > 4700 && last > 4700 && first + last == 10000);
    free(bytes);
    free(wide);
    free(ends);
}
END_TEST

START_TEST(test_few_distinct)
{
    int32_t *whole = make("few-distinct count=5", 9, "in", GPURUN_INT32, SAMPLE, 2);
    float *real = make("few-distinct count=16", 9, "in", GPURUN_FLOAT, SAMPLE, 2);
    int64_t counts[2][16] = {{0}};

    for (int i = 0; i < SAMPLE; i++) {
        /* (2^32 - 1) / 4, rounded down, apart from the lowest value on */
        const int64_t steps = ((int64_t)whole[i] - INT32_MIN) / 1073741823;

        CHECK_CHEAPLY(INT32_MIN + steps * 1073741823 == whole[i]);
        counts[0][steps]++;
        CHECK_CHEAPLY(real[i] * 16 == floorf(real[i] * 16));
        counts[1][(int)(real[i] * 16)]++;
    }
    check_equal_counts(counts[0], 5, SAMPLE, "integers");
    check_equal_counts(counts[1], 16, SAMPLE, "floats");
    free(whole);
    free(real);
}
END_TEST

START_TEST(test_zipf)
{
    uint8_t *data = make("zipf count=50", 11, "in", GPURUN_UINT8, SAMPLE, 2);
    int64_t counts[50] = {0};
    double expected[50], total = 0;

    for (int v = 1; v <= 50; v++)
        total += 1.0 / v;
    for (int v = 1; v <= 50; v++)
        expected[v - 1] = SAMPLE / (v * total);
    for (int i = 0; i < SAMPLE; i++) {
        CHECK_CHEAPLY(data[i] >= 1 && data[i] <= 50);
        counts[data[i] - 1]++;
    }
    check_chi_square(counts, expected, 50, "zipf");
    free(data);
}
END_TEST

/* Half of the elements, and each special value, NaN of either sign included. */
START_TEST(test_special_reals)
{
    static const uint32_t bits[] = {0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000,
                                    0,          0x80000000, 1,          0x80000001,
                                    0x7f7fffff, 0xff7fffff, 0x3f800000, 0xbf800000};
    uint32_t *data = make("special", 13, "in", GPURUN_FLOAT, 120000, 2);
    int64_t counts[12] = {0}, total = 0;

    for (int i = 0; i < 120000; i++)
        for (int s = 0; s < 12; s++)
            counts[s] += data[i] == bits[s];
    for (int s = 0; s < 12; s++)
        total += counts[s];
    ck_assert(total > 59000 && total < 61000);
    check_equal_counts(counts, 12, total, "special values");
    free(data);
}
END_TEST

START_TEST(test_special_integers)
{
    static const int64_t values[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    int64_t *data = make("special", 13, "in", GPURUN_INT64, 70000, 2);
    int64_t counts[7] = {0}, total = 0;

    for (int i = 0; i < 70000; i++)
        for (int s = 0; s < 7; s++)
            counts[s] += data[i] == values[s];
    for (int s = 0; s < 7; s++)
        total += counts[s];
    ck_assert(total > 34000 && total < 36000);
    check_equal_counts(counts, 7, total, "special values");
    free(data);
}
END_TEST

START_TEST(test_constants)
{
    float *zero = make("constant value=-0.0", 1, "in", GPURUN_FLOAT, 10, 1);
    double *nan_value = make("constant value=nan", 1, "in", GPURUN_DOUBLE, 10, 1);
    uint64_t *large = make("constant value=1.5e19", 1, "in", GPURUN_UINT64, 10, 1);

    for (int i = 0; i < 10; i++) {
        ck_assert(zero[i] == 0 && signbit(zero[i]));
        ck_assert(isnan(nan_value[i]));
        ck_assert_uint_eq(large[i], UINT64_C(15000000000000000000));
    }
    free(zero);
    free(nan_value);
    free(large);
}
END_TEST

/* The corners of a matrix of 300 by 70001 elements, in blocks of many threads; and one dimension. */
START_TEST(test_quadratic_places)
{
    enum { ROWS = 300, COLUMNS = 70001 };
    struct gpurun_tensor t = {.name = "a",
                              .dtype = GPURUN_INT64,
                              .rank = 2,
                              .dims = {ROWS, COLUMNS},
                              .elems = (int64_t)ROWS * COLUMNS};
    struct generator g = parse("quadratic");
    int64_t *data = t.host = malloc((size_t)t.elems * sizeof *data);

    generator_fill(&g, 1, &t, 3);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLUMNS; j += 10000)
            CHECK_CHEAPLY(data[i * COLUMNS + j] == i * i + j);
    g = parse("quadratic square=column");
    generator_fill(&g, 1, &t, 3);
    CHECK_CHEAPLY(data[299 * COLUMNS + 70000] == 299 + INT64_C(4900000000));
    t.rank = 1;
    t.dims[0] = t.elems = 5;
    generator_fill(&g, 1, &t, 1);
    for (int64_t j = 0; j < 5; j++)
        ck_assert_int_eq(data[j], j * j);
    free(data);
}
END_TEST

/* --- parsing and checking ------------------------------------------------------------------------- */

START_TEST(test_parse)
{
    const struct generator g = parse("  uniform\tmax=1M min=0.5 ");
    const struct generator plain = parse("few-distinct");

    ck_assert(g.kind == GENERATOR_UNIFORM && g.given == 3);
    ck_assert(!g.is_whole[0] && g.real[0] == 0.5);
    ck_assert(g.is_whole[1] && g.whole[1] == 1000000 && g.real[1] == 1000000);
    ck_assert(plain.kind == GENERATOR_FEW_DISTINCT && plain.given == 0);
}
END_TEST

static const struct {
    const char *text, *reason;
} parse_bad[] = {
    {"", "no generator is named (write uniform, or file:PATH)"},
    {"  ", "no generator is named"},
    {"unifrom", "there is no generator 'unifrom' (did you mean uniform?)"},
    {"few_distinct", "did you mean few-distinct?"},
    {"quadratic square=diagonal", "square: 'diagonal' is not one of row or column"},
    {"quadratic square=", "square: '' is not one of row or column"},
    {"quadratic square", "square has no value (write square=, without blanks)"},
    {"quadratic square=row square=row", "square is given twice"},
    {"quadratic squared=row", "quadratic has no parameter 'squared' (did you mean square?)"},
    {"quadratic step=1", "quadratic has no parameter 'step' (it takes square=)"},
    {"random", "there is no generator 'random' (known are uniform normal ascending"},
    {"Uniform", "did you mean uniform?"},
    {"uniform mim=1", "uniform has no parameter 'mim' (did you mean min?)"},
    {"uniform speed=1", "uniform has no parameter 'speed' (it takes min= and max=)"},
    {"zipf speed=1", "zipf has no parameter 'speed' (it takes count=)"},
    {"special max=1", "special takes no parameters, so not 'max'"},
    {"uniform min", "min has no value (write min=, without blanks)"},
    {"uniform min = 1", "min has no value"},
    {"uniform min=1 min=2", "min is given twice"},
    {"uniform min=", "min: the value is empty"},
    {"uniform min=12x", "min: '12x' is not a number"},
    {"uniform =1", "uniform has no parameter ''"},
    {"uniform 5", "uniform has no parameter '5'"},
    {"uniform "
     "min=0000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "00000000000000000000000000000000000000000000000000000000000000000000000000000",
     "is too long for a generator"},
};

START_TEST(test_parse_bad)
{
    struct generator g = {.given = 77};
    struct why why = {""};

    ck_assert_int_eq(generator_parse(parse_bad[_i].text, &g, &why), GPURUN_INVALID);
    ck_assert_msg(strstr(why.text, parse_bad[_i].reason) != NULL, "%s", why.text);
    ck_assert_uint_eq(g.given, 77);
}
END_TEST

static const struct {
    const char *text;
    enum gpurun_dtype dtype;
    const char *reason; /* NULL: right */
} checks[] = {
    {"uniform min=-128 max=127", GPURUN_INT8, NULL},
    {"uniform max=128", GPURUN_INT8,
     "uniform: max=128 is out of range (write a whole number from -128 to 127 for int8)"},
    {"uniform min=-1", GPURUN_UINT64,
     "min=-1 is out of range (write a whole number from 0 to 18446744073709551615"},
    {"uniform max=18446744073709549568", GPURUN_UINT64, NULL},
    {"uniform min=-65504 max=65504", GPURUN_HALF, NULL},
    {"uniform max=65505", GPURUN_HALF,
     "uniform: max=65505 is out of range (write a number from -65504 to 65504 for half)"},
    {"constant value=inf", GPURUN_BFLOAT16, NULL},
    {"constant value=3.4e38", GPURUN_BFLOAT16, "a number from -3.3895314e+38 to 3.3895314e+38 for"},
    {"few-distinct count=2048", GPURUN_HALF, NULL},
    {"few-distinct count=2049", GPURUN_HALF, "a whole number from 1 to 2048 for half"},
    {"zipf count=256", GPURUN_BFLOAT16, NULL},
    {"zipf count=257", GPURUN_BFLOAT16, "a whole number from 1 to 256 for bfloat16"},
    {"normal mean=65000 sd=100", GPURUN_HALF,
     "normal: mean and 6 sd reach 65600, which half cannot hold (it ends at 65504)"},
    {"quadratic square=column", GPURUN_UINT8, NULL},
    {"uniform max=18446744073709551616", GPURUN_UINT64, "is out of range"},
    {"uniform max=9223372036854775808", GPURUN_INT64, "is out of range"},
    {"uniform min=0.5", GPURUN_INT32, "uniform: min=0.5 is not whole"},
    {"uniform min=0.5", GPURUN_FLOAT, NULL},
    {"uniform max=inf", GPURUN_FLOAT, "uniform: max=inf is not finite"},
    {"uniform max=nan", GPURUN_INT32, "is not finite"},
    {"uniform max=1e39", GPURUN_FLOAT,
     "is out of range (write a number from -3.4028235e+38 to 3.4028235e+38 for float)"},
    {"uniform max=1e39", GPURUN_DOUBLE, NULL},
    {"uniform min=5 max=4", GPURUN_INT32,
     "uniform: min=5 is above max (write the lower one as min)"},
    {"uniform min=5 max=4", GPURUN_FLOAT,
     "uniform: min=5 is above max=4 (write the lower one as min)"},
    {"uniform min=5", GPURUN_FLOAT, "uniform: min=5 is above max=1 (write both)"},
    {"uniform max=-1", GPURUN_FLOAT, "uniform: min=0 is above max=-1 (write both)"},
    {"uniform min=5 max=5", GPURUN_DOUBLE, NULL},
    {"normal mean=0.5 sd=0", GPURUN_INT32, NULL},
    {"normal mean=300", GPURUN_UINT8,
     "normal: mean=300 is out of range (write a number from 0 to 255 for uint8)"},
    {"normal sd=-1", GPURUN_DOUBLE, "normal: sd=-1 is below 0 (write 0 or more)"},
    {"normal sd=inf", GPURUN_INT32, "is not finite"},
    {"normal mean=3e38 sd=1e38", GPURUN_FLOAT,
     "mean and 6 sd reach 9e+38, which float cannot hold"},
    {"normal mean=1e308 sd=1e308", GPURUN_DOUBLE, "which double cannot hold"},
    {"ascending step=-1", GPURUN_INT32, "ascending: step=-1 is below 0"},
    {"ascending start=300", GPURUN_INT8, "start=300 is out of range"},
    {"ascending step=0.5", GPURUN_INT32, "step=0.5 is not whole"},
    {"descending start=-5 step=2", GPURUN_INT32, NULL},
    {"constant value=nan", GPURUN_FLOAT, NULL},
    {"constant value=-inf", GPURUN_FLOAT, NULL},
    {"constant value=nan", GPURUN_INT32, "constant: value=nan is out of range"},
    {"constant value=256", GPURUN_UINT8, "value=256 is out of range"},
    {"few-distinct count=0", GPURUN_INT32,
     "few-distinct: count=0 is no count of values (write a whole number from 1 to 4294967296 for "
     "int32)"},
    {"few-distinct count=257", GPURUN_INT8, "(write a whole number from 1 to 256 for int8)"},
    {"few-distinct count=256", GPURUN_INT8, NULL},
    {"few-distinct count=1.5", GPURUN_FLOAT, "is no count of values"},
    {"few-distinct count=16777217", GPURUN_FLOAT, "from 1 to 16777216 for float"},
    {"few-distinct count=inf", GPURUN_FLOAT, "is no count of values"},
    {"zipf count=128", GPURUN_INT8,
     "zipf: count=128 is no count of values (write a whole number from 1 to 127 for int8)"},
    {"zipf count=1M", GPURUN_INT64, NULL},
    {"zipf count=1000001", GPURUN_DOUBLE, "from 1 to 1000000 for double"},
    {"special", GPURUN_FLOAT, NULL},
};

START_TEST(test_check)
{
    const struct generator g = parse(checks[_i].text);
    struct why why = {""};
    const enum gpurun_status status = generator_check(&g, checks[_i].dtype, &why);

    ck_assert_msg(status == (checks[_i].reason == NULL ? GPURUN_OK : GPURUN_INVALID), "%s: %s",
                  checks[_i].text, why.text);
    if (checks[_i].reason != NULL)
        ck_assert_msg(strstr(why.text, checks[_i].reason) != NULL, "%s", why.text);
}
END_TEST

/* Every row of the help parses, with each of its parameters. */
START_TEST(test_help)
{
    int count = 0;

    for (const struct generator_help *row = generator_helps; row->name != NULL; row++, count++) {
        char names[64], text[128], *at = names;

        ck_assert_int_eq(parse(row->name).kind, count);
        ck_assert(row->help[0] != '\0' && strlen(row->parameters) < sizeof names);
        strcpy(names, row->parameters);
        for (char *name; (name = strsep(&at, " ")) != NULL;) {
            snprintf(text, sizeof text, "%s %s=%s", row->name, name,
                     strcmp(name, "square") == 0 ? "column" : "1");
            if (*name != '\0')
                parse(text);
        }
    }
    ck_assert_int_eq(count, GENERATOR_COUNT);
}
END_TEST

static Suite *generate_suite(void)
{
    Suite *suite = suite_create("generate");
    TCase *values = tcase_create("values"), *texts = tcase_create("texts");

    tcase_set_timeout(values, 60);
    tcase_add_test(values, test_golden);
    tcase_add_loop_test(values, test_threads, 0, (int)GPURUN_COUNT(every));
    tcase_add_loop_test(values, test_bounds, 0, (int)GPURUN_COUNT(every));
    tcase_add_test(values, test_seeds_differ);
    tcase_add_test(values, test_uniform_integers);
    tcase_add_test(values, test_uniform_widest_span);
    tcase_add_test(values, test_uniform_reals);
    tcase_add_test(values, test_uniform_narrow_reals);
    tcase_add_test(values, test_normal);
    tcase_add_test(values, test_normal_integers);
    tcase_add_test(values, test_few_distinct);
    tcase_add_test(values, test_zipf);
    tcase_add_test(values, test_special_reals);
    tcase_add_test(values, test_special_integers);
    tcase_add_test(values, test_constants);
    tcase_add_test(values, test_quadratic_places);
    suite_add_tcase(suite, values);

    tcase_add_test(texts, test_parse);
    tcase_add_loop_test(texts, test_parse_bad, 0, (int)GPURUN_COUNT(parse_bad));
    tcase_add_loop_test(texts, test_check, 0, (int)GPURUN_COUNT(checks));
    tcase_add_test(texts, test_help);
    suite_add_tcase(suite, texts);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(generate_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
