#include "run/rounds.h"

#include "run/case.h"
#include "run/guard.h"
#include "run/sample.h"
#include <math.h>
#include <string.h>

enum {
    END_TO_END_ROUNDS = 5,
    ENOUGH = 3,          /* samples that a case has before it may sit out to save time */
    ROUNDS_LEAST = 10,   /* of repeat = auto */
    ROUNDS_MOST = 10000, /* of repeat = auto */
    WARM_RUNS = 3,       /* of warmup = auto */
    WARM_PASSES = 4,     /* whose times must agree; as many before them */
};

static const double AUTO_LEAST_S = 0.5, AUTO_MOST_S = 3; /* of repeat = auto */
static const double PRECISE = 0.005; /* half width of the median's interval, over the median */
static const double WARM_MOST_S = 0.5, STEADY = 0.01;

/* In a round's order, beside the numbers of cases and of the device's yardsticks: the host's. */
enum { HOST_YARDSTICK = -1 - YARDSTICKS };

/* splitmix64: the order of a round is the seed's, so that it can be had again. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

struct rounds {
    struct run *run;
    rounds_enter *enter;
    void *user;
    double start_s, limit_s; /* of the rounds */
    double waited_s;         /* the run's, as they began */
    int next_look;           /* the round after which precision is next looked at */
    bool is_precise;
};

/* A case far slower than its share of the time sits rounds out once it has enough samples. */
static bool sits_out(const struct rounds *r, const struct run_case *c)
{
    const bool has_host = r->run->ceilings[SIDE_HOST].memory != NULL;
    const int shares = /* one for the yardsticks of each side */
        r->run->case_count + (r->run->device != NULL) + has_host;

    return c->time_ms.count >= ENOUGH && c->spent_s > r->limit_s / shares;
}

static bool all_sit_out(const struct rounds *r)
{
    for (int i = 0; i < r->run->case_count; i++)
        if (case_is_live(&r->run->cases[i]) && !sits_out(r, &r->run->cases[i]))
            return false;
    return true;
}

/* The baseline's case, while it is one; else NULL. */
static struct run_case *live_cpu(struct run *run)
{
    for (int i = 0; i < run->case_count; i++)
        if (run->cases[i].variant == NULL && case_is_live(&run->cases[i]))
            return &run->cases[i];
    return NULL;
}

/* GPU cases and the device's yardsticks in random order; the CPU and its yardstick last, so that their long turn does
 * not stand between two that are compared. A yardstick y of the device is -1 - y. Returns how many. */
static int shuffle_round(const struct rounds *r, uint64_t *random, bool last, int *order)
{
    struct run *run = r->run;
    const struct run_case *cpu = live_cpu(run);
    int count = 0;

    for (int i = 0; i < run->case_count; i++)
        if (run->cases[i].variant != NULL && case_is_live(&run->cases[i]))
            order[count++] = i;
    for (int y = 0, cases = count; y < YARDSTICKS && cases > 0; y++)
        order[count++] = -1 - y;
    for (int i = count - 1; i > 0; i--) {
        const int k = (int)(next_random(random) % (uint64_t)(i + 1)), swap = order[i];

        order[i] = order[k];
        order[k] = swap;
    }
    if (cpu != NULL && (last || !sits_out(r, cpu))) {
        const int is_first = (int)(next_random(random) % 2);

        order[count + !is_first] = HOST_YARDSTICK;
        order[count + is_first] = (int)(cpu - run->cases);
        count += 2;
    }
    return count;
}

/* One case's turn. A failure that is not the device's ends the case alone. */
static enum gpurun_status take_turn(struct rounds *r, struct run_case *c, int round, bool prove)
{
    double start;
    enum gpurun_status status;

    r->enter(r->user, c, prove ? "last round" : "rounds"); /* which may wait */
    start = now_s();
    status = sample_case(r->run, c, round, prove);
    c->spent_s += now_s() - start;
    if (status != GPURUN_OK)
        case_end(r->run, c, status);
    return status == GPURUN_DEVICE ? status : GPURUN_OK;
}

/* In the name of the baseline. */
static enum gpurun_status read_host(struct rounds *r, int round)
{
    struct run_case *cpu = live_cpu(r->run);

    if (cpu == NULL)
        return GPURUN_OK;
    r->enter(r->user, cpu, "rounds");
    return ceiling_read(r->run, SIDE_HOST, ceiling_kind(&r->run->ctx.work), round);
}

/* The last one begins with the host's yardstick, whose memory then is free: the proofs may need it. */
static enum gpurun_status one_round(struct rounds *r, uint64_t *random, bool last)
{
    int order[CASES_MAX + YARDSTICKS + 1];
    const int round = r->run->rounds, count = shuffle_round(r, random, last, order);

    if (last) {
        GPURUN_TRY(read_host(r, round));
        ceiling_end(r->run, SIDE_HOST);
    }
    GPURUN_TRY(sample_wake(r->run));
    for (int i = 0; i < count; i++) {
        struct run_case *c = order[i] < 0 ? NULL : &r->run->cases[order[i]];

        if (order[i] == HOST_YARDSTICK)
            GPURUN_TRY(read_host(r, round));
        else if (c == NULL)
            GPURUN_TRY(ceiling_read(r->run, SIDE_DEVICE, (enum yardstick)(-1 - order[i]), round));
        else if (last || !sits_out(r, c))
            GPURUN_TRY(take_turn(r, c, round, last));
    }
    return GPURUN_OK;
}

/* --- warm-up --- */

/* `warmup` runs of a case; fewer where they take more than its share of the time. */
static enum gpurun_status warm_case(struct run *run, struct run_case *c)
{
    const int64_t runs = run->core.warmup == GPURUN_AUTO ? WARM_RUNS : run->core.warmup;
    const double start = now_s();
    double began = start, ended = start;

    for (int64_t k = 0; k < runs; k++) {
        guard_restore();
        began = now_s();
        GPURUN_TRY(case_run(run, c));
        if (c->variant != NULL)
            GPURUN_TRY(device_api.sync(run->device, &run->why));
        ended = now_s();
        if (ended - start > run->core.max_time / (run->case_count + 1))
            break;
    }
    GPURUN_TRY(sample_prepare(run, c, (ended - began) * 1e3));
    return c->variant ? GPURUN_OK : ceiling_begin(run, SIDE_HOST);
}

static double median_of_passes(const double *passes, int first)
{
    double few[WARM_PASSES];

    for (int i = 0; i < WARM_PASSES; i++)
        few[i] = passes[first + i];
    return stats_of(few, WARM_PASSES).median;
}

/* One reading of every GPU case, untimed: their sum through *ms. */
static enum gpurun_status warm_pass(struct rounds *r, double *ms)
{
    *ms = 0;
    for (int i = 0; i < r->run->case_count; i++) {
        struct run_case *c = &r->run->cases[i];
        enum gpurun_status status;
        double one = 0;

        if (!case_is_live(c) || c->variant == NULL)
            continue;
        r->enter(r->user, c, "warm-up");
        status = timing_read(&c->timing, &one);
        *ms += one;
        if (status != GPURUN_OK)
            case_end(r->run, c, status);
        if (status == GPURUN_DEVICE)
            return status;
    }
    return GPURUN_OK;
}

/* Until four passes take as long as the four before, to 1 %: the clock has settled. Half a second at the
 * most. */
static enum gpurun_status settle(struct rounds *r)
{
    const double start = now_s();
    double passes[2 * WARM_PASSES];
    int count = 0;

    while (!r->run->is_settled && now_s() - start < WARM_MOST_S) {
        if (count == 2 * WARM_PASSES)
            memmove(passes, passes + 1, (size_t)--count * sizeof passes[0]);
        GPURUN_TRY(warm_pass(r, &passes[count++]));
        r->run->is_settled =
            count == 2 * WARM_PASSES &&
            fabs(median_of_passes(passes, 0) - median_of_passes(passes, WARM_PASSES)) <=
                STEADY * median_of_passes(passes, 0);
    }
    return GPURUN_OK;
}

static enum gpurun_status warm_up(struct rounds *r)
{
    for (int i = 0; i < r->run->case_count; i++) {
        struct run_case *c = &r->run->cases[i];
        enum gpurun_status status;

        if (!case_is_live(c))
            continue;
        r->enter(r->user, c, "warm-up");
        status = warm_case(r->run, c);
        if (status != GPURUN_OK)
            case_end(r->run, c, status);
        if (status == GPURUN_DEVICE)
            return status;
    }
    if (r->run->device == NULL || r->run->core.warmup != GPURUN_AUTO)
        return GPURUN_OK;
    return settle(r);
}

static enum gpurun_status end_to_end(struct rounds *r)
{
    const double start = now_s();

    /* One round at the least, and no more than fit max_time. */
    for (int round = 0;
         round < END_TO_END_ROUNDS && (round == 0 || now_s() - start < r->run->core.max_time);
         round++)
        for (int i = 0; i < r->run->case_count; i++) {
            struct run_case *c = &r->run->cases[i];
            enum gpurun_status status;

            if (!case_is_live(c) || c->variant == NULL)
                continue;
            r->enter(r->user, c, "end to end");
            status = sample_end_to_end(r->run, c, round);
            if (status != GPURUN_OK)
                case_end(r->run, c, status);
            if (status == GPURUN_DEVICE)
                return status;
        }
    return GPURUN_OK;
}

static bool any_live(const struct run *run)
{
    for (int i = 0; i < run->case_count; i++)
        if (case_is_live(&run->cases[i]))
            return true;
    return false;
}

/* --- when to stop --- */

/* Whether every median that counts is known to 0.5 %: those of GPU cases, or where there is none the CPU's. */
static bool all_precise(const struct run *run)
{
    bool any_gpu = false, gpu = true, cpu = true;

    for (int i = 0; i < run->case_count; i++) {
        const struct run_case *c = &run->cases[i];
        struct stats s;
        bool precise;

        if (!case_is_live(c))
            continue;
        s = stats_of(c->time_ms.values, c->time_ms.count);
        precise = stats_half_width(&s) <= PRECISE * s.median;
        any_gpu = any_gpu || c->variant != NULL;
        gpu = gpu && (precise || c->variant == NULL);
        cpu = cpu && (precise || c->variant != NULL);
    }
    return any_gpu ? gpu : cpu;
}

/* Sorting all samples is work: it is done after every tenth more of them. */
static void look_at_precision(struct rounds *r, double elapsed, double least_s)
{
    const int rounds = r->run->rounds;

    if (rounds < r->next_look || rounds + 1 < ROUNDS_LEAST || elapsed < least_s)
        return;
    r->next_look = rounds + rounds / 10 + 1;
    r->is_precise = all_precise(r->run);
}

/* Why the round that comes next is the last one; NULL: it is not. */
static const char *reason_to_stop(struct rounds *r)
{
    const struct core_options *core = &r->run->core;
    const double elapsed = now_s() - r->start_s - (r->run->waited_s - r->waited_s);
    const bool is_auto = core->repeat == GPURUN_AUTO;
    const double least_s = !gpurun_real_is_auto(core->min_time)
                               ? core->min_time
                               : fmin(is_auto ? AUTO_LEAST_S : 0, core->max_time);
    const int next = r->run->rounds + 1;

    if (elapsed >= core->max_time)
        return "max_time";
    if (all_sit_out(r))
        return is_auto ? "cap" : "max_time";
    if (!is_auto)
        return next >= core->repeat && elapsed >= least_s ? "repeat" : NULL;
    look_at_precision(r, elapsed, least_s);
    if (r->is_precise)
        return "precise";
    return next >= ROUNDS_LEAST && elapsed >= least_s &&
                   (elapsed >= AUTO_MOST_S || next >= ROUNDS_MOST)
               ? "cap"
               : NULL;
}

enum gpurun_status rounds_run(struct run *run, rounds_enter *enter, void *user)
{
    struct rounds r = {.run = run, .enter = enter, .user = user, .limit_s = run->core.max_time};
    uint64_t random = (uint64_t)run->core.seed;

    if (!any_live(run))
        return GPURUN_OK;
    if (run->core.repeat == GPURUN_AUTO)
        r.limit_s = fmin(r.limit_s, AUTO_MOST_S);
    GPURUN_TRY(sample_begin(run));
    GPURUN_TRY(warm_up(&r));
    r.start_s = now_s();
    r.waited_s = run->waited_s;
    if (run->device != NULL)
        device_state_begin(&run->device_state, run->device_info.uuid);
    for (run->rounds = 0; run->stop == NULL && any_live(run); run->rounds++) {
        run->stop = reason_to_stop(&r);
        GPURUN_TRY(one_round(&r, &random, run->stop != NULL));
        device_state_look(&run->device_state);
    }
    device_state_end(&run->device_state);
    return end_to_end(&r);
}
