/*
 * conv: a small mask laid over every pixel of an image.
 */
#include "conv.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONV_DEFAULT_SIZE = 512, /* pixels on a side */
    CONV_DEFAULT_CHANNELS = 3,
    SHIFT_MAX = 40, /* bits behind the point of scale and bias */
};

#define SIDE_MAX  536800000.0 /* a row of 4 channels, a tile and a halo still count in 31 bits */
#define PITCH_MAX 2147483647.0
#define VALUE_MAX                                                                                  \
    1e6 /* of scale and bias, in magnitude: with 40 bits behind the point 61 bits in all */

#define OPTION(field) .offset = offsetof(struct conv_options, field), .name = #field

static const char *const dtypes[] = {"uint8", "float", NULL};
static const char *const modes[] = {"correlate", "convolve", NULL};
static const char *const rounds[] = {"nearest", "even", "down", NULL};

static const struct gpurun_option options[] = {
    {OPTION(mask), .type = GPURUN_OPTION_TEXT, .def = "sharpen3",
     .help =
         "sharpen3 sharpen5, box gaussian sobel_x sobel_y laplacian with a size (box5), or rows of "
         "numbers: 1 2 1 / 2 4 2 / 1 2 1"},
    {OPTION(sigma), .type = GPURUN_OPTION_REAL, .def = "auto", .max = 1000, .unit = "pixels",
     .flags = GPURUN_OPTION_AUTO,
     .help = "of a gaussian; auto: 1 2 1 and 1 4 6 4 1 for sizes 3 and 5, else by the size"},
    {OPTION(mode), .type = GPURUN_OPTION_CHOICE, .def = "correlate", .choices = modes,
     .help = "lay the mask on as it stands, or turned by half a turn"},
    {OPTION(border), .type = GPURUN_OPTION_TEXT, .def = "replicate",
     .help =
         "beyond the edge: constant:V replicate reflect reflect101 wrap; crop: a smaller answer; "
         "frame:V: V where the mask would reach beyond"},
    {OPTION(scale), .type = GPURUN_OPTION_REAL, .def = "auto", .min = -VALUE_MAX, .max = VALUE_MAX,
     .flags = GPURUN_OPTION_AUTO,
     .help = "factor of the sum; auto: 1, or what makes box and gaussian of uint8 average"},
    {OPTION(bias), .type = GPURUN_OPTION_REAL, .def = "0", .min = -VALUE_MAX, .max = VALUE_MAX,
     .help = "added to the scaled sum"},
    {OPTION(round), .type = GPURUN_OPTION_CHOICE, .def = "nearest", .choices = rounds,
     .help = "uint8: to nearest with halves up, with halves to even, or down"},
    {OPTION(dtype), .type = GPURUN_OPTION_DTYPE, .def = "auto", .choices = dtypes,
     .flags = GPURUN_OPTION_AUTO, .help = "element type; auto: the file's, else uint8"},
    {OPTION(width), .type = GPURUN_OPTION_INT, .def = "auto", .max = SIDE_MAX, .unit = "pixels",
     .flags = GPURUN_OPTION_AUTO, .help = "pixels in a row; auto: the file's, else 512"},
    {OPTION(height), .type = GPURUN_OPTION_INT, .def = "auto", .max = SIDE_MAX, .unit = "rows",
     .flags = GPURUN_OPTION_AUTO, .help = "rows; auto: the file's, else 512"},
    {OPTION(channels), .type = GPURUN_OPTION_INT, .def = "auto", .min = 1, .max = 4,
     .flags = GPURUN_OPTION_AUTO,
     .help = "1, 3 or 4, each filtered alone; auto: the file's, else 3"},
    {OPTION(pitch), .type = GPURUN_OPTION_INT, .def = "0", .max = PITCH_MAX, .unit = "elements",
     .help = "from row to row, in both images; 0: no padding between rows"},
};

#ifdef GPURUN_WITH_CUDA
static const struct gpurun_variant variants[] = {
    {.name = "naive",
     .idea = "one thread per element; pixels and mask are read from global memory",
     .supported = conv_naive_supported,
     .scratch_bytes = conv_naive_scratch,
     .launch = conv_launch_naive},
    {.name = "constant",
     .idea = "the same with the mask in constant memory",
     .supported = conv_constant_supported,
     .launch = conv_launch_constant},
    {.name = "tiled",
     .idea = "a tile and its surroundings in shared memory",
     .supported = conv_tiled_supported,
     .launch = conv_launch_tiled},
    {.name = "separable",
     .idea = "along rows into shared memory, then along columns, where the mask is such a product",
     .supported = conv_separable_supported,
     .launch = conv_launch_separable},
    {.name = "vector",
     .idea = "each row is read once and feeds a row of sums per mask row; bytes go through tensor "
             "cores",
     .supported = conv_vector_supported,
     .launch = conv_launch_vector},
    {.name = "npp",
     .idea = "nppiFilterBorder of NVIDIA's performance primitives",
     .capabilities = GPURUN_PEER,
     .supported = conv_npp_supported,
     .state_bytes = conv_npp_state,
     .launch = conv_launch_npp},
};
#endif

/* --- the image ---------------------------------------------------------------------------------------- */

/* A file of two dimensions is [height][elements of a row], one of three [height][width][channels]. */
static enum gpurun_status fit_shape(struct gpurun_ctx *ctx, struct conv_options *o,
                                    const struct gpurun_shape *file)
{
    const int64_t per_row = file->dims[1] * (file->rank == 3 ? file->dims[2] : 1);

    if (file->rank != 2 && file->rank != 3)
        return gpurun_fail(ctx, GPURUN_INVALID, "input",
                           "the file has %d dimensions; an image has 2, or 3 with channels",
                           file->rank);
    if (o->height != GPURUN_AUTO && o->height != file->dims[0])
        return gpurun_fail(ctx, GPURUN_INVALID, "height", "%" PRId64 ", but the file has %" PRId64,
                           o->height, file->dims[0]);
    o->height = file->dims[0];
    if (o->channels == GPURUN_AUTO)
        o->channels = file->rank == 3 ? file->dims[2] : 1;
    if (file->rank == 3 && o->channels != file->dims[2])
        return gpurun_fail(ctx, GPURUN_INVALID, "channels",
                           "%" PRId64 ", but the file has %" PRId64, o->channels, file->dims[2]);
    if (o->channels == 2)
        return GPURUN_OK; /* refused below */
    if (o->width == GPURUN_AUTO)
        o->width = per_row / o->channels;
    if (o->pitch == 0)
        o->pitch = o->width * o->channels;
    if (o->pitch != per_row)
        return gpurun_fail(ctx, GPURUN_INVALID, o->width == per_row ? "channels" : "width",
                           "%" PRId64 " pixels of %" PRId64 " channels, but a row of the file has "
                           "%" PRId64 " elements; pitch says where rows are padded",
                           o->width, o->channels, per_row);
    return GPURUN_OK;
}

static enum gpurun_status fit_input(struct gpurun_ctx *ctx, struct conv_options *o)
{
    struct gpurun_shape shape = {.dtype = o->dtype};

    GPURUN_TRY(gpurun_input_shape(ctx, "image", &shape));
    o->dtype = shape.dtype == GPURUN_AUTO ? GPURUN_UINT8 : shape.dtype;
    if (o->dtype != GPURUN_UINT8 && o->dtype != GPURUN_FLOAT)
        return gpurun_fail(ctx, GPURUN_INVALID, "dtype", "the file's is %s; conv takes uint8 float",
                           gpurun_dtype_name((enum gpurun_dtype)o->dtype));
    if (shape.rank > 0)
        GPURUN_TRY(fit_shape(ctx, o, &shape));
    if (o->width == GPURUN_AUTO)
        o->width = CONV_DEFAULT_SIZE;
    if (o->height == GPURUN_AUTO)
        o->height = CONV_DEFAULT_SIZE;
    if (o->channels == GPURUN_AUTO)
        o->channels = CONV_DEFAULT_CHANNELS;
    return GPURUN_OK;
}

static enum gpurun_status check_shape(struct gpurun_ctx *ctx, const struct conv_options *o)
{
    const int64_t per_row = o->width * o->channels;

    if (o->channels != 1 && o->channels != 3 && o->channels != 4)
        return gpurun_fail(ctx, GPURUN_INVALID, "channels",
                           "%" PRId64
                           ": conv takes 1 (gray), 3 or 4; gray with alpha must be made one "
                           "of them first",
                           o->channels);
    if ((double)o->width > SIDE_MAX || (double)o->height > SIDE_MAX)
        return gpurun_fail(ctx, GPURUN_INVALID, "width",
                           "%" PRId64 " x %" PRId64 " pixels; a side has at most %.0f", o->width,
                           o->height, SIDE_MAX);
    if (o->pitch != 0 && o->pitch < per_row)
        return gpurun_fail(ctx, GPURUN_INVALID, "pitch",
                           "%" PRId64 " is less than the %" PRId64 " elements of a row", o->pitch,
                           per_row);
    return GPURUN_OK;
}

/* --- mask, border, rounding ------------------------------------------------------------------------------ */

static enum gpurun_status set_mask(struct gpurun_ctx *ctx, struct conv_options *o)
{
    struct conv_state *s = ctx->state;
    char why[300];

    if (gpurun_real_is_auto(o->sigma))
        o->sigma = 0;
    else if (!(o->sigma > 0))
        return gpurun_fail(ctx, GPURUN_INVALID, "sigma", "must be above 0");
    if (!conv_mask_parse(&s->mask, o->mask, o->dtype == GPURUN_FLOAT, o->sigma, why, sizeof why))
        return gpurun_fail(ctx, GPURUN_INVALID, "mask", "%s", why);
    o->sigma = s->mask.sigma;
    if (o->mode == CONV_CONVOLVE)
        conv_mask_flip(&s->mask);
    return GPURUN_OK;
}

static enum gpurun_status set_border(struct gpurun_ctx *ctx, const struct conv_options *o)
{
    static const char *const words[] = {"constant", "replicate", "reflect", "reflect101",
                                        "wrap",     "crop",      "frame"};
    struct conv_state *s = ctx->state;
    const size_t length = strcspn(o->border, ":");
    const bool has_value = o->border[length] == ':';
    const char *const text = o->border + length + (has_value ? 1 : 0);
    char *end;
    int i = 0;

    while (i <= CONV_FRAME &&
           (strlen(words[i]) != length || strncmp(o->border, words[i], length) != 0))
        i++;
    if (i > CONV_FRAME)
        return gpurun_fail(ctx, GPURUN_INVALID, "border",
                           "'%s' is no border; there are constant:V replicate reflect reflect101 "
                           "wrap crop frame:V",
                           o->border);
    s->border = (enum conv_border)i;
    if (has_value != (i == CONV_CONSTANT || i == CONV_FRAME))
        return gpurun_fail(ctx, GPURUN_INVALID, "border",
                           has_value ? "%s takes no value" : "%s needs a value, as in %s:0",
                           words[i], words[i]);
    if (!has_value)
        return GPURUN_OK;
    s->fill = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite((float)s->fill))
        return gpurun_fail(ctx, GPURUN_INVALID, "border", "'%s' is not a number", text);
    if (o->dtype == GPURUN_UINT8 && !(s->fill >= 0 && s->fill <= 255 && s->fill == rint(s->fill)))
        return gpurun_fail(ctx, GPURUN_INVALID, "border",
                           "%s is not a value of uint8: a whole number from 0 to 255", text);
    return GPURUN_OK;
}

static bool is_whole(double value)
{
    return value == rint(value);
}

/* Scale and bias in fixed point: with as few bits behind the point as hold both exactly, else to nearest with
 * as many as there is room for. */
static void set_tail(struct conv_tail *tail, const struct conv_options *o, double magnitude)
{
    double most;
    int shift = 0;

    while (shift < SHIFT_MAX &&
           !(is_whole(ldexp(o->scale, shift)) && is_whole(ldexp(o->bias, shift))) &&
           fabs(ldexp(o->scale, shift + 1)) < 0x1p30)
        shift++;
    tail->shift = shift;
    tail->multiplier = (int32_t)rint(ldexp(o->scale, shift));
    tail->add = (int64_t)rint(ldexp(o->bias, shift));
    if (shift > 0 && o->round != CONV_DOWN)
        tail->add += (int64_t)1 << (shift - 1);
    tail->is_even = shift > 0 && o->round == CONV_EVEN;
    most = 255 * magnitude * fabs((double)tail->multiplier) + fabs((double)tail->add);
    tail->is_wide = shift > 30 || most > INT32_MAX;
}

static enum gpurun_status set_scale(struct gpurun_ctx *ctx, struct conv_options *o)
{
    struct conv_state *s = ctx->state;

    if (gpurun_real_is_auto(o->scale))
        o->scale = s->mask.shift > 0 ? ldexp(1, -s->mask.shift) : 1;
    if (!isfinite(o->scale) || !isfinite(o->bias))
        return gpurun_fail(ctx, GPURUN_INVALID, isfinite(o->scale) ? "bias" : "scale",
                           "must be a number");
    if (o->dtype == GPURUN_UINT8)
        set_tail(&s->tail, o, s->mask.magnitude);
    return GPURUN_OK;
}

/* --- hooks -------------------------------------------------------------------------------------------------- */

/* [height][width][channels], without the last where it is 1; with padding [height][pitch]. */
static struct gpurun_tensor *ask_image(struct gpurun_ctx *ctx, const char *name,
                                       enum gpurun_role role, int64_t width, int64_t height)
{
    const struct conv_options *o = ctx->options;
    const bool is_padded = conv_is_padded(ctx);
    const int64_t dims[3] = {height, is_padded ? o->pitch : width, o->channels};

    return gpurun_tensor(ctx, name, role, (enum gpurun_dtype)o->dtype,
                         o->channels == 1 || is_padded ? 2 : 3, dims);
}

static int64_t cropped(int64_t side, int mask_side)
{
    return side < mask_side ? 0 : side - mask_side + 1;
}

static enum gpurun_status ask_tensors(struct gpurun_ctx *ctx, const struct conv_options *o)
{
    struct conv_state *s = ctx->state;
    const bool is_cropped = s->border == CONV_CROP;

    s->out_width = is_cropped ? cropped(o->width, s->mask.width) : o->width;
    s->out_height = is_cropped ? cropped(o->height, s->mask.height) : o->height;
    s->in_pitch = conv_is_padded(ctx) ? o->pitch : o->width * o->channels;
    s->out_pitch = conv_is_padded(ctx) ? o->pitch : s->out_width * o->channels;
    s->image = ask_image(ctx, "image", GPURUN_IN, o->width, o->height);
    s->filtered = ask_image(ctx, "filtered", GPURUN_OUT, s->out_width, s->out_height);
    return s->image && s->filtered ? GPURUN_OK : GPURUN_INVALID;
}

static enum gpurun_status setup(struct gpurun_ctx *ctx)
{
    struct conv_options *o = ctx->options;
    struct conv_state *s = ctx->state;
    double pixels, size;

    GPURUN_TRY(fit_input(ctx, o));
    GPURUN_TRY(check_shape(ctx, o));
    GPURUN_TRY(set_mask(ctx, o));
    GPURUN_TRY(set_border(ctx, o));
    GPURUN_TRY(set_scale(ctx, o));
    GPURUN_TRY(ask_tensors(ctx, o));

    size = (double)gpurun_dtype_bytes((enum gpurun_dtype)o->dtype) * (double)o->channels;
    pixels = (double)s->out_width * (double)s->out_height;
    ctx->work = (struct gpurun_work){
        .bytes_read = pixels > 0 ? size * (double)o->width * (double)o->height : 0,
        .bytes_written = size * pixels,
        .elements = pixels,
    };
    return GPURUN_OK;
}

#ifdef GPURUN_WITH_CUDA
static enum gpurun_status run_gpu(struct gpurun_ctx *ctx, const struct gpurun_variant *v)
{
    const struct conv_state *s = conv_state_of(ctx);

    return s->out_width > 0 && s->out_height > 0 ? v->launch(ctx) : GPURUN_OK;
}
#endif

static void teardown(struct gpurun_ctx *ctx)
{
    struct conv_state *s = ctx->state;

    free(s->truth);
    s->truth = NULL;
}

const struct gpurun_plugin gpurun_plugin = {
    .magic = GPURUN_MAGIC,
    .abi_major = GPURUN_ABI_MAJOR,
    .abi_minor = GPURUN_ABI_MINOR,
    .struct_size = sizeof(struct gpurun_plugin),
    .option_size = sizeof(struct gpurun_option),
    .option_count = GPURUN_COUNT(options),
    .variant_size = sizeof(struct gpurun_variant),
    .name = "conv",
    .summary = "a small mask laid over every pixel of an image",
    .options = options,
#ifdef GPURUN_WITH_CUDA
    .variant_count = GPURUN_COUNT(variants),
    .variants = variants,
    .run_gpu = run_gpu,
#endif
    .options_bytes = sizeof(struct conv_options),
    .state_bytes = sizeof(struct conv_state),
    .memory = GPURUN_MEMORY_ALL,
    .memory_default = GPURUN_EXPLICIT,
    .memory_why = "each pixel is read again by its neighbours: that is for device memory",
    .setup = setup,
    .run_cpu = conv_run_cpu,
    .verify = conv_verify,
    .teardown = teardown,
};
