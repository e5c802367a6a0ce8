/*
 * A fake core for tests on a device, with managed memory, which host and device both see. The test's
 * `struct job` starts with ctx, options, state and what plugin_tensors.h needs, and also has `memory`, one
 * for each tensor, and `offset`: how many elements inputs begin behind an aligned place.
 */
#include "plugin_tensors.h"
#include <check.h>
#include <cuda_runtime_api.h>
#include <string.h>

#define REQUIRE(call) ck_assert_msg((call) == cudaSuccess, "%s", #call)

static inline struct gpurun_tensor *managed_tensor(struct gpurun_ctx *ctx, const char *name,
                                                   enum gpurun_role role, enum gpurun_dtype dtype,
                                                   int rank, const int64_t *dims)
{
    struct job *job = (struct job *)ctx;
    void **memory = &job->memory[job->tensor_count];
    struct gpurun_tensor *t = fake_allocate(ctx, name, role, dtype, rank, dims);
    const size_t before = role == GPURUN_IN ? (size_t)job->offset * gpurun_dtype_bytes(dtype) : 0;

    free(t->host);
    REQUIRE(cudaMallocManaged(memory, before + t->bytes + 1, cudaMemAttachGlobal));
    t->host = t->dev = (char *)*memory + before;
    return t;
}

static const struct gpurun_core managed_core = FAKE_CORE(managed_tensor, fake_no_file);

/* Sets a job up on the first device, whose options are filled in. */
static inline void managed_setup(struct job *job)
{
    struct cudaDeviceProp device;

    REQUIRE(cudaGetDeviceProperties(&device, 0));
    job->ctx = (struct gpurun_ctx){
        .core = &managed_core,
        .options = &job->options,
        .state = &job->state,
        .threads = 1,
        .device = {.compute = 10 * device.major + device.minor,
                   .sm_count = device.multiProcessorCount,
                   .shared_bytes = device.sharedMemPerBlockOptin},
    };
    ck_assert_msg(gpurun_plugin.setup(&job->ctx) == GPURUN_OK, "%s", job->message);
}

/* Overwrites the outputs. */
static inline void managed_poison(struct job *job)
{
    for (int i = 1; i < job->tensor_count; i++)
        memset(job->tensors[i].host, GPURUN_POISON, job->tensors[i].bytes);
}

/* Frees the job, and what the test has put into ctx. */
static inline void managed_free(struct job *job)
{
    gpurun_plugin.teardown(&job->ctx);
    REQUIRE(cudaFree(job->ctx.scratch));
    REQUIRE(cudaFree(job->ctx.variant_state));
    for (int i = 0; i < job->tensor_count; i++)
        REQUIRE(cudaFree(job->memory[i]));
    free(job);
}
