/*
 * One case proved, and the baseline on every generator, size, offset and choice.
 */
#ifndef CONTRACT_CPU_H
#define CONTRACT_CPU_H

#include "table.h"
#include <malloc.h>

/* --- proving one case ------------------------------------------------------------------------- */

static void fill(struct trial *t)
{
    REQUIRE(tensors_allocate(&t->run) == GPURUN_OK && tensors_fill(&t->run) == GPURUN_OK, "%s",
            t->run.why.text);
}

/* By what the plugin declares, there is nothing to do or nothing to answer. */
static bool is_empty(const struct run *run)
{
    return run->ctx.work.elements <= 0 || run->ctx.work.bytes_written <= 0;
}

enum { GUARD = 0x5C, GUARD_MOST = 4096 };

/* The bytes around a host tensor: before it up to its offset, behind it up to what was allocated. True when
 * they still are what `set` made them. */
static bool guard(const struct run *run, bool set)
{
    for (int i = 0; i < run->buffer_count && device == NULL; i++) {
        const struct buffer *b = &run->buffers[i];
        char *const start = b->host_block, *const end = start + b->block_bytes;
        const size_t behind = malloc_usable_size(b->host_block) - b->block_bytes;
        const size_t before = (size_t)((char *)b->tensor.host - start);

        for (size_t k = 0; k < before + (behind < GUARD_MOST ? behind : GUARD_MOST); k++) {
            char *byte = k < before ? start + k : end + (k - before);

            if (set)
                *byte = GUARD;
            else if (*byte != GUARD)
                return false;
        }
    }
    return true;
}

/* The case's own run, judged right. False where it is refused with a reason, which a run of nothing may be. */
static bool prove(struct trial *t, struct run_case *c, int64_t mode)
{
    enum gpurun_status status;

    t->run.core.verify = mode;
    t->run.why.text[0] = '\0';
    c->status = CASE_PASSED;
    guard(&t->run, true);
    status = case_prove(&t->run, c);
    tensors_reset_shapes(&t->run);
    REQUIRE(guard(&t->run, false), "%s writes outside its tensors", c->name);
    if (status == GPURUN_INVALID && is_empty(&t->run) && t->run.why.text[0] != '\0')
        return false;
    REQUIRE(status == GPURUN_OK, "%s: status %d: %s", c->name, (int)status, t->run.why.text);
    REQUIRE(c->status == CASE_PASSED, "%s, verify = %s: %s", c->name,
            mode == VERIFY_FULL ? "full" : "certify", c->reason);
    REQUIRE(c->proof.mode == GPURUN_VERIFY_FULL || c->proof.mode == GPURUN_VERIFY_CERTIFY,
            "%s: the proof does not say what it was", c->name);
    REQUIRE(c->proof.checked > 0 || is_empty(&t->run), "%s: nothing was checked", c->name);
    REQUIRE(c->proof.detects != NULL && is_line(c->proof.detects), "%s: detects is no line",
            c->name);
    REQUIRE(c->proof.bound >= 0 && c->proof.worst_error >= 0, "%s: a bound below 0", c->name);
    return true;
}

/* An answer in an inout tensor alone may be right before anything is done: sorted input, say. */
static bool has_own_output(const struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++)
        if (run->buffers[i].tensor.role == GPURUN_OUT && run->buffers[i].declared.elems > 0)
            return true;
    return false;
}

/* Nothing is run: outputs poisoned, inout as it was. Verify must not be pleased. */
static void check_idle_fails(struct trial *t, struct run_case *c)
{
    const bool on_device = c->variant != NULL;

    tensors_reset_shapes(&t->run);
    REQUIRE(tensors_poison(&t->run, on_device) == GPURUN_OK &&
                tensors_restore(&t->run, on_device) == GPURUN_OK &&
                (!on_device || tensors_download(&t->run) == GPURUN_OK),
            "%s", t->run.why.text);
    for (size_t m = 0; m < GPURUN_COUNT(modes); m++) {
        t->run.core.verify = modes[m];
        c->status = CASE_PASSED;
        REQUIRE(case_judge(&t->run, c) == GPURUN_OK, "an answer that is missing is not judged: %s",
                t->run.why.text);
        REQUIRE(c->status == CASE_FAILED, "%s does nothing and passes, verify = %s", c->name,
                m == 0 ? "full" : "certify");
        tensors_reset_shapes(&t->run);
    }
}

/* The CPU in both modes. Counts into *runs or *refused. */
static void prove_cpu(const struct config *c, int *runs, int *refused)
{
    struct trial *t = trial_new(c);
    struct run_case cpu = {.name = "cpu"};
    bool ran = t->status == GPURUN_OK;

    if (ran)
        fill(t);
    for (size_t m = 0; ran && m < GPURUN_COUNT(modes); m++)
        ran = prove(t, &cpu, modes[m]);
    *runs += ran;
    *refused += !ran;
    trial_free(t);
}

/* --- the baseline ----------------------------------------------------------------------------- */

static void keep_answer(const struct run *run, char *kept[TENSORS_MAX])
{
    for (int i = 0; i < run->buffer_count; i++) {
        const struct gpurun_tensor *tensor = &run->buffers[i].declared;

        free(kept[i]);
        kept[i] = NULL;
        if (tensor->role == GPURUN_IN)
            continue;
        kept[i] = allocate(tensor->bytes, 1);
        memcpy(kept[i], run->buffers[i].tensor.host, tensor->bytes);
    }
}

static void run_cpu_once(struct trial *t, struct run_case *cpu)
{
    tensors_reset_shapes(&t->run);
    REQUIRE(tensors_poison(&t->run, false) == GPURUN_OK && case_run(&t->run, cpu) == GPURUN_OK,
            "%s", t->run.why.text);
}

/* The answer that is there has the bytes of `kept`, as far as they mean something. */
static void require_same_bytes(const struct trial *t, char *const kept[TENSORS_MAX],
                               const char *name)
{
    for (int i = 0; i < t->run.buffer_count; i++) {
        const struct gpurun_tensor *tensor = &t->run.buffers[i].tensor;

        REQUIRE(kept[i] == NULL || tensor->varies ||
                    memcmp(kept[i], tensor->host, tensor->bytes) == 0,
                "%s: two runs of one case write different bytes to %s", name, tensor->name);
    }
}

static void free_answer(const struct run *run, char *kept[TENSORS_MAX])
{
    for (int i = 0; i < run->buffer_count; i++)
        free(kept[i]);
}

START_TEST(test_cpu_gives_the_same_bytes_again)
{
    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        const struct config c = sized_config(sizes[s]);
        struct trial *t = trial_new(&c);
        struct run_case cpu = {.name = "cpu"};
        char *kept[TENSORS_MAX] = {NULL};

        REQUIRE(t->status == GPURUN_OK, "%s", t->run.why.text);
        fill(t);
        run_cpu_once(t, &cpu);
        keep_answer(&t->run, kept);
        for (int again = 0; again < 3; again++) {
            run_cpu_once(t, &cpu);
            require_same_bytes(t, kept, "cpu");
        }
        free_answer(&t->run, kept);
        trial_free(t);
    }
    report("cpu again", 4 * (int)GPURUN_COUNT(sizes), 0);
}
END_TEST

START_TEST(test_cpu_on_every_generator_size_and_offset)
{
    int runs = 0, refused = 0;

    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        struct config c = sized_config(sizes[s]);

        for (size_t g = 0; g < GPURUN_COUNT(generators); g++) {
            c.generator = generators[g];
            for (size_t o = 0; o < GPURUN_COUNT(offsets); o++) {
                c.offset = offsets[o];
                prove_cpu(&c, &runs, &refused);
            }
        }
    }
    report("cpu, generators and offsets", runs, refused);
    ck_assert_int_gt(runs, refused);
}
END_TEST

/* Calls `visit` for `base` with every value of every choice, with the others at their defaults, then for every pair of a
 * dtype and another choice. */
typedef void visit_config(const struct config *c, int *runs, int *refused);

static const char *choice_at(const struct gpurun_option *row, size_t i)
{
    static const char *const booleans[] = {"no", "yes", NULL};

    if (row->type == GPURUN_OPTION_BOOL)
        return booleans[i];
    if (row->type == GPURUN_OPTION_CHOICE || row->type == GPURUN_OPTION_DTYPE)
        return row->choices[i];
    return NULL;
}

static void visit_pairs(struct config c, uint32_t dtype, visit_config *visit, int *runs,
                        int *refused)
{
    const char *text;

    for (uint32_t i = 0; i < plugin.options.count; i++)
        for (size_t k = 0; i != dtype && (text = choice_at(row_at(i), k)) != NULL; k++) {
            struct config pair = c;

            choose(&pair, row_at(i)->name, text);
            visit(&pair, runs, refused);
        }
}

static void visit_choices(const struct config *base, visit_config *visit, int *runs, int *refused)
{
    const char *text;

    for (uint32_t i = 0; i < plugin.options.count; i++)
        for (size_t k = 0; (text = choice_at(row_at(i), k)) != NULL; k++) {
            struct config c = *base;

            choose(&c, row_at(i)->name, text);
            for (size_t g = 0; g < GPURUN_COUNT(generators); g += 5) { /* uniform and special */
                c.generator = generators[g];
                visit(&c, runs, refused);
            }
            if (row_at(i)->type == GPURUN_OPTION_DTYPE)
                visit_pairs(c, i, visit, runs, refused);
        }
}

START_TEST(test_cpu_with_every_choice)
{
    const struct config base = sized_config(sizes[0]);
    int runs = 0, refused = 0;

    visit_choices(&base, prove_cpu, &runs, &refused);
    report("cpu, choices", runs, refused);
    ck_assert(runs > refused || runs + refused == 0);
}
END_TEST

/* Calls `visit` with every size at 0 to 3, the others small. */
static void visit_tiny(visit_config *visit, int *runs, int *refused)
{
    for (uint32_t i = 0; i < plugin.options.count; i++)
        for (int64_t value = 0; value < 4 && is_size(row_at(i)); value++)
            for (size_t g = 0; g < GPURUN_COUNT(generators); g += 5) {
                struct config c = sized_config(sizes[0]);

                c.generator = generators[g];
                choose_whole(&c, row_at(i)->name, value);
                if (strcmp(row_at(i)->name, "n") == 0) {
                    visit(&c, runs, refused);
                    lower_to(&c, value);
                }
                visit(&c, runs, refused);
            }
}

START_TEST(test_cpu_on_tiny_sizes)
{
    int runs = 0, refused = 0;

    visit_tiny(prove_cpu, &runs, &refused);
    report("cpu, tiny sizes", runs, refused);
}
END_TEST

/* A tunable option changes speed, never whether the answer is right: at both ends of its range. */
static void visit_tunables(visit_config *visit, int *runs, int *refused)
{
    for (uint32_t i = 0; i < plugin.options.count; i++) {
        const struct gpurun_option *row = row_at(i);
        const double ends[] = {row->min, row->max};

        for (size_t e = 0; e < 2 && (row->flags & GPURUN_OPTION_TUNABLE); e++) {
            struct config c = sized_config(sizes[0]);

            if (row->type != GPURUN_OPTION_INT || row->max <= 0)
                continue;
            choose_whole(&c, row->name, (int64_t)ends[e]);
            visit(&c, runs, refused);
        }
    }
}

START_TEST(test_cpu_with_tunables_at_their_ends)
{
    int runs = 0, refused = 0;

    visit_tunables(prove_cpu, &runs, &refused);
    report("cpu, tunables", runs, refused);
}
END_TEST

#endif
