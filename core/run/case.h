/*
 * One case of a run: whether it can run, its memory, a run of it, and the proof of its answer.
 */
#ifndef GPURUN_RUN_CASE_H
#define GPURUN_RUN_CASE_H

#include "run/run.h"

/* GPURUN_OK, or why a variant cannot run here. */
enum gpurun_status case_check_variant(struct run *run, const struct gpurun_variant *v);

/* Before a case's first run: whether its variant can run here, then its scratch and private state. */
enum gpurun_status case_prepare(struct run *run, struct run_case *c);

/* run_cpu, or run_gpu, on what is now in the tensors. */
enum gpurun_status case_call(struct run *run, struct run_case *c);

/* One untimed run of a case on tensors as they were, enqueued on the device or done on the CPU. */
enum gpurun_status case_run(struct run *run, struct run_case *c);

/* Runs, brings back and judges a case whose outputs were poisoned before: the proof. */
enum gpurun_status case_prove(struct run *run, struct run_case *c);

/* verify on the answer that is now in the host tensors; sets the case's status. */
enum gpurun_status case_judge(struct run *run, struct run_case *c);

/* Notes that a case has ended badly with `status` and run->why. */
void case_end(struct run *run, struct run_case *c, enum gpurun_status status);

/* True while a case has neither failed nor been skipped. */
bool case_is_live(const struct run_case *c);

#endif
