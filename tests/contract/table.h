/*
 * The table, and setup and teardown.
 */
#ifndef CONTRACT_TABLE_H
#define CONTRACT_TABLE_H

#include "trial.h"
#include <elf.h>

/* --- the table -------------------------------------------------------------------------------- */

static const char word_characters[] = "-abcdefghijklmnopqrstuvwxyz0123456789_";

/* A name: as in C, in lower case. */
static bool is_word(const char *text)
{
    return text != NULL && text[0] >= 'a' && text[0] <= 'z' &&
           text[strspn(text, word_characters + 1)] == '\0';
}

/* Something a person can read in one line. */
static bool is_line(const char *text)
{
    return text != NULL && text[0] > ' ' && strpbrk(text, "\n\r\t") == NULL &&
           text[strlen(text) - 1] != ' ';
}

/* The symbols that a shared object defines for others to see. */
static int count_exports(const char *bytes, bool *has_table)
{
    const Elf64_Ehdr *header = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + header->e_shoff);
    int count = 0;

    for (int i = 0; i < header->e_shnum; i++) {
        const Elf64_Sym *symbols = (const void *)(bytes + sections[i].sh_offset);
        const char *names = bytes + sections[sections[i].sh_link].sh_offset;

        if (sections[i].sh_type != SHT_DYNSYM)
            continue;
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++) {
            if (symbols[k].st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbols[k].st_info) == STB_LOCAL)
                continue;
            count++;
            *has_table = *has_table || strcmp(names + symbols[k].st_name, "gpurun_plugin") == 0;
            printf("%s exports %s\n", plugin_name, names + symbols[k].st_name);
        }
    }
    return count;
}

START_TEST(test_one_symbol_is_exported)
{
    FILE *stream = fopen(so_path, "rb");
    bool has_table = false;
    char *bytes;
    long size;

    ck_assert_ptr_nonnull(stream);
    fseek(stream, 0, SEEK_END);
    size = ftell(stream);
    rewind(stream);
    bytes = allocate((size_t)size, 1);
    ck_assert_uint_eq(fread(bytes, 1, (size_t)size, stream), (size_t)size);
    fclose(stream);
    ck_assert_int_eq(count_exports(bytes, &has_table), 1);
    ck_assert(has_table);
    free(bytes);
}
END_TEST

static void check_choices(const struct gpurun_option *row)
{
    for (size_t i = 0; row->choices[i] != NULL; i++) {
        bool is_dtype = false;

        REQUIRE(row->choices[i][0] != '\0' &&
                    strspn(row->choices[i], word_characters) == strlen(row->choices[i]),
                "'%s' is no word", row->choices[i]);
        REQUIRE(strcmp(row->choices[i], "auto") != 0, "auto is a flag, not a choice");
        for (size_t k = 0; k < i; k++)
            REQUIRE(strcmp(row->choices[i], row->choices[k]) != 0, "'%s' twice", row->choices[i]);
        for (int d = 0; d < GPURUN_DTYPE_COUNT; d++)
            is_dtype =
                is_dtype || strcmp(row->choices[i], gpurun_dtype_name((enum gpurun_dtype)d)) == 0;
        REQUIRE(row->type != GPURUN_OPTION_DTYPE || is_dtype, "'%s' is no dtype", row->choices[i]);
    }
}

START_TEST(test_options)
{
    for (uint32_t i = 0; i < plugin.options.count; i++) {
        const struct gpurun_option *row = row_at(i);
        const bool has_choices =
            row->type == GPURUN_OPTION_CHOICE || row->type == GPURUN_OPTION_DTYPE;

        snprintf(circumstances, sizeof circumstances, "option %s", row->name ? row->name : "NULL");
        REQUIRE(is_word(row->name), "its name is no word");
        REQUIRE(option_find(&plugin.options, row->name) == row, "its name is taken");
        REQUIRE(!core_knows(row->name), "its name is the core's");
        REQUIRE(row->help != NULL && is_line(row->help), "its help is no line");
        REQUIRE(row->help[strlen(row->help) - 1] != '.', "its help ends with a full stop");
        REQUIRE(row->type <= GPURUN_OPTION_TEXT, "its type is unknown");
        REQUIRE(row->offset % 8 == 0, "its field is not aligned");
        REQUIRE(row->unit == NULL || is_line(row->unit), "its unit is no line");
        REQUIRE(row->min <= row->max, "its range is empty");
        REQUIRE((row->flags & ~(unsigned)(GPURUN_OPTION_AUTO | GPURUN_OPTION_TUNABLE)) == 0,
                "a flag is unknown");
        REQUIRE(!(row->flags & GPURUN_OPTION_AUTO) ||
                    (row->type != GPURUN_OPTION_BOOL && row->type != GPURUN_OPTION_TEXT),
                "auto has no value in a yes or no, or in a text");
        REQUIRE(has_choices == (row->choices != NULL && row->choices[0] != NULL),
                "choices do not go with its type");
        if (has_choices)
            check_choices(row);
        for (uint32_t k = 0; k < i; k++)
            REQUIRE(row_at(k)->offset != row->offset, "shares its field with %s", row_at(k)->name);
    }
}
END_TEST

START_TEST(test_variants)
{
    const unsigned known = GPURUN_PEER | GPURUN_UNSORTED | GPURUN_TIES_ANY | GPURUN_FLOAT_BY_BITS;
    bool peers = false;

    for (uint32_t i = 0; i < plugin.table->variant_count; i++) {
        const struct gpurun_variant *v = plugin_variant(&plugin, i);

        snprintf(circumstances, sizeof circumstances, "variant %s", v->name ? v->name : "NULL");
        REQUIRE(is_word(v->name), "its name is no word");
        REQUIRE(plugin_find_variant(&plugin, v->name) == v, "its name is taken");
        REQUIRE(strcmp(v->name, "cpu") && strcmp(v->name, "auto") && strcmp(v->name, "all"),
                "its name means something else");
        REQUIRE(is_line(v->idea), "its idea is no line");
        REQUIRE(v->launch != NULL, "it has no launcher");
        REQUIRE(v->min_compute >= 0, "it needs less than nothing");
        REQUIRE((v->capabilities & ~known) == 0, "a capability is unknown");
        REQUIRE(!peers || (v->capabilities & GPURUN_PEER), "it stands behind a peer");
        peers = (v->capabilities & GPURUN_PEER) != 0;
    }
}
END_TEST

START_TEST(test_words_and_memory)
{
    const struct gpurun_plugin *p = plugin.table;
    struct config c = plain_config();

    ck_assert_str_eq(p->name, plugin_name);
    ck_assert(is_word(p->name));
    ck_assert(is_line(p->summary));
    ck_assert(is_line(p->memory_why));
    ck_assert_uint_eq(p->memory & ~GPURUN_MEMORY_ALL, 0);
    ck_assert((int)p->memory_default >= 0 && p->memory_default < GPURUN_MEMORY_COUNT);
    ck_assert(p->memory & GPURUN_MEMORY_BIT(p->memory_default));
    for (c.memory = 0; c.memory < GPURUN_MEMORY_COUNT; c.memory++) {
        struct trial *t = trial_new(&c);

        REQUIRE((t->status == GPURUN_OK) == ((p->memory & GPURUN_MEMORY_BIT(c.memory)) != 0), "%s",
                t->run.why.text);
        trial_free(t);
    }
}
END_TEST

/* --- setup ------------------------------------------------------------------------------------ */

static void check_tensors(const struct run *run)
{
    bool has_answer = false;

    for (int i = 0; i < run->buffer_count; i++) {
        const struct gpurun_tensor *tensor = &run->buffers[i].tensor;

        REQUIRE(is_word(tensor->name), "tensor '%s' has no good name", tensor->name);
        has_answer = has_answer || tensor->role != GPURUN_IN;
        for (int k = 0; k < i; k++)
            REQUIRE(strcmp(tensor->name, run->buffers[k].tensor.name) != 0, "two tensors %s",
                    tensor->name);
    }
    REQUIRE(has_answer, "no tensor for an answer");
}

START_TEST(test_setup_says_what_it_chose)
{
    const struct config c = plain_config();
    struct trial *t = trial_new(&c);
    const struct gpurun_work *w = &t->run.ctx.work;

    REQUIRE(t->status == GPURUN_OK, "the defaults are refused: %s", t->run.why.text);
    for (uint32_t i = 0; i < plugin.options.count; i++)
        REQUIRE(!(row_at(i)->flags & GPURUN_OPTION_AUTO) ||
                    (whole_of(t, row_at(i)) != GPURUN_AUTO &&
                     (uint64_t)whole_of(t, row_at(i)) != GPURUN_AUTO_REAL_BITS) ||
                    (row_at(i)->flags & GPURUN_OPTION_TUNABLE),
                "%s is still auto", row_at(i)->name);
    REQUIRE(isfinite(w->bytes_read) && w->bytes_read >= 0, "work: bytes_read");
    REQUIRE(isfinite(w->bytes_written) && w->bytes_written > 0, "work: bytes_written");
    REQUIRE(isfinite(w->operations) && w->operations >= 0, "work: operations");
    REQUIRE(isfinite(w->elements) && w->elements > 0, "work: elements");
    check_tensors(&t->run);
    trial_free(t);
}
END_TEST

static int calls_left;

static struct gpurun_tensor *failing_tensor(struct gpurun_ctx *ctx, const char *name,
                                            enum gpurun_role role, enum gpurun_dtype dtype,
                                            int rank, const int64_t *dims)
{
    return calls_left-- > 0 ? run_core.tensor(ctx, name, role, dtype, rank, dims) : NULL;
}

/* teardown after no setup at all, and after one whose first, second, ... tensor is not given. */
START_TEST(test_teardown_of_a_half_built_state)
{
    const struct config c = sized_config(sizes[0]);
    struct gpurun_core failing = run_core;
    int tensors, refused = 0;
    struct trial *t = trial_new(&c);

    tensors = t->run.buffer_count;
    trial_free(t);
    failing.tensor = failing_tensor;
    for (int i = -1; i < tensors; i++) {
        t = allocate(1, sizeof *t);
        default_job(t);
        ck_assert_int_eq(run_prepare(&t->run, &t->job, &plugin, &t->faults), GPURUN_OK);
        t->run.ctx.core = &failing;
        calls_left = i;
        snprintf(circumstances, sizeof circumstances, "tensor %d is not given", i);
        if (i >= 0) {
            REQUIRE(run_setup(&t->run) != GPURUN_OK, "setup does not mind");
            refused++;
        }
        trial_free(t);
    }
    report("teardown", 1, refused);
}
END_TEST

/* Every whole number as large as its range lets it be: refused or not, nothing may overflow. */
START_TEST(test_setup_with_extreme_sizes)
{
    int runs = 0, refused = 0;

    for (uint32_t i = 0; i < plugin.options.count; i++) {
        const struct gpurun_option *row = row_at(i);
        const double most = row->max > 0 && row->max < 1e18 ? row->max : 1e18;
        const int64_t values[] = {(int64_t)most, (int64_t)most - 1, (int64_t)most / 3};

        for (size_t k = 0; k < GPURUN_COUNT(values) && row->type == GPURUN_OPTION_INT; k++) {
            struct config c = plain_config();
            struct trial *t;

            choose_whole(&c, row->name, values[k]);
            t = trial_new(&c);
            runs += t->status == GPURUN_OK;
            refused += t->status != GPURUN_OK;
            trial_free(t);
        }
    }
    report("extreme sizes, setup only", runs, refused);
}
END_TEST

#endif
