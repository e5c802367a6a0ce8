/*
 * conv, variant "vector": each row of the image is read once, and feeds one row of sums per row of the mask.
 *
 * What runs is chosen by options and device alone: conv_vector_bytes.cu, then conv_vector_rows.cu, then what larger masks
 * are best served by: separable where the mask is, tiled where it is not.
 */
#include "conv_vector.h"

enum gpurun_status conv_vector_supported(struct gpurun_ctx *ctx)
{
    if (conv_vector_bytes_takes(ctx))
        return conv_vector_bytes_check(ctx);
    if (conv_vector_rows_takes(ctx))
        return conv_vector_rows_check(ctx);
    return conv_state_of(ctx)->mask.is_separable ? conv_separable_supported(ctx)
                                                 : conv_tiled_supported(ctx);
}

enum gpurun_status conv_launch_vector(struct gpurun_ctx *ctx)
{
    if (conv_vector_bytes_takes(ctx))
        return conv_vector_bytes_launch(ctx);
    if (conv_vector_rows_takes(ctx))
        return conv_vector_rows_launch(ctx);
    return conv_state_of(ctx)->mask.is_separable ? conv_launch_separable(ctx)
                                                 : conv_launch_tiled(ctx);
}
