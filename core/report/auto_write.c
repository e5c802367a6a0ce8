/*
 * A decision tree over the measured points: each step parts them at the value of one key that leaves the two
 * sides most alike in themselves (Gini impurity), until one variant will do for all points of a leaf. Numbers are
 * parted between two measured values, which differ by a tenth if any such do: what bytes differ by where k does is
 * nothing to go by. Other options are parted into one value and the rest. A leaf is a rule: the conditions
 * on the way to it; none is needed where the ladder's last is the one. Numbers that nobody measured are in the
 * leaf whose range holds them; other values that nobody measured are in no leaf whose way asked for them.
 */
#include "report/auto_write.h"

#include "job/memory.h"
#include "report/auto_points.h"
#include "report/output.h"
#include "report/table.h"
#include "run/record.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 64 }; /* of picks; what is beyond them counts as one */

/* Left is what has `value`, or, of a key that is a number at every point, what is not above it. */
struct split {
    const char *key;
    const json_t *value;
    bool is_number;
};

/* A part of the points, and what the way to it says: {key: {"low", "high"} or {"values"}}. */
struct node {
    const json_t *keys; /* see keys_of */
    struct auto_point **points;
    size_t count;
    json_t *way;
};

static const json_t *value_at(const struct node *node, size_t i, const char *key)
{
    return json_object_get(node->points[i]->values, key);
}

static bool goes_left(const struct node *node, size_t i, const struct split *split)
{
    const json_t *value = value_at(node, i, split->key);

    return split->is_number ? json_number_value(value) <= json_number_value(split->value)
                            : json_equal(value, split->value);
}

static bool is_number_at_all(const struct node *node, const char *key)
{
    for (size_t i = 0; i < node->count; i++)
        if (!json_is_number(value_at(node, i, key)))
            return false;
    return true;
}

static json_t *measured_values(const struct node *node, const char *key)
{
    json_t *list = json_array();

    for (size_t i = 0; i < node->count; i++)
        if (!json_holds(list, value_at(node, i, key)))
            json_array_append(list, (json_t *)value_at(node, i, key));
    return list;
}

/* --- the keys --- */

/* The keys behind a job's section, "n=1M,k=10" of file:section/n=1M,k=10, into {key: true}. */
static void add_swept(json_t *swept, const struct auto_point *point)
{
    const json_t *record = json_array_get(json_array_get(point->cells, 0), 0);
    const char *colon = strchr(json_text_at(record, "job"), ':');
    const char *item = colon ? strchr(colon, '/') : NULL;

    for (; item != NULL; item = strchr(item, ',')) {
        char *key = copy_text_n(item + 1, strcspn(item + 1, "=,"));

        item++;
        if (json_object_get(point->values, key) != NULL)
            json_object_set_new(swept, key, json_true());
        free(key);
    }
}

static bool agree(const struct auto_point *a, const struct auto_point *b, const json_t *keys)
{
    const char *key;
    json_t *unused;

    json_object_foreach((json_t *)keys, key, unused)
    {
        const json_t *x = json_object_get(a->values, key), *y = json_object_get(b->values, key);

        if (x != y && !json_equal(x, y))
            return false;
    }
    return true;
}

/* True when the swept keys settle what this one is: setup made it from them, a sigma from a mask's name. */
static bool is_derived(const struct auto_points *points, const char *key, const json_t *swept)
{
    json_t *own = json_pack("{sb}", key, 1);
    bool is_settled = json_object_get(swept, key) == NULL;

    for (size_t i = 0; i < points->count && is_settled; i++)
        for (size_t k = 0; k < i && is_settled; k++)
            is_settled = !agree(&points->list[i], &points->list[k], swept) ||
                         agree(&points->list[i], &points->list[k], own);
    json_decref(own);
    return is_settled;
}

/* What conditions may be on: {key: true}. For the caller to free. */
static json_t *keys_of(const struct auto_points *points)
{
    json_t *keys = json_object(), *swept = json_object(), *all = json_object(), *unused;
    const char *key;

    for (size_t i = 0; i < points->count; i++) {
        add_swept(swept, &points->list[i]);
        json_object_update_missing(all, points->list[i].values);
    }
    json_object_foreach(all, key, unused)
    {
        if (strcmp(key, "device") == 0 || strcmp(key, "bytes") == 0 ||
            !is_derived(points, key, swept))
            json_object_set_new(keys, key, json_true());
    }
    json_decref(swept);
    json_decref(all);
    return keys;
}

/* --- the best split --- */

/* Of one side, with so many points of each kind: 0 where all are of one. */
static double side_impurity(const size_t *kinds, size_t count)
{
    double same = 0;

    for (size_t k = 0; k < KINDS; k++)
        same += (double)kinds[k] * (double)kinds[k];
    return (double)count - same / (double)count;
}

/* INFINITY where one side is empty. */
static double impurity(const struct node *node, const struct split *split)
{
    size_t kinds[2][KINDS] = {0}, counts[2] = {0};

    for (size_t i = 0; i < node->count; i++) {
        const bool is_left = goes_left(node, i, split);
        const size_t kind = node->points[i]->kind;

        kinds[is_left][kind < KINDS ? kind : KINDS - 1]++;
        counts[is_left]++;
    }
    if (counts[0] == 0 || counts[1] == 0)
        return INFINITY;
    return side_impurity(kinds[0], counts[0]) + side_impurity(kinds[1], counts[1]);
}

/* The next larger value of the split's key, of a number; the value itself where there is none. */
static const json_t *next_value(const struct node *node, const struct split *split)
{
    const json_t *next = split->value;

    for (size_t i = 0; i < node->count; i++) {
        const json_t *value = value_at(node, i, split->key);

        if (json_number_value(value) > json_number_value(split->value) &&
            (next == split->value || json_number_value(value) < json_number_value(next)))
            next = value;
    }
    return next;
}

/* How far the measured values are apart between which a number is parted. */
static double width_of(const struct node *node, const struct split *split)
{
    const double low = json_number_value(split->value);
    const double high = split->is_number ? json_number_value(next_value(node, split)) : 0;

    return low > 0 ? high / low : high - low;
}

/* Whether it parts numbers so near that jobs which have them would be one point. */
static bool is_narrow(const struct node *node, const struct split *split)
{
    return split->is_number && auto_points_near(split->value, next_value(node, split));
}

/* Of the best the one of the first key, and of that where the most was left unmeasured; a narrow one only if there is no
 * other. */
static bool is_better(const struct node *node, const struct split *split, double now,
                      const struct split *best, double least)
{
    const double tie = 1e-9;

    if (!isfinite(now) || best->key == NULL)
        return isfinite(now);
    if (is_narrow(node, split) != is_narrow(node, best))
        return is_narrow(node, best);
    if (fabs(now - least) > tie)
        return now < least;
    return best->key == split->key && width_of(node, split) > width_of(node, best);
}

/* Its value is a point's. */
static struct split best_split(const struct node *node)
{
    struct split best = {NULL, NULL, false};
    double least = INFINITY;
    const char *key;
    json_t *unused, *value;
    size_t i;

    json_object_foreach((json_t *)node->keys, key, unused)
    {
        json_t *values = measured_values(node, key);

        json_array_foreach(values, i, value)
        {
            const struct split split = {key, value, is_number_at_all(node, key)};
            const double now = impurity(node, &split);

            if (is_better(node, &split, now, &best, least)) {
                least = now;
                best = split;
            }
        }
        json_decref(values);
    }
    return best;
}

/* --- the way to a leaf --- */

/* The geometric mean to two digits, where that is from `low` on and below `high`; else `low`. */
static double between(double low, double high, bool is_whole)
{
    const double middle = low > 0 ? sqrt(low * high) : (low + high) / 2;
    char text[40];
    double rounded;

    snprintf(text, sizeof text, "%.1e", middle);
    rounded = is_whole ? floor(strtod(text, NULL)) : strtod(text, NULL);
    return rounded >= low && rounded < high ? rounded : low;
}

/* Where a side's range ends: between the split's value and the next that was measured, or at its own. */
static json_t *end_of(const struct node *node, const struct split *split, bool left)
{
    const json_t *low = split->value, *high = next_value(node, split);
    const bool is_whole = json_is_integer(low) && json_is_integer(high);
    const double cut = between(json_number_value(low), json_number_value(high), is_whole);

    if (cut == json_number_value(low))
        return json_copy((json_t *)(left ? low : high));
    return is_whole ? json_integer((json_int_t)cut) : json_real(cut);
}

/* One side of a split, with the way to it. */
static struct node side(const struct node *node, const struct split *split, bool left)
{
    struct node part = {.keys = node->keys,
                        .points = allocate(node->count, sizeof(struct auto_point *)),
                        .way = json_deep_copy(node->way)};
    json_t *limits = json_object_get(part.way, split->key);

    for (size_t i = 0; i < node->count; i++)
        if (goes_left(node, i, split) == left)
            part.points[part.count++] = node->points[i];
    if (limits == NULL) {
        limits = json_object();
        json_object_set_new(part.way, split->key, limits);
    }
    if (split->is_number && json_object_get(limits, "values") == NULL)
        json_object_set_new(limits, left ? "high" : "low", end_of(node, split, left));
    else
        json_object_set_new(limits, "values", measured_values(&part, split->key));
    return part;
}

/* --- printing --- */

/* As a job file writes it: 1.5K, and of a text each dollar twice. */
static void print_value(const json_t *value)
{
    char text[64];

    if (json_is_integer(value)) {
        format_count(json_integer_value(value), text, sizeof text);
        printf("%s", text);
    } else if (json_is_string(value)) {
        for (const char *c = json_string_value(value); *c != '\0'; c++)
            printf(*c == '$' ? "$$" : "%c", *c);
    } else if (json_is_boolean(value)) {
        printf("%s", json_is_true(value) ? "yes" : "no");
    } else {
        output_scalar(value, text, sizeof text);
        printf("%s", text);
    }
}

static void print_condition(const char *key, const json_t *limits)
{
    const json_t *values = json_object_get(limits, "values");
    size_t i;
    json_t *value;

    if (values != NULL &&
        json_array_size(values) == 0) /* an option that these records do not know */
        return;
    printf("%s = ", key);
    json_array_foreach((json_t *)values, i, value)
    {
        printf("%s", i > 0 ? ", " : "");
        print_value(value);
    }
    if (values == NULL) {
        if (json_object_get(limits, "low") != NULL)
            print_value(json_object_get(limits, "low"));
        printf("..");
        if (json_object_get(limits, "high") != NULL)
            print_value(json_object_get(limits, "high"));
    }
    printf("\n");
}

/* On what a rule rests. */
static void print_reason(const struct node *leaf)
{
    double low = INFINITY, high = 0;
    size_t jobs = 0;
    char from[40], to[40];

    for (size_t i = 0; i < leaf->count; i++) {
        low = fmin(low, leaf->points[i]->gain_low);
        high = fmax(high, leaf->points[i]->gain_high);
        jobs += json_array_size(leaf->points[i]->cells);
    }
    format_number(low, from, sizeof from);
    format_number(high, to, sizeof to);
    printf("# %zu job%s: ", jobs, jobs == 1 ? "" : "s");
    if (low == 0)
        printf("the last rung that can run was not proved right\n");
    else if (strcmp(from, to) == 0)
        printf("%s times as fast as the last rung that can run\n", from);
    else
        printf("%s to %s times as fast as the last rung that can run\n", from, to);
}

static void print_rule(const struct node *leaf, int *number)
{
    const char *key;
    json_t *unused, *limits;

    printf("\n");
    print_reason(leaf);
    printf("[%d]\n", ++*number);
    json_object_foreach((json_t *)leaf->keys, key, unused)
    {
        limits = json_object_get(leaf->way, key);
        if (limits != NULL)
            print_condition(key, limits);
    }
    printf("variant = %s\n", leaf->points[0]->pick);
}

static bool needs_no_rule(const struct node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->points[i]->kind != 0)
            return false;
    return true;
}

static bool has_one_pick(const struct node *node)
{
    for (size_t i = 1; i < node->count; i++)
        if (strcmp(node->points[i]->pick, node->points[0]->pick) != 0)
            return false;
    return true;
}

static void print_tree(const struct node *node, int *number)
{
    struct split split;

    if (needs_no_rule(node))
        return;
    if (has_one_pick(node)) {
        print_rule(node, number);
        return;
    }
    split = best_split(node);
    for (int left = 1; left >= 0; left--) {
        struct node part = side(node, &split, left);

        print_tree(&part, number);
        free(part.points);
        json_decref(part.way);
    }
}

static void add_name(json_t *list, const char *name)
{
    json_t *text = json_string(name);

    if (name[0] != '\0' && !json_holds(list, text))
        json_array_append(list, text);
    json_decref(text);
}

static void print_names(const char *before, json_t *list)
{
    size_t i;
    json_t *name;

    printf("%s", before);
    json_array_foreach(list, i, name) printf("%s%s", i > 0 ? ", " : "", json_string_value(name));
    json_decref(list);
}

/* What was measured, where and when, and where no rule is needed. */
static void print_heading(const struct auto_points *points, const char *plugin, double gap)
{
    json_t *files = json_array(), *devices = json_array(), *days = json_array(), *cell;
    size_t i, without = 0;

    for (size_t p = 0; p < points->count; p++) {
        without += points->list[p].kind == 0;
        json_array_foreach(points->list[p].cells, i, cell)
        {
            const json_t *record = json_array_get(cell, 0);
            char *file = copy_text(json_text_at(record, "job"));
            char *day = copy_text(json_text_at(record, "started"));

            file[strcspn(file, ":")] = '\0';
            day[strcspn(day, "T")] = '\0';
            add_name(files, file);
            add_name(devices, json_text_at(json_object_get(record, "environment"), "device_name"));
            add_name(days, day);
            free(file);
            free(day);
        }
    }
    printf("# What `variant = auto` is for %s: the first of these rules that fits and can run, "
           "else the last "
           "variant that can.\n# By gpurun report --auto-table %s --gap %g%%, from",
           plugin, plugin, 100 * gap);
    print_names(" ", files);
    print_names(" on ", devices);
    print_names(", ", days);
    printf(".\n# Of %zu places that were measured, %zu need no rule.\n", points->count, without);
}

static void tell_left_out(const struct auto_points *points, const char *plugin)
{
    if (points->cells == 0)
        fprintf(stderr, "gpurun: no record is of a variant of %s\n", plugin);
    else if (points->left_out > 0)
        fprintf(
            stderr,
            "gpurun: %zu of %zu jobs of %s say nothing: they lack the last variant of the ladder, "
            "or one beside it, or one that was proved and timed 6 times\n",
            points->left_out, points->cells, plugin);
}

static void print_table(const struct auto_points *points, const char *plugin, double gap)
{
    json_t *keys = keys_of(points);
    struct node root = {.keys = keys,
                        .points = allocate(points->count, sizeof(struct auto_point *)),
                        .count = points->count,
                        .way = json_object()};
    int number = 0;

    for (size_t i = 0; i < points->count; i++)
        root.points[i] = &points->list[i];
    /* no other device was measured, whatever the tree asks for */
    json_object_set_new(root.way, "device",
                        json_pack("{so}", "values", measured_values(&root, "device")));
    print_heading(points, plugin, gap);
    print_tree(&root, &number);
    free(root.points);
    json_decref(root.way);
    json_decref(keys);
}

int auto_write(char *const *paths, size_t count, const char *plugin, double gap)
{
    struct auto_points points;
    int code = 2;

    if (auto_points_read(paths, count, plugin, gap, &points)) {
        tell_left_out(&points, plugin);
        code = points.count > 0 ? 0 : 1;
    }
    if (code == 0)
        print_table(&points, plugin, gap);
    auto_points_free(&points);
    return code;
}
