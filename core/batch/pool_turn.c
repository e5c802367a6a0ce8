/* Whose turn it is to time the CPU: one worker's of all gpuruns on this machine, first come, first served
 * within this one. */
#include "batch/pool.h"

#include "report/progress.h"
#include <stdio.h>

void pool_give_turn(struct pool *p)
{
    struct slot *next = NULL;
    enum lock_state state;
    struct why why;

    for (size_t i = 0; i < p->slot_count; i++) {
        struct slot *s = &p->slots[i];

        if (s->asked_cpu > 0 && (next == NULL || s->turn < next->turn))
            next = s;
    }
    if (p->timing != NULL || next == NULL)
        return;
    state = lock_take(&p->cpu, "cpu", &why);
    p->cpu_is_busy = state == LOCK_BUSY;
    if (p->cpu_is_busy)
        return;
    if (state == LOCK_IMPOSSIBLE && !p->has_said) {
        p->has_said = true;
        progress_clear();
        fprintf(stderr,
                "gpurun: timing on the CPU cannot be locked: %s: let no other gpurun do it\n",
                why.text);
    }
    p->timing = next;
    next->deadline += now_s() - next->asked_cpu;
    next->asked_cpu = 0;
    channel_send(next->worker.fd, json_pack("{ss}", "type", "go")); /* its end is heard later */
}

void pool_take_turn_back(struct pool *p, struct slot *s)
{
    s->asked_cpu = 0;
    if (p->timing != s)
        return;
    p->timing = NULL;
    lock_release(&p->cpu);
    pool_give_turn(p);
}

void pool_ask_turn(struct pool *p, struct slot *s, bool begin)
{
    if (!begin) {
        pool_take_turn_back(p, s);
        return;
    }
    s->asked_cpu = now_s();
    s->turn = ++p->turns;
    pool_give_turn(p);
}
