/*
 * The keeper of a worker: a process between the parent and the worker that does nothing but watch. It stops a
 * worker that takes more memory than it may, and when the worker ends, or the parent is gone (kill -9
 * included), it ends every process that a plugin left behind, daemons too: they become its children, as it is
 * their subreaper.
 */
#ifndef GPURUN_BATCH_KEEPER_H
#define GPURUN_BATCH_KEEPER_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    KEEPER_STOP = SIGUSR1, /* ends the worker, then itself */
    KEEPER_LOOK = SIGURG,  /* the limit is another; harmless before the keeper waits for signals */
};

/* What the parent and the keeper share; the worker, with its plugins, does not. */
struct keeper_page {
    pid_t parent;
    double patience_s; /* how long it is tried to start the worker where processes are lacking */
    _Atomic uint64_t limit; /* bytes that the worker may take; 0: as many as there are */
    _Atomic uint64_t taken; /* above that, when the worker was stopped for it; else 0 */
    atomic_bool has_ended;  /* then `status` is the worker's, as waitpid gives it */
    _Atomic int status;
    _Atomic int fork_error; /* errno when there is no worker for want of a process */
};

/* For the child of a fork: starts the worker, which calls `work` and must not return from it, and keeps it. The
 * keeper closes all descriptors but the standard ones: only the worker holds its end of the channel, so that the
 * parent sees it closed. */
_Noreturn void keeper_run(struct keeper_page *page, void (*work)(void *user), void *user);

#endif
