#include "every_size.h"

#include "hash.h"
#include "job/memory.h"
#include "run/case.h"
#include "run/tensors.h"
#include <stdlib.h>
#include <string.h>

/* --- a thread's memory --- */

void worker_init(struct worker *w, struct every *every)
{
    const struct gpurun_plugin *p = every->plugin.table;

    w->every = every;
    w->run = (struct run){.job = &every->job, .plugin = &every->plugin};
    w->run.ctx.core = &run_core;
    w->run.ctx.options = allocate(1, p->options_bytes);
    w->run.ctx.state = allocate(1, p->state_bytes);
    w->run.ctx.device = every->device.limits;
    w->run.ctx.threads = 1;
    w->run.judged = &w->run.cases[0];
}

size_t worker_answer_bytes(const struct gpurun_tensor *t)
{
    return (t->bytes + 7) / 8 * 8 + GUARD_BYTES;
}

static enum gpurun_status open_outputs(struct worker *w)
{
    struct device *d = w->run.device;

    for (int i = 0; i < w->every->tensor_count; i++) {
        const struct gpurun_tensor *t = &w->every->largest[i];
        const size_t bytes = worker_answer_bytes(t);

        if (t->role != GPURUN_OUT)
            continue;
        w->host[i] = allocate(1, bytes);
        GPURUN_TRY(device_api.alloc(d, bytes, &w->dev[i], &w->run.why));
        GPURUN_TRY(device_api.fill(d, w->dev[i], GPURUN_POISON, bytes, &w->run.why));
    }
    return GPURUN_OK;
}

/* Scratch as the largest size needs it is there from the start: to grow it later, the device would have to be
 * waited for. */
static enum gpurun_status open_scratch(struct worker *w)
{
    enum gpurun_status status = worker_begin(w, w->every->to);

    for (int v = 0; v < w->every->variant_count && status == GPURUN_OK; v++) {
        status = worker_prepare(w, w->every->variants[v]);
        status = status == GPURUN_UNSUPPORTED ? GPURUN_OK : status;
    }
    worker_end(w);
    return status;
}

enum gpurun_status worker_open(struct worker *w)
{
    const size_t bytes = (BLOCK_SIZES + 1) * CASES_MAX * sizeof *w->hashes;
    struct why *why = &w->run.why;

    GPURUN_TRY(device_api.open(0, &w->run.device, why));
    w->run.ctx.stream = device_api.stream(w->run.device);
    GPURUN_TRY(device_api.alloc(w->run.device, bytes, (void **)&w->hashes, why));
    GPURUN_TRY(device_api.alloc_host(w->run.device, bytes, false, (void **)&w->hashes_host, why));
    GPURUN_TRY(device_api.fill(w->run.device, w->hashes, 0, bytes, why));
    GPURUN_TRY(open_outputs(w));
    return open_scratch(w);
}

void worker_close(struct worker *w)
{
    struct device *d = w->run.device;

    free(w->run.ctx.options);
    free(w->run.ctx.state);
    if (d == NULL)
        return;
    for (int i = 0; i < TENSORS_MAX; i++) {
        free(w->host[i]);
        device_api.release(d, w->dev[i]);
    }
    device_api.release(d, w->scratch);
    device_api.release(d, w->state);
    device_api.release(d, w->hashes);
    device_api.release_host(d, w->hashes_host);
    device_api.close(d);
}

/* --- a size --- */

/* The plugin's tensors become prefixes of the sweep's inputs and of this thread's outputs. */
static enum gpurun_status place(struct worker *w)
{
    for (int i = 0; i < w->run.buffer_count && w->run.device != NULL; i++) {
        struct gpurun_tensor *t = &w->run.buffers[i].tensor;
        const struct gpurun_tensor *l = &w->every->largest[i];

        if (i >= w->every->tensor_count || t->role != l->role || t->dtype != l->dtype ||
            t->bytes > l->bytes)
            return run_fail(&w->run, GPURUN_ERROR,
                            "tensor %s is no part of what setup asks for at the largest size",
                            t->name);
        t->host = t->role == GPURUN_OUT ? w->host[i] : l->host;
        t->dev = t->role == GPURUN_OUT ? w->dev[i] : l->dev;
    }
    return GPURUN_OK;
}

enum gpurun_status worker_begin(struct worker *w, int64_t n)
{
    const struct gpurun_plugin *p = w->every->plugin.table;

    w->n = n;
    memcpy(w->run.ctx.options, w->every->options, p->options_bytes);
    memcpy((char *)w->run.ctx.options + w->every->size->offset, &n, sizeof n);
    memset(w->run.ctx.state, 0, p->state_bytes);
    w->run.buffer_count = 0;
    GPURUN_TRY(run_setup(&w->run));
    return place(w);
}

void worker_end(struct worker *w)
{
    w->every->plugin.table->teardown(&w->run.ctx);
}

/* Room for `bytes`. What is let go of may be in use until the device has been waited for. */
static enum gpurun_status reserve(struct worker *w, size_t bytes, void **block, size_t *have)
{
    if (bytes <= *have)
        return GPURUN_OK;
    GPURUN_TRY(device_api.sync(w->run.device, &w->run.why));
    device_api.release(w->run.device, *block);
    *block = NULL;
    *have = 0;
    GPURUN_TRY(device_api.alloc(w->run.device, bytes, block, &w->run.why));
    *have = bytes;
    return GPURUN_OK;
}

enum gpurun_status worker_prepare(struct worker *w, const struct gpurun_variant *v)
{
    struct gpurun_ctx *ctx = &w->run.ctx;
    size_t scratch, state;

    GPURUN_TRY(case_check_variant(&w->run, v));
    scratch = v->scratch_bytes ? v->scratch_bytes(ctx) : 0;
    state = v->state_bytes ? v->state_bytes(ctx) : 0;
    GPURUN_TRY(reserve(w, scratch, &w->scratch, &w->scratch_bytes));
    GPURUN_TRY(reserve(w, state, &w->state, &w->state_bytes));
    ctx->scratch = w->scratch;
    ctx->variant_state = state > 0 ? w->state : NULL;
    if (state == 0)
        return GPURUN_OK;
    return device_api.fill(w->run.device, w->state, 0, state, &w->run.why);
}

enum gpurun_status worker_hash(struct worker *w, uint64_t *slot)
{
    for (int i = 0; i < w->run.buffer_count; i++) {
        const struct gpurun_tensor *t = &w->run.buffers[i].tensor;
        const char *error = t->role != GPURUN_OUT
                                ? NULL
                                : hash_and_poison(w->run.ctx.stream, t->dev, worker_answer_bytes(t),
                                                  (uint64_t)i, slot);

        if (error != NULL)
            return run_fail(&w->run, GPURUN_DEVICE, "the hash of %s: %s", t->name, error);
    }
    return GPURUN_OK;
}

enum gpurun_status worker_judge(struct worker *w, const struct gpurun_variant *v, int64_t *wrong)
{
    struct gpurun_proof proof = {.mode = GPURUN_VERIFY_FULL,
                                 .relaxed = v->capabilities & ~(unsigned)GPURUN_PEER};

    for (int i = 0; i < w->run.buffer_count; i++) {
        const struct gpurun_tensor *t = &w->run.buffers[i].tensor;

        if (t->role == GPURUN_OUT)
            GPURUN_TRY(device_api.copy(w->run.device, t->host, t->dev, worker_answer_bytes(t),
                                       &w->run.why));
    }
    GPURUN_TRY(device_api.sync(w->run.device, &w->run.why));
    GPURUN_TRY(w->every->plugin.table->verify(&w->run.ctx, &proof));
    tensors_reset_shapes(&w->run);
    *wrong = proof.wrong;
    return GPURUN_OK;
}
