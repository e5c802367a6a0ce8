/*
 * How conv's kernels cut an answer into bands: every row once, whatever the sizes, and the last bands lowest; and how a
 * block finds its own.
 */
#include "conv_bands.h"
#include <check.h>
#include <stdbool.h>

/* Stages of as many lines as the mask has rows. */
static const struct conv_stages masks[] = {{3, 3, 8, 2}, {5, 5, 8, 2}, {7, 7, 8, 2}, {5, 4, 24, 2}};

START_TEST(bands_of_an_image_by_hand)
{
    /* 44 bands of 10 rows and 44 of 4 are 616 rows, and 344 of 22 the most that fit above. What is left
     * then makes two more of 4. */
    struct conv_bands bands;
    int32_t rows;

    ck_assert_int_eq(conv_cut_bands(&masks[0], 8192, 12, 8, 44, &bands), 12 * (344 + 44 + 46));
    ck_assert_int_eq(bands.rows[0], 22);
    ck_assert_int_eq(bands.counts[0], 344);
    ck_assert_int_eq(bands.rows[1], 10);
    ck_assert_int_eq(bands.counts[1], 44);
    ck_assert_int_eq(bands.rows[2], 4);
    ck_assert_int_eq(conv_band_at(&bands, 343, &rows), 343 * 22);
    ck_assert_int_eq(rows, 22);
    ck_assert_int_eq(conv_band_at(&bands, 344, &rows), 344 * 22);
    ck_assert_int_eq(rows, 10);
    ck_assert_int_eq(conv_band_at(&bands, 344 + 44 + 45, &rows), 344 * 22 + 440 + 180);
    ck_assert_int_eq(rows, 4);
}
END_TEST

START_TEST(few_rows_are_low_bands)
{
    struct conv_bands bands;

    /* 528 bands of 22 rows reach beyond 11595 - 1; of 19 rows, those of 7 stages, beyond 10014 - 1 */
    ck_assert_int_eq(conv_choose_turns(&masks[0], 11595, 528), 8);
    ck_assert_int_eq(conv_choose_turns(&masks[0], 11594, 528), 7);
    ck_assert_int_eq(conv_choose_turns(&masks[0], 10014, 528), 7);
    ck_assert_int_eq(conv_choose_turns(&masks[0], 10013, 528), 6);
    ck_assert_int_eq(conv_choose_turns(&masks[0], 1, 528), 2);
    ck_assert_int_eq(conv_cut_bands(&masks[0], 20, 1, 2, 10, &bands), 5);
    ck_assert_int_eq(conv_cut_bands(&masks[2], 1, 1, 8, 528, &bands), 1);
}
END_TEST

/* Whether bands follow each other to the last row, none beyond it, and none higher than the one before. */
static bool are_in_order(const struct conv_bands *bands, int64_t count, int32_t rows)
{
    int32_t next = 0, before = INT32_MAX;

    for (int32_t i = 0; i < count; i++) {
        int32_t high;

        if (conv_band_at(bands, i, &high) != next || high > before || next >= rows)
            return false;
        next += high;
        before = high;
    }
    return next >= rows;
}

START_TEST(every_row_is_in_one_band)
{
    static const int64_t sides[] = {1, 2, 7, 44, 132, 528, 1 << 30};

    for (int32_t rows = 1; rows < 20000; rows += rows < 1300 ? 1 : 977)
        for (int s = 0; s < 7; s++)
            for (int m = 0; m < 4; m++) {
                struct conv_bands bands;
                const int turns = conv_choose_turns(&masks[m], rows, sides[s]);
                const int64_t count = conv_cut_bands(&masks[m], rows, 1, turns, sides[s], &bands);

                ck_assert_msg(are_in_order(&bands, count, rows), "%d rows, %lld side by side", rows,
                              (long long)sides[s]);
            }
}
END_TEST

/* Whether around the first and the last multiples below 2^31 quotients are what they must be. */
static bool divides(uint32_t by)
{
    const struct conv_divider divider = conv_divider_by(by);
    const uint32_t most = 0x7fffffff / by;

    for (uint32_t k = 0; k < most && k < 100000; k++)
        if (conv_divide(&divider, k * by) != k || conv_divide(&divider, k * by + by - 1) != k ||
            conv_divide(&divider, (most - k) * by) != most - k ||
            conv_divide(&divider, (most - k) * by - 1) != most - k - 1)
            return false;
    return conv_divide(&divider, 0x7fffffff) == most;
}

START_TEST(a_divider_divides_all_below_2_to_31)
{
    static const uint32_t by[] = {1, 2, 3, 5, 7, 12, 641, 65535, 65537, 0x40000001, 0x7fffffff};

    for (int i = 0; i < 11; i++)
        ck_assert_msg(divides(by[i]), "by %u", by[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_bands");
    TCase *bands = tcase_create("bands");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, bands);
    tcase_add_test(bands, bands_of_an_image_by_hand);
    tcase_add_test(bands, few_rows_are_low_bands);
    tcase_add_test(bands, every_row_is_in_one_band);
    tcase_add_test(bands, a_divider_divides_all_below_2_to_31);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
