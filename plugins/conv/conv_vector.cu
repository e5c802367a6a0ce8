/*
 * conv, variant "vector": each row of the image is read once, and feeds one row of sums per row of the mask.
 *
 * What runs is chosen by options, device and where rows start: the first of conv_vector_bytes.cu, conv_vector_product.cu,
 * conv_vector_floats.cu and conv_vector_rows.cu that takes the job, else separable where the mask is, else tiled.
 */
#include "conv_vector.h"

enum gpurun_status conv_vector_supported(struct gpurun_ctx *ctx)
{
    if (conv_vector_bytes_takes(ctx))
        return conv_vector_bytes_check(ctx);
    if (conv_vector_product_takes(ctx))
        return conv_vector_product_check(ctx);
    if (conv_vector_floats_takes(ctx))
        return conv_vector_floats_check(ctx);
    if (conv_vector_rows_takes(ctx))
        return conv_vector_rows_check(ctx);
    return conv_state_of(ctx)->mask.is_separable ? conv_separable_supported(ctx)
                                                 : conv_tiled_supported(ctx);
}

enum gpurun_status conv_launch_vector(struct gpurun_ctx *ctx)
{
    if (conv_vector_bytes_takes(ctx))
        return conv_vector_bytes_launch(ctx);
    if (conv_vector_product_takes(ctx))
        return conv_vector_product_launch(ctx);
    if (conv_vector_floats_takes(ctx))
        return conv_vector_floats_launch(ctx);
    if (conv_vector_rows_takes(ctx))
        return conv_vector_rows_launch(ctx);
    return conv_state_of(ctx)->mask.is_separable ? conv_launch_separable(ctx)
                                                 : conv_launch_tiled(ctx);
}
