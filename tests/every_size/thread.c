#include "every_size.h"

#include "job/memory.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PROGRESS_S = 20;

/* --- telling --- */

static void tell(struct worker *w, const struct gpurun_variant *v, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct worker *w, const struct gpurun_variant *v, const char *format, ...)
{
    struct every *s = w->every;
    va_list args;

    va_start(args, format);
    pthread_mutex_lock(&s->lock);
    printf("%s %s: %s = %" PRId64 ": ", s->plugin.table->name, v->name, s->size->name, w->n);
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    pthread_mutex_unlock(&s->lock);
    va_end(args);
}

static void tell_progress(struct every *s)
{
    pthread_mutex_lock(&s->lock);
    if (now_s() - s->told_s > PROGRESS_S) {
        s->told_s = now_s();
        printf("at %s = %" PRId64 " after %.0f s\n", s->size->name, atomic_load(&s->next),
               s->told_s - s->start_s);
        fflush(stdout);
    }
    pthread_mutex_unlock(&s->lock);
}

/* --- where two answers differ --- */

/* The answer of a variant, once more, and what verify says of it. */
static enum gpurun_status answer_again(struct worker *w, int variant, char *verdict, size_t size)
{
    const struct gpurun_variant *v = w->every->variants[variant];
    int64_t wrong;

    GPURUN_TRY(worker_prepare(w, v));
    GPURUN_TRY(w->every->plugin.table->run_gpu(&w->run.ctx, v));
    GPURUN_TRY(worker_judge(w, v, &wrong));
    GPURUN_TRY(worker_hash(w, w->hashes + BLOCK_SIZES * CASES_MAX));
    if (wrong == 0)
        snprintf(verdict, size, "verify finds %s right", v->name);
    else
        snprintf(verdict, size, "verify finds %" PRId64 " wrong in %s: %s", wrong, v->name,
                 w->run.judged->wrong[0]);
    return GPURUN_OK;
}

/* The first byte in which the answer now in the host tensors is not the one kept: false when it is. */
static bool find_difference(const struct worker *w, char *const *kept, int *tensor, size_t *byte)
{
    for (int i = 0; i < w->run.buffer_count; i++) {
        const struct gpurun_tensor *t = &w->run.buffers[i].tensor;
        const size_t bytes = worker_answer_bytes(t);

        if (t->role != GPURUN_OUT || memcmp(t->host, kept[i], bytes) == 0)
            continue;
        *tensor = i;
        for (*byte = 0; ((const char *)t->host)[*byte] == kept[i][*byte];)
            (*byte)++;
        return true;
    }
    return false;
}

static void tell_difference(struct worker *w, int variant, int other, char *const *kept,
                            const char *verdict, const char *other_verdict)
{
    const struct gpurun_variant *v = w->every->variants[variant];
    const struct gpurun_variant *o = w->every->variants[other];
    uint64_t got = 0, had = 0;
    size_t byte, item;
    int i;

    if (!find_difference(w, kept, &i, &byte)) {
        tell(w, v, "it did not answer as %s, but does when run again; %s", o->name, verdict);
        return;
    }
    item = gpurun_dtype_bytes(w->run.buffers[i].tensor.dtype);
    memcpy(&got, (const char *)w->run.buffers[i].tensor.host + byte / item * item, item);
    memcpy(&had, kept[i] + byte / item * item, item);
    tell(w, v, "%s[%zu]%s is 0x%" PRIx64 ", that of %s 0x%" PRIx64 "; %s; %s",
         w->run.buffers[i].tensor.name, byte / item,
         byte < w->run.buffers[i].tensor.bytes ? "" : ", behind its end,", got, o->name, had,
         verdict, other_verdict);
}

/* Both variants are run again at the size. */
static enum gpurun_status examine(struct worker *w, int64_t n, int variant, int other)
{
    char *kept[TENSORS_MAX] = {NULL}, verdict[400], other_verdict[400];
    enum gpurun_status status = worker_begin(w, n);

    if (status == GPURUN_OK)
        status = answer_again(w, other, other_verdict, sizeof other_verdict);
    for (int i = 0; i < w->run.buffer_count && status == GPURUN_OK; i++)
        if (w->run.buffers[i].tensor.role == GPURUN_OUT)
            kept[i] = memcpy(allocate(1, worker_answer_bytes(&w->run.buffers[i].tensor)),
                             w->run.buffers[i].tensor.host,
                             worker_answer_bytes(&w->run.buffers[i].tensor));
    if (status == GPURUN_OK)
        status = answer_again(w, variant, verdict, sizeof verdict);
    if (status == GPURUN_OK)
        tell_difference(w, variant, other, kept, verdict, other_verdict);
    for (int i = 0; i < TENSORS_MAX; i++)
        free(kept[i]);
    worker_end(w);
    return status;
}

/* --- hashes --- */

static enum gpurun_status compare_row(struct worker *w, int row)
{
    const uint64_t *hashes = w->hashes_host + (size_t)row * CASES_MAX;
    const bool *has = w->has_hash[row];
    const int count = w->every->variant_count;
    int other = w->every->peer;

    if (other < 0 || !has[other])
        for (other = 0; other < count && !has[other];)
            other++;
    for (int i = 0; i < count; i++)
        if (has[i] && hashes[i] != hashes[other] && w->tallies[i].wrong++ < TOLD_MAX)
            GPURUN_TRY(examine(w, w->sizes[row], i, other));
    return GPURUN_OK;
}

static enum gpurun_status compare_hashes(struct worker *w)
{
    const int count = w->size_count;
    const size_t bytes = (size_t)count * CASES_MAX * sizeof *w->hashes;

    w->size_count = 0;
    GPURUN_TRY(device_api.copy(w->run.device, w->hashes_host, w->hashes, bytes, &w->run.why));
    GPURUN_TRY(device_api.fill(w->run.device, w->hashes, 0, bytes, &w->run.why));
    GPURUN_TRY(device_api.sync(w->run.device, &w->run.why));
    for (int row = 0; row < count; row++)
        GPURUN_TRY(compare_row(w, row));
    tell_progress(w->every);
    return GPURUN_OK;
}

/* --- sizes --- */

static bool is_sampled(const struct worker *w)
{
    return w->n % SAMPLED_EVERY == 0 || w->n == w->every->from || w->n == w->every->to;
}

/* A run by itself, timed and verified; *is_right is what verify says. */
static enum gpurun_status run_sampled(struct worker *w, int variant, bool *is_right)
{
    const struct gpurun_variant *v = w->every->variants[variant];
    struct tally *tally = &w->tallies[variant];
    int64_t wrong;
    double start_s;

    GPURUN_TRY(device_api.sync(w->run.device, &w->run.why));
    start_s = now_s();
    GPURUN_TRY(w->every->plugin.table->run_gpu(&w->run.ctx, v));
    GPURUN_TRY(device_api.sync(w->run.device, &w->run.why));
    tally->sampled_s += now_s() - start_s;
    GPURUN_TRY(worker_judge(w, v, &wrong));
    tally->verified++;
    *is_right = wrong == 0;
    if (wrong > 0 && tally->wrong++ < TOLD_MAX)
        tell(w, v, "verify finds %" PRId64 " wrong: %s", wrong, w->run.judged->wrong[0]);
    return GPURUN_OK;
}

static enum gpurun_status run_variant(struct worker *w, int variant)
{
    const struct gpurun_variant *v = w->every->variants[variant];
    struct tally *tally = &w->tallies[variant];
    bool *has_hash = &w->has_hash[w->size_count][variant];
    const double start_s = now_s();
    const enum gpurun_status status = worker_prepare(w, v);

    w->running = v->name;
    *has_hash = status == GPURUN_OK;
    if (status == GPURUN_UNSUPPORTED) {
        tally->unsupported++;
        snprintf(tally->reason, sizeof tally->reason, "%s", w->run.why.text);
        return GPURUN_OK;
    }
    GPURUN_TRY(status);
    if (is_sampled(w))
        GPURUN_TRY(run_sampled(w, variant, has_hash));
    else
        GPURUN_TRY(w->every->plugin.table->run_gpu(&w->run.ctx, v));
    tally->sizes++;
    GPURUN_TRY(worker_hash(w, w->hashes + w->size_count * CASES_MAX + variant));
    tally->host_s += now_s() - start_s;
    return GPURUN_OK;
}

static enum gpurun_status run_size(struct worker *w, int64_t n)
{
    struct every *s = w->every;
    enum gpurun_status status = worker_begin(w, n);

    if (status == GPURUN_INVALID || status == GPURUN_UNSUPPORTED) {
        pthread_mutex_lock(&s->lock);
        s->refused++;
        snprintf(s->reason, sizeof s->reason, "%s", w->run.why.text);
        pthread_mutex_unlock(&s->lock);
        worker_end(w);
        return GPURUN_OK;
    }
    for (int v = 0; v < s->variant_count && status == GPURUN_OK; v++)
        status = run_variant(w, v);
    worker_end(w);
    w->sizes[w->size_count++] = n;
    return status;
}

/* The next size, in ascending order over all threads; false when there is none, or time is up. */
static bool take(struct worker *w, int64_t *n)
{
    struct every *s = w->every;

    if (atomic_load(&s->stop) || (s->seconds > 0 && now_s() - w->start_s > s->seconds))
        return false;
    *n = atomic_fetch_add(&s->next, 1);
    return *n <= s->to;
}

static enum gpurun_status run_sizes(struct worker *w)
{
    int64_t n;

    w->start_s = now_s();
    while (take(w, &n)) {
        GPURUN_TRY(run_size(w, n));
        if (w->size_count == BLOCK_SIZES)
            GPURUN_TRY(compare_hashes(w));
    }
    return compare_hashes(w);
}

static void add_tallies(struct every *s, const struct worker *w)
{
    pthread_mutex_lock(&s->lock);
    for (int v = 0; v < s->variant_count; v++) {
        struct tally *sum = &s->tallies[v];
        const struct tally *t = &w->tallies[v];

        sum->sizes += t->sizes;
        sum->verified += t->verified;
        sum->unsupported += t->unsupported;
        sum->wrong += t->wrong;
        sum->host_s += t->host_s;
        sum->sampled_s += t->sampled_s;
        if (t->unsupported > 0)
            memcpy(sum->reason, t->reason, sizeof sum->reason);
    }
    pthread_mutex_unlock(&s->lock);
}

void *every_thread(void *user)
{
    struct every *s = user;
    struct worker *w = allocate(1, sizeof *w);
    enum gpurun_status status;

    worker_init(w, s);
    status = worker_open(w);
    if (status == GPURUN_OK)
        status = run_sizes(w);
    if (status != GPURUN_OK) {
        atomic_store(&s->stop, true);
        pthread_mutex_lock(&s->lock);
        s->has_failed = true;
        fprintf(stderr, "every_size: %s%s%s: %s = %" PRId64 ": %s\n", s->plugin.table->name,
                w->running ? " " : "", w->running ? w->running : "", s->size->name, w->n,
                w->run.why.text);
        pthread_mutex_unlock(&s->lock);
    }
    add_tallies(s, w);
    worker_close(w);
    free(w);
    return NULL;
}
