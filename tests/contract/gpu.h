/*
 * The variants on a device.
 */
#ifndef CONTRACT_GPU_H
#define CONTRACT_GPU_H

#include "shapes.h"

/* --- on the device ---------------------------------------------------------------------------- */

static struct {
    int runs, sizes, unsupported;
    int same_bytes,
        wavering;     /* cases that were run twice for their bytes; reals of a peer that differed */
    char reason[200]; /* the last */
} tallies[CASES_MAX];

/* Scratch may hold anything: what an earlier run left must not matter. */
static void spoil_scratch(struct run *run, int byte)
{
    struct why why;

    if (run->scratch != NULL)
        REQUIRE(device_api.fill(device, run->scratch, byte, run->scratch_bytes, &why) == GPURUN_OK,
                "%s", why.text);
}

/* One run; verify then leaves of the answer what means something. */
static void run_on_device_once(struct trial *t, struct run_case *c, int scratch)
{
    tensors_reset_shapes(&t->run);
    spoil_scratch(&t->run, scratch);
    c->status = CASE_PASSED;
    REQUIRE(tensors_poison(&t->run, true) == GPURUN_OK && case_run(&t->run, c) == GPURUN_OK &&
                tensors_download(&t->run) == GPURUN_OK && case_judge(&t->run, c) == GPURUN_OK,
            "%s: %s", c->name, t->run.why.text);
    REQUIRE(c->status == CASE_PASSED, "%s, run again: %s", c->name, c->reason);
}

/* Two runs of one case, bit for bit, unless the variant promises no order or has a right to waver; of a
 * peer's reals it is noted only. */
static void check_same_bytes(struct trial *t, struct run_case *c, uint32_t i)
{
    char *kept[TENSORS_MAX] = {NULL};

    if (c->variant->capabilities & (GPURUN_UNSORTED | GPURUN_TIES_ANY))
        return;
    run_on_device_once(t, c, 0x77);
    keep_answer(&t->run, kept);
    run_on_device_once(t, c, 0x88);
    for (int b = 0; b < t->run.buffer_count && (c->variant->capabilities & GPURUN_PEER); b++) {
        const struct gpurun_tensor *tensor = &t->run.buffers[b].tensor;

        if (kept[b] == NULL || !gpurun_dtype_is_real(tensor->dtype) ||
            memcmp(kept[b], tensor->host, tensor->bytes) == 0)
            continue;
        tallies[i].wavering++;
        memcpy(kept[b], tensor->host, tensor->bytes);
    }
    require_same_bytes(t, kept, c->name);
    tallies[i].same_bytes++;
    free_answer(&t->run, kept);
}

/* A case of the variant, with what it needs; NULL where it is refused, with a reason. */
static struct run_case *start_variant(struct trial *t, uint32_t i)
{
    struct run_case *c = &t->run.cases[t->run.case_count];
    enum gpurun_status status;

    if (!is_wanted(plugin_variant(&plugin, i)->name))
        return NULL;
    t->run.case_count++;
    *c = (struct run_case){.variant = plugin_variant(&plugin, i)};
    c->name = c->variant->name;
    t->run.why.text[0] = '\0';
    status = case_prepare(&t->run, c);
    if (status == GPURUN_UNSUPPORTED) {
        REQUIRE(t->run.why.text[0] != '\0', "%s is unsupported without a reason", c->name);
        tallies[i].unsupported++;
        snprintf(tallies[i].reason, sizeof tallies[i].reason, "%s", t->run.why.text);
        return NULL;
    }
    REQUIRE(status == GPURUN_OK, "%s: status %d: %s", c->name, (int)status, t->run.why.text);
    return c;
}

/* One variant: it is refused with a reason, or passes twice in both modes, its absence fails, and it gives
 * the same bytes again. */
static bool prove_variant(struct trial *t, uint32_t i)
{
    struct run_case *c = start_variant(t, i);

    if (c == NULL)
        return false;
    for (int again = 0; again < 2; again++)
        for (size_t m = 0; m < GPURUN_COUNT(modes); m++) {
            spoil_scratch(&t->run, again ? 0xEE : 0x00);
            if (!prove(t, c, modes[m]))
                return false;
        }
    if (!is_empty(&t->run) && has_own_output(&t->run))
        check_idle_fails(t, c);
    check_same_bytes(t, c, i);
    tallies[i].runs++;
    return true;
}

static void prove_gpu(const struct config *c, int *runs, int *refused)
{
    struct trial *t = trial_new(c);

    if (t->status == GPURUN_OK)
        fill(t);
    for (uint32_t i = 0; i < plugin.table->variant_count; i++) {
        const bool ran = t->status == GPURUN_OK && prove_variant(t, i);

        *runs += ran;
        *refused += !ran;
    }
    trial_free(t);
}

START_TEST(test_gpu_memory_strategies)
{
    int runs = 0, refused = 0;

    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        struct config c = sized_config(sizes[s]);

        for (c.memory = 0; c.memory < GPURUN_MEMORY_COUNT; c.memory++)
            for (size_t o = 0; o < GPURUN_COUNT(offsets); o++) {
                c.offset = offsets[o];
                if (plugin.table->memory & GPURUN_MEMORY_BIT(c.memory))
                    prove_gpu(&c, &runs, &refused);
            }
    }
    report("gpu, memory strategies and offsets", runs, refused);
}
END_TEST

START_TEST(test_gpu_generators)
{
    int runs = 0, refused = 0;

    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        struct config c = sized_config(sizes[s]);

        for (size_t g = 0; g < GPURUN_COUNT(generators); g++) {
            c.generator = generators[g];
            c.offset = offsets[g % GPURUN_COUNT(offsets)];
            prove_gpu(&c, &runs, &refused);
        }
    }
    report("gpu, generators", runs, refused);
}
END_TEST

START_TEST(test_gpu_choices)
{
    const struct config base = sized_config(sizes[1]);
    int runs = 0, refused = 0;

    visit_choices(&base, prove_gpu, &runs, &refused);
    report("gpu, choices", runs, refused);
}
END_TEST

START_TEST(test_gpu_tiny_sizes)
{
    int runs = 0, refused = 0;

    visit_tiny(prove_gpu, &runs, &refused);
    report("gpu, tiny sizes", runs, refused);
}
END_TEST

START_TEST(test_gpu_tunables)
{
    int runs = 0, refused = 0;

    visit_tunables(prove_gpu, &runs, &refused);
    report("gpu, tunables", runs, refused);
}
END_TEST

/* As large as shrinking leaves the defaults, and odd sizes on the way there. */
START_TEST(test_gpu_larger_sizes)
{
    static const int64_t larger[] = {65537, 262143, 1000003};
    int runs = 0, refused = 0;

    for (size_t s = 0; s < GPURUN_COUNT(larger); s++) {
        struct config c = sized_config(larger[s]);

        prove_gpu(&c, &runs, &refused);
        c.offset = 1;
        c.generator = "few-distinct count=3";
        prove_gpu(&c, &runs, &refused);
    }
    report("gpu, larger sizes", runs, refused);
}
END_TEST

/* All variants, as they share the data; where a variant's own pair was refused before, that variant alone. */
static void try_row_on_device(const struct config *c, struct pairs *p, int *row, ran_in_row *ran)
{
    const bool is_own = p->covering.is_retry && p->covering.b == p->variant;
    struct trial *t = trial_new(c);

    if (t->status == GPURUN_OK)
        fill(t);
    for (uint32_t i = 0; i < plugin.table->variant_count && t->status == GPURUN_OK; i++)
        if ((!is_own || p->variants[row[p->variant]] == i) && prove_variant(t, i))
            ran(p, row, (int)i);
    trial_free(t);
}

START_TEST(test_gpu_pairs)
{
    try_pairs("gpu, pairs", true, try_row_on_device);
}
END_TEST

/* Every variant once, over scratch that an earlier one has left. */
static bool prove_size_on_device(struct trial *t, int64_t mode)
{
    bool any = false;

    for (uint32_t i = 0; i < plugin.table->variant_count; i++) {
        struct run_case *c = start_variant(t, i);
        const bool ran = c != NULL && prove(t, c, mode);

        tallies[i].sizes += ran;
        any = any || ran;
    }
    return any;
}

START_TEST(test_gpu_sizes)
{
    try_sizes("gpu, sizes", prove_size_on_device);
}
END_TEST

START_TEST(test_gpu_every_variant_ran)
{
    for (uint32_t i = 0; i < plugin.table->variant_count; i++) {
        const struct gpurun_variant *v = plugin_variant(&plugin, i);

        if (!is_wanted(v->name))
            continue;
        printf("%s variant %s: %d runs, %d sizes, %d with the same bytes again%s, %d "
               "unsupported%s%s\n",
               plugin_name, v->name, tallies[i].runs, tallies[i].sizes, tallies[i].same_bytes,
               tallies[i].wavering ? " but for reals" : "", tallies[i].unsupported,
               tallies[i].unsupported ? ": " : "", tallies[i].reason);
        fflush(stdout);
        strcpy(circumstances, v->name);
        REQUIRE(tallies[i].runs + tallies[i].sizes + tallies[i].unsupported > 0,
                "it was never tried");
    }
}
END_TEST

#endif
