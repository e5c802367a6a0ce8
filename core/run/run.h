/*
 * One job on one device while a worker runs it: what its parts (tensors, cases, rounds, record) share.
 */
#ifndef GPURUN_RUN_RUN_H
#define GPURUN_RUN_RUN_H

#include "measure/stats.h"
#include "plan/job.h"
#include "plan/registry.h"
#include "run/ceiling.h"
#include "run/device.h"
#include "run/device_state.h"
#include "run/generate.h"
#include "run/sharing.h"

enum { TENSORS_MAX = 16, CASES_MAX = 64, WRONG_SHOWN = 10 };
enum { HASH_TEXT = 17 }; /* a hash in hexadecimal, with its end */

/* A tensor with the allocations behind it. The tensor is first: the plugin holds a pointer to it. */
struct buffer {
    struct gpurun_tensor tensor;
    struct gpurun_tensor declared; /* as setup asked for it: verify may shrink an answer's shape */
    const struct binding *source;  /* input: its key in the job file; NULL: the default generator */
    struct generator generator;    /* used unless the source is a file */
    void *host_block, *dev_block;  /* what was allocated; the tensor starts `offset` elements in */
    void *original_host;           /* inout: the input as it was */
    void *original_dev;
    size_t block_bytes;
    uint64_t hash; /* of an input's bytes */
};

enum case_status {
    CASE_PASSED,
    CASE_FAILED,
    CASE_ERROR,
    CASE_CRASHED,
    CASE_TIMEOUT,
    CASE_UNSUPPORTED,
    CASE_NO_MEMORY,
    CASE_INTERRUPTED,
};

const char *case_status_name(enum case_status status);

struct run_case {
    const struct gpurun_variant *variant; /* NULL: the CPU baseline */
    const char *name;                     /* "cpu" or the variant's */
    enum case_status status;
    char reason[1200];
    bool skipped; /* recorded by an earlier attempt at this job */
    bool done;    /* its record has been sent */
    void *state;  /* device memory private to the variant */
    struct gpurun_proof proof;
    char wrong[WRONG_SHOWN][200]; /* the first wrong elements */
    struct samples time_ms, end_to_end_ms, upload_ms, download_ms;
    struct timing timing; /* how it is read */
    const char *cache;    /* what a timed run found there, "hot" or "cold" */
    size_t state_bytes, scratch_bytes, in_use_bytes; /* device memory, see record_times.c */
    double spent_s;
    char path[121];     /* which way it took, where the plugin says so */
    json_t *shown;      /* what `show` asked for; NULL if nothing */
    json_t *answer;     /* hashes of the answer that was proved, see answer.h; NULL before */
    bool answer_varies; /* the answer that was timed has other bits */
    char case_id[HASH_TEXT], key[HASH_TEXT];
};

struct run {
    struct gpurun_ctx ctx; /* first: the plugin holds a pointer to it */
    const struct job *job;
    const struct plugin *plugin;
    struct core_options core; /* the job's, every auto resolved */
    struct device *device;    /* NULL: CPU only */
    struct device_info device_info;
    int device_index;
    struct sharing sharing; /* of the device, while it was measured */
    struct buffer buffers[TENSORS_MAX];
    int buffer_count;
    int case_count;
    struct run_case *judged;  /* whose answer verify is looking at */
    struct run_case *running; /* whose run_cpu or run_gpu is at work */
    bool in_setup;
    struct why why;      /* of the failure being passed upwards */
    char chosen_by[400]; /* with variant = auto: what chose the variant, see choose.h; "" before */
    void *scratch;
    size_t scratch_bytes;
    struct ceiling ceilings[SIDES];
    uint64_t memory_bytes; /* that the process may take; 0: nobody says */
    void *overwritten;     /* device memory, see timing.c */
    void *spoiler;         /* host memory that pushes the CPU's caches out, see sample.c */
    size_t spoiler_bytes;
    int rounds;
    double waited_s; /* for others that timed the CPU: no part of any measure of time */
    struct device_state device_state; /* during the rounds */
    const char *stop; /* why the rounds ended: repeat, precise, cap or max_time; NULL before */
    bool is_settled;  /* warm-up went on until times were steady */
    char started[32]; /* UTC, ISO 8601 */
    struct run_case cases[CASES_MAX]; /* last, for those behind case_count are never touched */
};

/* Services for plugins; a run's ctx.core points to it. */
extern const struct gpurun_core run_core;

/* Fills the parts that need no data: options parsed, ctx prepared. setup has not run yet. Reasons carry
 * file, line and key. */
enum gpurun_status run_prepare(struct run *run, const struct job *job, const struct plugin *plugin,
                               struct faults *faults);

/* setup, under run->in_setup; afterwards every key of the job file that names a tensor has been checked. */
enum gpurun_status run_setup(struct run *run);

/* After run_setup: the shared keys (of [global], of -s) that mean nothing to this plugin, each with a text
 * that says so. That is a fault where no job knows the key. */
json_t *run_foreign_keys(const struct run *run);

/* teardown and everything that run_prepare and the tensors allocated. */
void run_finish(struct run *run);

/* Turns the device's or the core's own failure into the run's reason. */
enum gpurun_status run_fail(struct run *run, enum gpurun_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Seconds on a clock that only goes forward. */
double now_s(void);

#endif
