#include "run/rounds.h"

#include "run/guard.h"
#include "run/tensors.h"
#include <stdio.h>
#include <string.h>

enum {
    END_TO_END_ROUNDS = 5,
    COPY_ROUNDS = 5, /* rounds in which upload and download are timed apart */
    ENOUGH = 3,      /* samples that a case has before it may sit out to save time */
};

bool case_is_live(const struct run_case *c)
{
    return !c->skipped && c->status == CASE_PASSED;
}

void case_end(struct run *run, struct run_case *c, enum gpurun_status status)
{
    static const enum case_status ends[] = {
        [GPURUN_INVALID] = CASE_ERROR,
        [GPURUN_ERROR] = CASE_ERROR,
        [GPURUN_UNSUPPORTED] = CASE_UNSUPPORTED,
        [GPURUN_NO_MEMORY] = CASE_NO_MEMORY,
        [GPURUN_DEVICE] = CASE_ERROR,
    };

    c->status = ends[status];
    snprintf(c->reason, sizeof c->reason, "%s", run->why.text);
}

enum gpurun_status case_check_variant(struct run *run, const struct gpurun_variant *v)
{
    if (v->min_compute > run->ctx.device.compute)
        return run_fail(run, GPURUN_UNSUPPORTED,
                        "needs compute capability %d.%d, this device has %d.%d",
                        v->min_compute / 10, v->min_compute % 10, run->ctx.device.compute / 10,
                        run->ctx.device.compute % 10);
    return v->supported ? v->supported(&run->ctx) : GPURUN_OK;
}

/* One scratch for all variants, grown as they come; private state zeroed once. */
static enum gpurun_status give_memory(struct run *run, struct run_case *c)
{
    const size_t scratch = c->variant->scratch_bytes ? c->variant->scratch_bytes(&run->ctx) : 0;
    const size_t state = c->variant->state_bytes ? c->variant->state_bytes(&run->ctx) : 0;

    if (scratch > run->scratch_bytes) {
        device_api.release(run->device, run->scratch);
        run->ctx.scratch = run->scratch = NULL;
        run->scratch_bytes = 0;
        GPURUN_TRY(device_api.alloc(run->device, scratch, &run->scratch, &run->why));
        run->ctx.scratch = run->scratch;
        run->scratch_bytes = scratch;
    }
    if (state == 0)
        return GPURUN_OK;
    GPURUN_TRY(device_api.alloc(run->device, state, &c->state, &run->why));
    return device_api.fill(run->device, c->state, 0, state, &run->why);
}

enum gpurun_status case_prepare(struct run *run, struct run_case *c)
{
    if (c->variant == NULL)
        return GPURUN_OK;
    GPURUN_TRY(case_check_variant(run, c->variant));
    return give_memory(run, c);
}

enum gpurun_status case_run(struct run *run, struct run_case *c)
{
    GPURUN_TRY(tensors_restore(run, c->variant != NULL));
    if (c->variant == NULL)
        return run->plugin->table->run_cpu(&run->ctx);
    run->ctx.variant_state = c->state;
    return run->plugin->table->run_gpu(&run->ctx, c->variant);
}

enum gpurun_status case_judge(struct run *run, struct run_case *c)
{
    enum gpurun_status status = GPURUN_OK;

    guard_restore(); /* from what the run left: the truth is computed in the process as it was */
    if (run->core.verify == VERIFY_OFF)
        return GPURUN_OK;
    c->proof = (struct gpurun_proof){
        .mode = (enum gpurun_verify)run->core.verify,
        .relaxed = c->variant ? c->variant->capabilities &
                                    (GPURUN_UNSORTED | GPURUN_TIES_ANY | GPURUN_FLOAT_BY_BITS)
                              : 0};
    run->judged = c;
    status = run->plugin->table->verify(&run->ctx, &c->proof);
    guard_restore();
    run->judged = NULL;
    if (status == GPURUN_OK && c->proof.wrong > 0) {
        char first[sizeof c->wrong[0]];

        memcpy(first, c->wrong[0], sizeof first);
        c->status = CASE_FAILED;
        snprintf(c->reason, sizeof c->reason, "%lld of %lld wrong; first: %s",
                 (long long)c->proof.wrong, (long long)c->proof.checked, first);
    }
    return status;
}

enum gpurun_status case_prove(struct run *run, struct run_case *c)
{
    const bool on_device = c->variant != NULL;

    tensors_reset_shapes(run);
    GPURUN_TRY(tensors_poison(run, on_device));
    GPURUN_TRY(case_run(run, c));
    if (on_device)
        GPURUN_TRY(tensors_download(run));
    GPURUN_TRY(case_judge(run, c));
    return tensors_check_inputs(run, on_device);
}

/* --- samples --- */

static enum gpurun_status sample_kernel(struct run *run, struct run_case *c, double *ms)
{
    GPURUN_TRY(tensors_restore(run, true));
    run->ctx.variant_state = c->state;
    GPURUN_TRY(device_api.timer_start(run->device, &run->why));
    GPURUN_TRY(run->plugin->table->run_gpu(&run->ctx, c->variant));
    return device_api.timer_stop(run->device, ms, &run->why);
}

static enum gpurun_status sample_cpu(struct run *run, double *ms)
{
    double start;

    GPURUN_TRY(tensors_restore(run, false));
    start = now_s();
    GPURUN_TRY(run->plugin->table->run_cpu(&run->ctx));
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

static enum gpurun_status sample_case(struct run *run, struct run_case *c, int round, bool prove)
{
    const bool on_device = c->variant != NULL;
    double ms = 0;

    if (prove)
        GPURUN_TRY(tensors_poison(run, on_device));
    GPURUN_TRY(on_device ? sample_kernel(run, c, &ms) : sample_cpu(run, &ms));
    samples_add(&c->time_ms, round, ms);
    if (prove && on_device)
        GPURUN_TRY(tensors_download(run));
    if (prove) {
        GPURUN_TRY(case_judge(run, c));
        tensors_reset_shapes(run);
    }
    if (on_device && round < COPY_ROUNDS)
        return sample_copies(run, c, round);
    return GPURUN_OK;
}

/* The clock runs from "input valid on the host" to "output readable on the host". */
static enum gpurun_status sample_end_to_end(struct run *run, struct run_case *c, int round)
{
    double start;

    GPURUN_TRY(tensors_restore(run, true));
    GPURUN_TRY(tensors_bring_home(run));
    run->ctx.variant_state = c->state;
    start = now_s();
    if (run->core.memory != GPURUN_MANAGED || run->core.prefetch)
        GPURUN_TRY(tensors_upload(run));
    GPURUN_TRY(run->plugin->table->run_gpu(&run->ctx, c->variant));
    GPURUN_TRY(tensors_download(run));
    samples_add(&c->end_to_end_ms, round, (now_s() - start) * 1e3);
    return GPURUN_OK;
}

/* --- ceilings --- */

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

static enum gpurun_status sample_ceiling(struct run *run, bool copy, int round)
{
    const size_t half = run->ceiling_bytes / 2;
    double ms = 0;

    if (run->ceiling_bytes == 0)
        return GPURUN_OK;
    GPURUN_TRY(device_api.timer_start(run->device, &run->why));
    if (copy)
        GPURUN_TRY(device_api.copy(run->device, (char *)run->ceiling + half, run->ceiling, half,
                                   &run->why));
    else
        GPURUN_TRY(device_api.read(run->device, run->ceiling, run->ceiling_bytes, &run->why));
    GPURUN_TRY(device_api.timer_stop(run->device, &ms, &run->why));
    if (round >= 0)
        samples_add(copy ? &run->copy_ms : &run->read_ms, round, ms);
    return GPURUN_OK;
}

/* --- rounds --- */

/* splitmix64: the order of a round is the seed's, so that it can be had again. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* GPU cases and the two ceilings (as -1 and -2) in random order; the CPU last, so that its long turn does
 * not stand between two that are compared. Returns how many. */
static int shuffle_round(struct run *run, uint64_t *random, int *order)
{
    int count = 0;

    for (int i = 0; i < run->case_count; i++)
        if (run->cases[i].variant != NULL && case_is_live(&run->cases[i]))
            order[count++] = i;
    if (run->device != NULL && count > 0) {
        order[count++] = -1;
        order[count++] = -2;
    }
    for (int i = count - 1; i > 0; i--) {
        const int k = (int)(next_random(random) % (uint64_t)(i + 1)), swap = order[i];

        order[i] = order[k];
        order[k] = swap;
    }
    for (int i = 0; i < run->case_count; i++)
        if (run->cases[i].variant == NULL && case_is_live(&run->cases[i]))
            order[count++] = i;
    return count;
}

/* A case far slower than its share of max_time sits rounds out once it has enough samples. */
static bool sits_out(const struct run *run, const struct run_case *c)
{
    return c->time_ms.count >= ENOUGH && c->spent_s > run->core.max_time / (run->case_count + 1);
}

struct rounds {
    struct run *run;
    rounds_enter *enter;
    void *user;
};

/* One case's turn. A failure that is not the device's ends the case alone. */
static enum gpurun_status take_turn(struct rounds *r, struct run_case *c, int round, bool prove)
{
    const double start = now_s();
    enum gpurun_status status;

    r->enter(r->user, c, prove ? "last round" : "rounds");
    status = sample_case(r->run, c, round, prove);
    c->spent_s += now_s() - start;
    if (status != GPURUN_OK)
        case_end(r->run, c, status);
    return status == GPURUN_DEVICE ? status : GPURUN_OK;
}

static enum gpurun_status one_round(struct rounds *r, uint64_t *random, int round, bool last)
{
    int order[CASES_MAX + 2];
    const int count = shuffle_round(r->run, random, order);

    /* The device may have idled while the CPU had its turn: one untimed read wakes it. */
    if (r->run->device != NULL)
        GPURUN_TRY(sample_ceiling(r->run, false, -1));
    for (int i = 0; i < count; i++) {
        struct run_case *c = order[i] < 0 ? NULL : &r->run->cases[order[i]];

        if (c == NULL)
            GPURUN_TRY(sample_ceiling(r->run, order[i] == -2, round));
        else if (last || !sits_out(r->run, c))
            GPURUN_TRY(take_turn(r, c, round, last));
    }
    return GPURUN_OK;
}

static enum gpurun_status warm_up(struct rounds *r)
{
    for (int i = 0; i < r->run->case_count; i++) {
        struct run_case *c = &r->run->cases[i];
        const double start = now_s();
        enum gpurun_status status = GPURUN_OK;

        if (!case_is_live(c))
            continue;
        r->enter(r->user, c, "warm-up");
        for (int64_t k = 0; k < r->run->core.warmup && status == GPURUN_OK; k++) {
            guard_restore();
            status = case_run(r->run, c);
            if (status == GPURUN_OK && c->variant != NULL)
                status = device_api.sync(r->run->device, &r->run->why);
            if (now_s() - start > r->run->core.max_time / (r->run->case_count + 1))
                break;
        }
        if (status != GPURUN_OK)
            case_end(r->run, c, status);
        if (status == GPURUN_DEVICE)
            return status;
    }
    return GPURUN_OK;
}

static enum gpurun_status end_to_end(struct rounds *r)
{
    const double start = now_s();

    /* One round at the least, and no more than fit max_time. */
    for (int round = 0;
         round < END_TO_END_ROUNDS && (round == 0 || now_s() - start < r->run->core.max_time);
         round++)
        for (int i = 0; i < r->run->case_count; i++) {
            struct run_case *c = &r->run->cases[i];
            enum gpurun_status status;

            if (!case_is_live(c) || c->variant == NULL)
                continue;
            r->enter(r->user, c, "end to end");
            status = sample_end_to_end(r->run, c, round);
            if (status != GPURUN_OK)
                case_end(r->run, c, status);
            if (status == GPURUN_DEVICE)
                return status;
        }
    return GPURUN_OK;
}

static bool any_live(const struct run *run)
{
    for (int i = 0; i < run->case_count; i++)
        if (case_is_live(&run->cases[i]))
            return true;
    return false;
}

enum gpurun_status rounds_run(struct run *run, rounds_enter *enter, void *user)
{
    struct rounds r = {run, enter, user};
    const double start = now_s();
    uint64_t random = (uint64_t)run->core.seed;
    double elapsed;
    bool last = false;

    if (!any_live(run))
        return GPURUN_OK;
    if (run->device != NULL)
        allocate_ceiling(run);
    GPURUN_TRY(warm_up(&r));
    for (run->rounds = 0; !last && any_live(run); run->rounds++) {
        elapsed = now_s() - start;
        last = (run->rounds + 1 >= run->core.repeat && elapsed >= run->core.min_time) ||
               elapsed >= run->core.max_time;
        GPURUN_TRY(one_round(&r, &random, run->rounds, last));
    }
    return end_to_end(&r);
}
