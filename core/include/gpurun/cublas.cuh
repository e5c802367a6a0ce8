/*
 * For a plugin's .cu files whose peer is cuBLAS: opens the library and keeps a handle as long as the process lives, as
 * its start takes longer than most of what it is asked for. Its headers are not needed; a plugin declares the functions
 * that it calls, all of which return a status.
 */
#ifndef GPURUN_CUBLAS_CUH
#define GPURUN_CUBLAS_CUH

#include "gpurun/cuda.h"
#include <dlfcn.h>

enum { GPURUN_CUBLAS_OK = 0, GPURUN_CUBLAS_PLAIN = 0, GPURUN_CUBLAS_TRANSPOSED = 1 };

struct gpurun_cublas {
    void *library;
    void *handle; /* NULL: none is open */
    int device;   /* that the handle is for */
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
};

static struct gpurun_cublas gpurun_cublas_kept;

/* GPURUN_DEVICE where cuBLAS's `function` did not return that all is well. */
static inline enum gpurun_status gpurun_cublas_check(struct gpurun_ctx *ctx, int status,
                                                     const char *function)
{
    if (status == GPURUN_CUBLAS_OK)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_DEVICE, NULL, "%s: status %d", function, status);
}

/* Finds a function of the open library: GPURUN_UNSUPPORTED where it has none of that name. */
template <typename FUNCTION>
static inline enum gpurun_status gpurun_cublas_find(struct gpurun_ctx *ctx, const char *name,
                                                    FUNCTION **function)
{
    *function = reinterpret_cast<FUNCTION *>(dlsym(gpurun_cublas_kept.library, name));
    if (*function)
        return GPURUN_OK;
    return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cuBLAS has no %s", name);
}

static inline enum gpurun_status gpurun_cublas_start(struct gpurun_ctx *ctx)
{
    struct gpurun_cublas *kept = &gpurun_cublas_kept;
    int (*create)(void **handle);

    GPURUN_TRY(gpurun_cublas_find(ctx, "cublasCreate_v2", &create));
    GPURUN_TRY(gpurun_cublas_find(ctx, "cublasDestroy_v2", &kept->destroy));
    GPURUN_TRY(gpurun_cublas_find(ctx, "cublasSetStream_v2", &kept->set_stream));
    if (create(&kept->handle) != GPURUN_CUBLAS_OK)
        return gpurun_fail(ctx, GPURUN_UNSUPPORTED, NULL, "cuBLAS cannot be started here");
    return GPURUN_OK;
}

/* For supported(): a handle for the current device, or GPURUN_UNSUPPORTED and why there is none. */
static inline enum gpurun_status gpurun_cublas_open(struct gpurun_ctx *ctx)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", NULL};
    struct gpurun_cublas *kept = &gpurun_cublas_kept;
    int device;

    GPURUN_CUDA_TRY(ctx, cudaGetDevice(&device));
    if (kept->handle && kept->device == device)
        return GPURUN_OK;
    if (kept->handle)
        kept->destroy(kept->handle);
    kept->handle = NULL;
    kept->device = device;
    kept->library = gpurun_library(ctx, names);
    return kept->library ? gpurun_cublas_start(ctx) : GPURUN_UNSUPPORTED;
}

/* What is called with the handle from now on goes to the job's stream. */
static inline enum gpurun_status gpurun_cublas_follow(struct gpurun_ctx *ctx)
{
    return gpurun_cublas_check(
        ctx, gpurun_cublas_kept.set_stream(gpurun_cublas_kept.handle, gpurun_cuda_stream(ctx)),
        "cublasSetStream");
}

#endif
