/*
 * Fuzzes the parser of .npy headers, and holds what it takes against what datafile.h promises.
 */
#include "run/datafile.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_shape(const struct datafile *file)
{
    int64_t bytes;

    require(file->rank >= 1 && file->rank <= GPURUN_RANK_MAX);
    require((int)file->dtype >= 0 && file->dtype < GPURUN_DTYPE_COUNT);
    bytes = (int64_t)gpurun_dtype_bytes(file->dtype);
    for (int i = 0; i < file->rank; i++)
        require(file->dims[i] >= 0 && !__builtin_mul_overflow(bytes, file->dims[i], &bytes));
    require(file->elems * (int64_t)gpurun_dtype_bytes(file->dtype) == bytes);
}

/* What was taken can be written, and is then taken as the same. */
static void check_round_trip(const struct datafile *file)
{
    char header[NPY_HEADER_MAX];
    const size_t length = npy_format_header(file->dtype, file->rank, file->dims, header);
    struct datafile again;
    struct why why;

    require(length % 64 == 0 && length <= sizeof header);
    require(npy_parse_header((unsigned char *)header, length, &again, &why) == GPURUN_OK);
    require(again.dtype == file->dtype && again.rank == file->rank && again.elems == file->elems);
    require(memcmp(again.dims, file->dims, (size_t)file->rank * sizeof file->dims[0]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct datafile file;
    struct why why = {""};

    if (npy_parse_header(data, size, &file, &why) != GPURUN_OK) {
        require(why.text[0] != '\0' && memchr(why.text, '\0', sizeof why.text) != NULL);
        return 0;
    }
    require(file.data_at > 0 && (size_t)file.data_at <= size);
    check_shape(&file);
    check_round_trip(&file);
    return 0;
}
