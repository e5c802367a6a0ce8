/*
 * Between the files of the cub variant: scan_cub.cu sums, scan_cub_order.cu finds maxima and minima. Apart,
 * because CUB takes long to compile.
 */
#ifndef SCAN_CUB_H
#define SCAN_CUB_H

#include "scan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpurun_status scan_cub_order_supported(struct gpurun_ctx *ctx);
size_t scan_cub_order_scratch(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_cub_order(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
