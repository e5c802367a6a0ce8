/*
 * What the parts of every_size share: the sweep, which all threads look at, and one thread's part in it.
 */
#ifndef EVERY_SIZE_H
#define EVERY_SIZE_H

#include "run/run.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    SETTINGS_MAX = 32,
    BLOCK_SIZES = 1024,   /* sizes of a thread between two looks at its hashes */
    SAMPLED_EVERY = 1009, /* of these sizes verify judges every answer */
    GUARD_BYTES = 256,    /* behind each answer: who writes there gives another hash */
    TOLD_MAX = 10,        /* wrong answers that are told of each variant */
};

/* The command line. */
struct arguments {
    const char *so_path, *variants;
    const char *keys[SETTINGS_MAX], *texts[SETTINGS_MAX];
    int setting_count;
    int64_t from, to, threads;
    double seconds;
};

/* What a variant did. */
struct tally {
    int64_t sizes, verified, unsupported, wrong;
    double host_s;    /* of the threads: launches wait where the device is behind */
    double sampled_s; /* of the runs that were verified, from start to end */
    char reason[200]; /* the last of `unsupported` */
};

struct every {
    struct plugin plugin;
    struct job job; /* the options that were given, for run_core's messages */
    struct setting settings[SETTINGS_MAX];
    struct device_info device;
    void *options; /* as the command line leaves them; the size is not yet in them */
    const struct gpurun_option *size;
    const struct gpurun_variant *variants[CASES_MAX];
    int variant_count;
    int peer; /* among `variants`; -1: the first that runs is what the others are held against */
    int64_t from, to;
    double seconds; /* 0: until all is done */
    int threads;
    /* As setup asks for them at `to`. Inputs: filled, on the host and the device, for all threads. */
    struct gpurun_tensor largest[TENSORS_MAX];
    int tensor_count;
    double start_s, end_s;
    _Atomic int64_t next; /* sizes below it are given out */
    _Atomic bool stop;
    pthread_mutex_t lock; /* of the rest, and of printing */
    double told_s;        /* when progress was told */
    struct tally tallies[CASES_MAX];
    int64_t refused;  /* sizes that setup does not take */
    char reason[200]; /* the last of them */
    bool has_failed;  /* a thread could not go on */
};

/* One thread's: a size after the other. */
struct worker {
    struct run run; /* what run_core needs to serve the plugin; first, as in the core */
    struct every *every;
    void *host[TENSORS_MAX],
        *dev[TENSORS_MAX]; /* of outputs; the device's are poison between runs */
    void *scratch, *state;
    size_t scratch_bytes, state_bytes;
    uint64_t *hashes, *hashes_host;        /* BLOCK_SIZES rows of CASES_MAX, and a spare one */
    bool has_hash[BLOCK_SIZES][CASES_MAX]; /* false where verify has refused the answer too */
    int64_t sizes[BLOCK_SIZES];
    int size_count;
    struct tally tallies[CASES_MAX];
    int64_t n;
    double start_s;      /* of its first size */
    const char *running; /* the variant that was run last, for messages */
};

/* One for setup alone; after worker_open with a device, a stream and memory of its own. Reasons are in
 * run.why. */
void worker_init(struct worker *w, struct every *every);
enum gpurun_status worker_open(struct worker *w);
void worker_close(struct worker *w);

/* setup at a size, with its tensors in place; GPURUN_INVALID and GPURUN_UNSUPPORTED: it is not taken. In any
 * case worker_end ends it. */
enum gpurun_status worker_begin(struct worker *w, int64_t n);
void worker_end(struct worker *w);

/* Whether the variant runs here: GPURUN_UNSUPPORTED with the reason. Then it has its memory. */
enum gpurun_status worker_prepare(struct worker *w, const struct gpurun_variant *v);

/* Hashes the answer into a slot, which leaves poison. */
enum gpurun_status worker_hash(struct worker *w, uint64_t *slot);

/* Waits for the answer, brings it to the host with its guard, and has it judged: *wrong elements, the first of
 * them in run.judged. */
enum gpurun_status worker_judge(struct worker *w, const struct gpurun_variant *v, int64_t *wrong);

/* Bytes of an output that are hashed, poisoned and brought back. */
size_t worker_answer_bytes(const struct gpurun_tensor *t);

/* The plugin, its options, variants and size, and what is to be done. */
enum gpurun_status every_prepare(struct every *s, const struct arguments *a, struct why *why);

/* The tensors at the largest size, of which those of all others are prefixes, and the inputs' contents. What it has
 * made, every_end_inputs frees, also after a failure: GPURUN_INVALID where an input is not as it was. */
enum gpurun_status every_make_inputs(struct every *s, struct device *device, struct why *why);
enum gpurun_status every_end_inputs(struct every *s, struct device *device, struct why *why);

/* A thread of the sweep: sizes until there are no more, or one fails. Takes the sweep. */
void *every_thread(void *every);

#endif
