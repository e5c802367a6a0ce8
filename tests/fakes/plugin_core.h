/*
 * The halves of a fake core that every plugin's unit test needs: reasons and wrong elements end in the
 * `message` of a `struct job` that starts with the plugin's ctx. The test defines it, then includes this.
 */
#include <stdarg.h>
#include <stdio.h>

static enum gpurun_status fake_fail(struct gpurun_ctx *ctx, enum gpurun_status status,
                                    const char *key, const char *format, ...)
{
    struct job *job = (struct job *)ctx;
    const int used = snprintf(job->message, sizeof(job->message), "%s: ", key ? key : "-");
    va_list args;

    va_start(args, format);
    vsnprintf(job->message + used, sizeof(job->message) - (size_t)used, format, args);
    va_end(args);
    return status;
}

static void fake_wrong(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const char *format, ...)
{
    struct job *job = (struct job *)ctx;
    va_list args;

    va_start(args, format);
    vsnprintf(job->message, sizeof(job->message), format, args);
    va_end(args);
    proof->wrong++;
}

static inline void fake_note(struct gpurun_ctx *ctx, const char *format, ...)
{
    (void)ctx;
    (void)format;
}
