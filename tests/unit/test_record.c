#include "run/record.h"

#include "job/memory.h"
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

static const struct text_case {
    const char *bytes, *text;
} text_cases[] = {
    {"", ""},
    {"plain", "plain"},
    {"\x01\x02\t\n\r\x1f\"\\/\x7f", "\x01\x02\t\n\r\x1f\"\\/\x7f"},
    {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
    {"\xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80", "\xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80"}, /* least */
    {"\xDF\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF", "\xDF\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF"}, /* most */
    {"\xED\x9F\xBF\xEE\x80\x80", "\xED\x9F\xBF\xEE\x80\x80"}, /* beside the surrogates */
    {"a\xFF"
     "b",
     "a" BAD "b"},
    {"\x80", BAD},
    {"\xBF\x80", BAD BAD},
    {"\xC3", BAD},
    {"\xC3(", BAD "("},
    {"\xE2\x82", BAD BAD},
    {"\xE2\x82x", BAD BAD "x"},
    {"\xF0\x9F\x98", BAD BAD BAD},
    {"\xC0\x80", BAD BAD},         /* overlong NUL */
    {"\xC1\xBF", BAD BAD},         /* overlong DEL */
    {"\xE0\x80\xAF", BAD BAD BAD}, /* overlong '/' */
    {"\xE0\x9F\xBF", BAD BAD BAD},
    {"\xF0\x8F\xBF\xBF", BAD BAD BAD BAD},
    {"\xED\xA0\x80", BAD BAD BAD}, /* surrogates */
    {"\xED\xBF\xBF", BAD BAD BAD},
    {"\xF4\x90\x80\x80", BAD BAD BAD BAD}, /* beyond U+10FFFF */
    {"\xF5\x80\x80\x80", BAD BAD BAD BAD},
    {"\xF8\x88\x80\x80\x80", BAD BAD BAD BAD BAD},
    {"\xFE\xFF", BAD BAD},
};

/* Dumps, and reads back what was dumped: what is not valid JSON does not come back. */
static void check_valid(const json_t *json)
{
    char *text = json_dumps(json, JSON_ENCODE_ANY);
    json_t *again = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(again);
    ck_assert(json_equal(json, again));
    free(text);
    json_decref(again);
}

START_TEST(test_text)
{
    json_t *json = json_text(text_cases[_i].bytes);

    ck_assert_ptr_nonnull(json);
    ck_assert_str_eq(json_string_value(json), text_cases[_i].text);
    check_valid(json);
    json_decref(json);
}
END_TEST

/* No bytes at all make it fail: every pair, then longer ones at random. */
START_TEST(test_any_bytes_are_text)
{
    uint64_t random = 88172645463325252;
    char bytes[12];

    for (int i = 0; i < 300000; i++) {
        size_t length = 2;
        json_t *json;

        if (i < 65536) {
            bytes[0] = (char)(i >> 8);
            bytes[1] = (char)i;
        } else {
            for (length = 3 + (size_t)i % 9, random += (uint64_t)i; length > 0; length--) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                bytes[length - 1] = (char)(random >> 40 & 1 ? random >> 20 : random >> 20 | 0x80);
            }
            length = 3 + (size_t)i % 9;
        }
        bytes[length] = '\0';
        json = json_text(bytes);
        if (json == NULL || strlen(json_string_value(json)) < strlen(bytes))
            ck_abort_msg("lost bytes in round %d", i);
        json_decref(json);
    }
}
END_TEST

START_TEST(test_number)
{
    static const double none[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const double some[] = {0, -0.0, 1.5, -2, 1e308, -1e308, 5e-324, 0.1};

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        json_t *json = json_number(none[i]);

        ck_assert(json_is_null(json));
        json_decref(json);
    }
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        json_t *json = json_number(some[i]);
        const double back = json_real_value(json);

        ck_assert(json_is_real(json));
        ck_assert_mem_eq(&back, &some[i], sizeof back);
        check_valid(json);
        json_decref(json);
    }
}
END_TEST

static void check_text(const json_t *record, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(record, key));

    ck_assert_msg(found != NULL, "no %s", key);
    ck_assert_str_eq(found, text);
}

START_TEST(test_lost)
{
    struct job job = {.name = (char *)"x.ini:a", .core = {.plugin = "topk", .device = "auto"}};
    json_t *record = record_lost(&job, "radix", CASE_TIMEOUT, "rounds: not done");
    const char *started;

    ck_assert_ptr_nonnull(record);
    ck_assert_int_eq(json_integer_value(json_object_get(record, "schema")), RECORD_SCHEMA);
    check_text(record, "job", "x.ini:a");
    check_text(record, "plugin", "topk");
    check_text(record, "variant", "radix");
    check_text(record, "device", "auto");
    check_text(record, "status", "timeout");
    check_text(record, "reason", "rounds: not done");
    ck_assert_uint_eq(json_array_size(json_object_get(record, "flags")), 0);
    ck_assert(json_is_array(json_object_get(record, "flags")));
    started = json_string_value(json_object_get(record, "started"));
    ck_assert_ptr_nonnull(started);
    ck_assert_uint_eq(strlen(started), strlen("2026-01-01T00:00:00Z"));
    ck_assert_int_eq(started[10], 'T');
    ck_assert_int_eq(started[19], 'Z');
    check_valid(record);
    json_decref(record);
}
END_TEST

/* Names come from a job file, reasons from a plugin or a file system: any bytes. */
START_TEST(test_lost_with_any_bytes)
{
    struct job job = {.name = (char *)"\xFF:\x80",
                      .core = {.plugin = "\xC3(", .device = "\xED\xA0\x80"}};
    json_t *record = record_lost(&job, "\xFE", CASE_ERROR, "why\x80\x01");

    ck_assert_ptr_nonnull(record);
    check_text(record, "job", BAD ":" BAD);
    check_text(record, "plugin", BAD "(");
    check_text(record, "variant", BAD);
    check_text(record, "device", BAD BAD BAD);
    check_text(record, "reason", "why" BAD "\x01");
    check_valid(record);
    json_decref(record);
}
END_TEST

/* --- a case ------------------------------------------------------------------------------------- */

static struct run run;
static struct run_case one;
static const struct gpurun_variant variant = {.name = "tiled"};
static const struct gpurun_plugin table = {.name = "here"};
static const struct plugin plugin = {.table = &table, .build = "0"};

/* A case that took 2 ms in a round in which its bytes were read in 1 ms. */
static json_t *record_of(double operations, const struct gpurun_proof *proof)
{
    json_t *job = json_pack("{sss{}ss}", "job", "x.ini:a", "options", "memory", "explicit"),
           *record;

    run = (struct run){.plugin = &plugin, .case_count = 1, .ceilings[SIDE_DEVICE].bytes = 3000};
    run.ctx.work =
        (struct gpurun_work){.bytes_read = 2000, .bytes_written = 1000, .operations = operations};
    one = (struct run_case){.variant = &variant, .name = "tiled", .proof = *proof};
    samples_add(&run.ceilings[SIDE_DEVICE].ms[YARDSTICK_READ], 0, 1);
    samples_add(&one.time_ms, 0, 2);
    record = record_case(&run, &one, job);
    samples_free(&run.ceilings[SIDE_DEVICE].ms[YARDSTICK_READ]);
    samples_free(&one.time_ms);
    json_decref(job);
    check_valid(record);
    return record;
}

START_TEST(test_relative_errors)
{
    const struct gpurun_proof with = {.mode = GPURUN_VERIFY_FULL,
                                      .worst_relative = 0.25,
                                      .mean_relative = NAN,
                                      .relative_to = "|A||B|"};
    const struct gpurun_proof without = {.mode = GPURUN_VERIFY_FULL};
    json_t *record = record_of(0, &with), *proof = json_object_get(record, "proof");

    ck_assert(json_real_value(json_object_get(proof, "worst_relative")) == 0.25);
    ck_assert(json_is_null(json_object_get(proof, "mean_relative")));
    check_text(proof, "relative_to", "|A||B|");
    json_decref(record);
    record = record_of(0, &without);
    proof = json_object_get(record, "proof");
    check_text(proof, "mode", "full");
    ck_assert_ptr_null(json_object_get(proof, "worst_relative"));
    ck_assert_ptr_null(json_object_get(proof, "relative_to"));
    json_decref(record);
}
END_TEST

/* The flags of a case of so many bytes whose ceiling took 2 ms in each of its rounds, as one text. */
static void check_flags(const double *ms, size_t count, double bytes, const char *expected)
{
    json_t *job = json_pack("{ss}", "job", "x.ini:a"), *record, *flag;
    char text[200] = "";
    size_t i;

    run = (struct run){
        .plugin = &plugin, .case_count = 1, .ceilings[SIDE_DEVICE].bytes = (size_t)bytes};
    run.ctx.work = (struct gpurun_work){.bytes_read = bytes};
    one = (struct run_case){.variant = &variant, .name = "tiled", .timing.is_held = true};
    for (i = 0; i < count; i++) {
        samples_add(&run.ceilings[SIDE_DEVICE].ms[YARDSTICK_READ], (int)i, 2);
        samples_add(&one.time_ms, (int)i, ms[i]);
    }
    record = record_case(&run, &one, job);
    json_array_foreach(json_object_get(record, "flags"), i, flag)
    {
        strcat(text, i > 0 ? " " : "");
        strcat(text, json_string_value(flag));
    }
    ck_assert_str_eq(text, expected);
    check_valid(record);
    samples_free(&run.ceilings[SIDE_DEVICE].ms[YARDSTICK_READ]);
    samples_free(&one.time_ms);
    json_decref(record);
    json_decref(job);
}

START_TEST(test_flags)
{
    double ms[20];

    for (int i = 0; i < 20; i++)
        ms[i] = 2 + 0.001 * (i % 3);
    check_flags(ms, 20, 64e6, "");
    ms[0] = 4;
    check_flags(ms, 20, 64e6, "outliers first-slow");
    for (int i = 0; i < 20; i++)
        ms[i] = (i % 2 ? 2 : 3) + 0.001 * (i % 3);
    check_flags(ms, 20, 64e6, "noisy bimodal");
    for (int i = 0; i < 20; i++)
        ms[i] = 1.9; /* 105.3 % of the ceiling's speed */
    check_flags(ms, 20, 64e6, "suspect");
    check_flags(ms, 20, 31e6, ""); /* too small to be bound by memory */
    for (int i = 0; i < 20; i++)
        ms[i] = 1.92; /* 104.2 % */
    check_flags(ms, 20, 64e6, "");
    for (int i = 0; i < 20; i++)
        ms[i] =
            1.88 + 0.0025 * i; /* 106.4 % to 104 %: the median's interval is not all above 105 */
    check_flags(ms, 20, 64e6, "");
}
END_TEST

START_TEST(test_rates_and_limit)
{
    const struct gpurun_proof proof = {.mode = GPURUN_VERIFY_FULL};
    json_t *record = record_of(5000, &proof);
    const json_t *limit = json_object_get(record, "limit");
    const json_t *throughput = json_object_get(record, "throughput");

    ck_assert(json_number_value(json_object_get(limit, "percent")) == 50);
    ck_assert(json_number_value(json_object_get(throughput, "operations_per_s")) == 2500000);
    ck_assert(json_number_value(json_object_get(throughput, "bytes_per_s")) == 1500000);
    json_decref(record);
}
END_TEST

/* A case of 3 ms in a round in which as many bytes were read in 1 ms, copied in 2 and filled in 1.5: on the device all of
 * that, on the host only what `kind` says. */
static json_t *limit_of(enum memory_side side, double read, double written, enum yardstick kind)
{
    static const double ceilings_ms[] = {
        [YARDSTICK_READ] = 1, [YARDSTICK_COPY] = 2, [YARDSTICK_WRITE] = 1.5};
    json_t *job = json_pack("{ss}", "job", "x.ini:a"), *record, *limit;
    struct ceiling *c = &run.ceilings[side];

    run = (struct run){.plugin = &plugin, .case_count = 1};
    run.ctx.work = (struct gpurun_work){.bytes_read = read, .bytes_written = written};
    one = (struct run_case){.variant = side == SIDE_DEVICE ? &variant : NULL, .name = "x"};
    c->bytes = (size_t)(read + written);
    c->past_caches = true;
    for (int y = YARDSTICK_READ; y <= YARDSTICK_WRITE; y++)
        if (y == (int)kind || (side == SIDE_DEVICE && y != YARDSTICK_WRITE))
            samples_add(&c->ms[y], 0, ceilings_ms[y]);
    samples_add(&one.time_ms, 0, 3);
    record = record_case(&run, &one, job);
    limit = json_incref(json_object_get(record, "limit"));
    for (int y = YARDSTICK_READ; y <= YARDSTICK_WRITE; y++)
        samples_free(&c->ms[y]);
    samples_free(&one.time_ms);
    json_decref(record);
    json_decref(job);
    return limit;
}

static void check_ceiling(double read, double written, enum yardstick kind, double percent)
{
    static const char *const kinds[] = {"read", "copy", "write"};
    static const char *const times[] = {"read_ms", "copy_ms", "write_ms"};

    for (int side = SIDE_DEVICE; side <= SIDE_HOST; side++) {
        json_t *limit = limit_of((enum memory_side)side, read, written, kind);
        const bool on_device = side == SIDE_DEVICE;

        check_text(limit, "kind", kinds[kind]);
        ck_assert(fabs(json_number_value(json_object_get(limit, "percent")) - percent) < 1e-9);
        for (int y = YARDSTICK_READ; y <= YARDSTICK_WRITE; y++)
            ck_assert((json_object_get(limit, times[y]) != NULL) ==
                      (y == (int)kind || (on_device && y != YARDSTICK_WRITE)));
        ck_assert(json_is_true(json_object_get(limit, "past_caches")) ==
                  (!on_device && kind != YARDSTICK_READ));
        json_decref(limit);
    }
}

START_TEST(test_ceiling_fits_the_work)
{
    check_ceiling(3000, 8, YARDSTICK_READ, 100 / 3.0);
    check_ceiling(2000, 1000, YARDSTICK_READ, 100 / 3.0);
    check_ceiling(1500, 1500, YARDSTICK_COPY, 200 / 3.0);
    check_ceiling(0, 3000, YARDSTICK_WRITE, 50);
}
END_TEST

/* Why there is no limit, or one of fewer bytes; nothing where all is well. */
START_TEST(test_limit_notes)
{
    const struct gpurun_proof proof = {.mode = GPURUN_VERIFY_FULL};
    json_t *record = record_of(0, &proof), *job = json_pack("{ss}", "job", "x.ini:a");

    ck_assert_ptr_null(json_object_get(record, "limit_note"));
    json_decref(record);
    one.variant = NULL;
    samples_add(&one.time_ms, 0, 2);
    strcpy(run.ceilings[SIDE_HOST].note, "no limit: x");
    record = record_case(&run, &one, job);
    ck_assert(json_is_null(json_object_get(record, "limit")));
    check_text(record, "limit_note", "no limit: x");
    samples_free(&one.time_ms);
    json_decref(record);
    json_decref(job);
}
END_TEST

START_TEST(test_status_names)
{
    static const char *const names[] = {"passed",  "failed",      "error",         "crashed",
                                        "timeout", "unsupported", "out-of-memory", "interrupted"};

    for (int i = 0; i <= CASE_INTERRUPTED; i++)
        ck_assert_str_eq(case_status_name((enum case_status)i), names[i]);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *record_suite(void)
{
    Suite *suite = suite_create("record");
    TCase *parts = tcase_create("parts"), *lost = tcase_create("lost"),
          *cases = tcase_create("cases");

    tcase_add_loop_test(parts, test_text, 0, COUNT(text_cases));
    tcase_add_test(parts, test_any_bytes_are_text);
    tcase_add_test(parts, test_number);
    tcase_set_timeout(parts, 30);
    tcase_add_test(lost, test_lost);
    tcase_add_test(lost, test_lost_with_any_bytes);
    tcase_add_test(lost, test_status_names);
    tcase_add_test(cases, test_relative_errors);
    tcase_add_test(cases, test_rates_and_limit);
    tcase_add_test(cases, test_ceiling_fits_the_work);
    tcase_add_test(cases, test_limit_notes);
    tcase_add_test(cases, test_flags);
    suite_add_tcase(suite, parts);
    suite_add_tcase(suite, lost);
    suite_add_tcase(suite, cases);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(record_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
