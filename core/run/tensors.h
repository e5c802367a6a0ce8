/*
 * The bytes of a run's tensors under its memory strategy: allocated, filled, carried, poisoned, checked
 * and freed. `host` is what run_cpu and verify use, `dev` what kernels are given; with zerocopy they are
 * the same bytes, with managed memory `host` is an ordinary copy so that the baseline never waits for
 * pages. All failures leave their reason in run->why.
 */
#ifndef GPURUN_RUN_TENSORS_H
#define GPURUN_RUN_TENSORS_H

#include "run/run.h"

enum gpurun_status tensors_allocate(struct run *run);

/* Reads or generates every input, hashes it, and puts it where the device sees it. */
enum gpurun_status tensors_fill(struct run *run);

void tensors_free(struct run *run);

/* Brings inputs to the device, or answers back to the host, by the strategy; waits. */
enum gpurun_status tensors_upload(struct run *run);
enum gpurun_status tensors_download(struct run *run);

/* Managed pages home, so that an end-to-end run starts with its data on the host. */
enum gpurun_status tensors_bring_home(struct run *run);

/* Puts `inout` tensors back as they were; outside any timed interval. */
enum gpurun_status tensors_restore(struct run *run, bool on_device);

/* Gives answers back the shape that setup asked for. */
void tensors_reset_shapes(struct run *run);

/* Overwrites outputs so that an answer that is not written cannot look right. */
enum gpurun_status tensors_poison(struct run *run, bool on_device);

/* GPURUN_OK when every `in` tensor still holds the bytes that it was filled with. */
enum gpurun_status tensors_check_inputs(struct run *run, bool on_device);

/* Writes every output that the job asks for. */
enum gpurun_status tensors_write_outputs(struct run *run);

/* The first elements, or the one element, of each output as JSON; NULL when `show` is 0. */
json_t *tensors_show(const struct run *run);

#endif
