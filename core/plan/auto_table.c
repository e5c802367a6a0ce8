#include "plan/auto_table.h"

#include "job/jobfile.h"
#include "job/memory.h"
#include "job/value.h"
#include "plan/job.h"
#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum subject { SUBJECT_OPTION, SUBJECT_BYTES, SUBJECT_DEVICE };

/* One of the values that a condition allows: a text, or all numbers from `low` to `high`. */
struct value {
    char *text;        /* of an option of type TEXT, or a glob on the device's name; else NULL */
    int64_t low, high; /* whole numbers, choices, yes and no, a compute capability */
    double real_low, real_high;
};

struct auto_condition {
    enum subject subject;
    const struct gpurun_option *row; /* NULL: the device */
    struct value *values;
    size_t count;
};

static const struct gpurun_option bytes_row = {
    .name = "bytes", .type = GPURUN_OPTION_INT, .max = 1e18};

/* --- reading --- */

struct reader {
    const struct plugin *plugin;
    struct auto_table *table;
    void *scratch; /* an options struct, for a value at a time */
};

static void *field_of(const struct reader *r, const struct gpurun_option *row)
{
    return (char *)r->scratch + row->offset;
}

static bool is_real(const struct gpurun_option *row)
{
    return row->type == GPURUN_OPTION_REAL || row->type == GPURUN_OPTION_DURATION;
}

/* One end of a range, or both of a single value. */
static enum gpurun_status set_end(struct reader *r, const struct gpurun_option *row,
                                  const char *text, int64_t *whole, double *real, struct why *why)
{
    GPURUN_TRY(option_set(row, text, r->scratch, why));
    if (is_real(row))
        *real = *(const double *)field_of(r, row);
    else
        *whole = *(const int64_t *)field_of(r, row);
    return GPURUN_OK;
}

static enum gpurun_status set_range(struct reader *r, const struct gpurun_option *row,
                                    const char *text, struct value *out, struct why *why)
{
    char *low = copy_text_n(text, (size_t)(strstr(text, "..") - text));
    const char *high = strstr(text, "..") + 2;
    enum gpurun_status status = GPURUN_OK;

    /* auto is below every whole number, and no range holds it */
    *out = (struct value){
        .low = GPURUN_AUTO + 1, .high = INT64_MAX, .real_low = -INFINITY, .real_high = INFINITY};
    if ((low[0] == '\0' && high[0] == '\0') || strcmp(low, "auto") == 0 ||
        strcmp(high, "auto") == 0)
        status = why_fail(why, GPURUN_INVALID,
                          "'%.80s' is no range: write 1K..1M, ..1M or 1M.., with numbers", text);
    if (status == GPURUN_OK && low[0] != '\0')
        status = set_end(r, row, low, &out->low, &out->real_low, why);
    if (status == GPURUN_OK && high[0] != '\0')
        status = set_end(r, row, high, &out->high, &out->real_high, why);
    if (status == GPURUN_OK && (out->low > out->high || out->real_low > out->real_high))
        status = why_fail(why, GPURUN_INVALID, "'%.80s' begins above its end", text);
    free(low);
    return status;
}

static enum gpurun_status set_value(struct reader *r, const struct gpurun_option *row,
                                    const char *text, struct value *out, struct why *why)
{
    const bool is_number = row->type == GPURUN_OPTION_INT || is_real(row);

    *out = (struct value){0};
    if (row->type == GPURUN_OPTION_TEXT) {
        out->text = copy_text(text);
        return GPURUN_OK;
    }
    if (is_number && strstr(text, "..") != NULL)
        return set_range(r, row, text, out, why);
    GPURUN_TRY(set_end(r, row, text, &out->low, &out->real_low, why));
    out->high = out->low;
    out->real_high = out->real_low;
    return GPURUN_OK;
}

/* "9.0" is a compute capability; all else is a glob on the device's name. */
static void set_device(const char *text, struct value *out)
{
    const size_t digits = strspn(text, "0123456789");

    *out = (struct value){0};
    if (digits > 0 && digits < 4 && text[digits] == '.' &&
        isdigit((unsigned char)text[digits + 1]) && text[digits + 2] == '\0')
        out->low = 10 * strtol(text, NULL, 10) + (text[digits + 1] - '0');
    else
        out->text = copy_text(text);
}

static enum gpurun_status add_value(struct reader *r, struct auto_condition *c, const char *text,
                                    struct why *why)
{
    struct value value;

    if (text[0] == '\0')
        return why_fail(why, GPURUN_INVALID, "an empty element: remove the comma");
    if (c->row != NULL)
        GPURUN_TRY(set_value(r, c->row, text, &value, why));
    else
        set_device(text, &value);
    c->values = grow(c->values, c->count, sizeof *c->values);
    c->values[c->count++] = value;
    return GPURUN_OK;
}

static void fault(struct reader *r, int line, const char *key, const char *text)
{
    faults_add(&r->table->faults, (struct origin){r->table->path, line}, key, "%s", text);
}

static void note_unknown_key(struct reader *r, const struct entry *e)
{
    const struct option_table *options = &r->plugin->options;
    const char **names = allocate(options->count + 4, sizeof *names), *nearest;
    struct why why;
    size_t count = 0;

    names[count++] = "variant";
    names[count++] = "device";
    names[count++] = bytes_row.name;
    for (uint32_t i = 0; i < options->count; i++)
        names[count++] = option_at(options, i)->name;
    nearest = value_nearest(e->key, names);
    why_fail(&why, GPURUN_INVALID,
             "is no condition%s%s%s: there are device, bytes and the options of %s",
             nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
             r->plugin->table->name);
    fault(r, e->line, e->key, why.text);
    free(names);
}

static void add_condition(struct reader *r, const struct entry *e, struct auto_rule *rule)
{
    struct auto_condition c = {.row = option_find(&r->plugin->options, e->key)}, *all;
    const char *list = e->value;
    const size_t size = strlen(list) + 1;
    enum gpurun_status status = GPURUN_OK;
    char *element;
    struct why why;

    if (strcmp(e->key, "device") == 0) {
        c.subject = SUBJECT_DEVICE;
    } else if (c.row == NULL && strcmp(e->key, bytes_row.name) == 0) {
        c.subject = SUBJECT_BYTES;
        c.row = &bytes_row;
    } else if (c.row == NULL) {
        note_unknown_key(r, e);
        return;
    }
    element = allocate(size, 1);
    while (status == GPURUN_OK && list_next(&list, element, size))
        status = add_value(r, &c, element, &why);
    free(element);
    if (status != GPURUN_OK)
        fault(r, e->line, e->key, why.text);
    all = rule->conditions = grow(rule->conditions, rule->count, sizeof *all);
    all[rule->count++] = c;
}

static void set_variant(struct reader *r, const struct entry *e, struct auto_rule *rule)
{
    const struct gpurun_plugin *p = r->plugin->table;
    struct why why;

    rule->variant = plugin_find_variant(r->plugin, e->value);
    if (rule->variant != NULL && !(rule->variant->capabilities & GPURUN_PEER))
        return;
    if (rule->variant != NULL)
        why_fail(&why, GPURUN_INVALID, "%s is a peer, and auto is never one", e->value);
    else if (p->variant_count > 0)
        why_fail(&why, GPURUN_INVALID, "'%.80s' is no variant of %s; gpurun describe %s lists them",
                 e->value, p->name, p->name);
    else
        return;
    fault(r, e->line, e->key, why.text);
}

static void add_rule(struct reader *r, const struct section *s)
{
    struct auto_table *t = r->table;
    struct auto_rule rule = {.line = s->line};
    bool has_variant = false;

    if (section_is_global(s)) {
        fault(r, s->line, NULL,
              "[global] has no meaning in a table of auto: every section is a rule");
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct entry *e = &s->entries[i];

        if (strcmp(e->key, "variant") == 0) {
            has_variant = true;
            set_variant(r, e, &rule);
        } else {
            add_condition(r, e, &rule);
        }
    }
    if (!has_variant)
        fault(r, s->line, NULL, "a rule without its variant: write variant = NAME under it");
    t->rules = grow(t->rules, t->count, sizeof *t->rules);
    t->rules[t->count++] = rule;
}

/* NAME.auto beside NAME.so. */
static char *table_path(const struct plugin *plugin)
{
    return format_text("%.*s.auto", (int)(strlen(plugin->path) - strlen(".so")), plugin->path);
}

struct auto_table *auto_table_load(const struct plugin *plugin)
{
    struct reader r = {.plugin = plugin};
    char *path = table_path(plugin);
    struct jobfile file;

    if (access(path, F_OK) != 0) {
        free(path);
        return NULL;
    }
    r.table = allocate(1, sizeof *r.table);
    r.table->path = path;
    r.table->name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    r.scratch = allocate(1, plugin->table->options_bytes + sizeof(int64_t));
    jobfile_read(path, &file, &r.table->faults);
    for (size_t i = 0; i < file.include_count; i++)
        fault(&r, file.includes[i].line, "include", "has no meaning in a table of auto");
    for (size_t i = 0; i < file.count; i++)
        add_rule(&r, &file.sections[i]);
    jobfile_free(&file);
    free(r.scratch);
    return r.table;
}

/* --- holding a job against it --- */

static bool is_in_range(const struct value *v, const struct gpurun_option *row, const void *field)
{
    int64_t whole;
    double real;

    if (!is_real(row)) {
        whole = *(const int64_t *)field;
        return whole >= v->low && whole <= v->high;
    }
    real = *(const double *)field;
    if (gpurun_real_is_auto(real) || gpurun_real_is_auto(v->real_low))
        return gpurun_real_is_auto(real) && gpurun_real_is_auto(v->real_low);
    return real >= v->real_low && real <= v->real_high;
}

static bool value_holds(const struct value *v, const struct auto_condition *c,
                        const struct auto_question *q)
{
    const void *field;

    if (c->subject == SUBJECT_BYTES)
        return q->bytes >= (double)v->low && q->bytes <= (double)v->high;
    if (c->subject == SUBJECT_DEVICE)
        return v->text ? fnmatch(v->text, q->device_name, 0) == 0 : v->low == q->compute;
    field = (const char *)q->options + c->row->offset;
    return v->text ? strcmp(v->text, *(const char *const *)field) == 0
                   : is_in_range(v, c->row, field);
}

static bool condition_holds(const struct auto_condition *c, const struct auto_question *q)
{
    for (size_t i = 0; i < c->count; i++)
        if (value_holds(&c->values[i], c, q))
            return true;
    return false;
}

static bool rule_holds(const struct auto_rule *rule, const struct auto_question *q)
{
    for (size_t i = 0; i < rule->count; i++)
        if (!condition_holds(&rule->conditions[i], q))
            return false;
    return true;
}

const struct auto_rule *auto_table_next(const struct auto_table *table, size_t from,
                                        const struct auto_question *question)
{
    for (size_t i = from; i < table->count; i++)
        if (rule_holds(&table->rules[i], question))
            return &table->rules[i];
    return NULL;
}

void auto_table_tell(struct auto_table *table, struct faults *faults)
{
    for (size_t i = 0; i < table->faults.count && !table->has_told; i++)
        faults_add_text(faults, table->faults.texts[i]);
    table->has_told = true;
}

static void free_rule(struct auto_rule *rule)
{
    for (size_t i = 0; i < rule->count; i++) {
        struct auto_condition *c = &rule->conditions[i];

        for (size_t k = 0; k < c->count; k++)
            free(c->values[k].text);
        free(c->values);
    }
    free(rule->conditions);
}

void auto_table_free(struct auto_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->count; i++)
        free_rule(&table->rules[i]);
    free(table->rules);
    faults_free(&table->faults);
    free(table->path);
    free(table);
}
