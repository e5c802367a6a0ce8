/*
 * The user's arrays on disk: NumPy's .npy (header versions 1 to 3, C or Fortran order, either byte
 * order), pictures, and raw binary (little-endian, C order). Inspecting allocates a bounded buffer, or
 * a picture file's own size, whatever the header says. An array's file that is not exactly as long as
 * its header says is refused before its elements are read.
 */
#ifndef GPURUN_RUN_DATAFILE_H
#define GPURUN_RUN_DATAFILE_H

#include "run/picture.h"
#include <sys/types.h>

struct datafile {
    enum gpurun_dtype dtype;
    int rank; /* 1 to GPURUN_RANK_MAX; a NumPy scalar (rank 0) counts as one element */
    int64_t dims[GPURUN_RANK_MAX];
    int64_t elems;
    bool swapped;               /* bytes of an element are in the other order */
    bool fortran;               /* first index runs fastest */
    off_t data_at;              /* where the elements start */
    off_t file_size;            /* bytes */
    enum picture_format format; /* of a picture; the five above but file_size are then unused */
    struct picture picture;
};

/* NPY_PREFIX_MAX bytes of a file hold every header that is taken. */
enum {
    NPY_DICT_MAX = 65536, /* longer header texts are refused */
    NPY_PREFIX_MAX = 12 + NPY_DICT_MAX,
    NPY_HEADER_MAX = 256, /* longest header that npy_format_header writes */
};

/* Reads what the header in `bytes` says (the first `size` bytes of a .npy file; more than the
 * header is fine). Fails with the reason on anything but a plain array of a dtype in enum
 * gpurun_dtype: object, structured, string, complex and bool are named as such. Raw records of 2
 * bytes come out as bfloat16. Sets everything but file_size. */
enum gpurun_status npy_parse_header(const unsigned char *bytes, size_t size, struct datafile *out,
                                    struct why *why);

/* Writes the header (version 1) that numpy.save writes for a C-ordered array, and returns its
 * length. */
size_t npy_format_header(enum gpurun_dtype dtype, int rank, const int64_t *dims,
                         char out[NPY_HEADER_MAX]);

/* Whether a name ends in .npy. */
bool datafile_is_npy(const char *path);

/* Opens, inspects and closes `path`. A name that ends in .npy is read as NumPy, in .png and the like as
 * a picture (uint8 or uint16, or whole numbers in the job's float or double), all else as raw.
 * `dtype` is what the job says, or GPURUN_AUTO: raw files then fail (GPURUN_INVALID), .npy files
 * bring their own; a .npy file of another dtype than the job's fails (GPURUN_ERROR), naming
 * both. Only a job that says so gets bfloat16 from a .npy file. */
enum gpurun_status datafile_inspect(const char *path, int64_t dtype, struct datafile *out,
                                    struct why *why);

/* GPURUN_ERROR for a picture of more than `limit` bytes once it is decoded; for its caller to ask before
 * it makes room for the elements. */
enum gpurun_status datafile_check_limit(const char *path, const struct datafile *file,
                                        int64_t limit, struct why *why);

/* Reads all elements into `into` (elems * dtype bytes), in C order and native byte order. */
enum gpurun_status datafile_read(const char *path, const struct datafile *file, void *into,
                                 struct why *why);

/* Writes an array, .npy version 1, a picture or raw by the name's ending: into a temporary file beside
 * `path`, synced, then renamed over it, so that `path` is either whole or as it was. Removes the
 * temporary on failure. */
enum gpurun_status datafile_write(const char *path, enum gpurun_dtype dtype, int rank,
                                  const int64_t *dims, const void *data, struct why *why);

#endif
