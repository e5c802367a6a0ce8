/*
 * Between the files of the cub variant: topk_cub.cu selects plainly, topk_cub_distinct.cu by value. Apart,
 * because CUB takes long to compile.
 */
#ifndef TOPK_CUB_H
#define TOPK_CUB_H

#include "topk.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpurun_status topk_cub_distinct_supported(struct gpurun_ctx *ctx);
size_t topk_cub_distinct_scratch(struct gpurun_ctx *ctx);
enum gpurun_status topk_launch_cub_distinct(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

/* Calls function<TYPE>(...) for the dtype of the options `o`. */
#define TOPK_CUB_DISPATCH(o, function, ...)                                                        \
    ((o)->dtype == GPURUN_INT32    ? function<int32_t>(__VA_ARGS__)                                \
     : (o)->dtype == GPURUN_UINT32 ? function<uint32_t>(__VA_ARGS__)                               \
     : (o)->dtype == GPURUN_INT64  ? function<int64_t>(__VA_ARGS__)                                \
     : (o)->dtype == GPURUN_UINT64 ? function<uint64_t>(__VA_ARGS__)                               \
     : (o)->dtype == GPURUN_FLOAT  ? function<float>(__VA_ARGS__)                                  \
                                   : function<double>(__VA_ARGS__))

#endif
