#include "run/tensors.h"

#include "gpurun/half.h"
#include "run/compare.h"
#include "run/datafile.h"
#include "run/machine.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    CHECK_PIECE = 8 << 20, /* bytes downloaded at a time to check inputs */
};

#define DEVICE_TRY(call) GPURUN_TRY(device_api.call)

static bool is_input(const struct buffer *b)
{
    return b->tensor.role != GPURUN_OUT;
}

static bool is_output(const struct buffer *b)
{
    return b->tensor.role != GPURUN_IN;
}

static bool shares_bytes(const struct run *run)
{
    return run->device != NULL && run->core.memory == GPURUN_ZEROCOPY;
}

/* --- allocation --- */

static enum gpurun_status allocate_host(struct run *run, struct buffer *b, void **out)
{
    const bool is_locked = run->core.memory == GPURUN_PINNED || run->core.memory == GPURUN_ZEROCOPY;
    const size_t bytes = b->block_bytes + 1; /* there is something to free also of nothing */

    if (run->device != NULL && is_locked)
        return device_api.alloc_host(run->device, bytes, shares_bytes(run), out, &run->why);
    *out = machine_allocate(b->block_bytes);
    if (*out == NULL)
        return run_fail(run, GPURUN_NO_MEMORY, "tensor %s: %zu bytes of host memory",
                        b->tensor.name, bytes);
    return GPURUN_OK;
}

static enum gpurun_status allocate_device(struct run *run, struct buffer *b)
{
    const size_t bytes = b->block_bytes ? b->block_bytes : 1;

    if (run->core.memory == GPURUN_ZEROCOPY)
        return device_api.device_view(run->device, b->host_block, &b->dev_block, &run->why);
    if (run->core.memory == GPURUN_MANAGED)
        return device_api.alloc_managed(run->device, bytes, &b->dev_block, &run->why);
    return device_api.alloc(run->device, bytes, &b->dev_block, &run->why);
}

static enum gpurun_status allocate_buffer(struct run *run, struct buffer *b)
{
    const size_t offset = (size_t)run->core.offset * gpurun_dtype_bytes(b->tensor.dtype);

    b->block_bytes = b->tensor.bytes + offset;
    GPURUN_TRY(allocate_host(run, b, &b->host_block));
    b->tensor.host = (char *)b->host_block + offset;
    if (run->device != NULL) {
        GPURUN_TRY(allocate_device(run, b));
        b->tensor.dev = (char *)b->dev_block + offset;
    }
    if (b->tensor.role != GPURUN_INOUT)
        return GPURUN_OK;
    b->original_host = malloc(b->tensor.bytes + 1);
    if (b->original_host == NULL)
        return run_fail(run, GPURUN_NO_MEMORY, "tensor %s: a copy of %zu bytes", b->tensor.name,
                        b->tensor.bytes);
    b->tensor.original = b->original_host;
    if (run->device != NULL)
        return device_api.alloc(run->device, b->tensor.bytes + 1, &b->original_dev, &run->why);
    return GPURUN_OK;
}

/* Oversubscribed managed memory can hang a device: the sum must fit before the first page is asked for. */
static enum gpurun_status check_managed(struct run *run)
{
    size_t wanted = 0, available;

    if (run->device == NULL || run->core.memory != GPURUN_MANAGED)
        return GPURUN_OK;
    for (int i = 0; i < run->buffer_count; i++)
        wanted += run->buffers[i].tensor.bytes;
    available = device_api.free_bytes(run->device);
    if (wanted > available / 10 * 9)
        return run_fail(run, GPURUN_NO_MEMORY,
                        "memory = managed: the job needs %zu bytes, the device has %zu free; use "
                        "memory = zerocopy, or a smaller job",
                        wanted, available);
    return GPURUN_OK;
}

enum gpurun_status tensors_allocate(struct run *run)
{
    GPURUN_TRY(check_managed(run));
    for (int i = 0; i < run->buffer_count; i++)
        GPURUN_TRY(allocate_buffer(run, &run->buffers[i]));
    return GPURUN_OK;
}

void tensors_free(struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++) {
        struct buffer *b = &run->buffers[i];

        if (run->device != NULL && b->dev_block != NULL && !shares_bytes(run))
            device_api.release(run->device, b->dev_block);
        if (run->device != NULL && b->original_dev != NULL)
            device_api.release(run->device, b->original_dev);
        if (run->device != NULL && b->host_block != NULL &&
            (run->core.memory == GPURUN_PINNED || run->core.memory == GPURUN_ZEROCOPY))
            device_api.release_host(run->device, b->host_block);
        else
            free(b->host_block);
        free(b->original_host);
        b->host_block = b->dev_block = b->original_host = b->original_dev = NULL;
        b->tensor.original = NULL;
    }
}

/* --- contents --- */

/* A picture that lies on its side has as many elements as one that stands. */
static enum gpurun_status check_shape(const char *path, const struct datafile *file,
                                      const struct gpurun_tensor *t, struct why *why)
{
    const bool turned = file->format != PICTURE_NONE && file->rank == t->rank &&
                        memcmp(file->dims, t->dims, (size_t)t->rank * sizeof t->dims[0]) != 0;

    if (file->elems != t->elems)
        return why_fail(why, GPURUN_ERROR, "%s holds %lld elements, the job needs %lld", path,
                        (long long)file->elems, (long long)t->elems);
    if (turned)
        return why_fail(why, GPURUN_ERROR,
                        "%s has %lld rows and %lld columns, the job needs %lld and %lld", path,
                        (long long)file->dims[0], (long long)file->dims[1], (long long)t->dims[0],
                        (long long)t->dims[1]);
    return GPURUN_OK;
}

static enum gpurun_status load_file(struct run *run, struct buffer *b)
{
    const char *path = b->source->text + 5;
    struct datafile file;
    struct why why;
    enum gpurun_status status = datafile_inspect(path, b->tensor.dtype, &file, &why);

    if (status == GPURUN_OK)
        status = datafile_check_limit(path, &file, run->core.picture_limit, &why);
    if (status == GPURUN_OK)
        status = check_shape(path, &file, &b->tensor, &why);
    if (status == GPURUN_OK)
        status = datafile_read(path, &file, b->tensor.host, &why);
    if (status != GPURUN_OK)
        return run->ctx.core->fail(&run->ctx, GPURUN_ERROR, b->source->key, "%s", why.text);
    return GPURUN_OK;
}

static enum gpurun_status fill_input(struct run *run, struct buffer *b)
{
    if (b->source != NULL && strncmp(b->source->text, "file:", 5) == 0)
        GPURUN_TRY(load_file(run, b));
    else
        generator_fill(&b->generator, (uint64_t)run->core.seed, &b->tensor, (int)run->core.threads);
    b->hash = XXH3_64bits(b->tensor.host, b->tensor.bytes);
    if (b->tensor.role != GPURUN_INOUT)
        return GPURUN_OK;
    memcpy(b->original_host, b->tensor.host, b->tensor.bytes);
    if (run->device != NULL)
        DEVICE_TRY(
            copy(run->device, b->original_dev, b->original_host, b->tensor.bytes, &run->why));
    return GPURUN_OK;
}

enum gpurun_status tensors_fill(struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++) {
        struct buffer *b = &run->buffers[i];

        if (!is_input(b))
            continue;
        GPURUN_TRY(fill_input(run, b));
        if (run->device != NULL && run->core.memory == GPURUN_MANAGED)
            memcpy(b->tensor.dev, b->tensor.host, b->tensor.bytes);
    }
    return run->device != NULL ? tensors_upload(run) : GPURUN_OK;
}

enum gpurun_status tensors_upload(struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];

        if (!is_input(b))
            continue;
        if (run->core.memory == GPURUN_MANAGED && run->core.prefetch)
            DEVICE_TRY(prefetch(run->device, b->tensor.dev, b->tensor.bytes, false, &run->why));
        else if (run->core.memory == GPURUN_EXPLICIT || run->core.memory == GPURUN_PINNED)
            DEVICE_TRY(
                copy(run->device, b->tensor.dev, b->tensor.host, b->tensor.bytes, &run->why));
    }
    return device_api.sync(run->device, &run->why);
}

enum gpurun_status tensors_download(struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];

        if (is_output(b) &&
            (run->core.memory == GPURUN_EXPLICIT || run->core.memory == GPURUN_PINNED))
            DEVICE_TRY(
                copy(run->device, b->tensor.host, b->tensor.dev, b->tensor.bytes, &run->why));
    }
    DEVICE_TRY(sync(run->device, &run->why));
    for (int i = 0; i < run->buffer_count && run->core.memory == GPURUN_MANAGED; i++)
        if (is_output(&run->buffers[i]))
            memcpy(run->buffers[i].tensor.host, run->buffers[i].tensor.dev,
                   run->buffers[i].tensor.bytes);
    return GPURUN_OK;
}

enum gpurun_status tensors_bring_home(struct run *run)
{
    for (int i = 0; i < run->buffer_count && run->core.memory == GPURUN_MANAGED; i++)
        DEVICE_TRY(prefetch(run->device, run->buffers[i].dev_block, run->buffers[i].block_bytes,
                            true, &run->why));
    return device_api.sync(run->device, &run->why);
}

enum gpurun_status tensors_restore(struct run *run, bool on_device)
{
    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];

        if (b->tensor.role != GPURUN_INOUT)
            continue;
        if (on_device)
            DEVICE_TRY(
                copy(run->device, b->tensor.dev, b->original_dev, b->tensor.bytes, &run->why));
        else
            memcpy(b->tensor.host, b->original_host, b->tensor.bytes);
    }
    return GPURUN_OK;
}

void tensors_reset_shapes(struct run *run)
{
    for (int i = 0; i < run->buffer_count; i++) {
        struct gpurun_tensor *t = &run->buffers[i].tensor;
        const struct gpurun_tensor *d = &run->buffers[i].declared;

        t->rank = d->rank;
        memcpy(t->dims, d->dims, sizeof t->dims);
        t->elems = d->elems;
        t->bytes = d->bytes;
    }
}

enum gpurun_status tensors_poison(struct run *run, bool on_device)
{
    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];

        if (b->tensor.role != GPURUN_OUT)
            continue;
        memset(b->tensor.host, GPURUN_POISON, b->tensor.bytes);
        if (on_device && !shares_bytes(run))
            DEVICE_TRY(fill(run->device, b->tensor.dev, GPURUN_POISON, b->tensor.bytes, &run->why));
    }
    return on_device ? device_api.sync(run->device, &run->why) : GPURUN_OK;
}

/* The hash of device memory, through a piece of host memory. */
static enum gpurun_status hash_device(struct run *run, const struct buffer *b, uint64_t *hash)
{
    XXH3_state_t *state = XXH3_createState();
    char *piece = malloc(CHECK_PIECE);
    enum gpurun_status status = state && piece ? GPURUN_OK : GPURUN_NO_MEMORY;

    if (status == GPURUN_OK)
        XXH3_64bits_reset(state);
    else
        run_fail(run, status, "memory to check the inputs with");
    for (size_t at = 0; at < b->tensor.bytes && status == GPURUN_OK; at += CHECK_PIECE) {
        const size_t left = b->tensor.bytes - at, bytes = left < CHECK_PIECE ? left : CHECK_PIECE;

        status =
            device_api.copy(run->device, piece, (const char *)b->tensor.dev + at, bytes, &run->why);
        if (status == GPURUN_OK)
            status = device_api.sync(run->device, &run->why);
        XXH3_64bits_update(state, piece, bytes);
    }
    *hash = status == GPURUN_OK ? XXH3_64bits_digest(state) : 0;
    XXH3_freeState(state);
    free(piece);
    return status;
}

enum gpurun_status tensors_check_inputs(struct run *run, bool on_device)
{
    for (int i = 0; i < run->buffer_count; i++) {
        const struct buffer *b = &run->buffers[i];
        uint64_t hash;

        if (b->tensor.role != GPURUN_IN)
            continue;
        if (!on_device || shares_bytes(run))
            hash = XXH3_64bits(b->tensor.host, b->tensor.bytes);
        else
            GPURUN_TRY(hash_device(run, b, &hash));
        if (hash != b->hash) {
            GPURUN_TRY(tensors_fill(run)); /* the next case gets its inputs whole */
            return run_fail(run, GPURUN_INVALID, "input %s was written to: it is not to be changed",
                            b->tensor.name);
        }
    }
    return GPURUN_OK;
}

/* --- answers --- */

static const struct buffer *buffer_of(const struct run *run, const struct binding *binding)
{
    for (int i = 0; i < run->buffer_count; i++)
        if (is_output(&run->buffers[i]) &&
            (binding->tensor == NULL || strcmp(binding->tensor, run->buffers[i].tensor.name) == 0))
            return &run->buffers[i];
    return NULL;
}

enum gpurun_status tensors_write_outputs(struct run *run)
{
    struct why why;

    for (size_t i = 0; i < run->job->output_count; i++) {
        const struct binding *binding = &run->job->outputs[i];
        const struct buffer *b = buffer_of(run, binding);
        enum gpurun_status status = GPURUN_OK;

        if (compare_is_asked(binding))
            status = compare_write(run, binding->text, &why);
        else if (b != NULL)
            status = datafile_write(binding->text, b->tensor.dtype, b->tensor.rank, b->tensor.dims,
                                    b->tensor.host, &why);
        if (status != GPURUN_OK)
            return run->ctx.core->fail(&run->ctx, GPURUN_ERROR, binding->key, "%s", why.text);
    }
    return GPURUN_OK;
}

/* What JSON has no number for becomes a string. */
static json_t *real_json(double real)
{
    if (isfinite(real))
        return json_real(real);
    return json_string(isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
}

/* One element as JSON. */
static json_t *element(const struct gpurun_tensor *t, int64_t i)
{
    const void *p = (const char *)t->host + (size_t)i * gpurun_dtype_bytes(t->dtype);
    char text[40];

    switch (t->dtype) {
    case GPURUN_INT8:
        return json_integer(*(const int8_t *)p);
    case GPURUN_UINT8:
        return json_integer(*(const uint8_t *)p);
    case GPURUN_INT16:
        return json_integer(*(const int16_t *)p);
    case GPURUN_UINT16:
        return json_integer(*(const uint16_t *)p);
    case GPURUN_INT32:
        return json_integer(*(const int32_t *)p);
    case GPURUN_UINT32:
        return json_integer(*(const uint32_t *)p);
    case GPURUN_INT64:
        return json_integer(*(const int64_t *)p);
    case GPURUN_UINT64:
        if (*(const uint64_t *)p <= INT64_MAX)
            return json_integer((int64_t) * (const uint64_t *)p);
        snprintf(text, sizeof text, "%llu", (unsigned long long)*(const uint64_t *)p);
        return json_string(text);
    case GPURUN_FLOAT:
        return real_json((double)*(const float *)p);
    case GPURUN_DOUBLE:
        return real_json(*(const double *)p);
    case GPURUN_HALF:
        return real_json((double)gpurun_half_to_float(*(const uint16_t *)p));
    case GPURUN_BFLOAT16:
        return real_json((double)gpurun_bfloat16_to_float(*(const uint16_t *)p));
    case GPURUN_DTYPE_COUNT:
        break;
    }
    return json_null();
}

/* The flat position of show's index, or -1 when this tensor has no such element. */
static int64_t flat_index(const struct gpurun_tensor *t, const struct show *show)
{
    int64_t flat = 0;

    if (show->rank != t->rank)
        return -1;
    for (int i = 0; i < t->rank; i++) {
        if (show->index[i] >= t->dims[i])
            return -1;
        flat = flat * t->dims[i] + show->index[i];
    }
    return flat;
}

json_t *tensors_show(const struct run *run)
{
    struct show show;
    struct why why;
    json_t *all;

    if (show_parse(run->core.show, &show, &why) != GPURUN_OK || (show.rank == 0 && show.count == 0))
        return NULL;
    all = json_object();
    for (int i = 0; i < run->buffer_count; i++) {
        const struct gpurun_tensor *t = &run->buffers[i].tensor;
        const int64_t first = show.rank ? flat_index(t, &show) : 0;
        const int64_t count = show.rank ? 1 : show.count < t->elems ? show.count : t->elems;
        json_t *list;

        if (!is_output(&run->buffers[i]) || first < 0)
            continue;
        list = json_array();
        for (int64_t k = first; k < first + count; k++)
            json_array_append_new(list, element(t, k));
        json_object_set_new(all, t->name, list);
    }
    return all;
}
