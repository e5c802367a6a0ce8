/*
 * What a plugin can change of the process it runs in: working folder, umask, locale, floating-point mode, signal
 * handlers and mask, standard streams, processes and threads it leaves behind. The core notes all of that
 * before it loads the first plugin, puts back what it can after every hook, and knows in the end whether a
 * worker is as it was. A process that never called guard_note has no guard: all below does nothing there.
 */
#ifndef GPURUN_RUN_GUARD_H
#define GPURUN_RUN_GUARD_H

#include <stdbool.h>

/* How the process is now is how it is to be. */
void guard_note(void);

/* A hook of a plugin is called next. Costs nothing, so it may stand inside a timed interval. */
void guard_expect(void);

/* Puts back what differs, if a hook was called since it was last done. Some microseconds: not for inside a timed
 * interval. */
void guard_restore(void);

/* Loading is over: what it changed is put back, and not held against the worker. */
void guard_forgive(void);

/* A device was opened. Its driver keeps threads, which say nothing from now on, and memory, once. */
void guard_open_device(void);

/* False when something had to be put back since guard_note, or when processes, threads or much memory were left
 * that nobody can put back: the worker had better be replaced. */
bool guard_is_unharmed(void);

#endif
