/*
 * Right in the end: `verify` misbehaves as `how` says while the file that FLAKY_FILE names holds fewer than
 * FLAKY_TIMES bytes, and adds one each time.
 */
#define FAKE_NAME   "flaky"
#define FAKE_VERIFY flaky_verify
#define FAKE_OPTIONS                                                                               \
    {                                                                                              \
        .name = "how", .help = "what goes wrong at first", .type = GPURUN_OPTION_CHOICE,           \
        .def = "error", .choices = hows                                                            \
    }
#include "gpurun/plugin.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const hows[] = {"error", "crash", "hang", "wrong", NULL};

static enum gpurun_status flaky_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof);

#include "minimal.h"

/* True while there is to be trouble. */
static int count_trouble(void)
{
    FILE *f = fopen(getenv("FLAKY_FILE"), "a");
    const int again = ftell(f) < atol(getenv("FLAKY_TIMES"));

    if (again)
        fputc('x', f);
    fclose(f);
    return again;
}

static enum gpurun_status flaky_verify(struct gpurun_ctx *ctx, struct gpurun_proof *proof)
{
    const int64_t how = *(const int64_t *)ctx->options;

    verify(ctx, proof);
    if (!count_trouble())
        return GPURUN_OK;
    if (how == 0)
        return gpurun_fail(ctx, GPURUN_ERROR, NULL, "not yet");
    if (how == 1)
        raise(SIGSEGV);
    if (how == 3)
        gpurun_wrong(ctx, proof, "not yet");
    while (how == 2)
        pause();
    return GPURUN_OK;
}
