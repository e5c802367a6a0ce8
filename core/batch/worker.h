/*
 * A worker: a child process that loads plugins, owns a device and does what it is told over a channel.
 * The parent never loads a plugin and never touches CUDA, so whatever happens in here costs one case. No process
 * that a plugin started outlives the worker.
 *
 * Commands: {"do":"check","job":I,"count":N,"options":BOOL}  {"do":"run","job":I,"skip":[NAME...],"device":I,"sharers":N}
 * {"do":"identify","job":I,"device":I}  {"do":"describe","plugin":NAME}  {"do":"devices"}
 * {"do":"probe","device":I}  {"do":"selftest","plugin":NAME}. Each is answered by any number of messages
 * (those of runner.h) and then {"type":"end"}, with "result", "faults", "load_error" or "end" (enum
 * runner_end) where they apply; a check by one end for each of its N jobs. {"type":"time-cpu","begin":true} asks for
 * leave to time the CPU: the worker then waits for any message, and says so with false when it is done.
 */
#ifndef GPURUN_BATCH_WORKER_H
#define GPURUN_BATCH_WORKER_H

#include "batch/channel.h"
#include "batch/cpus.h"
#include "batch/keeper.h"
#include "plan/job.h"
#include "run/run.h"
#include <sys/types.h>

struct worker {
    pid_t pid; /* of its keeper (keeper.h), which ends when the worker does; 0: none */
    int fd;
    struct inbox inbox; /* for the owner's channel_take */
    struct cpus cpus;   /* where it runs; set by the owner, kept when the process is replaced */
    struct keeper_page *page;
    uint64_t available; /* bytes that it may take where the job does not say; 0: no limit */
    int start_error;    /* errno of a worker_start that failed */
};

/* Forks a worker that serves `plan` (may be NULL). False when the system gives no process. */
bool worker_start(struct worker *w, const struct plan *plan);

/* Sends a command, which it takes over, to the worker, started first if there is none. False when that fails. */
bool worker_command(struct worker *w, const struct plan *plan, json_t *command);

/* True when its keeper has ended: nothing more will be sent, even where a process that the plugin left keeps the
 * channel open. */
bool worker_has_ended(const struct worker *w);

/* Ends it, kindly when it is idle, else at once. */
void worker_stop(struct worker *w, bool kindly);

/* After CHANNEL_ENDED, worker_has_ended or a worker_command that failed: waits for it and says how it died, e.g.
 * "killed by signal 11 (Segmentation fault)", or why it never lived. CASE_NO_MEMORY when it was stopped for what it took, else CASE_CRASHED. */
enum case_status worker_bury(struct worker *w, char *text, size_t size);

#endif
