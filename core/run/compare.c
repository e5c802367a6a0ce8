#include "run/compare.h"

#include "run/datafile.h"
#include <stdlib.h>
#include <string.h>

/* What stands left or right. */
struct side {
    const struct buffer *buffer;
    const unsigned char *pixels;
    int64_t height, width, channels;
};

bool compare_is_asked(const struct binding *output)
{
    return output->tensor != NULL && strcmp(output->tensor, "compare") == 0;
}

/* The first tensor that is not of role `other`. */
static const struct buffer *first_but(const struct run *run, enum gpurun_role other)
{
    for (int i = 0; i < run->buffer_count; i++)
        if (run->buffers[i].tensor.role != other)
            return &run->buffers[i];
    return NULL;
}

static struct side side_of(const struct buffer *b, bool is_input)
{
    const struct gpurun_tensor *t = &b->tensor;
    const bool was_changed = is_input && t->role == GPURUN_INOUT;

    return (struct side){.buffer = b,
                         .pixels = was_changed ? b->original_host : t->host,
                         .height = t->dims[0],
                         .width = t->dims[1],
                         .channels = t->rank == 3 ? t->dims[2] : 1};
}

static enum gpurun_status find_sides(const struct run *run, const char *path, struct side *left,
                                     struct side *right, struct why *why)
{
    const struct buffer *in = first_but(run, GPURUN_OUT), *out = first_but(run, GPURUN_IN);
    struct picture unused;

    if (in == NULL || out == NULL)
        return why_fail(why, GPURUN_INVALID, "there is no input, or no output, to compare");
    GPURUN_TRY(
        picture_of_array(path, in->tensor.dtype, in->tensor.rank, in->tensor.dims, &unused, why));
    GPURUN_TRY(picture_of_array(path, out->tensor.dtype, out->tensor.rank, out->tensor.dims,
                                &unused, why));
    *left = side_of(in, true);
    *right = side_of(out, false);
    if (in->tensor.dtype != out->tensor.dtype || left->channels != right->channels)
        return why_fail(why, GPURUN_INVALID,
                        "%s is %s of %lld channels, %s is %s of %lld: they do not fit one picture",
                        in->tensor.name, gpurun_dtype_name(in->tensor.dtype),
                        (long long)left->channels, out->tensor.name,
                        gpurun_dtype_name(out->tensor.dtype), (long long)right->channels);
    return GPURUN_OK;
}

static void set_canvas(const struct side *left, const struct side *right, int64_t dims[3])
{
    dims[0] = left->height > right->height ? left->height : right->height;
    dims[1] = left->width + right->width;
    dims[2] = left->channels;
}

enum gpurun_status compare_check(const struct run *run, const char *path, struct why *why)
{
    struct side left, right;
    struct picture unused;
    int64_t dims[3];

    if (picture_format(path) == PICTURE_NONE)
        return why_fail(why, GPURUN_INVALID, "%s: name a picture (.png .jpg .pgm .ppm)", path);
    GPURUN_TRY(find_sides(run, path, &left, &right, why));
    set_canvas(&left, &right, dims);
    return picture_of_array(path, left.buffer->tensor.dtype, 3, dims, &unused, why);
}

static void draw(const struct side *side, size_t pixel, size_t stride, unsigned char *canvas)
{
    const size_t row = (size_t)side->width * pixel;

    for (size_t y = 0; y < (size_t)side->height; y++)
        memcpy(canvas + y * stride, side->pixels + y * row, row);
}

enum gpurun_status compare_write(const struct run *run, const char *path, struct why *why)
{
    struct side left = {.buffer = NULL}, right = {.buffer = NULL};
    size_t pixel, stride;
    int64_t dims[3];
    unsigned char *canvas;
    enum gpurun_status status;

    GPURUN_TRY(find_sides(run, path, &left, &right, why));
    set_canvas(&left, &right, dims);
    pixel = gpurun_dtype_bytes(left.buffer->tensor.dtype) * (size_t)dims[2];
    stride = (size_t)dims[1] * pixel;
    canvas = calloc((size_t)dims[0], stride);
    if (canvas == NULL)
        return why_fail(why, GPURUN_NO_MEMORY, "no memory for %s", path);
    draw(&left, pixel, stride, canvas);
    draw(&right, pixel, stride, canvas + (size_t)left.width * pixel);
    status = datafile_write(path, left.buffer->tensor.dtype, 3, dims, canvas, why);
    free(canvas);
    return status;
}
