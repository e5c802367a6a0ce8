/*
 * The baseline of transpose on matrices that go past the cache: every size of element, rows that begin at any
 * place of a line, edges that are no whole tiles, batches; and on some that do not. By each set of instructions that
 * this machine has. Judged element by element.
 */
#include "transpose_cpu.h"
#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct gpurun_ctx ctx; /* first: the hooks get its address */
    char message[512];
};

#include "plugin_core.h"

static void expect_turned(const char *in, const char *out, int64_t rows, int64_t cols, size_t size)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++)
            if (memcmp(in + (size_t)(i * cols + k) * size, out + (size_t)(k * rows + i) * size,
                       size) != 0)
                ck_abort_msg("size %zu, row %lld, column %lld", size, (long long)i, (long long)k);
}

START_TEST(large_matrices)
{
    static const enum gpurun_dtype dtypes[] = {GPURUN_UINT8, GPURUN_INT16, GPURUN_FLOAT,
                                               GPURUN_DOUBLE};
    static const int64_t shapes[][3] = {{1, 1088, 1024}, {1, 1153, 1201}, {3, 700, 633},
                                        {1, 7, 200003},  {1, 200003, 7},  {2, 137, 201}};
    const enum gpurun_dtype dtype = dtypes[_i % 4];
    const int64_t *shape = shapes[_i / 4], elems = shape[0] * shape[1] * shape[2];
    const size_t size = gpurun_dtype_bytes(dtype), bytes = (size_t)elems * size;

    for (size_t offset = 0; offset < 2; offset++) {
        char *in = malloc(bytes + offset * size), *out = malloc(bytes + offset * size);
        struct gpurun_tensor from = {.dtype = dtype, .elems = elems, .bytes = bytes}, to = from;
        struct transpose_options options = {
            .batch = shape[0], .rows = shape[1], .cols = shape[2], .dtype = dtype};
        struct transpose_state state = {.in = &from, .out = &to};
        struct gpurun_ctx ctx = {.options = &options, .state = &state, .threads = 2};
        const size_t matrix = bytes / (size_t)shape[0];

        from.host = in + offset * size;
        to.host = out + offset * size;
        for (size_t i = 0; i < bytes; i++)
            ((char *)from.host)[i] = (char)(i * 37 ^ i >> 7 ^ i >> 15);
        for (int set = 0; set <= (int)transpose_best_set(); set++) {
            memset(to.host, 0xa5, bytes);
            ck_assert_int_eq(transpose_run_cpu_by(&ctx, (enum transpose_set)set), GPURUN_OK);
            for (int64_t m = 0; m < shape[0]; m++)
                expect_turned((char *)from.host + (size_t)m * matrix,
                              (char *)to.host + (size_t)m * matrix, shape[1], shape[2], size);
        }
        free(in);
        free(out);
    }
}
END_TEST

/* In place, in blocks: whole ones, and edges that are no block and no tile; less than a block; batches. */
START_TEST(large_matrices_in_place)
{
    static const enum gpurun_dtype dtypes[] = {GPURUN_UINT8, GPURUN_INT16, GPURUN_FLOAT,
                                               GPURUN_DOUBLE};
    static const int64_t shapes[][2] = {{1, 1024}, {1, 1153}, {1, 2049}, {40, 193}, {2, 137}};
    const enum gpurun_dtype dtype = dtypes[_i % 4];
    const int64_t batch = shapes[_i / 4][0], side = shapes[_i / 4][1];
    const size_t size = gpurun_dtype_bytes(dtype), matrix = (size_t)(side * side) * size,
                 bytes = (size_t)batch * matrix;

    for (size_t offset = 0; offset < 2; offset++) {
        char *in = malloc(bytes), *memory = malloc(bytes + offset * size);
        struct gpurun_tensor both = {.dtype = dtype,
                                     .elems = batch * side * side,
                                     .bytes = bytes,
                                     .host = memory + offset * size};
        struct transpose_options options = {
            .batch = batch, .rows = side, .cols = side, .dtype = dtype, .inplace = 1};
        struct transpose_state state = {.in = &both, .out = &both};
        struct gpurun_ctx ctx = {.options = &options, .state = &state, .threads = 2};

        for (size_t i = 0; i < bytes; i++)
            in[i] = (char)(i * 37 ^ i >> 7 ^ i >> 15);
        for (int set = 0; set <= (int)transpose_best_set(); set++) {
            memcpy(both.host, in, bytes);
            ck_assert_int_eq(transpose_run_cpu_by(&ctx, (enum transpose_set)set), GPURUN_OK);
            for (size_t m = 0; m < (size_t)batch; m++)
                expect_turned(in + m * matrix, (char *)both.host + m * matrix, side, side, size);
        }
        free(in);
        free(memory);
    }
}
END_TEST

/* More threads than any machine has memory for. Nothing is read of a matrix. */
START_TEST(the_baseline_says_when_memory_is_short)
{
    static const struct gpurun_core core = {.fail = fake_fail, .wrong = fake_wrong};
    struct gpurun_tensor matrix = {
        .dtype = GPURUN_UINT8, .elems = INT64_C(1) << 60, .bytes = (size_t)1 << 60};
    struct transpose_options options = {.batch = 1,
                                        .rows = INT64_C(1) << (_i == 1 ? 42 : 30),
                                        .cols = INT64_C(1) << (_i == 1 ? 42 : 30),
                                        .dtype = GPURUN_UINT8,
                                        .inplace = _i};
    struct transpose_state state = {.in = &matrix, .out = &matrix};
    struct job job = {
        .ctx = {.core = &core, .options = &options, .state = &state, .threads = INT_MAX}};

    ck_assert_int_eq(transpose_run_cpu(&job.ctx), GPURUN_NO_MEMORY);
    ck_assert_str_eq(job.message, "threads: no host memory for 1736704 bytes for each of "
                                  "2147483647 threads");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transpose_cpu");
    TCase *large = tcase_create("large");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(large, 120);
    tcase_add_loop_test(large, large_matrices, 0, 24);
    tcase_add_loop_test(large, large_matrices_in_place, 0, 20);
    tcase_add_loop_test(large, the_baseline_says_when_memory_is_short, 0, 2);
    suite_add_tcase(suite, large);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
