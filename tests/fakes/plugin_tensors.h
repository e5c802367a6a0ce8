/*
 * plugin_core.h and the rest of a fake core, for tests whose `struct job` also has `tensors` and
 * `tensor_count`: tensors are allocated to the byte, so that a sanitizer sees any step outside them.
 */
#include "plugin_core.h"
#include <stdlib.h>

/* The tensor as the real core describes it; its memory is the test's to free. */
static inline struct gpurun_tensor *fake_allocate(struct gpurun_ctx *ctx, const char *name,
                                                  enum gpurun_role role, enum gpurun_dtype dtype,
                                                  int rank, const int64_t *dims)
{
    struct job *job = (struct job *)ctx;
    struct gpurun_tensor *t = &job->tensors[job->tensor_count++];

    *t = (struct gpurun_tensor){
        .name = name, .role = role, .dtype = dtype, .rank = rank, .elems = 1};
    for (int i = 0; i < rank; i++) {
        t->dims[i] = dims[i];
        t->elems *= dims[i];
    }
    t->bytes = (size_t)t->elems * gpurun_dtype_bytes(dtype);
    t->host = malloc(t->bytes > 0 ? t->bytes : 1);
    return t;
}

/* Every input is a generator. */
static inline enum gpurun_status fake_no_file(struct gpurun_ctx *ctx, const char *name,
                                              struct gpurun_shape *shape)
{
    (void)ctx;
    (void)name;
    (void)shape;
    return GPURUN_OK;
}

/* What a real option holds that says auto. */
static inline double fake_auto_real(void)
{
    const union {
        uint64_t bits;
        double real;
    } both = {GPURUN_AUTO_REAL_BITS};

    return both.real;
}

#define FAKE_CORE(tensor_hook, input_shape_hook)                                                   \
    {                                                                                              \
        .struct_size = sizeof(struct gpurun_core), .tensor = (tensor_hook),                        \
        .input_shape = (input_shape_hook), .fail = fake_fail, .wrong = fake_wrong,                 \
        .note = fake_note                                                                          \
    }
