/* Every bit pattern of both formats, held against the definition of their values in double. */
#include "gpurun/half.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

struct format {
    int fraction_bits, bias;
    float (*to_float)(uint16_t bits);
    uint16_t (*from_double)(double value);
};

static const struct format formats[] = {
    {10, 15, gpurun_half_to_float, gpurun_half_from_double},
    {7, 127, gpurun_bfloat16_to_float, gpurun_bfloat16_from_double}};

enum { SIGN = 0x8000 };

/* The pattern of infinity; NaNs lie above it. */
static unsigned infinity_of(const struct format *f)
{
    return (unsigned)(2 * f->bias + 1) << f->fraction_bits;
}

/* As the definition has it: fraction and exponent apart. For infinity what would come next. */
static double value_of(const struct format *f, unsigned bits)
{
    const unsigned magnitude = bits & 0x7fff;
    const int exponent = (int)(magnitude >> f->fraction_bits);
    const double fraction =
        ldexp((double)(magnitude & ((1u << f->fraction_bits) - 1)), -f->fraction_bits);
    const double value =
        exponent == 0 ? ldexp(fraction, 1 - f->bias) : ldexp(1 + fraction, exponent - f->bias);

    return bits & SIGN ? -value : value;
}

static void check_from(const struct format *f, double value, unsigned bits)
{
    const unsigned got = f->from_double(value);

    if (got != bits)
        ck_abort_msg("%a becomes %04x, not %04x", value, got, bits);
}

START_TEST(test_every_number)
{
    const struct format *f = &formats[_i];

    for (unsigned sign = 0; sign <= SIGN; sign += SIGN)
        for (unsigned m = 0; m < infinity_of(f); m++) {
            const double value = value_of(f, sign | m);
            const double got = (double)f->to_float((uint16_t)(sign | m));

            if (got != value || signbit(got) != signbit(value))
                ck_abort_msg("%04x is %a, not %a", sign | m, got, value);
            check_from(f, value, sign | m);
        }
}
END_TEST

/* Half-way to the next number the even one is taken; the nearest doubles on both sides go to their
 * own side, which they would not if they were rounded to float first. */
START_TEST(test_every_tie)
{
    const struct format *f = &formats[_i];

    for (unsigned m = 0; m < infinity_of(f); m++) {
        const double tie = (value_of(f, m) + value_of(f, m + 1)) / 2;
        const unsigned even = m + (m & 1);

        check_from(f, tie, even);
        check_from(f, nextafter(tie, 0), m);
        check_from(f, nextafter(tie, INFINITY), m + 1);
        check_from(f, -tie, SIGN | even);
        check_from(f, nextafter(-tie, 0), SIGN | m);
        check_from(f, nextafter(-tie, -INFINITY), SIGN | (m + 1));
    }
}
END_TEST

START_TEST(test_beyond)
{
    const struct format *f = &formats[_i];
    const unsigned infinity = infinity_of(f);

    ck_assert(f->to_float((uint16_t)infinity) == INFINITY);
    ck_assert(f->to_float((uint16_t)(SIGN | infinity)) == -INFINITY);
    check_from(f, INFINITY, infinity);
    check_from(f, -INFINITY, SIGN | infinity);
    check_from(f, 1e308, infinity);
    check_from(f, -1e308, SIGN | infinity);
    check_from(f, 1e-320, 0);
    check_from(f, -1e-320, SIGN);
}
END_TEST

/* Every NaN stays one, of the same sign, both ways; a signalling one becomes quiet on its way back. */
START_TEST(test_nans)
{
    const struct format *f = &formats[_i];
    const unsigned quiet = 1u << (f->fraction_bits - 1);

    for (unsigned m = infinity_of(f) + 1; m < SIGN; m++)
        for (unsigned sign = 0; sign <= SIGN; sign += SIGN) {
            const float value = f->to_float((uint16_t)(sign | m));

            if (!isnan(value) || !signbit(value) != !sign)
                ck_abort_msg("%04x is %a", sign | m, (double)value);
            if (f->from_double((double)value) != (sign | m | quiet))
                ck_abort_msg("%04x comes back as %04x", sign | m, f->from_double((double)value));
        }
    ck_assert_uint_eq(f->from_double(copysign(NAN, -1)), SIGN | infinity_of(f) | quiet);
}
END_TEST

/* Worked by hand. */
START_TEST(test_known)
{
    check_from(&formats[0], 1, 0x3c00);
    check_from(&formats[0], -2, 0xc000);
    check_from(&formats[0], 65504, 0x7bff);
    check_from(&formats[0], 65519.999, 0x7bff);
    check_from(&formats[0], 65520, 0x7c00);
    check_from(&formats[0], 0x1p-24, 0x0001);
    check_from(&formats[0], 0x1p-25, 0x0000);
    check_from(&formats[0], 0x1.000001p-25, 0x0001);
    check_from(&formats[0], 0x1p-14, 0x0400);
    check_from(&formats[0], 0.1, 0x2e66);
    check_from(&formats[1], 1, 0x3f80);
    check_from(&formats[1], 0x1.01p0, 0x3f80);         /* a tie, down to the even one */
    check_from(&formats[1], 0x1.03p0, 0x3f82);         /* a tie, up */
    check_from(&formats[1], 0x1.0100000001p0, 0x3f81); /* a float would make a tie of it */
    check_from(&formats[1], 3.140625, 0x4049);
    check_from(&formats[1], 0x1p-133, 0x0001);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("half");
    TCase *tests = tcase_create("half and bfloat16");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tests, test_every_number, 0, 2);
    tcase_add_loop_test(tests, test_every_tie, 0, 2);
    tcase_add_loop_test(tests, test_beyond, 0, 2);
    tcase_add_loop_test(tests, test_nans, 0, 2);
    tcase_add_test(tests, test_known);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
