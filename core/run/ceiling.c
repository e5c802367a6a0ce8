#include "run/ceiling.h"

#include "gpurun/host_memory.h"
#include "run/available.h"
#include "run/machine.h"
#include "run/run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GRAIN = 32,       /* on the device both halves begin at 16 bytes */
    PIECE = 1 << 14,  /* bytes that a thread of the host stores at a time, in whole pages */
    SHARED = 1 << 16, /* more bytes than that are shared among threads */
    FILL = 0x5A,
    TRIES = 3, /* of each way to store */
};

/* --- on the device ------------------------------------------------------------------------------------ */

static enum gpurun_status read_device(struct run *run, void *user)
{
    const struct ceiling *c = user;

    return device_api.read(run->device, c->memory, c->bytes, &run->why);
}

static enum gpurun_status copy_device(struct run *run, void *user)
{
    const struct ceiling *c = user;
    const size_t half = c->bytes / 2;

    return device_api.copy(run->device, (char *)c->memory + half, c->memory, half, &run->why);
}

static enum gpurun_status write_device(struct run *run, void *user)
{
    const struct ceiling *c = user;

    return device_api.fill(run->device, c->memory, FILL, c->bytes, &run->why);
}

static enum gpurun_status do_nothing(struct run *run, void *user)
{
    (void)run;
    (void)user;
    return GPURUN_OK;
}

/* --- on the host, by as many threads as the baseline has ------------------------------------------------ */

/* Bytes `begin` to `end` of what is shared. */
typedef void host_work(void *user, size_t begin, size_t end);

/* Parts begin where pages do: loads that cross lines would not be the fastest. */
static size_t cut_at(size_t bytes, int part, int parts)
{
    return part == parts ? bytes : bytes / PIECE * (size_t)part / (size_t)parts * PIECE;
}

static void share(int threads, size_t bytes, host_work *work, void *user)
{
    if (bytes <= SHARED) {
        work(user, 0, bytes);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; t++)
        work(user, cut_at(bytes, t, threads), cut_at(bytes, t + 1, threads));
}

static void read_part(void *user, size_t begin, size_t end)
{
    const uint64_t sum = gpurun_sum_words((const uint32_t *)user + begin / sizeof(uint32_t),
                                          (int64_t)((end - begin) / sizeof(uint32_t)));

    __asm__ volatile("" : : "r"(sum)); /* what nobody wants is not computed */
}

static enum gpurun_status read_host(struct run *run, void *user)
{
    const struct ceiling *c = user;

    share(run->ctx.threads, c->bytes, read_part, c->memory);
    return GPURUN_OK;
}

struct stores {
    char *to;
    const char *from;
    bool is_fill; /* all pieces are of the first */
    bool past_caches;
};

static void store_part(void *user, size_t begin, size_t end)
{
    const struct stores *s = user;

    for (size_t at = begin; at < end; at += PIECE) {
        const size_t bytes = end - at < PIECE ? end - at : PIECE;
        const char *from = s->is_fill ? s->from : s->from + at;

        if (s->past_caches)
            gpurun_copy_past_caches(s->to + at, from, bytes);
        else
            memcpy(s->to + at, from, bytes);
    }
    if (s->past_caches)
        gpurun_end_past_caches();
}

/* Of a copy on the host: it begins where a page does, like a tensor. */
static char *second_half(const struct ceiling *c)
{
    return (char *)c->memory + (c->bytes / 2 + PIECE - 1) / PIECE * PIECE;
}

static enum gpurun_status copy_host(struct run *run, void *user)
{
    const struct ceiling *c = user;
    struct stores s = {second_half(c), c->memory, false, c->past_caches};

    share(run->ctx.threads, c->bytes / 2, store_part, &s);
    return GPURUN_OK;
}

static void fill_host(const struct run *run, const struct ceiling *c, void *to, size_t bytes)
{
    static char pattern[PIECE];
    struct stores s = {to, pattern, true, c->past_caches};

    if (pattern[0] != FILL)
        memset(pattern, FILL, PIECE);
    share(run->ctx.threads, bytes, store_part, &s);
}

static enum gpurun_status write_host(struct run *run, void *user)
{
    const struct ceiling *c = user;

    fill_host(run, c, c->memory, c->bytes);
    return GPURUN_OK;
}

/* --- memory -------------------------------------------------------------------------------------------- */

enum yardstick ceiling_kind(const struct gpurun_work *w)
{
    if (w->bytes_read <= 0)
        return YARDSTICK_WRITE;
    return w->bytes_written > w->bytes_read / 2 ? YARDSTICK_COPY : YARDSTICK_READ;
}

/* What the process may still take of the host's memory. */
static uint64_t host_bytes(const struct run *run)
{
    const uint64_t taken = machine_memory(getpid()), most = run->memory_bytes;
    const uint64_t left = most > taken ? most - taken : 0, available = available_bytes();

    return most > 0 && left < available ? left : available;
}

/* Each page is first written by the thread that will use it. */
static enum gpurun_status take_host(struct run *run, struct ceiling *c, struct why *why)
{
    const bool has_halves = ceiling_kind(&run->ctx.work) == YARDSTICK_COPY;

    c->memory = machine_allocate(c->bytes + PIECE);
    if (c->memory == NULL)
        return why_fail(why, GPURUN_NO_MEMORY, "%zu bytes of host memory", c->bytes);
    fill_host(run, c, c->memory, has_halves ? c->bytes / 2 : c->bytes);
    if (has_halves)
        fill_host(run, c, second_half(c), c->bytes / 2);
    return GPURUN_OK;
}

static enum gpurun_status take_device(struct run *run, struct ceiling *c, struct why *why)
{
    GPURUN_TRY(device_api.alloc(run->device, c->bytes, &c->memory, why));
    return device_api.fill(run->device, c->memory, FILL, c->bytes, why);
}

/* Room for as many bytes as the job moves, or for half of what is free, as the rest is for what comes. So few that a
 * cache may hold them, where the job's are more, are no measure. */
static enum gpurun_status allocate_ceiling(struct run *run, enum memory_side side, struct why *why)
{
    struct ceiling *c = &run->ceilings[side];
    const double wanted = run->ctx.work.bytes_read + run->ctx.work.bytes_written;
    const uint64_t room =
        (side == SIDE_DEVICE ? device_api.free_bytes(run->device) : host_bytes(run)) / 2;
    const bool is_less = wanted > (double)room;

    if (!(wanted >= GRAIN))
        return why_fail(why, GPURUN_UNSUPPORTED, "the job moves fewer than %d bytes", GRAIN);
    c->bytes = (is_less ? room : (size_t)wanted) / GRAIN * GRAIN;
    if (is_less && (double)c->bytes <= 2 * timing_cache_bytes(run, side))
        return why_fail(why, GPURUN_NO_MEMORY, "%.0f bytes are not free a second time", wanted);
    if (is_less)
        snprintf(c->note, sizeof c->note, "the limit is of %zu bytes, not %.0f: no more are free",
                 c->bytes, wanted);
    return side == SIDE_DEVICE ? take_device(run, c, why) : take_host(run, c, why);
}

void ceiling_end(struct run *run, enum memory_side side)
{
    struct ceiling *c = &run->ceilings[side];

    for (int y = 0; y < YARDSTICKS; y++)
        timing_free(&c->yardsticks[y]);
    if (side == SIDE_HOST)
        free(c->memory);
    else if (c->memory != NULL)
        device_api.release(run->device, c->memory);
    c->memory = NULL;
}

/* --- readings ------------------------------------------------------------------------------------------ */

static bool has_yardstick(const struct run *run, enum memory_side side, enum yardstick which)
{
    const enum yardstick kind = ceiling_kind(&run->ctx.work);

    if (which == YARDSTICK_NOTHING)
        return side == SIDE_DEVICE;
    return run->ceilings[side].memory != NULL &&
           (which == kind || (side == SIDE_DEVICE && which != YARDSTICK_WRITE));
}

/* Past the caches or through them: what is faster depends on how much they hold, which no system says that shares
 * them with others. */
static enum gpurun_status choose_stores(struct run *run, enum yardstick kind)
{
    struct ceiling *c = &run->ceilings[SIDE_HOST];
    double best_ms[2] = {INFINITY, INFINITY}, ms;

    if (c->memory == NULL || kind == YARDSTICK_READ)
        return GPURUN_OK;
    for (int i = 0; i < 2 * TRIES; i++) {
        c->past_caches = i % 2;
        GPURUN_TRY(timing_read(&c->yardsticks[kind], &ms));
        best_ms[i % 2] = fmin(best_ms[i % 2], ms);
    }
    c->past_caches = best_ms[1] < best_ms[0];
    return GPURUN_OK;
}

enum gpurun_status ceiling_begin(struct run *run, enum memory_side side)
{
    static timing_step *const works[SIDES][YARDSTICKS] = {
        [SIDE_DEVICE] = {read_device, copy_device, write_device, do_nothing},
        [SIDE_HOST] = {read_host, copy_host, write_host}};
    struct ceiling *c = &run->ceilings[side];
    struct why why;

    if (allocate_ceiling(run, side, &why) != GPURUN_OK) {
        ceiling_end(run, side);
        c->bytes = 0;
        snprintf(c->note, sizeof c->note, "no limit: %.150s", why.text);
    }
    for (int y = 0; y < YARDSTICKS; y++) {
        c->yardsticks[y] = (struct timing){.run = run,
                                           .work = works[side][y],
                                           .user = c,
                                           .side = side,
                                           .bytes = (double)c->bytes,
                                           .once = y == YARDSTICK_NOTHING};
        if (has_yardstick(run, side, (enum yardstick)y))
            GPURUN_TRY(timing_prepare(&c->yardsticks[y]));
    }
    return side == SIDE_HOST ? choose_stores(run, ceiling_kind(&run->ctx.work)) : GPURUN_OK;
}

enum gpurun_status ceiling_read(struct run *run, enum memory_side side, enum yardstick which,
                                int round)
{
    struct ceiling *c = &run->ceilings[side];
    double ms = 0;

    if (!has_yardstick(run, side, which))
        return GPURUN_OK;
    GPURUN_TRY(timing_read(&c->yardsticks[which], &ms));
    samples_add(&c->ms[which], round, ms);
    return GPURUN_OK;
}
