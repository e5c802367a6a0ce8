/*
 * The user's arrays on disk: NumPy's .npy (header versions 1 to 3, C or Fortran order, either byte
 * order) and raw binary (little-endian, C order). Reading allocates a bounded buffer at most,
 * whatever the header says; a file that is not exactly as long as its header says is refused before
 * its elements are read.
 */
#ifndef GPURUN_RUN_DATAFILE_H
#define GPURUN_RUN_DATAFILE_H

#include "job/why.h"
#include <stdbool.h>
#include <sys/types.h>

struct datafile {
    enum gpurun_dtype dtype;
    int rank; /* 1 to GPURUN_RANK_MAX; a NumPy scalar (rank 0) counts as one element */
    int64_t dims[GPURUN_RANK_MAX];
    int64_t elems;
    bool swapped;    /* bytes of an element are in the other order */
    bool fortran;    /* first index runs fastest */
    off_t data_at;   /* where the elements start */
    off_t file_size; /* bytes */
};

/* NPY_PREFIX_MAX bytes of a file hold every header that is taken. */
enum {
    NPY_DICT_MAX = 65536, /* longer header texts are refused */
    NPY_PREFIX_MAX = 12 + NPY_DICT_MAX,
    NPY_HEADER_MAX = 256, /* longest header that npy_format_header writes */
};

/* Reads what the header in `bytes` says (the first `size` bytes of a .npy file; more than the
 * header is fine). Fails with the reason on anything but a plain array of a dtype in enum
 * gpurun_dtype: object, structured, string, complex and bool are named as such. Sets everything
 * but file_size. */
enum gpurun_status npy_parse_header(const unsigned char *bytes, size_t size, struct datafile *out,
                                    struct why *why);

/* Writes the header (version 1) that numpy.save writes for a C-ordered array, and returns its
 * length. */
size_t npy_format_header(enum gpurun_dtype dtype, int rank, const int64_t *dims,
                         char out[NPY_HEADER_MAX]);

/* Whether a name ends in .npy. */
bool datafile_is_npy(const char *path);

/* Opens, inspects and closes `path`. A name that ends in .npy is read as NumPy, all else as raw.
 * `dtype` is what the job says, or GPURUN_AUTO: raw files then fail (GPURUN_INVALID), .npy files
 * bring their own; a .npy file of another dtype than the job's fails (GPURUN_ERROR), naming
 * both. */
enum gpurun_status datafile_inspect(const char *path, int64_t dtype, struct datafile *out,
                                    struct why *why);

/* Reads all elements into `into` (elems * dtype bytes), in C order and native byte order. */
enum gpurun_status datafile_read(const char *path, const struct datafile *file, void *into,
                                 struct why *why);

/* Writes an array, .npy version 1 or raw by the name's ending: into a temporary file beside
 * `path`, synced, then renamed over it, so that `path` is either whole or as it was. Removes the
 * temporary on failure. */
enum gpurun_status datafile_write(const char *path, enum gpurun_dtype dtype, int rank,
                                  const int64_t *dims, const void *data, struct why *why);

#endif
