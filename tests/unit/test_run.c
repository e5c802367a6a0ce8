/* run_prepare and run_setup around a plugin that lives here. */
#include "run/run.h"

#include "job/memory.h"
#include "run/record.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef fail /* Check's old name for ck_abort_msg; gpurun_fail has a member of that name */

/* --- the plugin ---------------------------------------------------------------------------------------- */

struct options {
    int64_t n, dtype, order;
    double ratio;
    const char *note;
};

struct state {
    char bytes[64];
};

static const char *const dtypes[] = {"int32", "double", NULL};
static const char *const orders[] = {"up", "down", NULL};

#define AT(field) .offset = offsetof(struct options, field), .name = #field

static const struct gpurun_option option_rows[] = {
    {AT(n), .type = GPURUN_OPTION_INT, .def = "100", .max = 1e18},
    {AT(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO},
    {AT(order), .type = GPURUN_OPTION_CHOICE, .def = "up", .choices = orders},
    {AT(ratio), .type = GPURUN_OPTION_REAL, .def = "0.5", .min = 0, .max = 1},
    {AT(note), .type = GPURUN_OPTION_TEXT, .def = ""},
};

static enum gpurun_status launch(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return GPURUN_OK;
}

static const struct gpurun_variant variants[] = {{.name = "naive", .launch = launch},
                                                 {.name = "tiled", .launch = launch}};

/* What setup does, set by each test. */
static enum gpurun_status (*setup_now)(struct gpurun_ctx *ctx);
static int teardowns;

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    return setup_now(ctx);
}

static enum gpurun_status run_nothing(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return GPURUN_OK;
}

static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    return v->launch(ctx);
}

static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    (void)ctx;
    (void)proof;
    return GPURUN_OK;
}

static void teardown(struct gpurun_ctx *ctx)
{
    ck_assert_ptr_nonnull(ctx->state);
    teardowns++;
}

static struct gpurun_plugin table = {
    .name = "here",
    .options = option_rows,
    .option_count = GPURUN_COUNT(option_rows),
    .option_size = sizeof option_rows[0],
    .variants = variants,
    .variant_count = GPURUN_COUNT(variants),
    .variant_size = sizeof variants[0],
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .memory = GPURUN_MEMORY_BIT(GPURUN_EXPLICIT) | GPURUN_MEMORY_BIT(GPURUN_PINNED),
    .memory_default = GPURUN_PINNED,
    .setup = setup,
    .run_gpu = run_gpu,
    .run_cpu = run_nothing,
    .verify = verify,
    .teardown = teardown,
};

/* --- a job ------------------------------------------------------------------------------------------------- */

static struct setting settings[8];
static struct binding inputs[4], outputs[4];
static struct job job;
static struct plugin plugin;
static struct run run;
static struct faults faults;

static void start(void)
{
    struct why why = {""};

    job = (struct job){.name = (char *)"x.ini:a",
                       .where = {"x.ini", 1},
                       .settings = settings,
                       .inputs = inputs,
                       .outputs = outputs};
    ck_assert_msg(option_set_defaults(&core_options_table, &job.core, &why) == GPURUN_OK, "%s",
                  why.text);
    plugin =
        (struct plugin){.table = &table,
                        .options = {option_rows, GPURUN_COUNT(option_rows), sizeof option_rows[0]}};
    setup_now = run_nothing;
    teardowns = 0;
}

static void finish(void)
{
    run_finish(&run);
    ck_assert_int_eq(teardowns, 1);
    faults_free(&faults);
}

/* Lines count from 2: [a] is line 1. */
static void set(const char *key, const char *text, bool shared)
{
    const int line = (int)job.setting_count + 2;

    settings[job.setting_count++] =
        (struct setting){.key = key, .text = text, .where = {"x.ini", line}, .shared = shared};
}

static void bind(struct binding *list, size_t *count, const char *key, const char *tensor,
                 const char *text)
{
    list[(*count)++] =
        (struct binding){.key = key, .tensor = tensor, .text = text, .where = {"x.ini", 9}};
}

static void prepare(enum gpurun_status expected)
{
    const enum gpurun_status status = run_prepare(&run, &job, &plugin, &faults);

    ck_assert_msg(status == expected, "%s", faults.count ? faults.texts[0] : "no fault");
    ck_assert_int_eq(faults.count > 0, expected != GPURUN_OK);
}

static void check_setup(enum gpurun_status (*what)(struct gpurun_ctx *ctx), const char *reason)
{
    enum gpurun_status status;

    setup_now = what;
    prepare(GPURUN_OK);
    status = run_setup(&run);
    ck_assert_str_eq(run.why.text, reason);
    ck_assert_int_eq(status == GPURUN_OK, reason[0] == '\0');
    ck_assert(!run.in_setup);
}

/* --- run_prepare ---------------------------------------------------------------------------------------------- */

START_TEST(test_prepare_defaults)
{
    const struct options *o;
    char nothing[sizeof(struct state)] = {0};

    prepare(GPURUN_OK);
    o = run.ctx.options;
    ck_assert_int_eq(o->n, 100);
    ck_assert_int_eq(o->dtype, GPURUN_AUTO);
    ck_assert_int_eq(o->order, 0);
    ck_assert(o->ratio == 0.5);
    ck_assert_str_eq(o->note, "");
    ck_assert_mem_eq(run.ctx.state, nothing, sizeof nothing);
    ck_assert_ptr_eq(run.ctx.core, &run_core);
    ck_assert_int_eq(run.core.memory, GPURUN_PINNED);
    ck_assert_int_ge(run.core.threads, 1);
    ck_assert_int_eq(run.ctx.threads, run.core.threads);
    ck_assert_int_eq(run.ctx.device.compute, 0);
    ck_assert_ptr_null(run.device);
    ck_assert_int_eq(run.device_index, -1);
}
END_TEST

START_TEST(test_prepare_options)
{
    const struct options *o;
    json_t *options;

    set("n", "1K", false);
    set("dtype", "double", true);
    set("order", "down", false);
    set("ratio", "0.25", false);
    set("note", "a, b", false);
    set("seed", "7", false);  /* the core's own: parsed long before */
    set("block", "64", true); /* from [global]: another plugin's */
    job.core.threads = 3;
    job.core.memory = GPURUN_EXPLICIT;
    prepare(GPURUN_OK);
    o = run.ctx.options;
    ck_assert_int_eq(o->n, 1000);
    ck_assert_int_eq(o->dtype, GPURUN_DOUBLE);
    ck_assert_int_eq(o->order, 1);
    ck_assert(o->ratio == 0.25);
    ck_assert_str_eq(o->note, "a, b");
    ck_assert_int_eq(run.ctx.threads, 3);
    ck_assert_int_eq(run.core.memory, GPURUN_EXPLICIT);
    options = record_options(&run);
    ck_assert_int_eq(json_integer_value(json_object_get(options, "n")), 1000);
    ck_assert_str_eq(json_string_value(json_object_get(options, "dtype")), "double");
    ck_assert_str_eq(json_string_value(json_object_get(options, "order")), "down");
    ck_assert_str_eq(json_string_value(json_object_get(options, "note")), "a, b");
    ck_assert_str_eq(json_string_value(json_object_get(options, "memory")), "explicit");
    ck_assert_int_eq(json_integer_value(json_object_get(options, "threads")), 3);
    ck_assert_uint_eq(json_object_size(options),
                      core_options_table.count + GPURUN_COUNT(option_rows));
    json_decref(options);
}
END_TEST

static const struct wrong_option {
    const char *key, *text;
    bool shared;
    const char *fault; /* its start */
} wrong_options[] = {
    {"n", "-1", false, "x.ini:2: n: -1 is below 0"},
    {"n", "-1", true, "x.ini:2: n: -1 is below 0"}, /* a plugin that knows the key minds it */
    {"dtype", "float", false, "x.ini:2: dtype: 'float' is not one of int32 or double, or auto"},
    {"order", "sideways", false, "x.ini:2: order: 'sideways' is not one of up or down"},
    {"ratio", "2", false, "x.ini:2: ratio: 2 is above 1"},
    {"rati", "0.5", false, "x.ini:2: rati: is no option of here, did you mean ratio?; gpurun"},
    {"sed", "0.5", false, "x.ini:2: sed: is no option of here, did you mean seed?; gpurun"},
    {"zzzzzz", "1", false, "x.ini:2: zzzzzz: is no option of here; gpurun describe here lists"},
};

START_TEST(test_wrong_option)
{
    const struct wrong_option *c = &wrong_options[_i];

    set(c->key, c->text, c->shared);
    prepare(GPURUN_INVALID);
    ck_assert_uint_eq(faults.count, 1);
    ck_assert_msg(strncmp(faults.texts[0], c->fault, strlen(c->fault)) == 0, "%s", faults.texts[0]);
}
END_TEST

START_TEST(test_wrong_memory_and_variant)
{
    set("memory", "managed", false);
    set("variant", "naive, tield", false);
    set("n", "x", false);
    job.core.memory = GPURUN_MANAGED;
    job.core.variant = "naive, tield";
    prepare(GPURUN_INVALID);
    ck_assert_uint_eq(faults.count, 3); /* all at once */
    ck_assert_str_eq(faults.texts[0], "x.ini:4: n: 'x' is not a whole number (write 20, 1e8, 100M "
                                      "or 4Ki)");
    ck_assert_str_eq(faults.texts[1], "x.ini:2: memory: here does not support it; gpurun describe "
                                      "here lists what it does");
    ck_assert_str_eq(faults.texts[2], "x.ini:3: variant: 'tield' is no variant of here; gpurun "
                                      "describe here lists them");
}
END_TEST

START_TEST(test_right_variants)
{
    static const char *const right[] = {"auto", "all", "naive", "tiled, naive"};

    job.core.variant = right[_i];
    prepare(GPURUN_OK);
}
END_TEST

/* --- tensors --------------------------------------------------------------------------------------------------- */

static struct gpurun_tensor *asked;
static int asked_rank;
static int64_t asked_dims[6];
static enum gpurun_dtype asked_dtype;

static enum gpurun_status ask_one(struct gpurun_ctx *ctx)
{
    asked = gpurun_tensor(ctx, "x", GPURUN_IN, asked_dtype, asked_rank, asked_dims);
    return asked ? GPURUN_OK : GPURUN_INVALID;
}

static const struct shape_case {
    enum gpurun_dtype dtype;
    int rank;
    int64_t dims[6];
    int64_t elems;
    size_t bytes;
    const char *reason;
} shape_cases[] = {
    {GPURUN_INT8, 0, {0}, 1, 1, ""},
    {GPURUN_INT32, 1, {7}, 7, 28, ""},
    {GPURUN_DOUBLE, 2, {3, 5}, 15, 120, ""},
    {GPURUN_UINT16, 4, {2, 3, 4, 5}, 120, 240, ""},
    {GPURUN_FLOAT, 1, {0}, 0, 0, ""},
    {GPURUN_FLOAT, 3, {5, 0, 7}, 0, 0, ""},
    {GPURUN_INT8, 1, {INT64_C(1) << 60}, INT64_C(1) << 60, (size_t)1 << 60, ""},
    {GPURUN_INT8, 1, {INT64_MAX}, 0, 0, "does not fit 64 bits"},
    {GPURUN_DOUBLE, 1, {INT64_C(1) << 60}, 0, 0, "does not fit 64 bits"},
    {GPURUN_INT64, 1, {INT64_C(1) << 61}, 0, 0, "does not fit 64 bits"},
    {GPURUN_INT8, 2, {INT64_C(1) << 32, INT64_C(1) << 32}, 0, 0, "does not fit 64 bits"},
    {GPURUN_INT8, 4, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, 0, 0, "does not fit 64 bits"},
    {GPURUN_INT32, 1, {-1}, 0, 0, "does not fit 64 bits"},
    {GPURUN_INT32, 2, {-3, -5}, 0, 0, "does not fit 64 bits"},
    {GPURUN_INT32, 5, {1, 1, 1, 1, 1}, 0, 0, "asked for outside setup, or of rank 5"},
    {GPURUN_INT32, -1, {1}, 0, 0, "asked for outside setup, or of rank -1"},
};

START_TEST(test_shape)
{
    const struct shape_case *c = &shape_cases[_i];
    enum gpurun_status status;

    asked_rank = c->rank;
    asked_dtype = c->dtype;
    memcpy(asked_dims, c->dims, sizeof asked_dims);
    setup_now = ask_one;
    prepare(GPURUN_OK);
    status = run_setup(&run);
    ck_assert_ptr_nonnull(strstr(run.why.text, c->reason));
    ck_assert_int_eq(status, c->reason[0] ? GPURUN_INVALID : GPURUN_OK);
    ck_assert_int_eq(asked != NULL, status == GPURUN_OK);
    ck_assert_int_eq(run.buffer_count, status == GPURUN_OK);
    if (asked == NULL)
        return;
    ck_assert_str_eq(asked->name, "x");
    ck_assert_int_eq(asked->rank, c->rank);
    ck_assert_int_eq(asked->elems, c->elems);
    ck_assert_uint_eq(asked->bytes, c->bytes);
    ck_assert_int_eq(asked->dtype, c->dtype);
    for (int i = 0; i < GPURUN_RANK_MAX; i++)
        ck_assert_int_eq(asked->dims[i], c->dims[i]);
    ck_assert_ptr_null(asked->host);
    ck_assert_ptr_null(asked->dev);
}
END_TEST

static enum gpurun_status ask_scalar(struct gpurun_ctx *ctx)
{
    return gpurun_tensor(ctx, "x", GPURUN_OUT, GPURUN_INT64, 0, NULL) ? GPURUN_OK : GPURUN_INVALID;
}

START_TEST(test_scalar_needs_no_dims)
{
    check_setup(ask_scalar, "");
    ck_assert_uint_eq(run.buffers[0].tensor.bytes, 8);
}
END_TEST

static enum gpurun_status ask_many(struct gpurun_ctx *ctx)
{
    static const int64_t dims[] = {4};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                        "j", "k", "l", "m", "n", "o", "p", "q"};

    for (int i = 0; i <= TENSORS_MAX; i++) {
        struct gpurun_tensor *t = gpurun_tensor(ctx, names[i], GPURUN_OUT, GPURUN_INT32, 1, dims);

        ck_assert_int_eq(t == NULL, i == TENSORS_MAX);
    }
    return GPURUN_INVALID;
}

START_TEST(test_too_many_tensors)
{
    setup_now = ask_many;
    prepare(GPURUN_OK);
    ck_assert_int_eq(run_setup(&run), GPURUN_INVALID);
    ck_assert_int_eq(run.buffer_count, TENSORS_MAX);
    ck_assert_ptr_nonnull(strstr(run.why.text, "tensor q: "));
}
END_TEST

START_TEST(test_tensor_outside_setup)
{
    static const int64_t dims[] = {4};

    prepare(GPURUN_OK);
    ck_assert_ptr_null(gpurun_tensor(&run.ctx, "early", GPURUN_OUT, GPURUN_INT32, 1, dims));
    ck_assert_ptr_nonnull(strstr(run.why.text, "tensor early: asked for outside setup"));
    ck_assert_int_eq(run_setup(&run), GPURUN_OK);
    ck_assert_ptr_null(gpurun_tensor(&run.ctx, "late", GPURUN_OUT, GPURUN_INT32, 1, dims));
    ck_assert_ptr_nonnull(strstr(run.why.text, "tensor late: asked for outside setup"));
    ck_assert_int_eq(run.buffer_count, 0);
}
END_TEST

/* --- bindings ---------------------------------------------------------------------------------------------------- */

static enum gpurun_status ask_five(struct gpurun_ctx *ctx)
{
    static const int64_t dims[] = {10};
    static const struct {
        const char *name;
        enum gpurun_role role;
    } wanted[] = {{"out", GPURUN_OUT},
                  {"a", GPURUN_IN},
                  {"b", GPURUN_IN},
                  {"acc", GPURUN_INOUT},
                  {"more", GPURUN_OUT}};

    for (size_t i = 0; i < GPURUN_COUNT(wanted); i++)
        if (!gpurun_tensor(ctx, wanted[i].name, wanted[i].role, GPURUN_INT32, 1, dims))
            return GPURUN_INVALID;
    return GPURUN_OK;
}

/* out, a, b, acc, more */
START_TEST(test_inputs_find_their_tensors)
{
    bind(inputs, &job.input_count, "input", NULL, "constant value=1");
    bind(inputs, &job.input_count, "input.acc", "acc", "constant value=3");
    bind(outputs, &job.output_count, "output.more", "more", "o.npy");
    bind(outputs, &job.output_count, "output", NULL, "p.npy");
    check_setup(ask_five, "");
    ck_assert_ptr_null(run.buffers[0].source);
    ck_assert_ptr_eq(run.buffers[1].source, &inputs[0]); /* the first of its role */
    ck_assert_int_eq(run.buffers[1].generator.kind, GENERATOR_CONSTANT);
    ck_assert_ptr_null(run.buffers[2].source); /* and that one alone */
    ck_assert_int_eq(run.buffers[2].generator.kind, GENERATOR_UNIFORM);
    ck_assert_ptr_eq(run.buffers[3].source, &inputs[1]);
    ck_assert_ptr_null(run.buffers[4].source);
}
END_TEST

/* The answer in an inout tensor can be written like any other. */
START_TEST(test_inout_is_an_output_too)
{
    bind(inputs, &job.input_count, "input.acc", "acc", "constant value=3");
    bind(outputs, &job.output_count, "output.acc", "acc", "o.npy");
    check_setup(ask_five, "");
}
END_TEST

static const struct binding_case {
    bool is_output, shared;
    const char *key, *tensor, *reason;
} binding_cases[] = {
    {false, false, "input.c", "c", "x.ini:1: input.c: here has no such input; it has: a, b, acc"},
    {false, false, "input.out", "out",
     "x.ini:1: input.out: here has no such input; it has: a, b, acc"},
    {true, false, "output.a", "a",
     "x.ini:1: output.a: here has no such output; it has: out, acc, more"},
    {true, false, "output.", "",
     "x.ini:1: output.: here has no such output; it has: out, acc, more"},
    {true, true, "output.a", "a", ""},
    {false, true, "input.c", "c", ""},
};

START_TEST(test_binding_without_tensor)
{
    const struct binding_case *c = &binding_cases[_i];

    if (c->is_output)
        bind(outputs, &job.output_count, c->key, c->tensor, "o.npy");
    else
        bind(inputs, &job.input_count, c->key, c->tensor, "uniform");
    inputs[0].shared = outputs[0].shared = c->shared;
    check_setup(ask_five, c->reason);
}
END_TEST

START_TEST(test_no_tensors_at_all)
{
    bind(inputs, &job.input_count, "input", NULL, "uniform");
    check_setup(run_nothing, "x.ini:1: input: here has no such input; it has: none");
}
END_TEST

/* A parameter that the tensor's dtype cannot hold is found in setup, with its line. */
START_TEST(test_generator_must_suit_the_dtype)
{
    set("input.b", "uniform max=3G", false);
    bind(inputs, &job.input_count, "input.b", "b", "uniform max=3G");
    setup_now = ask_five;
    prepare(GPURUN_OK);
    ck_assert_int_eq(run_setup(&run), GPURUN_INVALID);
    ck_assert_msg(strncmp(run.why.text, "x.ini:2: input.b: ", 18) == 0, "%s", run.why.text);
}
END_TEST

/* --- files -------------------------------------------------------------------------------------------------------- */

static struct gpurun_shape seen;

static enum gpurun_status look(struct gpurun_ctx *ctx)
{
    seen = (struct gpurun_shape){.dtype = asked_dtype, .rank = 99};
    return gpurun_input_shape(ctx, "in", &seen);
}

static const char npy[] =
    "\x93NUMPY\x01\x00\x3a\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
    "(1, 2)}\n12345678";

START_TEST(test_input_shape)
{
    char path[] = "/tmp/test_run_XXXXXX.npy", *text;
    const int fd = mkstemps(path, 4);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, npy, sizeof npy - 1), (ssize_t)sizeof npy - 1);
    close(fd);
    text = format_text("file:%s", path);
    set("input.in", text, false);
    bind(inputs, &job.input_count, "input.in", "in", text);
    asked_dtype = GPURUN_FLOAT;
    setup_now = look;
    prepare(GPURUN_OK);
    ck_assert_int_eq(run.plugin->table->setup(&run.ctx), GPURUN_OK);
    ck_assert_int_eq(seen.dtype, GPURUN_FLOAT);
    ck_assert_int_eq(seen.rank, 2);
    ck_assert_int_eq(seen.dims[0], 1);
    ck_assert_int_eq(seen.dims[1], 2);
    asked_dtype = GPURUN_INT32; /* a job that says otherwise */
    ck_assert_int_eq(run.plugin->table->setup(&run.ctx), GPURUN_ERROR);
    ck_assert_msg(strncmp(run.why.text, "x.ini:2: input.in: ", 19) == 0, "%s", run.why.text);
    unlink(path);
    ck_assert_int_ne(run.plugin->table->setup(&run.ctx), GPURUN_OK);
    ck_assert_msg(strncmp(run.why.text, "x.ini:2: input.in: ", 19) == 0, "%s", run.why.text);
    free(text);
}
END_TEST

START_TEST(test_input_shape_of_a_generator)
{
    asked_dtype = GPURUN_UINT8;
    setup_now = look;
    prepare(GPURUN_OK);
    ck_assert_int_eq(run_setup(&run), GPURUN_OK);
    ck_assert_int_eq(seen.rank, 0);
    ck_assert_int_eq(seen.dtype, GPURUN_UINT8); /* as it went in */
}
END_TEST

/* --- failures ------------------------------------------------------------------------------------------------------ */

static enum gpurun_status fail_with_key(struct gpurun_ctx *ctx)
{
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, "order", "is %d", 3);
}

static enum gpurun_status fail_with_unset_key(struct gpurun_ctx *ctx)
{
    return gpurun_fail(ctx, GPURUN_INVALID, "n", "is %d", 4);
}

static enum gpurun_status fail_without_key(struct gpurun_ctx *ctx)
{
    return gpurun_fail(ctx, GPURUN_ERROR, NULL, "a library is missing: %s", "libx");
}

START_TEST(test_failures_say_where)
{
    set("ratio", "0", false);
    set("order", "down", false);
    check_setup(fail_with_key, "x.ini:3: order: is 3");
    ck_assert_int_eq(run_setup(&run), GPURUN_UNSUPPORTED);
    setup_now = fail_with_unset_key;
    ck_assert_int_eq(run_setup(&run), GPURUN_INVALID);
    ck_assert_str_eq(run.why.text, "x.ini:1: n: is 4");
    setup_now = fail_without_key;
    ck_assert_int_eq(run_setup(&run), GPURUN_ERROR);
    ck_assert_str_eq(run.why.text, "a library is missing: libx");
    ck_assert_int_eq(run_fail(&run, GPURUN_DEVICE, "%d of %d", 1, 2), GPURUN_DEVICE);
    ck_assert_str_eq(run.why.text, "1 of 2");
}
END_TEST

START_TEST(test_wrong_elements_are_counted_and_the_first_kept)
{
    struct run_case c = {.name = "cpu"};
    struct gpurun_proof proof = {.wrong = 0};

    prepare(GPURUN_OK);
    run.judged = &c;
    for (int i = 0; i < 100; i++)
        gpurun_wrong(&run.ctx, &proof, "element %d: %0300d", i, i);
    ck_assert_int_eq(proof.wrong, 100);
    for (int i = 0; i < WRONG_SHOWN; i++) {
        char start_of[40];

        snprintf(start_of, sizeof start_of, "element %d: 000", i);
        ck_assert_int_eq(strncmp(c.wrong[i], start_of, strlen(start_of)), 0);
        ck_assert_uint_eq(strlen(c.wrong[i]), sizeof c.wrong[i] - 1);
    }
    run.judged = NULL;
    gpurun_wrong(&run.ctx, &proof, "nobody is judged");
    ck_assert_int_eq(proof.wrong, 101);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *run_suite(void)
{
    Suite *suite = suite_create("run");
    TCase *prepares = tcase_create("prepare"), *setups = tcase_create("setup");

    tcase_add_checked_fixture(prepares, start, finish);
    tcase_add_test(prepares, test_prepare_defaults);
    tcase_add_test(prepares, test_prepare_options);
    tcase_add_loop_test(prepares, test_wrong_option, 0, COUNT(wrong_options));
    tcase_add_test(prepares, test_wrong_memory_and_variant);
    tcase_add_loop_test(prepares, test_right_variants, 0, 4);
    tcase_add_checked_fixture(setups, start, finish);
    tcase_add_loop_test(setups, test_shape, 0, COUNT(shape_cases));
    tcase_add_test(setups, test_scalar_needs_no_dims);
    tcase_add_test(setups, test_too_many_tensors);
    tcase_add_test(setups, test_tensor_outside_setup);
    tcase_add_test(setups, test_inputs_find_their_tensors);
    tcase_add_test(setups, test_inout_is_an_output_too);
    tcase_add_loop_test(setups, test_binding_without_tensor, 0, COUNT(binding_cases));
    tcase_add_test(setups, test_no_tensors_at_all);
    tcase_add_test(setups, test_generator_must_suit_the_dtype);
    tcase_add_test(setups, test_input_shape);
    tcase_add_test(setups, test_input_shape_of_a_generator);
    tcase_add_test(setups, test_failures_say_where);
    tcase_add_test(setups, test_wrong_elements_are_counted_and_the_first_kept);
    suite_add_tcase(suite, prepares);
    suite_add_tcase(suite, setups);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(run_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
