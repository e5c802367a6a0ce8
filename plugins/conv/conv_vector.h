/*
 * Between the files of the vector variant: its two kernels, and which masks each is made for.
 */
#ifndef CONV_VECTOR_H
#define CONV_VECTOR_H

#include "conv.h"

/* Bytes through tensor cores: weights of a signed byte, 7 rows at most, as wide as 32 bytes have room for. */
bool conv_vector_bytes_takes(const struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_bytes_check(struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_bytes_launch(struct gpurun_ctx *ctx);

/* Rows of sums in registers: square masks of 3, 5 and 7. */
bool conv_vector_rows_takes(const struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_rows_check(struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_rows_launch(struct gpurun_ctx *ctx);

#endif
