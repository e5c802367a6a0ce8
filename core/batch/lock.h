/*
 * Locks that hold between all gpuruns of a machine, whoever runs them: one per GPU and one for timing on
 * the CPU. A lock is an flock on an empty file of $GPURUN_LOCK_DIR, or of /tmp: it goes with its owner. The
 * files stay, readable by all, writable by nobody.
 */
#ifndef GPURUN_BATCH_LOCK_H
#define GPURUN_BATCH_LOCK_H

#include "job/why.h"
#include <stdbool.h>

struct lock {
    int fd; /* -1: not held */
};

enum lock_state {
    LOCK_HELD,
    LOCK_BUSY,       /* another has it */
    LOCK_IMPOSSIBLE, /* there can be none */
};

/* Tries, and waits for nothing. *why: "process 123" or "another process" where it is busy, the reason where
 * it is impossible. What is no letter, digit or '-' in `name` becomes '_'. */
enum lock_state lock_take(struct lock *lock, const char *name, struct why *why);

/* Nothing where it is not held. */
void lock_release(struct lock *lock);

#endif
