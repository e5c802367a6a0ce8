/*
 * One GPU, as the runner uses it. A build without CUDA has the same table with only `count`, which says
 * why there is none. Never called in the parent process: after fork a CUDA context does not live on.
 */
#ifndef GPURUN_RUN_DEVICE_H
#define GPURUN_RUN_DEVICE_H

#include "job/why.h"
#include <stdbool.h>

struct device;
struct device_graph;

/* Enqueues work on the device's stream. */
typedef enum gpurun_status device_work(void *user);

struct device_info {
    char name[256];
    char uuid[48]; /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
    struct gpurun_device limits;
    int driver, runtime; /* CUDA versions, 1000 * major + 10 * minor */
};

/* All functions that return a status leave the reason in *why. Sizes are bytes. Pointers come from one of
 * the allocators and go back to the matching free with NULL allowed. */
struct device_api {
    /* How many usable devices there are; 0 with the reason in *why. */
    int (*count)(struct why *why);
    enum gpurun_status (*info)(int index, struct device_info *out, struct why *why);
    enum gpurun_status (*open)(int index, struct device **out, struct why *why);
    void (*close)(struct device *d);
    gpurun_stream (*stream)(struct device *d);
    size_t (*free_bytes)(struct device *d);

    enum gpurun_status (*alloc)(struct device *d, size_t bytes, void **out, struct why *why);
    enum gpurun_status (*alloc_managed)(struct device *d, size_t bytes, void **out,
                                        struct why *why);
    enum gpurun_status (*alloc_host)(struct device *d, size_t bytes, bool mapped, void **out,
                                     struct why *why);
    enum gpurun_status (*device_view)(struct device *d, void *mapped_host, void **out,
                                      struct why *why);
    void (*release)(struct device *d, void *pointer);
    void (*release_host)(struct device *d, void *pointer);

    /* Enqueue on the stream; copies from and to pageable memory may block. */
    enum gpurun_status (*copy)(struct device *d, void *to, const void *from, size_t bytes,
                               struct why *why);
    enum gpurun_status (*fill)(struct device *d, void *pointer, int byte, size_t bytes,
                               struct why *why);
    /* Managed pages: to the device or home to the host. */
    enum gpurun_status (*prefetch)(struct device *d, void *pointer, size_t bytes, bool to_host,
                                   struct why *why);
    /* The ceiling of reading: every byte of the range once, 16-byte loads, nothing written. */
    enum gpurun_status (*read)(struct device *d, const void *pointer, size_t bytes,
                               struct why *why);

    /* Waits for the stream. A failed kernel shows here at the latest. */
    enum gpurun_status (*sync)(struct device *d, struct why *why);
    /* Events around what is enqueued between the two; timer_stop waits and gives milliseconds. With `hold`
     * the device waits before the first event until timer_stop has enqueued the second, so that the host
     * is ahead of it and no gap between launches is in the reading; for a quarter of a second at the most:
     * then *ran_out says so. Each timer_start has its timer_stop, also after a failure between them. */
    enum gpurun_status (*timer_start)(struct device *d, bool hold, struct why *why);
    enum gpurun_status (*timer_stop)(struct device *d, double *ms, bool *ran_out, struct why *why);
    /* Whether the device can be held: not where each launch waits for the one before it to end. */
    bool (*can_hold)(struct device *d, struct why *why);

    /* What `work` enqueues, `repeats` times over, as one graph, which has been run once; `user` is kept as
     * long as the graph. GPURUN_UNSUPPORTED with the reason where that cannot be; the stream is then as
     * before. graph_free takes NULL. */
    enum gpurun_status (*graph_make)(struct device *d, device_work *work, void *user, int repeats,
                                     struct device_graph **out, struct why *why);
    enum gpurun_status (*graph_launch)(struct device *d, struct device_graph *graph,
                                       struct why *why);
    void (*graph_free)(struct device_graph *graph);

    /* Enqueues a kernel that only waits, by the device's own clock. */
    enum gpurun_status (*spin)(struct device *d, double seconds, struct why *why);
};

extern const struct device_api device_api;

#endif
