#include "run/selftest.h"

#include "gpurun/half.h"
#include "gpurun/key.h"
#include "job/memory.h"
#include "run/case.h"
#include "run/record.h"
#include "run/tensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is done to an answer: up to SPOIL_PLACES at a place, up to SPOIL_TENSORS to a whole tensor, then to
 * all tensors. A way that changes nothing, or no more than verify has to allow, is left out. */
enum spoil {
    SPOIL_BIT,
    SPOIL_TOP_BIT,
    SPOIL_ONE,
    SPOIL_NAN,
    SPOIL_SWAP,
    SPOIL_NEIGHBOURS,
    SPOIL_DOUBLED,
    SPOIL_PLACES,
    SPOIL_SHIFT = SPOIL_PLACES,
    SPOIL_SHIFT_BACK,
    SPOIL_ALL,
    SPOIL_TENSORS,
    SPOIL_STALE = SPOIL_TENSORS,
    SPOIL_COUNT
};

static const char *const spoil_names[SPOIL_COUNT] = {
    "one bit flipped",          "top bits flipped",
    "one element poisoned",     "a NaN",
    "two elements swapped",     "two neighbours swapped",
    "one lost and one doubled", "elements shifted by one",
    "elements shifted back",    "untouched output",
    "the answer to other data"};

enum {
    PLACES = 3, /* the first, the last, one between */
    OPTIONS_MAX = 64,
    HALVINGS = 60, /* from any 64-bit size down to 1 */
    SMALL = 32,    /* a whole number at or below it is not halved */
};

static const double MANY_OPERATIONS = 2e7, MANY_BYTES = 1e7; /* a job with more is made smaller */

struct selftest {
    struct run run;
    void *right[TENSORS_MAX];  /* the right answer's bytes */
    void *stale[TENSORS_MAX];  /* the right answer to the same job with another seed */
    size_t valid[TENSORS_MAX]; /* bytes of it that mean something */
    double bound;              /* what verify allows a real to be off by */
    long long corruptions;
    json_t *missed;
    const char *input, *mode;
    uint64_t random;
};

static size_t pick(struct selftest *s, size_t below)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((s->random >> 33) % below);
}

static bool is_real(const struct gpurun_tensor *t)
{
    return gpurun_dtype_is_real(t->dtype);
}

static double real_at(const struct gpurun_tensor *t, const void *elements, size_t i)
{
    switch (t->dtype) {
    case GPURUN_FLOAT:
        return (double)((const float *)elements)[i];
    case GPURUN_HALF:
        return (double)gpurun_half_to_float(((const uint16_t *)elements)[i]);
    case GPURUN_BFLOAT16:
        return (double)gpurun_bfloat16_to_float(((const uint16_t *)elements)[i]);
    default:
        return ((const double *)elements)[i];
    }
}

/* For reals the bit flipped is an exponent's: above any bound that a verifier may allow. */
static void flip(const struct gpurun_tensor *t, unsigned char *element, bool top)
{
    const size_t size = gpurun_dtype_bytes(t->dtype);
    const unsigned char exponent = t->dtype == GPURUN_HALF ? 0x04 : 0x01;

    if (is_real(t))
        element[size - 1] ^= top ? 0xC0 : exponent;
    else
        element[top ? size - 1 : 0] ^= top ? 0x80 : 0x01;
}

static void put_nan(const struct gpurun_tensor *t, unsigned char *element)
{
    const float nan_float = __builtin_nanf("");
    const double nan_double = __builtin_nan("");
    const uint16_t nan_short = t->dtype == GPURUN_HALF ? 0x7E00 : 0x7FC0;

    if (t->dtype == GPURUN_FLOAT)
        memcpy(element, &nan_float, sizeof nan_float);
    else if (t->dtype == GPURUN_DOUBLE)
        memcpy(element, &nan_double, sizeof nan_double);
    else if (is_real(t))
        memcpy(element, &nan_short, sizeof nan_short);
}

static void spoil_element(const struct gpurun_tensor *t, unsigned char *element, enum spoil how)
{
    if (how == SPOIL_ONE)
        memset(element, 0xA5, gpurun_dtype_bytes(t->dtype));
    else if (how == SPOIL_NAN)
        put_nan(t, element);
    else
        flip(t, element, how == SPOIL_TOP_BIT);
}

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = a[i];

        a[i] = b[i];
        b[i] = byte;
    }
}

/* The first of two neighbours that differ, from `start` on, else before it; elems where there are none. */
static size_t find_neighbours(const unsigned char *bytes, size_t size, size_t elems, size_t start)
{
    for (size_t i = start; i + 1 < elems; i++)
        if (memcmp(bytes + i * size, bytes + (i + 1) * size, size) != 0)
            return i;
    for (size_t i = start; i > 0; i--)
        if (i < elems && memcmp(bytes + (i - 1) * size, bytes + i * size, size) != 0)
            return i - 1;
    return elems;
}

static void spoil_place(struct selftest *s, const struct gpurun_tensor *t, size_t elems,
                        enum spoil how, size_t place)
{
    const size_t size = gpurun_dtype_bytes(t->dtype);
    unsigned char *bytes = t->host, *element = bytes + place * size;

    if (how < SPOIL_SWAP) {
        spoil_element(t, element, how);
    } else if (how == SPOIL_SWAP) {
        swap(element, bytes + pick(s, elems) * size, size);
    } else {
        place = find_neighbours(bytes, size, elems, place);
        element = bytes + place * size;
        if (place < elems && how == SPOIL_NEIGHBOURS)
            swap(element, element + size, size);
        else if (place < elems)
            memcpy(element + size, element, size);
    }
}

static void spoil_whole(const struct gpurun_tensor *t, size_t elems, enum spoil how)
{
    const size_t size = gpurun_dtype_bytes(t->dtype);
    unsigned char *bytes = t->host;

    if (how == SPOIL_SHIFT) {
        memmove(bytes, bytes + size, (elems - 1) * size);
    } else if (how == SPOIL_SHIFT_BACK) {
        memmove(bytes + size, bytes, (elems - 1) * size);
        memset(bytes, 0, size);
    } else {
        memset(bytes, 0xA5, t->bytes);
    }
}

/* Whether a real is another than it should be: off by more than two right answers may be apart. NaNs are
 * one, and so are the zeros. */
static bool is_other_real(double right, double now, double bound)
{
    if (isnan(right) || isnan(now))
        return isnan(right) != isnan(now);
    return !(right <= now && right >= now) && !(fabs(right - now) <= 2 * bound);
}

/* Whether tensor i is now another answer. */
static bool is_changed(const struct selftest *s, int i)
{
    const struct gpurun_tensor *t = &s->run.buffers[i].tensor;
    const size_t elems = s->valid[i] / gpurun_dtype_bytes(t->dtype);

    if (elems == 0 || !is_real(t))
        return elems > 0 && memcmp(t->host, s->right[i], s->valid[i]) != 0;
    for (size_t k = 0; k < elems; k++)
        if (is_other_real(real_at(t, s->right[i], k), real_at(t, t->host, k), s->bound))
            return true;
    return false;
}

static void put(struct selftest *s, void *const answer[TENSORS_MAX])
{
    tensors_reset_shapes(&s->run);
    for (int i = 0; i < s->run.buffer_count; i++)
        if (answer[i] != NULL)
            memcpy(s->run.buffers[i].tensor.host, answer[i], s->run.buffers[i].tensor.bytes);
}

static void miss(struct selftest *s, const char *what, const char *tensor)
{
    char text[300];

    snprintf(text, sizeof text, "input %s, verify = %s: %s in %s", s->input, s->mode, what, tensor);
    json_array_append_new(s->missed, json_string(text));
}

static bool is_refused(struct selftest *s, bool *judged)
{
    struct run_case c = {.name = "cpu"};

    *judged = case_judge(&s->run, &c) == GPURUN_OK;
    s->bound = c.proof.bound;
    return c.status == CASE_FAILED;
}

/* The answer that is now there is wrong: verify must say so. */
static void expect_refused(struct selftest *s, enum spoil how, const char *tensor)
{
    const double bound = s->bound;
    bool judged;

    s->corruptions++;
    if (!is_refused(s, &judged))
        miss(s, spoil_names[how], tensor);
    s->bound = bound;
}

/* Where the option `sorted` is no, any order is right: swaps prove nothing. */
static bool is_any_order(const struct selftest *s)
{
    const struct gpurun_option *row = option_find(&s->run.plugin->options, "sorted");

    return row != NULL && row->type == GPURUN_OPTION_BOOL &&
           *(const int64_t *)(const void *)((const char *)s->run.ctx.options + row->offset) == 0;
}

static void spoil_tensor(struct selftest *s, int i, enum spoil how, int place)
{
    const struct gpurun_tensor *t = &s->run.buffers[i].tensor;
    const size_t elems = s->valid[i] / gpurun_dtype_bytes(t->dtype);
    const size_t places[PLACES] = {pick(s, elems), 0, elems - 1};

    if ((how == SPOIL_SWAP || how == SPOIL_NEIGHBOURS) && is_any_order(s))
        return;
    put(s, s->right);
    if (how < SPOIL_PLACES)
        spoil_place(s, t, elems, how, places[place]);
    else
        spoil_whole(t, elems, how);
    if (is_changed(s, i))
        expect_refused(s, how, t->name);
}

static void spoil_all(struct selftest *s)
{
    bool is_other = false;

    for (int i = 0; i < s->run.buffer_count; i++)
        for (int how = 0; s->valid[i] > 0 && how < SPOIL_TENSORS; how++)
            for (int place = 0; place < (how < SPOIL_PLACES ? PLACES : 1); place++)
                spoil_tensor(s, i, (enum spoil)how, place);
    put(s, s->right);
    put(s, s->stale);
    for (int i = 0; i < s->run.buffer_count; i++)
        is_other = is_other || is_changed(s, i);
    if (is_other)
        expect_refused(s, SPOIL_STALE, "all");
}

/* Fills the inputs, runs the baseline and keeps its answer. */
static enum gpurun_status make_answer(struct run *run, void *answer[TENSORS_MAX])
{
    struct run_case cpu = {.name = "cpu"};

    GPURUN_TRY(tensors_allocate(run));
    GPURUN_TRY(tensors_fill(run));
    GPURUN_TRY(tensors_poison(run, false));
    GPURUN_TRY(case_run(run, &cpu));
    for (int i = 0; i < run->buffer_count; i++) {
        const struct gpurun_tensor *t = &run->buffers[i].tensor;

        if (t->role == GPURUN_IN)
            continue;
        answer[i] = allocate(t->bytes, 1);
        memcpy(answer[i], t->host, t->bytes);
    }
    return GPURUN_OK;
}

/* Where verify moved a smaller answer together the gaps mean nothing: such rows are left alone. */
static size_t valid_bytes(const struct buffer *b)
{
    return b->tensor.bytes == b->declared.bytes || b->declared.rank <= 1 ? b->tensor.bytes : 0;
}

static void test_mode(struct selftest *s, int64_t mode, const char *mode_name)
{
    bool judged, refused;

    s->run.core.verify = mode;
    s->mode = mode_name;
    put(s, s->right);
    refused = is_refused(s, &judged);
    for (int i = 0; i < s->run.buffer_count; i++)
        s->valid[i] = s->right[i] ? valid_bytes(&s->run.buffers[i]) : 0;
    if (!judged || refused)
        miss(s, judged ? "the right answer was refused" : s->run.why.text, "all");
    else
        spoil_all(s);
}

/* --- the job --- */

/* A job of the tester's own: the settings that were asked for, and sizes that were made smaller. */
struct own_job {
    struct job job;
    struct setting settings[OPTIONS_MAX];
    char sizes[OPTIONS_MAX][24];
    struct binding input;
};

static void own_job_set(struct own_job *own, const char *key, const char *text)
{
    size_t i = 0;

    while (i < own->job.setting_count && strcmp(own->settings[i].key, key) != 0)
        i++;
    if (i == OPTIONS_MAX)
        return;
    own->settings[i] = (struct setting){.key = key, .text = text, .where = own->job.where};
    own->job.setting_count += i == own->job.setting_count;
}

static void own_job_start(struct own_job *own, const struct setting *settings, size_t count,
                          const char *input)
{
    struct why why;

    own->job = (struct job){.name = "selftest",
                            .where = {"selftest", 0},
                            .settings = own->settings,
                            .inputs = &own->input,
                            .input_count = 1};
    own->input =
        (struct binding){.key = "input", .text = input, .where = own->job.where, .shared = true};
    option_set_defaults(&core_options_table, &own->job.core, &why);
    for (size_t i = 0; i < count; i++)
        own_job_set(own, settings[i].key, settings[i].text);
}

static enum gpurun_status set_up(struct run *run, const struct own_job *own,
                                 const struct plugin *plugin)
{
    struct faults faults = {0};
    enum gpurun_status status = run_prepare(run, &own->job, plugin, &faults);

    if (status != GPURUN_OK)
        run_fail(run, status, "%s", faults.count ? faults.texts[0] : run->why.text);
    faults_free(&faults);
    return status == GPURUN_OK ? run_setup(run) : status;
}

/* Halves the sizes that setup chose, to odd numbers; false when there is nothing left to halve. */
static bool halve_sizes(struct own_job *own, const struct run *run)
{
    bool changed = false;

    for (uint32_t i = 0; i < run->plugin->options.count && i < OPTIONS_MAX; i++) {
        const struct gpurun_option *row = option_at(&run->plugin->options, i);
        const int64_t value =
            *(const int64_t *)(const void *)((const char *)run->ctx.options + row->offset);

        if (row->type != GPURUN_OPTION_INT || (row->flags & GPURUN_OPTION_TUNABLE) ||
            value <= SMALL)
            continue;
        snprintf(own->sizes[i], sizeof own->sizes[i], "%lld", (long long)(value / 2 | 1));
        own_job_set(own, row->name, own->sizes[i]);
        changed = true;
    }
    return changed;
}

static bool is_large(const struct gpurun_work *w)
{
    return w->operations > MANY_OPERATIONS || w->bytes_read + w->bytes_written > MANY_BYTES;
}

/* Verify is called a hundred times: a job of much work is made smaller first. */
static void make_small(struct own_job *own, const struct plugin *plugin)
{
    bool again = true;

    for (int i = 0; i < HALVINGS && again; i++) {
        struct run *run = allocate(1, sizeof *run);

        again = set_up(run, own, plugin) == GPURUN_OK && is_large(&run->ctx.work) &&
                halve_sizes(own, run);
        run_finish(run);
        free(run);
    }
}

/* The answer to the same job with another seed, from a run of its own: a plugin may keep what it knows of
 * its inputs. Without one, nothing is tried with it. */
static void make_stale(struct selftest *s, struct own_job *own, const struct plugin *plugin)
{
    struct run *run = allocate(1, sizeof *run);

    own->job.core.seed++;
    if (set_up(run, own, plugin) == GPURUN_OK)
        make_answer(run, s->stale);
    own->job.core.seed--;
    tensors_free(run);
    run_finish(run);
    free(run);
}

static void test_answers(struct selftest *s)
{
    if (make_answer(&s->run, s->right) == GPURUN_OK) {
        test_mode(s, VERIFY_FULL, "full");
        test_mode(s, VERIFY_CERTIFY, "certify");
    } else {
        miss(s, s->run.why.text, "run_cpu");
    }
}

static void selftest_free(struct selftest *s)
{
    for (int i = 0; i < TENSORS_MAX; i++) {
        free(s->right[i]);
        free(s->stale[i]);
    }
    tensors_free(&s->run);
    run_finish(&s->run);
    free(s);
}

long long selftest_job(const struct plugin *plugin, const struct setting *settings, size_t count,
                       const char *input, json_t *missed)
{
    struct selftest *s = allocate(1, sizeof *s);
    struct own_job *own = allocate(1, sizeof *own);
    long long corruptions;

    s->missed = missed;
    s->input = input;
    s->mode = "none";
    s->random = 1;
    own_job_start(own, settings, count, input);
    make_small(own, plugin);
    make_stale(s, own, plugin);
    if (set_up(&s->run, own, plugin) == GPURUN_OK)
        test_answers(s);
    else if (count == 0)
        miss(s, s->run.why.text, "setup");
    corruptions = s->corruptions;
    selftest_free(s);
    free(own);
    return corruptions;
}

json_t *selftest_plugin(const struct plugin *plugin)
{
    json_t *missed = json_array();
    long long corruptions = selftest_job(plugin, NULL, 0, "uniform", missed);

    corruptions += selftest_job(plugin, NULL, 0, "few-distinct count=5", missed);
    return json_pack("{sIso}", "corruptions", (json_int_t)corruptions, "missed", missed);
}
