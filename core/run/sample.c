#include "run/sample.h"

#include "run/answer.h"
#include "run/case.h"
#include "run/guard.h"
#include "run/machine.h"
#include "run/tensors.h"
#include <stdlib.h>

enum { COPY_ROUNDS = 5 }; /* rounds in which upload and download are timed apart */

/* As much host memory as pushes everything out of the last of the CPU's caches that the system knows; none
 * where it knows none. */
static void allocate_spoiler(struct run *run)
{
    const size_t bytes = 2 * (size_t)machine_cache();

    if (run->core.cache != CACHE_COLD || bytes == 0)
        return;
    run->spoiler = malloc(bytes);
    run->spoiler_bytes = run->spoiler ? bytes : 0;
}

enum gpurun_status sample_begin(struct run *run)
{
    allocate_spoiler(run);
    return run->device != NULL ? ceiling_begin(run, SIDE_DEVICE) : GPURUN_OK;
}

enum gpurun_status sample_wake(struct run *run)
{
    const struct ceiling *c = &run->ceilings[SIDE_DEVICE];

    return c->memory ? device_api.read(run->device, c->memory, c->bytes, &run->why) : GPURUN_OK;
}

static enum gpurun_status call_case(struct run *run, void *user)
{
    return case_call(run, user);
}

static enum gpurun_status restore_case(struct run *run, void *user)
{
    const struct run_case *c = user;

    guard_restore(); /* from what the run before left */
    return tensors_restore(run, c->variant != NULL);
}

static bool has_inout(const struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++)
        if (run->buffers[i].declared.role == GPURUN_INOUT)
            return true;
    return false;
}

enum gpurun_status sample_prepare(struct run *run, struct run_case *c, double ms)
{
    c->timing = (struct timing){.run = run,
                                .work = call_case,
                                .restore = restore_case,
                                .user = c,
                                .side = c->variant ? SIDE_DEVICE : SIDE_HOST,
                                .bytes = run->ctx.work.bytes_read + run->ctx.work.bytes_written,
                                .once = has_inout(run),
                                .last_ms = ms};
    c->cache = cache_names[timing_is_cold(&c->timing) ? CACHE_COLD : CACHE_HOT];
    return timing_prepare(&c->timing);
}

/* Upload before and download after, timed on the host's clock: pageable copies block there. */
static enum gpurun_status sample_copies(struct run *run, struct run_case *c, int round)
{
    double start = now_s();

    GPURUN_TRY(tensors_upload(run));
    samples_add(&c->upload_ms, round, (now_s() - start) * 1e3);
    start = now_s();
    GPURUN_TRY(tensors_download(run));
    samples_add(&c->download_ms, round, (now_s() - start) * 1e3);
    return GPURUN_OK;
}

enum gpurun_status sample_case(struct run *run, struct run_case *c, int round, bool prove)
{
    const bool on_device = c->variant != NULL;
    double ms = 0;

    if (prove)
        GPURUN_TRY(tensors_poison(run, on_device));
    GPURUN_TRY(timing_read(&c->timing, &ms));
    samples_add(&c->time_ms, round, ms);
    if (prove && on_device)
        GPURUN_TRY(tensors_download(run));
    if (prove) {
        GPURUN_TRY(case_judge(run, c));
        answer_keep(run, c);
        tensors_reset_shapes(run);
    }
    if (on_device && round < COPY_ROUNDS)
        return sample_copies(run, c, round);
    return GPURUN_OK;
}

enum gpurun_status sample_end_to_end(struct run *run, struct run_case *c, int round)
{
    double start;

    GPURUN_TRY(tensors_restore(run, true));
    GPURUN_TRY(tensors_bring_home(run));
    start = now_s();
    if (run->core.memory != GPURUN_MANAGED || run->core.prefetch)
        GPURUN_TRY(tensors_upload(run));
    GPURUN_TRY(case_call(run, c));
    GPURUN_TRY(tensors_download(run));
    samples_add(&c->end_to_end_ms, round, (now_s() - start) * 1e3);
    return GPURUN_OK;
}

void sample_end(struct run *run)
{
    free(run->spoiler);
    run->spoiler = NULL;
    ceiling_end(run, SIDE_HOST);
    ceiling_end(run, SIDE_DEVICE);
    if (run->device == NULL)
        return;
    for (int i = 0; i < run->case_count; i++)
        timing_free(&run->cases[i].timing);
    timing_release(run);
}
