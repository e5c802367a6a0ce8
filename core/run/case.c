#include "run/case.h"

#include "run/guard.h"
#include "run/tensors.h"
#include <stdio.h>
#include <string.h>

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
    guard_expect();
    return v->supported ? v->supported(&run->ctx) : GPURUN_OK;
}

/* One scratch for all variants, grown as they come; private state zeroed once. */
static enum gpurun_status give_memory(struct run *run, struct run_case *c)
{
    size_t scratch, state;

    guard_expect();
    scratch = c->variant->scratch_bytes ? c->variant->scratch_bytes(&run->ctx) : 0;
    state = c->variant->state_bytes ? c->variant->state_bytes(&run->ctx) : 0;
    c->scratch_bytes = scratch;
    c->state_bytes = state;
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

enum gpurun_status case_call(struct run *run, struct run_case *c)
{
    enum gpurun_status status;

    run->running = c;
    run->ctx.variant_state = c->state;
    guard_expect();
    status = c->variant ? run->plugin->table->run_gpu(&run->ctx, c->variant)
                        : run->plugin->table->run_cpu(&run->ctx);
    run->running = NULL;
    return status;
}

enum gpurun_status case_run(struct run *run, struct run_case *c)
{
    GPURUN_TRY(tensors_restore(run, c->variant != NULL));
    return case_call(run, c);
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
    guard_expect();
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
