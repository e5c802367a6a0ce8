#include "run/sample.h"

#include "run/answer.h"
#include "run/case.h"
#include "run/guard.h"
#include "run/tensors.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_ROUNDS = 5 }; /* rounds in which upload and download are timed apart */

/* --- yardsticks --- */

static enum gpurun_status read_ceiling(struct run *run, void *user)
{
    (void)user;
    return device_api.read(run->device, run->ceiling, run->ceiling_bytes, &run->why);
}

static enum gpurun_status copy_ceiling(struct run *run, void *user)
{
    const size_t half = run->ceiling_bytes / 2;

    (void)user;
    return device_api.copy(run->device, (char *)run->ceiling + half, run->ceiling, half, &run->why);
}

static enum gpurun_status write_ceiling(struct run *run, void *user)
{
    (void)user;
    return device_api.fill(run->device, run->ceiling, 0x5A, run->ceiling_bytes, &run->why);
}

static enum gpurun_status do_nothing(struct run *run, void *user)
{
    (void)run;
    (void)user;
    return GPURUN_OK;
}

/* Room to read and copy as many bytes as the job moves; less where the device has not that much. */
static void allocate_ceiling(struct run *run)
{
    const double wanted = run->ctx.work.bytes_read + run->ctx.work.bytes_written;
    const size_t most = device_api.free_bytes(run->device) / 2;
    struct why why;

    run->ceiling_bytes = wanted < (double)most ? (size_t)wanted / 32 * 32 : most / 32 * 32;
    if (run->ceiling_bytes == 0 ||
        device_api.alloc(run->device, run->ceiling_bytes, &run->ceiling, &why) != GPURUN_OK ||
        device_api.fill(run->device, run->ceiling, 0x5A, run->ceiling_bytes, &why) != GPURUN_OK)
        run->ceiling_bytes = 0;
}

static bool has_yardstick(const struct run *run, enum yardstick which)
{
    if (which == YARDSTICK_WRITE && run->ctx.work.bytes_read > 0)
        return false;
    return which == YARDSTICK_NOTHING || run->ceiling_bytes > 0;
}

/* As much host memory as pushes everything out of the last of the CPU's caches that the system knows; none
 * where it knows none. */
static void allocate_spoiler(struct run *run)
{
    const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const long last = l3 > l2 ? l3 : l2;

    if (run->core.cache != CACHE_COLD || last <= 0)
        return;
    run->spoiler = malloc(2 * (size_t)last);
    run->spoiler_bytes = run->spoiler ? 2 * (size_t)last : 0;
}

enum gpurun_status sample_begin(struct run *run)
{
    static timing_step *const works[YARDSTICKS] = {read_ceiling, copy_ceiling, write_ceiling,
                                                   do_nothing};

    allocate_spoiler(run);
    if (run->device == NULL)
        return GPURUN_OK;
    allocate_ceiling(run);
    for (int y = 0; y < YARDSTICKS; y++) {
        run->yardsticks[y] = (struct timing){.run = run,
                                             .work = works[y],
                                             .bytes = (double)run->ceiling_bytes,
                                             .once = y == YARDSTICK_NOTHING};
        if (has_yardstick(run, (enum yardstick)y))
            GPURUN_TRY(timing_prepare(&run->yardsticks[y]));
    }
    return GPURUN_OK;
}

enum gpurun_status sample_wake(struct run *run)
{
    return run->ceiling_bytes > 0 ? read_ceiling(run, NULL) : GPURUN_OK;
}

enum gpurun_status sample_yardstick(struct run *run, enum yardstick which, int round)
{
    double ms = 0;

    if (!has_yardstick(run, which))
        return GPURUN_OK;
    GPURUN_TRY(timing_read(&run->yardsticks[which], &ms));
    samples_add(&run->yardstick_ms[which], round, ms);
    return GPURUN_OK;
}

/* --- cases --- */

static enum gpurun_status call_case(struct run *run, void *user)
{
    return case_call(run, user);
}

static enum gpurun_status restore_case(struct run *run, void *user)
{
    (void)user;
    guard_restore(); /* from what the run before left */
    return tensors_restore(run, true);
}

static bool has_inout(const struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++)
        if (run->buffers[i].declared.role == GPURUN_INOUT)
            return true;
    return false;
}

enum gpurun_status sample_prepare(struct run *run, struct run_case *c)
{
    c->timing = (struct timing){.run = run,
                                .work = call_case,
                                .restore = restore_case,
                                .user = c,
                                .bytes = run->ctx.work.bytes_read + run->ctx.work.bytes_written,
                                .once = has_inout(run)};
    c->cache = cache_names[run->core.cache];
    return timing_prepare(&c->timing);
}

static enum gpurun_status sample_cpu(struct run *run, struct run_case *c, double *ms)
{
    double start;

    GPURUN_TRY(tensors_restore(run, false));
    c->cache = cache_names[run->spoiler ? CACHE_COLD : CACHE_HOT];
    if (run->spoiler != NULL)
        memset(run->spoiler, (int)c->time_ms.count, run->spoiler_bytes);
    start = now_s();
    GPURUN_TRY(case_call(run, c));
    *ms = (now_s() - start) * 1e3;
    return GPURUN_OK;
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
    GPURUN_TRY(on_device ? timing_read(&c->timing, &ms) : sample_cpu(run, c, &ms));
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
    if (run->device == NULL)
        return;
    for (int i = 0; i < run->case_count; i++)
        timing_free(&run->cases[i].timing);
    for (int y = 0; y < YARDSTICKS; y++)
        timing_free(&run->yardsticks[y]);
    timing_release(run);
    device_api.release(run->device, run->ceiling);
    run->ceiling = NULL;
}
