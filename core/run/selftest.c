#include "run/selftest.h"

#include "job/memory.h"
#include "run/record.h"
#include "run/rounds.h"
#include "run/tensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is done to an answer. Each changes at least one byte or says that it cannot. */
enum spoil {
    SPOIL_BIT,
    SPOIL_TOP_BIT,
    SPOIL_SWAP,
    SPOIL_SHIFT,
    SPOIL_ONE,
    SPOIL_ALL,
    SPOIL_NAN,
    SPOIL_COUNT
};

static const char *const spoil_names[SPOIL_COUNT] = {"one bit flipped",
                                                     "top bits flipped",
                                                     "two elements swapped",
                                                     "elements shifted by one",
                                                     "one element poisoned",
                                                     "untouched output",
                                                     "a NaN"};

struct selftest {
    struct run run;
    void *right[TENSORS_MAX];  /* the right answer's bytes */
    size_t valid[TENSORS_MAX]; /* bytes of it that mean something */
    long long corruptions;
    json_t *missed;
    const char *input;
    uint64_t random;
};

static size_t pick(struct selftest *s, size_t below)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((s->random >> 33) % below);
}

static bool is_real(const struct gpurun_tensor *t)
{
    return t->dtype == GPURUN_FLOAT || t->dtype == GPURUN_DOUBLE;
}

/* For reals the bit flipped is an exponent's: above any bound that a verifier may allow. */
static void flip(const struct gpurun_tensor *t, unsigned char *element, bool top)
{
    const size_t size = gpurun_dtype_bytes(t->dtype);

    if (is_real(t))
        element[size - 1] ^= top ? 0xC0 : 0x01;
    else
        element[top ? size - 1 : 0] ^= top ? 0xC0 : 0x01;
}

static void spoil_element(const struct gpurun_tensor *t, unsigned char *element, enum spoil how)
{
    const float nan_float = __builtin_nanf("");
    const double nan_double = __builtin_nan("");

    if (how == SPOIL_ONE)
        memset(element, 0xA5, gpurun_dtype_bytes(t->dtype));
    else if (how == SPOIL_NAN && t->dtype == GPURUN_FLOAT)
        memcpy(element, &nan_float, sizeof nan_float);
    else if (how == SPOIL_NAN && t->dtype == GPURUN_DOUBLE)
        memcpy(element, &nan_double, sizeof nan_double);
    else if (how != SPOIL_NAN)
        flip(t, element, how == SPOIL_TOP_BIT);
}

/* Spoils tensor `t`, of which `valid` bytes count; false when this way changes nothing. */
static bool spoil_tensor(struct selftest *s, const struct gpurun_tensor *t, size_t valid,
                         enum spoil how)
{
    const size_t size = gpurun_dtype_bytes(t->dtype), elems = valid / size;
    unsigned char *bytes = t->host, *before = allocate(valid, 1), element[8];
    size_t a, b;
    bool changed;

    memcpy(before, bytes, valid);
    a = pick(s, elems);
    b = pick(s, elems);
    if (how == SPOIL_SWAP) {
        memcpy(element, bytes + a * size, size);
        memcpy(bytes + a * size, bytes + b * size, size);
        memcpy(bytes + b * size, element, size);
    } else if (how == SPOIL_SHIFT) {
        memmove(bytes, bytes + size, valid - size);
    } else if (how == SPOIL_ALL) {
        memset(bytes, 0xA5, t->bytes);
    } else {
        spoil_element(t, bytes + a * size, how);
    }
    changed = memcmp(before, bytes, valid) != 0;
    free(before);
    return changed;
}

static void put_right(struct selftest *s)
{
    tensors_reset_shapes(&s->run);
    for (int i = 0; i < s->run.buffer_count; i++)
        if (s->right[i] != NULL)
            memcpy(s->run.buffers[i].tensor.host, s->right[i], s->run.buffers[i].tensor.bytes);
}

static void miss(struct selftest *s, const char *mode, const char *what, const char *tensor)
{
    char text[300];

    snprintf(text, sizeof text, "input %s, verify = %s: %s in %s", s->input, mode, what, tensor);
    json_array_append_new(s->missed, json_string(text));
}

static bool is_refused(struct selftest *s, int64_t mode, bool *judged)
{
    struct run_case c = {.name = "cpu"};

    s->run.core.verify = mode;
    *judged = case_judge(&s->run, &c) == GPURUN_OK;
    return c.status == CASE_FAILED;
}

static void spoil_all(struct selftest *s, int64_t mode, const char *mode_name)
{
    bool judged;

    for (int i = 0; i < s->run.buffer_count; i++)
        for (int how = 0; s->valid[i] > 0 && how < SPOIL_COUNT; how++) {
            struct gpurun_tensor *t = &s->run.buffers[i].tensor;

            put_right(s);
            if (!spoil_tensor(s, t, s->valid[i], (enum spoil)how))
                continue;
            s->corruptions++;
            if (!is_refused(s, mode, &judged))
                miss(s, mode_name, spoil_names[how], t->name);
        }
}

/* The right answer once: kept, and judged right in both modes. */
static enum gpurun_status make_right(struct selftest *s)
{
    struct run_case cpu = {.name = "cpu"};

    GPURUN_TRY(run_setup(&s->run));
    GPURUN_TRY(tensors_allocate(&s->run));
    GPURUN_TRY(tensors_fill(&s->run));
    GPURUN_TRY(tensors_poison(&s->run, false));
    GPURUN_TRY(case_run(&s->run, &cpu));
    for (int i = 0; i < s->run.buffer_count; i++) {
        const struct gpurun_tensor *t = &s->run.buffers[i].tensor;

        if (t->role == GPURUN_IN)
            continue;
        s->right[i] = allocate(t->bytes, 1);
        memcpy(s->right[i], t->host, t->bytes);
    }
    return GPURUN_OK;
}

static void test_mode(struct selftest *s, int64_t mode, const char *mode_name)
{
    bool judged, refused;

    put_right(s);
    refused = is_refused(s, mode, &judged);
    for (int i = 0; i < s->run.buffer_count; i++)
        s->valid[i] = s->right[i] ? s->run.buffers[i].tensor.bytes : 0;
    if (!judged || refused)
        miss(s, mode_name, judged ? "the right answer was refused" : s->run.why.text, "all");
    else
        spoil_all(s, mode, mode_name);
}

static void test_input(const struct plugin *plugin, const char *input, json_t *missed,
                       long long *corruptions)
{
    struct binding binding = {
        .key = "input", .text = input, .where = {"selftest", 0}, .shared = true};
    struct job job = {.name = "selftest", .inputs = &binding, .input_count = 1};
    struct selftest *s = allocate(1, sizeof *s);
    struct faults faults = {0};
    struct why why;

    job.where = binding.where;
    s->missed = missed;
    s->input = input;
    s->random = 1;
    option_set_defaults(&core_options_table, &job.core, &why);
    if (run_prepare(&s->run, &job, plugin, &faults) == GPURUN_OK && make_right(s) == GPURUN_OK) {
        test_mode(s, VERIFY_FULL, "full");
        test_mode(s, VERIFY_CERTIFY, "certify");
    } else {
        miss(s, "none", faults.count ? faults.texts[0] : s->run.why.text, "setup");
    }
    *corruptions += s->corruptions;
    for (int i = 0; i < s->run.buffer_count; i++)
        free(s->right[i]);
    tensors_free(&s->run);
    run_finish(&s->run);
    faults_free(&faults);
    free(s);
}

json_t *selftest_plugin(const struct plugin *plugin)
{
    long long corruptions = 0;
    json_t *missed = json_array();

    test_input(plugin, "uniform", missed, &corruptions);
    test_input(plugin, "few-distinct count=5", missed, &corruptions);
    return json_pack("{sIso}", "corruptions", (json_int_t)corruptions, "missed", missed);
}
