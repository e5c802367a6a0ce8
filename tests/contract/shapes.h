/*
 * Sizes: every dimension of a plugin by itself, as long as time lasts.
 */
#ifndef CONTRACT_SHAPES_H
#define CONTRACT_SHAPES_H

#include "pairs.h"
#include "sizes.h"

/* --- sizes ------------------------------------------------------------------------------------ */

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
    if (t->status == GPURUN_OK && !is_small(&t->run.ctx.work, &MOST) && s->count > 1) {
        trial_free(t);
        make_thin(s, &c);
        t = trial_new(&c);
    }
    if (t->status != GPURUN_OK || is_small(&t->run.ctx.work, &MOST))
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
           "sizes, %lld of %lld edges, %lld at random",
           plugin_name, group, s->runs, s->refused, s->too_large, s->count,
           (long long)s->sizes.next[SIZES_EVERY], (long long)s->sizes.next[SIZES_EDGES],
           (long long)s->sizes.edge_count, (long long)s->sizes.next[SIZES_RANDOM]);
    end_line();
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

#endif
