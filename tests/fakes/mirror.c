/*
 * out = in, and every way to go wrong that a test needs: `misbehave` in the hook that `hook` names, and
 * variants that are plain C functions for the pretend device of device/device_fake.c.
 */
#include "gpurun/plugin.h"

#include "misbehave.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What needs the tensors; misbehave.h has the rest. */
enum { DO_NOTHING, DO_FAIL, DO_WRONG, DO_NAN, DO_IDLE, DO_WRITE_INPUT, DO_WAVER, DO_COUNT };
enum { IN_SETUP, IN_RUN_CPU, IN_VERIFY, IN_TEARDOWN, IN_RUN_GPU };

static const char *const misbehaviours[] = {
    "no", "fail", "wrong", "nan", "untouched", "write-input", "waver", MISBEHAVE_NAMES, NULL};
static const char *const hooks[] = {"setup", "run_cpu", "verify", "teardown", "run_gpu", NULL};

struct options {
    int64_t n, misbehave, hook, witness, reads;
};

struct state {
    struct gpurun_tensor *in, *out, *sum;
    int runs; /* of any variant */
    int cpu_runs;
    int state_runs; /* of the variant `state` */
    float *
        first_sum; /* of the first right run: all others must equal it, or inout was not restored */
};

static const struct gpurun_option option_rows[] = {
    {.name = "n",
     .help = "elements",
     .type = GPURUN_OPTION_INT,
     .offset = offsetof(struct options, n),
     .def = "1000",
     .min = 0,
     .max = 1e18,
     .unit = "elements"},
    {.name = "misbehave",
     .help = "what goes wrong",
     .type = GPURUN_OPTION_CHOICE,
     .offset = offsetof(struct options, misbehave),
     .def = "no",
     .choices = misbehaviours},
    {.name = "hook",
     .help = "and where",
     .type = GPURUN_OPTION_CHOICE,
     .offset = offsetof(struct options, hook),
     .def = "run_cpu",
     .choices = hooks},
    {.name = "witness",
     .help = "fail in every hook that finds the process other than it was",
     .type = GPURUN_OPTION_BOOL,
     .offset = offsetof(struct options, witness),
     .def = "no"},
    {.name = "reads",
     .help = "count what is read as work; no: only what is written",
     .type = GPURUN_OPTION_BOOL,
     .offset = offsetof(struct options, reads),
     .def = "yes"},
};

/* Fails when something that ran before changed the process. */
static enum gpurun_status witness(struct gpurun_ctx *ctx, int64_t hook)
{
    const struct options *o = ctx->options;
    const char *trace = o->witness ? misbehave_trace() : NULL;

    if (trace == NULL)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_ERROR, "witness", "in %s %s", hooks[hook], trace);
}

/* Once the hook has done its work: how that was computed is no matter then. */
static enum gpurun_status misbehave(struct gpurun_ctx *ctx, int64_t hook)
{
    const struct options *o = ctx->options;

    if (o->hook != hook)
        return GPURUN_OK;
    if (o->misbehave == DO_FAIL)
        return gpurun_fail(ctx, GPURUN_ERROR, "misbehave", "failed as asked");
    if (o->misbehave >= DO_COUNT)
        misbehave_functions[o->misbehave - DO_COUNT]();
    return GPURUN_OK;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;
    struct state *s = ctx->state;
    const int64_t dims[] = {o->n};

    GPURUN_TRY(witness(ctx, IN_SETUP));
    s->in = gpurun_tensor(ctx, "in", GPURUN_IN, GPURUN_FLOAT, 1, dims);
    s->out = gpurun_tensor(ctx, "out", GPURUN_OUT, GPURUN_FLOAT, 1, dims);
    s->sum = gpurun_tensor(ctx, "sum", GPURUN_INOUT, GPURUN_FLOAT, 1, dims);
    if (s->in == NULL || s->out == NULL || s->sum == NULL)
        return GPURUN_INVALID;
    ctx->work = (struct gpurun_work){.bytes_read = o->reads ? (double)s->in->bytes : 0,
                                     .bytes_written = (double)s->out->bytes,
                                     .elements = (double)o->n};
    return misbehave(ctx, IN_SETUP);
}

/* out = in, sum = sum + in: the second shows that inout tensors are restored. */
static void mirror(const float *in, float *out, float *sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = in[i];
        sum[i] += in[i];
    }
}

static enum gpurun_status run_cpu(struct gpurun_ctx *ctx)
{
    const struct options *o = ctx->options;
    struct state *s = ctx->state;
    float *in = s->in->host, *out = s->out->host;

    GPURUN_TRY(witness(ctx, IN_RUN_CPU));
    if (o->misbehave == DO_IDLE)
        return GPURUN_OK;
    gpurun_note(ctx, "one loop over %lld elements", (long long)o->n);
    mirror(in, out, s->sum->host, o->n);
    if (o->misbehave == DO_WRONG)
        out[o->n / 2] += 1;
    if (o->misbehave == DO_NAN)
        out[o->n / 2] = NAN;
    if (o->misbehave == DO_WAVER && s->cpu_runs++ % 2) /* of 0: as right, with another bit */
        out[o->n / 2] = -out[o->n / 2];
    if (o->misbehave == DO_WRITE_INPUT)
        in[o->n / 2] = 7;
    return misbehave(ctx, IN_RUN_CPU);
}

static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    struct state *s = ctx->state;

    GPURUN_TRY(witness(ctx, IN_RUN_GPU));
    s->runs++;
    GPURUN_TRY(v->launch(ctx));
    return misbehave(ctx, IN_RUN_GPU);
}

static enum gpurun_status launch_copy(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    mirror(s->in->dev, s->out->dev, s->sum->dev, s->in->elems);
    return GPURUN_OK;
}

static enum gpurun_status launch_wrong(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    launch_copy(ctx);
    ((float *)s->out->dev)[s->in->elems / 2] += 1;
    return GPURUN_OK;
}

static enum gpurun_status launch_nan(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    launch_copy(ctx);
    ((float *)s->out->dev)[s->in->elems / 2] = NAN;
    return GPURUN_OK;
}

static enum gpurun_status launch_idle(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return GPURUN_OK;
}

static enum gpurun_status launch_write_input(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    launch_copy(ctx);
    ((float *)s->in->dev)[0] += 1;
    return GPURUN_OK;
}

static enum gpurun_status launch_crash(struct gpurun_ctx *ctx)
{
    (void)ctx;
    misbehave_crash();
    return GPURUN_OK;
}

static enum gpurun_status launch_hang(struct gpurun_ctx *ctx)
{
    (void)ctx;
    misbehave_hang();
    return GPURUN_OK;
}

static enum gpurun_status launch_device_error(struct gpurun_ctx *ctx)
{
    return gpurun_fail(ctx, GPURUN_DEVICE, NULL, "an illegal memory access");
}

/* Right when it is proved, wrong from the third run on: only the answer that was timed shows it. */
static enum gpurun_status launch_late(struct gpurun_ctx *ctx)
{
    const struct state *s = ctx->state;

    return s->runs > 2 ? launch_wrong(ctx) : launch_copy(ctx);
}

static enum gpurun_status never_supported(struct gpurun_ctx *ctx)
{
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "needs a thing that is not here");
}

static size_t huge_scratch(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return (size_t)1 << 60;
}

static enum gpurun_status launch_state(struct gpurun_ctx *ctx)
{
    struct state *s = ctx->state;
    int *runs = ctx->variant_state;

    if (*runs != s->state_runs)
        return gpurun_fail(ctx, GPURUN_ERROR, NULL, "private state was lost: %d runs", *runs);
    *runs = ++s->state_runs;
    memset(ctx->scratch, 0xEE, 4096);
    return launch_copy(ctx);
}

static size_t page(struct gpurun_ctx *ctx)
{
    (void)ctx;
    return 4096;
}

static enum gpurun_status check_sum(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    struct state *s = ctx->state;

    if (s->first_sum == NULL && proof->wrong > 0) /* a wrong answer is no measure for the others */
        return GPURUN_OK;
    if (s->first_sum == NULL) {
        s->first_sum = malloc(s->sum->bytes + 1);
        if (s->first_sum == NULL)
            return gpurun_fail(ctx, GPURUN_NO_MEMORY, NULL, "a copy of sum");
        memcpy(s->first_sum, s->sum->host, s->sum->bytes);
    }
    if (memcmp(s->first_sum, s->sum->host, s->sum->bytes) != 0)
        gpurun_wrong(ctx, proof, "sum was not restored before this run");
    return GPURUN_OK;
}

static enum gpurun_status verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const struct options *o = ctx->options;
    const struct state *s = ctx->state;
    const float *in = s->in->host, *out = s->out->host;

    GPURUN_TRY(witness(ctx, IN_VERIFY));
    proof->mode = GPURUN_VERIFY_FULL;
    proof->checked = o->n;
    proof->detects = "any wrong element";
    for (int64_t i = 0; i < o->n; i++)
        if (!(out[i] == in[i]))
            gpurun_wrong(ctx, proof, "element %lld: %g, not %g", (long long)i, (double)out[i],
                         (double)in[i]);
    GPURUN_TRY(check_sum(ctx, proof));
    return misbehave(ctx, IN_VERIFY);
}

static void teardown(struct gpurun_ctx *ctx)
{
    free(((struct state *)ctx->state)->first_sum);
    misbehave(ctx, IN_TEARDOWN);
}

static const struct gpurun_variant variants[] = {
    {.name = "wrong", .idea = "one element off", .launch = launch_wrong},
    {.name = "nan", .idea = "one element NaN", .launch = launch_nan},
    {.name = "untouched", .idea = "does nothing", .launch = launch_idle},
    {.name = "write_input", .idea = "writes to its input", .launch = launch_write_input},
    {.name = "crash", .idea = "dies", .launch = launch_crash},
    {.name = "hang", .idea = "never ends", .launch = launch_hang},
    {.name = "device_error", .idea = "the device fails", .launch = launch_device_error},
    {.name = "late", .idea = "right twice, then wrong", .launch = launch_late},
    {.name = "unsupported",
     .idea = "not here",
     .launch = launch_copy,
     .supported = never_supported},
    {.name = "newer", .idea = "for a later device", .launch = launch_copy, .min_compute = 200},
    {.name = "huge",
     .idea = "wants too much memory",
     .launch = launch_copy,
     .scratch_bytes = huge_scratch},
    {.name = "state",
     .idea = "keeps count in private state",
     .launch = launch_state,
     .scratch_bytes = page,
     .state_bytes = page},
    {.name = "copy", .idea = "right", .launch = launch_copy},
    {.name = "peer", .idea = "right", .launch = launch_copy, .capabilities = GPURUN_PEER},
};

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof option_rows[0],
    .option_count = GPURUN_COUNT(option_rows),
    .variant_size = sizeof variants[0],
    .variant_count = GPURUN_COUNT(variants),
    .name = "mirror",
    .summary = "out = in, and faults on demand",
    .options = option_rows,
    .variants = variants,
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "it makes no difference",
    .setup = setup,
    .run_gpu = run_gpu,
    .run_cpu = run_cpu,
    .verify = verify,
    .teardown = teardown,
};
