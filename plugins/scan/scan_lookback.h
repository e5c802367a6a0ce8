/*
 * Between the files of the lookback variant: scan_lookback.cu runs everywhere and is quicker on little data,
 * scan_lookback_bulk.cu needs Hopper's copy engine and is quicker on much.
 */
#ifndef SCAN_LOOKBACK_H
#define SCAN_LOOKBACK_H

#include "scan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LOOKBACK_HEADER = 256 }; /* bytes of the variant's state before the words of tiles */

/* Whether the second kernel can serve this job on this device, and is worth it. */
bool scan_lookback_bulk_fits(struct gpurun_ctx *ctx);
enum gpurun_status scan_launch_lookback_bulk(struct gpurun_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
