/*
 * What every plugin must keep, whatever it computes:
 *
 *     test_contract [--gpu] [--seconds S] PLUGIN.so [VARIANT...]
 *
 * --seconds is how long sizes are tried; variants are all unless some are named.
 *
 * Nothing here knows a plugin. Options come from its table, sizes are made small by halving what its setup
 * chose, right is what its verify says, and verify itself is held to account with answers that are spoiled
 * or missing. Without --gpu each test is a process of its own; with --gpu all is one process, as CUDA does
 * not live through a fork, and without a device it is skipped.
 */
#include "covering.h"
#include "gpurun/half.h"
#include "gpurun/key.h"
#include "job/memory.h"
#include "job/value.h"
#include "run/rounds.h"
#include "run/selftest.h"
#include "run/tensors.h"
#include "sizes.h"
#include <check.h>
#include <elf.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS_MAX = 64,
    HALVINGS = 60,     /* from any 64-bit size down to 1 */
    SMALL = 32,        /* a whole-number option at or below it is not halved */
    SPOILT_MAX = 4097, /* elements of one tensor that are spoilt, evenly spread */
};

static const double MOST_OPERATIONS = 5e6, MOST_BYTES = 3e7; /* of one run, after shrinking */
static const double SPOIL_S = 1;                             /* per tensor and mode of proof */

static const int64_t sizes[] = {1000, 4097};
static const int64_t offsets[] = {0, 1, 3};
static const char *const generators[] = {
    "uniform", "ascending", "descending", "constant value=3", "few-distinct count=3",
    "special", "normal",    "zipf"};
static const int64_t modes[] = {VERIFY_FULL, VERIFY_CERTIFY};

static const double SIZES_CPU_S = 2, SIZES_GPU_S = 12;

static const char *so_path;
static double sizes_s;             /* how long sizes are tried */
static char *const *only_variants; /* NULL: all; ends with NULL */
static char plugin_name[NAME_MAX + 1];
static struct plugin plugin;
static struct device *device; /* NULL: on the CPU */
static struct device_info device_info;

/* --- failing with its circumstances ----------------------------------------------------------------- */

static char circumstances[600];

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            char text_[1500];                                                                      \
            snprintf(text_, sizeof text_, __VA_ARGS__);                                            \
            ck_abort_msg("%s: %s: %s", plugin_name, circumstances, text_);                         \
        }                                                                                          \
    } while (0)

/* One line per group, so that a log tells what was covered. */
static void report(const char *group, int runs, int refused)
{
    printf("%s %s: %d runs%s", plugin_name, group, runs,
           runs + refused == 0 ? " (none apply)" : "");
    if (refused > 0)
        printf(", %d refused with a reason", refused);
    printf("\n");
    fflush(stdout);
}

/* --- a job made of choices -------------------------------------------------------------------------- */

struct config {
    struct {
        const char *key;
        char text[48];
    } set[OPTIONS_MAX];
    size_t count;
    const char *generator;
    int64_t offset, memory, threads;
};

struct trial {
    struct job job;
    struct setting settings[OPTIONS_MAX];
    struct binding inputs[TENSORS_MAX];
    struct run run;
    struct faults faults;
    enum gpurun_status status; /* of prepare and setup */
};

static struct config plain_config(void)
{
    return (struct config){.generator = "uniform", .memory = GPURUN_AUTO, .threads = GPURUN_AUTO};
}

static void choose(struct config *c, const char *key, const char *text)
{
    size_t i = 0;

    while (i < c->count && strcmp(c->set[i].key, key) != 0)
        i++;
    REQUIRE(i < OPTIONS_MAX, "more options than this test has room for");
    c->set[i].key = key;
    snprintf(c->set[i].text, sizeof c->set[i].text, "%s", text);
    c->count += i == c->count;
}

static void choose_whole(struct config *c, const char *key, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", (long long)value);
    choose(c, key, text);
}

static void describe(const struct config *c)
{
    int used = snprintf(circumstances, sizeof circumstances, "input %s, offset %lld, memory %s",
                        c->generator, (long long)c->offset,
                        c->memory == GPURUN_AUTO ? "auto" : memory_names[c->memory]);

    for (size_t i = 0; i < c->count && used < (int)sizeof circumstances; i++)
        used += snprintf(circumstances + used, sizeof circumstances - (size_t)used, ", %s = %s",
                         c->set[i].key, c->set[i].text);
}

static void default_job(struct trial *t)
{
    struct why why;

    t->job = (struct job){.name = plugin_name, .settings = t->settings, .inputs = t->inputs};
    t->job.where = (struct origin){"contract", 1};
    option_set_defaults(&core_options_table, &t->job.core, &why);
}

/* Options and setup, with the input tensors that an earlier setup asked for bound to the generator. */
static void prepare(struct trial *t, const struct config *c, const char *const *names, size_t count)
{
    default_job(t);
    t->job.core.offset = c->offset;
    t->job.core.memory = c->memory;
    t->job.core.threads = c->threads;
    for (size_t i = 0; i < c->count; i++)
        t->settings[t->job.setting_count++] = (struct setting){
            .key = c->set[i].key, .text = c->set[i].text, .where = {"contract", 2}};
    for (size_t i = 0; i < count; i++)
        t->inputs[t->job.input_count++] =
            (struct binding){.key = "input", .tensor = names[i], .text = c->generator};
    t->status = run_prepare(&t->run, &t->job, &plugin, &t->faults);
    if (t->status != GPURUN_OK) {
        run_fail(&t->run, t->status, "%s", t->faults.texts[0]);
        return;
    }
    t->run.device = device;
    t->run.device_info = device_info;
    t->run.ctx.device = device_info.limits;
    t->run.ctx.stream = device ? device_api.stream(device) : NULL;
    t->status = run_setup(&t->run);
}

static void trial_free(struct trial *t)
{
    tensors_free(&t->run);
    for (int i = 0; i < t->run.case_count && device != NULL; i++)
        device_api.release(device, t->run.cases[i].state);
    if (device != NULL)
        device_api.release(device, t->run.scratch);
    run_finish(&t->run);
    faults_free(&t->faults);
    free(t);
}

/* A failed setup must say why; whether failing is right is the caller's to judge. */
static struct trial *trial_new(const struct config *c)
{
    struct trial *first = allocate(1, sizeof *first), *t = allocate(1, sizeof *t);
    const char *names[TENSORS_MAX];
    size_t count = 0;

    describe(c);
    prepare(first, c, NULL, 0);
    for (int i = 0; first->status == GPURUN_OK && i < first->run.buffer_count; i++)
        if (first->run.buffers[i].tensor.role != GPURUN_OUT)
            names[count++] = first->run.buffers[i].tensor.name;
    trial_free(first);
    prepare(t, c, names, count);
    REQUIRE(t->status == GPURUN_OK || t->run.why.text[0] != '\0', "setup failed without a reason");
    REQUIRE(t->status == GPURUN_OK || t->status == GPURUN_INVALID ||
                t->status == GPURUN_UNSUPPORTED,
            "setup failed with status %d: %s", (int)t->status, t->run.why.text);
    return t;
}

/* --- making it small ------------------------------------------------------------------------------------- */

static const struct gpurun_option *row_at(uint32_t i)
{
    return option_at(&plugin.options, i);
}

/* A whole number that may change the size of the problem. */
static bool is_size(const struct gpurun_option *row)
{
    return row->type == GPURUN_OPTION_INT && !(row->flags & GPURUN_OPTION_TUNABLE);
}

static int64_t whole_of(const struct trial *t, const struct gpurun_option *row)
{
    return *(const int64_t *)(const void *)((const char *)t->run.ctx.options + row->offset);
}

static bool is_small(const struct gpurun_work *w)
{
    return w->operations <= MOST_OPERATIONS && w->bytes_read + w->bytes_written <= MOST_BYTES;
}

/* Halves what setup chose, to odd numbers; false when there is nothing left to halve. */
static bool halve(struct config *c, const struct trial *t)
{
    bool changed = false;

    for (uint32_t i = 0; i < plugin.options.count; i++)
        if (is_size(row_at(i)) && whole_of(t, row_at(i)) > SMALL) {
            choose_whole(c, row_at(i)->name, whole_of(t, row_at(i)) / 2 | 1);
            changed = true;
        }
    return changed;
}

static void shrink(struct config *c)
{
    for (int i = 0; i < HALVINGS; i++) {
        struct trial *t = trial_new(c);
        const bool done = t->status != GPURUN_OK || is_small(&t->run.ctx.work) || !halve(c, t);

        trial_free(t);
        if (done)
            return;
    }
}

/* The plugin at its defaults, with n where there is one, and small. */
static struct config sized_config(int64_t n)
{
    struct config c = plain_config();

    if (option_find(&plugin.options, "n") != NULL)
        choose_whole(&c, "n", n);
    shrink(&c);
    return c;
}

/* Where another size stands above n, it is lowered to it: k of a top-k, say. */
static void lower_to(struct config *c, int64_t n)
{
    for (uint32_t i = 0; i < plugin.options.count; i++) {
        const struct gpurun_option *row = row_at(i);
        int64_t value;
        struct why why;

        if (!is_size(row) || strcmp(row->name, "n") == 0 ||
            value_parse_int(row->def, &value, &why) != GPURUN_OK || value <= n)
            continue;
        choose_whole(c, row->name, (double)n < row->min ? (int64_t)row->min : n);
    }
}

/* --- the table ----------------------------------------------------------------------------------------------- */

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

/* --- setup ----------------------------------------------------------------------------------------------------- */

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

/* --- proving one case -------------------------------------------------------------------------------------------- */

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

/* --- the baseline -------------------------------------------------------------------------------------------------- */

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

static bool is_off(const struct trial *t, const char *key)
{
    const struct gpurun_option *row = option_find(&plugin.options, key);

    return row != NULL && row->type == GPURUN_OPTION_BOOL && whole_of(t, row) == 0;
}

/* Another answer is as right: reals where an option `deterministic` says no, any order where `sorted` does. */
static bool may_waver(const struct trial *t, const struct gpurun_tensor *tensor)
{
    return is_off(t, "sorted") ||
           (is_off(t, "deterministic") && gpurun_dtype_is_real(tensor->dtype));
}

/* The answer that is there has the bytes of `kept`, as far as they mean something. */
static void require_same_bytes(const struct trial *t, char *const kept[TENSORS_MAX],
                               const char *name)
{
    for (int i = 0; i < t->run.buffer_count; i++) {
        const struct gpurun_tensor *tensor = &t->run.buffers[i].tensor;

        REQUIRE(kept[i] == NULL || may_waver(t, tensor) ||
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

/* Calls `visit` for every value of every choice, with the others at their defaults, then for every pair of a
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

static void visit_choices(int64_t n, visit_config *visit, int *runs, int *refused)
{
    const struct config base = sized_config(n);
    const char *text;

    for (uint32_t i = 0; i < plugin.options.count; i++)
        for (size_t k = 0; (text = choice_at(row_at(i), k)) != NULL; k++) {
            struct config c = base;

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
    int runs = 0, refused = 0;

    visit_choices(sizes[0], prove_cpu, &runs, &refused);
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

/* --- pairs of everything ------------------------------------------------------------------------------------------------ */

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
        p->bases[s] = sized_config(pair_sizes[s]);
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
    printf("%s %s: %d pairs in %d rows, %d pairs refused with a reason\n", plugin_name, group,
           covered, rows, given_up);
    fflush(stdout);
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

/* --- sizes ------------------------------------------------------------------------------------------------------------------- */

enum { DIMENSIONS_MAX = 6, OTHERS_MOST = 40 };

struct shapes {
    struct sizes sizes;
    const struct gpurun_option *dimensions[DIMENSIONS_MAX];
    size_t count;
    size_t driven; /* the dimension that gets the size */
    int runs, refused, too_large;
};

/* The elements of the k-th input, -1 behind the last. */
static int64_t input_elems(const struct run *run, int k)
{
    for (int i = 0; i < run->buffer_count; i++)
        if (run->buffers[i].tensor.role != GPURUN_OUT && k-- == 0)
            return run->buffers[i].tensor.elems;
    return -1;
}

static bool same_inputs(const struct run *a, const struct run *b)
{
    for (int k = 0; k < TENSORS_MAX; k++)
        if (input_elems(a, k) != input_elems(b, k))
            return false;
    return true;
}

static bool same_work(const struct gpurun_work *a, const struct gpurun_work *b)
{
    const double changes = fabs(a->bytes_read - b->bytes_read) +
                           fabs(a->bytes_written - b->bytes_written) +
                           fabs(a->operations - b->operations);

    return !(changes > 0);
}

/* A dimension is a whole number that changes how much goes in and how much work that is: padding is none. */
static bool is_dimension(const struct config *base, const struct trial *at_base,
                         const struct gpurun_option *row)
{
    bool changes = false;

    for (int64_t step = -2; step <= 2 && !changes && is_size(row); step++) {
        struct config c = *base;
        struct trial *t;

        choose_whole(&c, row->name, whole_of(at_base, row) + step);
        t = trial_new(&c);
        changes = t->status == GPURUN_OK && !same_inputs(&t->run, &at_base->run) &&
                  !same_work(&t->run.ctx.work, &at_base->run.ctx.work);
        trial_free(t);
    }
    return changes;
}

static struct shapes *shapes_new(void)
{
    struct shapes *s = allocate(1, sizeof *s);
    const struct config base = plain_config();
    struct trial *t = trial_new(&base);

    REQUIRE(t->status == GPURUN_OK, "%s", t->run.why.text);
    for (uint32_t i = 0; i < plugin.options.count && s->count < DIMENSIONS_MAX; i++)
        if (is_dimension(&base, t, row_at(i)))
            s->dimensions[s->count++] = row_at(i);
    trial_free(t);
    sizes_start(&s->sizes);
    return s;
}

static int64_t within(const struct gpurun_option *row, int64_t value)
{
    if (row->max > 0 && (double)value > row->max)
        return (int64_t)row->max;
    return (double)value < row->min ? (int64_t)row->min : value;
}

/* The driven dimension gets the size and the others are few, or, at random, all share the elements. */
static void choose_shape(struct shapes *s, struct config *c, enum size_stream stream, int64_t size)
{
    int64_t left = size, value, smallest = size;

    for (size_t i = 0; i < s->count; i++) {
        const struct gpurun_option *row = s->dimensions[(s->driven + i) % s->count];

        if (s->count == 1)
            value = size;
        else if (stream == SIZES_RANDOM)
            value = i + 1 < s->count ? sizes_draw_any(&s->sizes, left > 0 ? left : 1) : left;
        else
            value = i == 0 ? size : 1 + (int64_t)sizes_draw(&s->sizes, OTHERS_MOST);
        value = within(row, value);
        left /= value > 0 ? value : 1;
        smallest = value < smallest ? value : smallest;
        choose_whole(c, row->name, value);
    }
    for (uint32_t i = 0; i < plugin.options.count; i++) {
        int64_t value_by_default;
        struct why why;
        bool is_chosen = false;

        for (size_t k = 0; k < s->count; k++)
            is_chosen = is_chosen || s->dimensions[k] == row_at(i);
        if (!is_chosen && is_size(row_at(i)) &&
            value_parse_int(row_at(i)->def, &value_by_default, &why) == GPURUN_OK &&
            value_by_default > smallest)
            choose_whole(c, row_at(i)->name, within(row_at(i), smallest));
    }
}

/* The dimensions that are not driven become 1. */
static void make_thin(const struct shapes *s, struct config *c)
{
    for (size_t i = 0; i < s->count; i++)
        if (i != s->driven)
            choose_whole(c, s->dimensions[i]->name, within(s->dimensions[i], 1));
}

/* The size as a job: data, place and mode of proof change with it. Its work stays small, or NULL. */
static struct trial *trial_of_size(struct shapes *s, enum size_stream stream, int64_t size,
                                   int64_t *mode)
{
    static const char *const data[] = {"uniform", "few-distinct count=3", "uniform", "descending",
                                       "normal"};
    const int64_t turn = s->sizes.next[stream];
    struct config c = plain_config();
    struct trial *t;

    c.generator = data[turn % GPURUN_COUNT(data)];
    c.offset = offsets[turn % GPURUN_COUNT(offsets)];
    c.threads = turn % 8 == 0 ? GPURUN_AUTO : 1;
    *mode = modes[turn / 2 % GPURUN_COUNT(modes)];
    choose_shape(s, &c, stream, size);
    t = trial_new(&c);
    if (t->status == GPURUN_OK && !is_small(&t->run.ctx.work) && s->count > 1) {
        trial_free(t);
        make_thin(s, &c);
        t = trial_new(&c);
    }
    if (t->status != GPURUN_OK || is_small(&t->run.ctx.work))
        return t;
    trial_free(t);
    return NULL;
}

typedef bool try_trial(struct trial *t, int64_t mode);

static void try_shape(struct shapes *s, enum size_stream stream, int64_t size, try_trial *try)
{
    int64_t mode;
    struct trial *t = trial_of_size(s, stream, size, &mode);
    bool ran = false;

    s->too_large += t == NULL;
    if (t == NULL)
        return;
    if (t->status == GPURUN_OK) {
        fill(t);
        ran = try(t, mode);
    }
    s->runs += ran;
    s->refused += !ran;
    trial_free(t);
}

/* Each dimension is driven to the size; at random they share it, in another order each time. */
static void try_size(struct shapes *s, enum size_stream stream, int64_t size, try_trial *try)
{
    for (size_t i = 0; i < s->count; i++) {
        s->driven = stream == SIZES_RANDOM ? (s->driven + 1) % s->count : i;
        try_shape(s, stream, size, try);
        if (stream == SIZES_RANDOM)
            break;
    }
}

/* The stream that has had least of the time and is not at its end; SIZES_STREAMS when all are. */
static int stream_in_need(const double *spent_s, const bool *is_done)
{
    int least = SIZES_STREAMS;

    for (int i = 0; i < SIZES_STREAMS; i++)
        if (!is_done[i] && (least == SIZES_STREAMS || spent_s[i] < spent_s[least]))
            least = i;
    return least;
}

static void try_sizes(const char *group, try_trial *try)
{
    struct shapes *s = shapes_new();
    double spent_s[SIZES_STREAMS] = {0};
    bool is_done[SIZES_STREAMS] = {s->count == 0, s->count == 0, s->count == 0};
    const double start = now_s();
    int stream;

    /* On a slow machine the first sizes, which may all be refused, are not yet a verdict. */
    while (now_s() - start < (s->runs > s->refused ? sizes_s : 10 * sizes_s) &&
           (stream = stream_in_need(spent_s, is_done)) != SIZES_STREAMS) {
        const double before = now_s();
        const int64_t size = sizes_next(&s->sizes, (enum size_stream)stream);

        if (size < 0)
            is_done[stream] = true;
        else
            try_size(s, (enum size_stream)stream, size, try);
        spent_s[stream] += now_s() - before;
    }
    printf("%s %s: %d runs, %d refused with a reason, %d too large, %zu dimensions; %lld first "
           "sizes, %lld of %lld edges, %lld at random\n",
           plugin_name, group, s->runs, s->refused, s->too_large, s->count,
           (long long)s->sizes.next[SIZES_EVERY], (long long)s->sizes.next[SIZES_EDGES],
           (long long)s->sizes.edge_count, (long long)s->sizes.next[SIZES_RANDOM]);
    fflush(stdout);
    REQUIRE(s->count == 0 || s->runs > s->refused, "more sizes are refused than run");
    free(s);
}

static bool prove_size_on_cpu(struct trial *t, int64_t mode)
{
    struct run_case cpu = {.name = "cpu"};

    return prove(t, &cpu, mode);
}

START_TEST(test_cpu_sizes)
{
    try_sizes("cpu, sizes", prove_size_on_cpu);
}
END_TEST

/* --- verify -------------------------------------------------------------------------------------------------------------- */

START_TEST(test_a_missing_answer_fails)
{
    int runs = 0;

    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        const struct config c = sized_config(sizes[s]);
        struct trial *t = trial_new(&c);
        struct run_case cpu = {.name = "cpu"};

        REQUIRE(t->status == GPURUN_OK, "%s", t->run.why.text);
        fill(t);
        check_idle_fails(t, &cpu); /* before any right answer, and after one */
        prove(t, &cpu, VERIFY_FULL);
        check_idle_fails(t, &cpu);
        runs += 2;
        trial_free(t);
    }
    report("verify, nothing done", runs, 0);
}
END_TEST

enum { SPOIL_WAYS = 3 };

static double get_real(enum gpurun_dtype dtype, const void *element)
{
    float narrow;
    uint16_t word;
    double real;

    switch (dtype) {
    case GPURUN_FLOAT:
        memcpy(&narrow, element, sizeof narrow);
        return (double)narrow;
    case GPURUN_HALF:
    case GPURUN_BFLOAT16:
        memcpy(&word, element, sizeof word);
        return (double)(dtype == GPURUN_HALF ? gpurun_half_to_float(word)
                                             : gpurun_bfloat16_to_float(word));
    default:
        memcpy(&real, element, sizeof real);
        return real;
    }
}

static void put_real(enum gpurun_dtype dtype, void *element, double real)
{
    const float narrow = (float)real;
    uint16_t word;

    switch (dtype) {
    case GPURUN_FLOAT:
        memcpy(element, &narrow, sizeof narrow);
        break;
    case GPURUN_HALF:
    case GPURUN_BFLOAT16:
        word = dtype == GPURUN_HALF ? gpurun_half_from_double(real)
                                    : gpurun_bfloat16_from_double(real);
        memcpy(element, &word, sizeof word);
        break;
    default:
        memcpy(element, &real, sizeof real);
        break;
    }
}

/* Another value in one element: for reals NaN, infinity and a thousand times off, for integers the lowest
 * bit, the top bits and the poison. False when it is the same as before. */
static bool spoil(enum gpurun_dtype dtype, void *element, int way)
{
    const size_t size = gpurun_dtype_bytes(dtype);
    unsigned char before[8], *bytes = element;
    double real;

    memcpy(before, element, size);
    if (gpurun_dtype_is_real(dtype)) {
        real = get_real(dtype, element);
        if (!isfinite(real))
            real = 0;
        else
            real = way == 0 ? NAN : way == 1 ? INFINITY : real + 1000 * (fabs(real) + 1);
        put_real(dtype, element, real);
    } else if (way == 0) {
        bytes[0] ^= 0x01;
    } else if (way == 1) {
        bytes[size - 1] ^= 0xC0;
    } else {
        memset(bytes, 0xA5, size);
    }
    return memcmp(before, bytes, size) != 0;
}

static void put_back(struct run *run, char *const kept[TENSORS_MAX])
{
    tensors_reset_shapes(run);
    for (int i = 0; i < run->buffer_count; i++)
        if (kept[i] != NULL)
            memcpy(run->buffers[i].tensor.host, kept[i], run->buffers[i].declared.bytes);
}

static bool judge_passes(struct trial *t, struct run_case *c)
{
    c->status = CASE_PASSED;
    REQUIRE(case_judge(&t->run, c) == GPURUN_OK, "a spoilt answer is not judged: %s",
            t->run.why.text);
    return c->status == CASE_PASSED;
}

/* One tensor, `elems` elements of which mean something; as many of them as time allows. */
static int spoil_tensor(struct trial *t, int b, int64_t elems, char *const kept[TENSORS_MAX])
{
    struct gpurun_tensor *tensor = &t->run.buffers[b].tensor;
    const int64_t step = elems / SPOILT_MAX + 1;
    const double start = now_s();
    struct run_case cpu = {.name = "cpu"};
    int count = 0;

    for (int64_t i = 0; i<elems; i += now_s() - start> SPOIL_S ? elems / 16 + 1 : step)
        for (int way = 0; way < SPOIL_WAYS; way++) {
            put_back(&t->run, kept);
            if (!spoil(tensor->dtype,
                       (char *)tensor->host + (size_t)i * gpurun_dtype_bytes(tensor->dtype), way))
                continue;
            REQUIRE(!judge_passes(t, &cpu), "verify = %s: %s[%lld] spoilt in way %d passes",
                    t->run.core.verify == VERIFY_FULL ? "full" : "certify", tensor->name,
                    (long long)i, way);
            count++;
        }
    return count;
}

/* Where verify moved a smaller answer together the gaps mean nothing: those rows are left alone. */
static int64_t elems_that_count(const struct buffer *b)
{
    if (b->tensor.role == GPURUN_IN)
        return 0;
    return b->tensor.elems == b->declared.elems || b->declared.rank <= 1 ? b->tensor.elems : 0;
}

static int spoil_every_element(const struct config *c)
{
    struct trial *t = trial_new(c);
    struct run_case cpu = {.name = "cpu"};
    char *kept[TENSORS_MAX] = {NULL};
    int64_t elems[TENSORS_MAX];
    int count = 0;

    REQUIRE(t->status == GPURUN_OK, "%s", t->run.why.text);
    fill(t);
    run_cpu_once(t, &cpu);
    keep_answer(&t->run, kept);
    for (size_t m = 0; m < GPURUN_COUNT(modes); m++) {
        t->run.core.verify = modes[m];
        put_back(&t->run, kept);
        REQUIRE(judge_passes(t, &cpu), "the right answer is refused: %s", cpu.reason);
        for (int i = 0; i < t->run.buffer_count; i++)
            elems[i] = elems_that_count(&t->run.buffers[i]);
        for (int i = 0; i < t->run.buffer_count; i++)
            count += spoil_tensor(t, i, elems[i], kept);
        put_back(&t->run, kept);
        REQUIRE(judge_passes(t, &cpu), "the right answer is refused later: %s", cpu.reason);
    }
    free_answer(&t->run, kept);
    trial_free(t);
    return count;
}

START_TEST(test_every_spoilt_element_fails)
{
    int count = 0;

    for (size_t s = 0; s < GPURUN_COUNT(sizes); s++) {
        struct config c = sized_config(sizes[s]);

        count += spoil_every_element(&c);
        c.offset = 1;
        c.generator = "few-distinct count=7";
        count += spoil_every_element(&c);
    }
    report("verify, one element spoilt", count, 0);
    ck_assert_int_gt(count, 0);
}
END_TEST

START_TEST(test_selftest)
{
    json_t *result = selftest_plugin(&plugin);
    const json_t *missed = json_object_get(result, "missed");

    strcpy(circumstances, "selftest");
    REQUIRE(json_array_size(missed) == 0, "%zu missed, the first: %s", json_array_size(missed),
            json_string_value(json_array_get(missed, 0)));
    report("selftest", (int)json_integer_value(json_object_get(result, "corruptions")), 0);
    ck_assert_int_gt(json_integer_value(json_object_get(result, "corruptions")), 0);
    json_decref(result);
}
END_TEST

/* The kinds of spoiled answers of `gpurun selftest`, on a job with the settings of `c`; on few distinct values
 * in place of the dtype's extremes, whose sums may be infinite or not a number and right all the same. */
static void selftest_config(const struct config *c, int *runs, int *refused)
{
    const bool is_uniform = strcmp(c->generator, "uniform") == 0;
    json_t *missed = json_array();
    struct setting settings[OPTIONS_MAX];
    long long count;

    describe(c);
    for (size_t i = 0; i < c->count; i++)
        settings[i] = (struct setting){
            .key = c->set[i].key, .text = c->set[i].text, .where = {"contract", 2}};
    count = selftest_job(&plugin, settings, c->count,
                         is_uniform ? "uniform" : "few-distinct count=5", missed);
    REQUIRE(json_array_size(missed) == 0, "%zu missed, the first: %s", json_array_size(missed),
            json_string_value(json_array_get(missed, 0)));
    *runs += (int)count;
    *refused += count == 0;
    json_decref(missed);
}

START_TEST(test_selftest_of_every_choice)
{
    int runs = 0, refused = 0;

    visit_choices(sizes[0], selftest_config, &runs, &refused);
    report("selftest of every choice", runs, refused);
    ck_assert(runs > refused || runs + refused == 0);
}
END_TEST

/* --- on the device --------------------------------------------------------------------------------------------------------- */

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
    int runs = 0, refused = 0;

    visit_choices(sizes[1], prove_gpu, &runs, &refused);
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

static void try_row_on_device(const struct config *c, struct pairs *p, int *row, ran_in_row *ran)
{
    struct trial *t = trial_new(c);

    if (t->status == GPURUN_OK)
        fill(t);
    for (uint32_t i = 0; i < plugin.table->variant_count && t->status == GPURUN_OK; i++)
        if (prove_variant(t, i))
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

/* --- suites ------------------------------------------------------------------------------------------------------------------- */

static void load(void)
{
    struct why why = {""};

    if (plugin.table == NULL && registry_load(plugin_name, &plugin, &why) != GPURUN_OK)
        ck_abort_msg("%s", why.text);
}

static void unload(void)
{
    free(plugin.path);
}

static Suite *contract_suite(void)
{
    Suite *suite = suite_create("contract");
    TCase *table = tcase_create("table"), *setup = tcase_create("setup");
    TCase *cpu = tcase_create("cpu"), *verify = tcase_create("verify");
    TCase *pairs = tcase_create("pairs"), *all_sizes = tcase_create("sizes");
    TCase *const all[] = {table, setup, cpu, verify, pairs, all_sizes};

    tcase_add_test(table, test_one_symbol_is_exported);
    tcase_add_test(table, test_options);
    tcase_add_test(table, test_variants);
    tcase_add_test(table, test_words_and_memory);
    tcase_add_test(setup, test_setup_says_what_it_chose);
    tcase_add_test(setup, test_teardown_of_a_half_built_state);
    tcase_add_test(setup, test_setup_with_extreme_sizes);
    tcase_add_test(cpu, test_cpu_gives_the_same_bytes_again);
    tcase_add_test(cpu, test_cpu_on_every_generator_size_and_offset);
    tcase_add_test(cpu, test_cpu_with_every_choice);
    tcase_add_test(cpu, test_cpu_on_tiny_sizes);
    tcase_add_test(cpu, test_cpu_with_tunables_at_their_ends);
    tcase_add_test(verify, test_a_missing_answer_fails);
    tcase_add_test(verify, test_every_spoilt_element_fails);
    tcase_add_test(verify, test_selftest);
    tcase_add_test(verify, test_selftest_of_every_choice);
    tcase_add_test(pairs, test_cpu_pairs);
    tcase_add_test(all_sizes, test_cpu_sizes);
    for (size_t i = 0; i < GPURUN_COUNT(all); i++) {
        tcase_add_checked_fixture(all[i], load, unload);
        tcase_set_timeout(all[i], 240);
        suite_add_tcase(suite, all[i]);
    }
    return suite;
}

static Suite *gpu_suite(void)
{
    Suite *suite = suite_create("contract on the device");
    TCase *gpu = tcase_create("gpu"), *pairs = tcase_create("pairs");
    TCase *all_sizes = tcase_create("sizes"), *sum = tcase_create("sum");

    tcase_add_test(gpu, test_gpu_memory_strategies);
    tcase_add_test(gpu, test_gpu_generators);
    tcase_add_test(gpu, test_gpu_choices);
    tcase_add_test(gpu, test_gpu_tiny_sizes);
    tcase_add_test(gpu, test_gpu_tunables);
    tcase_add_test(gpu, test_gpu_larger_sizes);
    tcase_add_test(pairs, test_gpu_pairs);
    tcase_add_test(all_sizes, test_gpu_sizes);
    tcase_add_test(sum, test_gpu_every_variant_ran);
    suite_add_tcase(suite, gpu);
    suite_add_tcase(suite, pairs);
    suite_add_tcase(suite, all_sizes);
    suite_add_tcase(suite, sum);
    return suite;
}

/* NAME of FOLDER/NAME.so, and FOLDER as where the registry looks first. */
static bool find_plugin(void)
{
    char *folder = copy_text(so_path), *slash = strrchr(folder, '/');
    const char *base = slash ? slash + 1 : so_path;
    const char *dot = strstr(base, ".so");

    if (dot != NULL && dot[3] == '\0')
        snprintf(plugin_name, sizeof plugin_name, "%.*s", (int)(dot - base), base);
    if (slash != NULL)
        *slash = '\0';
    setenv("GPURUN_PLUGIN_PATH", slash ? folder : ".", 1);
    free(folder);
    return plugin_name[0] != '\0';
}

/* The plugin and the device, for the one process that uses them; 0, or the exit code with the reason said. */
static int open_gpu(void)
{
    struct why why = {""};

    if (device_api.count(&why) == 0) {
        printf("skipped: no device (%s)\n", why.text);
        return 77;
    }
    if (registry_load(plugin_name, &plugin, &why) == GPURUN_OK &&
        plugin.table->variant_count == 0) {
        printf("skipped: %s has no variants\n", plugin_name);
        return 77;
    }
    if (plugin.table == NULL || device_api.info(0, &device_info, &why) != GPURUN_OK ||
        device_api.open(0, &device, &why) != GPURUN_OK) {
        fprintf(stderr, "%s\n", why.text);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; only_variants != NULL && only_variants[i] != NULL; i++)
        if (plugin_find_variant(&plugin, only_variants[i]) == NULL) {
            fprintf(stderr, "%s has no variant %s\n", plugin_name, only_variants[i]);
            return EXIT_FAILURE;
        }
    printf("%s on %s\n", plugin_name, device_info.name);
    fflush(stdout);
    return 0;
}

/* Sets what the command line says; false where it makes no sense. */
static bool read_arguments(char **argv, bool *on_gpu)
{
    char *end = NULL;

    *on_gpu = *++argv != NULL && strcmp(*argv, "--gpu") == 0;
    argv += *on_gpu;
    sizes_s = *on_gpu ? SIZES_GPU_S : SIZES_CPU_S;
    if (*argv != NULL && strcmp(*argv, "--seconds") == 0) {
        sizes_s = *++argv != NULL ? strtod(*argv, &end) : -1;
        if (!(sizes_s > 0) || *end != '\0')
            return false;
        argv++;
    }
    so_path = *argv;
    if (so_path == NULL || so_path[0] == '-')
        return false;
    only_variants = argv[1] != NULL ? argv + 1 : NULL;
    return (only_variants == NULL || *on_gpu) && find_plugin();
}

int main(int argc, char **argv)
{
    SRunner *runner;
    bool on_gpu;
    int failed, code;

    if (argc < 1 || !read_arguments(argv, &on_gpu)) {
        fprintf(stderr, "use: test_contract [--gpu] [--seconds S] PLUGIN.so [VARIANT...]\n"
                        "Variants can be named with --gpu only.\n");
        return EXIT_FAILURE;
    }
    if (on_gpu && (code = open_gpu()) != 0)
        return code;
    runner = srunner_create(on_gpu ? gpu_suite() : contract_suite());
    if (on_gpu)
        srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (device != NULL)
        device_api.close(device);
    free(on_gpu ? plugin.path : NULL);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
