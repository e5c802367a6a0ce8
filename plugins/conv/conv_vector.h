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

/* Bytes through tensor cores: masks that are a product of a row and a column whose weights add up to 2055 and 2048 at
 * most. */
bool conv_vector_product_takes(const struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_product_check(struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_product_launch(struct gpurun_ctx *ctx);

/* Floats, rows of sums in registers: square masks of 3, 5 and 7, rows that start at multiples of 16 bytes, no crop. */
bool conv_vector_floats_takes(const struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_floats_check(struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_floats_launch(struct gpurun_ctx *ctx);

/* Rows of sums in registers: square masks of 3, 5 and 7. */
bool conv_vector_rows_takes(const struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_rows_check(struct gpurun_ctx *ctx);
enum gpurun_status conv_vector_rows_launch(struct gpurun_ctx *ctx);

#endif
