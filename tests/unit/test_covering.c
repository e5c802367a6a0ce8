/* What the contract test leans on: covering.h covers all pairs, sizes.h gives all sizes. */
#include "../contract/covering.h"
#include "../contract/sizes.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

/* --- pairs ---------------------------------------------------------------------------------------------- */

struct shape {
    int count, values[8];
    int most_rows;
};

/* The largest two factors say how few rows there can be: twice as many are enough. */
static const struct shape shapes[] = {
    {1, {5}, 0},
    {2, {3, 4}, 12},
    {4, {3, 3, 3, 3}, 18},
    {8, {2, 2, 2, 2, 2, 2, 2, 2}, 12},
    {7, {8, 6, 4, 3, 3, 2, 2}, 80},
    {5, {1, 1, 1, 1, 2}, 4},
    {3, {30, 20, 1}, 700},
};

static struct covering *covering_new(const struct shape *shape)
{
    struct covering *c = calloc(1, sizeof *c);

    c->random = 1;
    for (int f = 0; f < shape->count; f++)
        ck_assert_int_eq(covering_add(c, shape->values[f]), f);
    return c;
}

/* Counted here, not by covering.h: pairs that stood together in a row. */
static bool seen[8][30][8][30];

static int note_row(const struct shape *shape, const int *row)
{
    int fresh = 0;

    for (int a = 0; a < shape->count; a++) {
        ck_assert_int_ge(row[a], 0);
        ck_assert_int_lt(row[a], shape->values[a]);
        for (int b = a + 1; b < shape->count; b++) {
            fresh += !seen[a][row[a]][b][row[b]];
            seen[a][row[a]][b][row[b]] = true;
        }
    }
    return fresh;
}

static int all_pairs(const struct shape *shape)
{
    int pairs = 0;

    for (int a = 0; a < shape->count; a++)
        for (int b = a + 1; b < shape->count; b++)
            pairs += shape->values[a] * shape->values[b];
    return pairs;
}

START_TEST(every_pair_stands_in_a_row)
{
    const struct shape *shape = &shapes[_i];
    struct covering *c = covering_new(shape);
    int row[FACTORS_MAX] = {0}, rows = 0, fresh, total = 0, covered, given_up;

    memset(seen, 0, sizeof seen);
    for (; covering_next(c, row); rows++) {
        fresh = note_row(shape, row);
        ck_assert_int_gt(fresh, 0);
        total += fresh;
        covering_covers(c, row);
        covering_tried(c, row);
    }
    covering_count(c, &covered, &given_up);
    ck_assert_int_eq(total, all_pairs(shape));
    ck_assert_int_eq(covered, total);
    ck_assert_int_eq(given_up, 0);
    ck_assert_int_le(rows, shape->most_rows);
    free(c);
}
END_TEST

/* Rows with 0 in the first and 1 in the second factor cannot be tried: that pair alone is given up, and no
 * other is taken for covered by such a row. */
START_TEST(a_refused_row_covers_nothing)
{
    const struct shape *shape = &shapes[4];
    struct covering *c = covering_new(shape);
    int row[FACTORS_MAX] = {0}, total = 0, refusals = 0, covered, given_up;

    memset(seen, 0, sizeof seen);
    while (covering_next(c, row)) {
        if (row[0] == 0 && row[1] == 1) {
            refusals++;
        } else {
            total += note_row(shape, row);
            covering_covers(c, row);
        }
        covering_tried(c, row);
    }
    covering_count(c, &covered, &given_up);
    ck_assert_int_eq(total, all_pairs(shape) - 1);
    ck_assert_int_eq(covered, total);
    ck_assert_int_eq(given_up, 1);
    ck_assert_int_ge(refusals, COVERING_TRIES);
    free(c);
}
END_TEST

START_TEST(nothing_to_cover_ends)
{
    struct covering *c = covering_new(&shapes[4]);
    int row[FACTORS_MAX] = {0}, rows = 0, covered, given_up;

    for (; covering_next(c, row); rows++)
        covering_tried(c, row);
    covering_count(c, &covered, &given_up);
    ck_assert_int_eq(covered, 0);
    ck_assert_int_eq(given_up, all_pairs(&shapes[4]));
    ck_assert_int_eq(rows, COVERING_TRIES * all_pairs(&shapes[4]));
    free(c);
}
END_TEST

/* --- sizes ---------------------------------------------------------------------------------------------- */

START_TEST(every_size_comes_once)
{
    struct sizes s;

    sizes_start(&s);
    for (int64_t size = 0; size <= 4200; size++)
        ck_assert_int_eq(sizes_next(&s, SIZES_EVERY), size);
    ck_assert_int_eq(sizes_next(&s, SIZES_EVERY), -1);
}
END_TEST

static bool is_edge(const struct sizes *s, int64_t size)
{
    for (int64_t i = 0; i < s->edge_count; i++)
        if (s->edges[i] == size)
            return true;
    return false;
}

/* 7680, 4608, 10240 and 6144 are tiles of our own. */
START_TEST(edges_are_around_every_tile)
{
    static const int64_t some[] = {255,   256,    257,    511,    1023,    1025,    1793,
                                   2047,  4607,   4609,   6143,   6145,    7679,    7681,
                                   8191,  8193,   10239,  10241,  15361,   16384,   16385,
                                   32767, 131073, 507903, 507905, 1048575, 1048576, 1048577};
    struct sizes s;
    int64_t size, count = 0;

    sizes_start(&s);
    ck_assert_int_lt(s.edge_count, SIZES_EDGES_MAX);
    ck_assert_int_eq(s.edges[0], 1048575);
    ck_assert_int_eq(s.edges[1], 1048576);
    ck_assert_int_eq(s.edges[2], 1048577);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        ck_assert_msg(is_edge(&s, some[i]), "%d is no edge", (int)some[i]);
    for (; (size = sizes_next(&s, SIZES_EDGES)) >= 0; count++)
        ck_assert(size >= 255 && size <= 1048577);
    ck_assert_int_eq(count, s.edge_count);
}
END_TEST

/* Of a thousand about as many below 1024 as the logarithm says, every other one a prime. */
START_TEST(random_sizes_are_of_all_magnitudes)
{
    struct sizes s;
    int small = 0, large = 0;

    sizes_start(&s);
    for (int i = 0; i < 1000; i++) {
        const int64_t size = sizes_next(&s, SIZES_RANDOM);
        bool is_prime = size > 1;

        ck_assert(size >= 1 && size <= 1048577);
        for (int64_t d = 2; i % 2 == 0 && d < size; d++)
            if (size % d == 0) {
                is_prime = false;
                break;
            }
        ck_assert_msg(i % 2 != 0 || is_prime, "%d is no prime", (int)size);
        small += size < 1024;
        large += size > 262144;
    }
    ck_assert(small > 380 && small < 580);
    ck_assert(large > 60 && large < 200);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("covering");
    TCase *pairs = tcase_create("pairs"), *sizes = tcase_create("sizes");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(pairs, every_pair_stands_in_a_row, 0,
                        (int)(sizeof shapes / sizeof shapes[0]));
    tcase_add_test(pairs, a_refused_row_covers_nothing);
    tcase_add_test(pairs, nothing_to_cover_ends);
    tcase_add_test(sizes, every_size_comes_once);
    tcase_add_test(sizes, edges_are_around_every_tile);
    tcase_add_test(sizes, random_sizes_are_of_all_magnitudes);
    tcase_set_timeout(pairs, 60);
    tcase_set_timeout(sizes, 60);
    suite_add_tcase(suite, pairs);
    suite_add_tcase(suite, sizes);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
