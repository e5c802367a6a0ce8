/*
 * Pairs of all that can be chosen: rows of a covering array.
 */
#ifndef CONTRACT_PAIRS_H
#define CONTRACT_PAIRS_H

#include "covering.h"
#include "cpu.h"

/* --- pairs of everything ---------------------------------------------------------------------- */

/* The last one is as large as any case here: there are hundreds of rows. */
static const int64_t pair_sizes[] = {33, 1000, 4097};

/* What the factors of a row stand for; options[f] is the option of factor f, NULL for those named below. */
struct pairs {
    struct covering covering;
    struct config bases[GPURUN_COUNT(pair_sizes)];
    const struct gpurun_option *options[FACTORS_MAX];
    int size, generator, offset, memory, variant; /* factors; variant -1 on the CPU */
    int64_t memories[GPURUN_MEMORY_COUNT];
    uint32_t variants[CASES_MAX]; /* by the variant factor's value */
};

static bool is_wanted(const char *variant)
{
    for (size_t i = 0; only_variants != NULL && only_variants[i] != NULL; i++)
        if (strcmp(only_variants[i], variant) == 0)
            return true;
    return only_variants == NULL;
}

static struct pairs *pairs_new(bool on_device)
{
    struct pairs *p = allocate(1, sizeof *p);
    struct covering *c = &p->covering;
    int memories = 0, variants = 0;

    for (size_t s = 0; s < GPURUN_COUNT(pair_sizes); s++) {
        const bool is_last = s + 1 == GPURUN_COUNT(pair_sizes);

        p->bases[s] = config_within(pair_sizes[s], is_last ? &MOST : &MOST_PAIRED);
        lower_to(&p->bases[s], pair_sizes[s]);
    }
    for (uint32_t i = 0; i < plugin.options.count; i++) {
        int values = 0;

        while (choice_at(row_at(i), (size_t)values) != NULL)
            values++;
        if (values > 0)
            p->options[covering_add(c, values)] = row_at(i);
    }
    for (int64_t m = 0; m < GPURUN_MEMORY_COUNT; m++)
        if (plugin.table->memory & GPURUN_MEMORY_BIT(m))
            p->memories[memories++] = m;
    p->size = covering_add(c, (int)GPURUN_COUNT(pair_sizes));
    p->generator = covering_add(c, (int)GPURUN_COUNT(generators));
    p->offset = covering_add(c, (int)GPURUN_COUNT(offsets));
    p->memory = covering_add(c, memories);
    for (uint32_t i = 0; on_device && i < plugin.table->variant_count; i++)
        if (is_wanted(plugin_variant(&plugin, i)->name))
            p->variants[variants++] = i;
    p->variant = on_device ? covering_add(c, variants) : -1;
    c->random = 1;
    return p;
}

static struct config config_of_row(const struct pairs *p, const int *row)
{
    struct config c = p->bases[row[p->size]];

    for (int f = 0; f < p->covering.count; f++)
        if (p->options[f] != NULL)
            choose(&c, p->options[f]->name, choice_at(p->options[f], (size_t)row[f]));
    c.generator = generators[row[p->generator]];
    c.offset = offsets[row[p->offset]];
    c.memory = p->memories[row[p->memory]];
    return c;
}

/* What is tried of a row: `ran` is told of each variant that ran, or of -1 for the CPU. */
typedef void ran_in_row(struct pairs *p, int *row, int variant);
typedef void try_row(const struct config *c, struct pairs *p, int *row, ran_in_row *ran);

static void row_ran(struct pairs *p, int *row, int variant)
{
    int of_variant[FACTORS_MAX];

    memcpy(of_variant, row, sizeof of_variant);
    for (int v = 0; p->variant >= 0 && v < p->covering.values[p->variant]; v++)
        if ((int)p->variants[v] == variant)
            of_variant[p->variant] = v;
    covering_covers(&p->covering, of_variant);
}

static void try_pairs(const char *group, bool on_device, try_row *try)
{
    struct pairs *p = pairs_new(on_device);
    int row[FACTORS_MAX] = {0}, rows = 0, covered, given_up;

    for (; covering_next(&p->covering, row); rows++) {
        const struct config c = config_of_row(p, row);

        try(&c, p, row, row_ran);
        covering_tried(&p->covering, row);
    }
    covering_count(&p->covering, &covered, &given_up);
    printf("%s %s: %d pairs in %d rows, %d pairs refused with a reason", plugin_name, group,
           covered, rows, given_up);
    end_line();
    REQUIRE(covered > given_up, "more pairs are refused than run");
    free(p);
}

/* Proved in both modes, then run twice more for its bytes. */
static void try_row_on_cpu(const struct config *c, struct pairs *p, int *row, ran_in_row *ran)
{
    struct trial *t = trial_new(c);
    struct run_case cpu = {.name = "cpu"};
    char *kept[TENSORS_MAX] = {NULL};

    if (t->status == GPURUN_OK) {
        fill(t);
        for (size_t m = 0; m < GPURUN_COUNT(modes); m++)
            REQUIRE(prove(t, &cpu, modes[m]), "%s", t->run.why.text);
        run_cpu_once(t, &cpu);
        keep_answer(&t->run, kept);
        run_cpu_once(t, &cpu);
        require_same_bytes(t, kept, "cpu");
        free_answer(&t->run, kept);
        ran(p, row, -1);
    }
    trial_free(t);
}

START_TEST(test_cpu_pairs)
{
    try_pairs("cpu, pairs", false, try_row_on_cpu);
}
END_TEST

#endif
