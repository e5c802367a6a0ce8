/* Fixtures are made by tests/data/make_npy.py with NumPy; the formula in bits_of() is the one
 * there. */
#include "run/datafile.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NPY TEST_DATA "/npy/"

enum { NAME_BYTES = 512 };

/* Of a value that half holds as a normal number: its exponent and fraction, put where they belong. */
static uint64_t half_bits(double value)
{
    int exponent;
    const double fraction = frexp(fabs(value), &exponent);

    ck_assert(exponent > -14 && fraction * 2048 == floor(fraction * 2048));
    return (value < 0 ? 0x8000u : 0) + ((uint64_t)(exponent + 14) << 10) +
           (uint64_t)(fraction * 2048) - 1024;
}

/* Element i as the fixtures hold it, as bits of its dtype. */
static uint64_t bits_of(enum gpurun_dtype dtype, int64_t i)
{
    const double real = (double)(37 * i + 11 - 300) / 8;
    const float narrow = (float)real;
    const int bytes = (int)gpurun_dtype_bytes(dtype);
    uint64_t bits = (uint64_t)(37 * i + 11);

    if (dtype == GPURUN_FLOAT) {
        bits = 0;
        memcpy(&bits, &narrow, sizeof narrow);
    } else if (dtype == GPURUN_DOUBLE) {
        memcpy(&bits, &real, sizeof real);
    } else if (dtype == GPURUN_HALF) {
        bits = half_bits(real);
    } else if (dtype == GPURUN_BFLOAT16) {
        memcpy(&bits, &narrow, sizeof narrow);
        bits = (uint32_t)bits >> 16;
    }
    return bytes == 8 ? bits : bits & ((UINT64_C(1) << (8 * bytes)) - 1);
}

/* Element i of an array in memory. The tests run on little-endian machines, as gpurun does. */
static uint64_t bits_at(const void *data, enum gpurun_dtype dtype, int64_t i)
{
    const size_t bytes = gpurun_dtype_bytes(dtype);
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + (size_t)i * bytes, bytes);
    return bits;
}

static void *new_array(enum gpurun_dtype dtype, int64_t elems)
{
    void *data = malloc((size_t)elems * gpurun_dtype_bytes(dtype) + 1);

    ck_assert_ptr_nonnull(data);
    return data;
}

/* Reads a file that must be right, into a block of just its size. */
static void *read_whole(const char *path, int64_t dtype, struct datafile *file)
{
    struct why why = {""};
    void *data;

    ck_assert_msg(datafile_inspect(path, dtype, file, &why) == GPURUN_OK, "%s", why.text);
    data = malloc((size_t)file->elems * gpurun_dtype_bytes(file->dtype));
    ck_assert_msg(datafile_read(path, file, data, &why) == GPURUN_OK, "%s", why.text);
    return data;
}

static void check_values(const char *path, const struct datafile *file, const void *data)
{
    for (int64_t i = 0; i < file->elems; i++)
        ck_assert_msg(bits_at(data, file->dtype, i) == bits_of(file->dtype, i),
                      "%s: element %lld is %llx", path, (long long)i,
                      (unsigned long long)bits_at(data, file->dtype, i));
}

/* --- good files -------------------------------------------------------------------------------- */

static const char *const kind_names[] = {"i1", "u1", "i2", "u2", "i4", "u4",
                                         "i8", "u8", "f4", "f8", "f2"};

/* Every dtype, flat and 3 by 5, in C and Fortran order and in either byte order. */
START_TEST(test_kind)
{
    static const struct {
        const char *suffix;
        int rank;
        bool fortran, swapped;
    } forms[] = {{"", 1, false, false},
                 {"_2d", 2, false, false},
                 {"_fortran", 2, true, false},
                 {"_big", 1, false, true},
                 {"_big_fortran", 2, true, true}};

    for (size_t f = 0; f < GPURUN_COUNT(forms); f++) {
        char path[NAME_BYTES];
        struct datafile file;
        void *data;

        if (forms[f].swapped && gpurun_dtype_bytes((enum gpurun_dtype)_i) == 1)
            continue;
        snprintf(path, sizeof path, NPY "good_%s%s.npy", kind_names[_i], forms[f].suffix);
        data = read_whole(path, f % 2 == 0 ? GPURUN_AUTO : _i, &file);
        ck_assert_int_eq(file.dtype, _i);
        ck_assert_int_eq(file.rank, forms[f].rank);
        ck_assert_int_eq(file.elems, forms[f].rank == 1 ? 7 : 15);
        ck_assert_int_eq(file.dims[0], forms[f].rank == 1 ? 7 : 3);
        ck_assert(file.fortran == forms[f].fortran);
        ck_assert(file.swapped == forms[f].swapped);
        check_values(path, &file, data);
        free(data);
    }
}
END_TEST

/* Raw records of 2 bytes, where the job says bfloat16. */
START_TEST(test_bfloat16)
{
    const char *path = _i ? NPY "bfloat16_fortran.npy" : NPY "bfloat16.npy";
    struct datafile file;
    void *data = read_whole(path, GPURUN_BFLOAT16, &file);

    ck_assert_int_eq(file.dtype, GPURUN_BFLOAT16);
    ck_assert_int_eq(file.rank, 2);
    ck_assert_int_eq(file.elems, 15);
    check_values(path, &file, data);
    free(data);
}
END_TEST

START_TEST(test_bfloat16_must_be_asked_for)
{
    static const int64_t asked[] = {GPURUN_AUTO, GPURUN_FLOAT, GPURUN_UINT16, GPURUN_HALF};
    struct datafile file;
    struct why why = {""};

    for (size_t i = 0; i < GPURUN_COUNT(asked); i++) {
        ck_assert_int_eq(datafile_inspect(NPY "bfloat16.npy", asked[i], &file, &why), GPURUN_ERROR);
        ck_assert_ptr_nonnull(strstr(why.text, "bfloat16.npy: holds raw records of 2 bytes ('V2'): "
                                               "they are taken for bfloat16 where the job says "
                                               "dtype = bfloat16"));
    }
}
END_TEST

static const struct good_case {
    const char *name;
    enum gpurun_dtype dtype;
    int rank;
    int64_t dims[GPURUN_RANK_MAX];
} good_cases[] = {
    {"3d_fortran", GPURUN_INT32, 3, {2, 3, 4}},
    {"4d", GPURUN_INT32, 4, {2, 3, 4, 5}},
    {"4d_fortran", GPURUN_INT32, 4, {2, 3, 4, 5}},
    {"scalar", GPURUN_INT32, 1, {1}},
    {"empty", GPURUN_FLOAT, 1, {0}},
    {"empty_2d", GPURUN_FLOAT, 2, {3, 0}},
    {"empty_fortran", GPURUN_FLOAT, 2, {0, 3}},
    {"version2", GPURUN_INT32, 1, {7}},
    {"version3", GPURUN_INT32, 1, {7}},
    {"ones", GPURUN_INT16, 4, {1, 1, 7, 1}},
    {"odd_order", GPURUN_INT32, 1, {7}},
    {"odd_quotes", GPURUN_INT32, 1, {7}},
    {"odd_spaces", GPURUN_INT32, 1, {7}},
    {"odd_tight", GPURUN_INT32, 1, {7}},
    {"odd_native", GPURUN_INT32, 1, {7}},
    {"odd_no_mark", GPURUN_INT32, 1, {7}},
    {"odd_python2", GPURUN_INT32, 1, {7}},
};

START_TEST(test_good)
{
    const struct good_case *c = &good_cases[_i];
    char path[NAME_BYTES];
    struct datafile file;
    int64_t elems = 1;
    void *data;

    snprintf(path, sizeof path, NPY "good_%s.npy", c->name);
    data = read_whole(path, GPURUN_AUTO, &file);
    ck_assert_int_eq(file.dtype, c->dtype);
    ck_assert_int_eq(file.rank, c->rank);
    for (int i = 0; i < c->rank; i++) {
        ck_assert_int_eq(file.dims[i], c->dims[i]);
        elems *= c->dims[i];
    }
    ck_assert_int_eq(file.elems, elems);
    check_values(path, &file, data);
    free(data);
}
END_TEST

/* --- files that are refused -------------------------------------------------------------------- */

static const struct bad_case {
    const char *name, *reason;
} bad_cases[] = {
    {"object",
     "it holds Python objects ('|O'); gpurun takes int8 to uint64, half, float and double"},
    {"structured", "it holds structured elements"},
    {"bool", "it holds bool ('|b1')"},
    {"complex", "it holds complex numbers ('<c16')"},
    {"text", "it holds text ('<U3')"},
    {"bytes", "it holds byte strings ('|S3')"},
    {"void", "it holds raw records ('|V5')"},
    {"date", "it holds dates or times ('<M8[D]')"},
    {"longdouble", "it holds long doubles ('<f16')"},
    {"nothing", "is empty, not even a header"},
    {"magic", "does not start as a NumPy file does"},
    {"text_file", "does not start as a NumPy file does"},
    {"version0", "is of .npy version 0.0; gpurun reads 1.0 to 3.0"},
    {"version4", "is of .npy version 4.0"},
    {"version1_1", "is of .npy version 1.1"},
    {"cut_magic", "does not start as a NumPy file does"},
    {"cut_length", "does not start as a NumPy file does"},
    {"cut_header", "ends within its header"},
    {"cut_data", "is cut short: it promises 28 bytes of data, the file holds 27"},
    {"no_data", "is cut short: it promises 28 bytes of data, the file holds 0"},
    {"trailing", "has 1 bytes after the 28 bytes of data that it promises"},
    {"trailing_element", "has 4 bytes after the 28 bytes"},
    {"length_lies_long", "ends within its header"},
    {"length_lies_short", "header is broken"},
    {"length_huge", "header of 4294967295 bytes is longer than 65536"},
    {"length_zero", "'{' is missing"},
    {"rank5", "has more than 4 dimensions"},
    {"negative", "shape has a negative length"},
    {"wraps", "shape is larger than any file can be"},
    {"wraps_to_28", "shape is larger than any file can be"},
    {"wraps_beside_zero", "shape is larger than any file can be"},
    {"dim_over_64_bits", "shape does not fit 64 bits"},
    {"lies_about_shape", "promises 32 bytes of data, the file holds 28"},
    {"no_tuple", "shape is a number where a tuple must be"},
    {"list_shape", "'(' is missing where shape starts"},
    {"real_shape", "shape has no end"},
    {"name_shape", "shape is not a tuple of numbers"},
    {"comma_shape", "shape is not a tuple of numbers"},
    {"open_shape", "shape is not a tuple of numbers"},
    {"two_blanks", "shape has no end"},
    {"no_brace", "'{' is missing at its start"},
    {"no_end", "'}' is missing at its end"},
    {"no_comma", "'}' is missing at its end"},
    {"no_colon", "':' is missing after a key"},
    {"after_end", "text follows the closing '}'"},
    {"nul_after_end", "text follows the closing '}'"},
    {"extra_key", "unknown key 'more'"},
    {"repeated_key", "repeated key 'descr'"},
    {"no_descr", "the key descr is missing"},
    {"no_order", "the key fortran_order is missing"},
    {"no_shape", "the key shape is missing"},
    {"order_number", "fortran_order is neither True nor False"},
    {"open_string", "elements of an unknown kind ('<i4, ')"},
    {"escape", "descr is no known text"},
    {"long_string", "a key is no known text"},
    {"control", "descr is no known text"},
    {"number_descr", "descr is not a string"},
    {"empty_descr", "elements of an unknown kind ('')"},
    {"mark_only", "elements of an unknown kind ('<')"},
    {"int3", "elements of an unknown kind ('<i3')"},
    {"int44", "elements of an unknown kind ('<i44')"},
    {"two_marks", "elements of an unknown kind ('<<i4')"},
    {"empty_dict", "the key descr is missing"},
    {"key_number", "a key is not a string"},
};

START_TEST(test_bad)
{
    const struct bad_case *c = &bad_cases[_i];
    char path[NAME_BYTES];
    struct datafile file = {.rank = 77};
    struct why why = {""};

    snprintf(path, sizeof path, NPY "bad_%s.npy", c->name);
    ck_assert_msg(access(path, R_OK) == 0, "%s is missing", path);
    ck_assert_msg(datafile_inspect(path, GPURUN_AUTO, &file, &why) == GPURUN_ERROR, "%s passed",
                  path);
    ck_assert_msg(strncmp(why.text, path, strlen(path)) == 0, "no path: %s", why.text);
    ck_assert_msg(strstr(why.text, c->reason) != NULL, "%s", why.text);
    ck_assert_int_eq(file.rank, 77);
}
END_TEST

/* Every fixture is in one of the tables: none is forgotten. */
START_TEST(test_fixtures_all_used)
{
    DIR *folder = opendir(NPY);
    size_t bad = 0;

    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        bad += strncmp(entry->d_name, "bad_", 4) == 0;
    closedir(folder);
    ck_assert_uint_eq(bad, GPURUN_COUNT(bad_cases));
}
END_TEST

/* Whatever part of a good header is given, in a block of just that size, the parser stays within
 * it. */
START_TEST(test_header_prefixes)
{
    unsigned char whole[156];
    FILE *stream = fopen(NPY "good_i4.npy", "rb");
    struct datafile file;
    struct why why;

    ck_assert(stream != NULL && fread(whole, 1, sizeof whole, stream) == sizeof whole);
    fclose(stream);
    for (size_t size = 0; size <= sizeof whole; size++) {
        unsigned char *part = malloc(size);

        memcpy(part, whole, size);
        ck_assert_int_eq(npy_parse_header(part, size, &file, &why),
                         size >= 128 ? GPURUN_OK : GPURUN_ERROR);
        free(part);
    }
    ck_assert_int_eq(file.data_at, 128);
}
END_TEST

START_TEST(test_dtype_differs)
{
    struct datafile file;
    struct why why;

    ck_assert_int_eq(datafile_inspect(NPY "good_i4.npy", GPURUN_FLOAT, &file, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text, NPY "good_i4.npy: holds int32, the job says float");
}
END_TEST

/* --- things that are no files, in a scratch folder ---------------------------------------------- */

static char scratch[] = "/tmp/gpurun-datafile-XXXXXX";

static void enter_scratch(void)
{
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    ck_assert_int_eq(chdir(scratch), 0);
}

static void remove_files(const char *folder)
{
    DIR *dir = opendir(folder);

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove(entry->d_name);
    closedir(dir);
}

static void leave_scratch(void)
{
    remove_files(".");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(scratch);
}

static void put_file(const char *path, const void *data, size_t size)
{
    FILE *stream = fopen(path, "wb");

    ck_assert(stream != NULL && fwrite(data, 1, size, stream) == size);
    ck_assert_int_eq(fclose(stream), 0);
}

static int count_files(void)
{
    DIR *dir = opendir(".");
    int count = -2; /* . and .. */

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void check_same_files(const char *a, const char *b)
{
    char left[4096], right[4096];
    FILE *one = fopen(a, "rb"), *two = fopen(b, "rb");
    size_t size;

    ck_assert(one != NULL && two != NULL);
    size = fread(left, 1, sizeof left, one);
    ck_assert_uint_eq(fread(right, 1, sizeof right, two), size);
    ck_assert_msg(memcmp(left, right, size) == 0, "%s differs from %s", a, b);
    fclose(one);
    fclose(two);
}

START_TEST(test_not_a_file)
{
    static const struct bad_case cases[] = {
        {"missing.npy", "missing.npy: cannot be opened: No such file or directory"},
        {"missing.bin", "missing.bin: cannot be opened: No such file or directory"},
        {"no/such/folder.npy", "no/such/folder.npy: cannot be opened"},
        {"folder.npy", "folder.npy: is a directory, not a file"},
        {"pipe.npy", "pipe.npy: is a device or pipe, not a file"},
        {"/dev/zero", "/dev/zero: is a device or pipe, not a file"},
        {"", "cannot be opened"},
    };
    struct datafile file;
    struct why why;

    ck_assert(mkdir("folder.npy", 0777) == 0 && mkfifo("pipe.npy", 0666) == 0);
    for (size_t i = 0; i < GPURUN_COUNT(cases); i++) {
        ck_assert_int_eq(datafile_inspect(cases[i].name, GPURUN_INT32, &file, &why), GPURUN_ERROR);
        ck_assert_msg(strstr(why.text, cases[i].reason) != NULL, "%s", why.text);
    }
}
END_TEST

START_TEST(test_raw)
{
    static const uint32_t data[3] = {0x01020304, 5, 0xffffffff};
    struct datafile file;
    struct why why;
    void *read;

    put_file("a.bin", data, sizeof data);
    read = read_whole("a.bin", GPURUN_UINT32, &file);
    ck_assert(file.rank == 1 && file.dims[0] == 3 && file.elems == 3 && file.data_at == 0);
    ck_assert_mem_eq(read, data, sizeof data);
    free(read);
    read = read_whole("a.bin", GPURUN_INT8, &file);
    ck_assert_int_eq(file.elems, 12);
    ck_assert_int_eq(((int8_t *)read)[0], 4);
    free(read);
    ck_assert_int_eq(datafile_inspect("a.bin", GPURUN_DOUBLE, &file, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text,
                     "a.bin: its 12 bytes are no whole number of double elements of 8 bytes");
    ck_assert_int_eq(datafile_inspect("a.bin", GPURUN_AUTO, &file, &why), GPURUN_INVALID);
    ck_assert_str_eq(
        why.text, "a.bin: a raw file does not say what it holds (set dtype, or give a .npy file)");
    put_file("empty.bin", "", 0);
    read = read_whole("empty.bin", GPURUN_INT32, &file);
    ck_assert(file.rank == 1 && file.elems == 0);
    free(read);
}
END_TEST

START_TEST(test_changed_after_inspection)
{
    char data[40] = {0};
    struct datafile file;
    struct why why;

    put_file("a.bin", data, sizeof data);
    ck_assert_int_eq(datafile_inspect("a.bin", GPURUN_INT32, &file, &why), GPURUN_OK);
    put_file("a.bin", data, sizeof data - 4);
    ck_assert_int_eq(datafile_read("a.bin", &file, data, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text, "a.bin: changed from 40 to 36 bytes since it was inspected");
    remove("a.bin");
    ck_assert_int_eq(datafile_read("a.bin", &file, data, &why), GPURUN_ERROR);
    ck_assert_ptr_nonnull(strstr(why.text, "No such file"));
    /* As if it had shrunk between the two looks at its size. */
    put_file("a.bin", data, sizeof data - 4);
    file.file_size = sizeof data - 4;
    ck_assert_int_eq(datafile_read("a.bin", &file, data, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text, "a.bin: became shorter while it was read");
}
END_TEST

/* Reads a Fortran-ordered file made here: element f of the file holds f; a loop over the
 * indices, as plain as can be, says where it belongs. */
static void check_fortran(enum gpurun_dtype dtype, int rank, const int64_t *dims)
{
    const size_t bytes = gpurun_dtype_bytes(dtype);
    struct datafile file = {.dtype = dtype, .rank = rank, .fortran = true, .elems = 1};
    struct why why;
    char *data, *read;

    for (int i = 0; i < rank; i++)
        file.elems *= file.dims[i] = dims[i];
    data = new_array(dtype, file.elems);
    read = new_array(dtype, file.elems);
    for (int64_t f = 0; f < file.elems; f++)
        memcpy(data + (size_t)f * bytes, &f, bytes);
    file.file_size = file.elems * (off_t)bytes;
    put_file("f.bin", data, (size_t)file.file_size);
    ck_assert_msg(datafile_read("f.bin", &file, read, &why) == GPURUN_OK, "%s", why.text);
    for (int64_t f = 0; f < file.elems; f++) {
        int64_t rest = f, at = 0;
        int64_t index[GPURUN_RANK_MAX];

        for (int i = 0; i < rank; i++) {
            index[i] = rest % dims[i];
            rest /= dims[i];
        }
        for (int i = 0; i < rank; i++)
            at = at * dims[i] + index[i];
        if (memcmp(read + (size_t)at * bytes, data + (size_t)f * bytes, bytes) != 0)
            ck_abort_msg("element %lld is not at %lld", (long long)f, (long long)at);
    }
    free(data);
    free(read);
}

/* Sizes around and above the buffer: whole columns, and columns that are read in parts. */
START_TEST(test_fortran_shapes)
{
    static const struct {
        enum gpurun_dtype dtype;
        int rank;
        int64_t dims[GPURUN_RANK_MAX];
    } shapes[] = {
        {GPURUN_INT8, 1, {1000}},           {GPURUN_INT64, 1, {3000000}},
        {GPURUN_INT16, 2, {33, 65}},        {GPURUN_INT32, 2, {1, 100}},
        {GPURUN_INT32, 2, {100, 1}},        {GPURUN_INT64, 2, {70000, 40}},
        {GPURUN_INT64, 2, {2200000, 2}},    {GPURUN_INT64, 2, {3, 1000000}},
        {GPURUN_INT32, 3, {130, 200, 300}}, {GPURUN_INT16, 4, {7, 11, 13, 17}},
        {GPURUN_INT8, 2, {600000, 33}},     {GPURUN_INT32, 4, {140000, 2, 3, 6}},
    };

    check_fortran(shapes[_i].dtype, shapes[_i].rank, shapes[_i].dims);
}
END_TEST

/* --- writing ----------------------------------------------------------------------------------- */

static const struct save_case {
    const char *name;
    enum gpurun_dtype dtype;
    int rank;
    int64_t dims[GPURUN_RANK_MAX];
} save_cases[] = {
    {"save_i4.npy", GPURUN_INT32, 1, {7}},
    {"save_u1_2d.npy", GPURUN_UINT8, 2, {3, 5}},
    {"save_f8_4d.npy", GPURUN_DOUBLE, 4, {1, 2, 1, 3}},
    {"save_empty.npy", GPURUN_INT64, 1, {0}},
    {"save_long.npy", GPURUN_INT8, 2, {1234, 1}},
};

/* What we write is what numpy.save writes, byte for byte. */
START_TEST(test_writes_as_numpy)
{
    const struct save_case *c = &save_cases[_i];
    struct why why = {""};
    int64_t elems = 1;
    char fixture[NAME_BYTES];
    char *data;

    for (int i = 0; i < c->rank; i++)
        elems *= c->dims[i];
    data = new_array(c->dtype, elems);
    for (int64_t i = 0; i < elems; i++) {
        const uint64_t bits = bits_of(c->dtype, i);

        memcpy(data + (size_t)i * gpurun_dtype_bytes(c->dtype), &bits,
               gpurun_dtype_bytes(c->dtype));
    }
    ck_assert_msg(datafile_write(c->name, c->dtype, c->rank, c->dims, data, &why) == GPURUN_OK,
                  "%s", why.text);
    snprintf(fixture, sizeof fixture, NPY "%s", c->name);
    check_same_files(c->name, fixture);
    ck_assert_int_eq(count_files(), 1);
    free(data);
}
END_TEST

/* Every header that is written is read back, up to the largest shapes. */
START_TEST(test_header_round_trip)
{
    static const int64_t shapes[][GPURUN_RANK_MAX] = {
        {INT64_MAX, 1, 1, 1}, {55108, 55108, 55108, 55108}, {1, 22, 333, 4444}, {0, 7, 0, 1000}};

    for (int i = 0; i < 4 * GPURUN_RANK_MAX * GPURUN_DTYPE_COUNT; i++) {
        const int64_t *dims = shapes[i % 4];
        const int rank = 1 + i / 4 % GPURUN_RANK_MAX;
        /* The first two shapes are the largest that single bytes can have. */
        const enum gpurun_dtype dtype =
            i % 4 < 2 ? GPURUN_UINT8 : (enum gpurun_dtype)(i / 4 / GPURUN_RANK_MAX);
        char header[NPY_HEADER_MAX];
        const size_t size = npy_format_header(dtype, rank, dims, header);
        struct datafile file;
        struct why why = {""};

        ck_assert(size % 64 == 0 && size <= NPY_HEADER_MAX && header[size - 1] == '\n');
        ck_assert_msg(npy_parse_header((unsigned char *)header, size, &file, &why) == GPURUN_OK,
                      "%s", why.text);
        ck_assert(file.dtype == dtype && file.rank == rank && !file.fortran && !file.swapped);
        ck_assert_mem_eq(file.dims, dims, (size_t)rank * sizeof *dims);
        ck_assert_uint_eq(file.data_at, size);
    }
}
END_TEST

START_TEST(test_write_raw)
{
    static const int16_t data[6] = {1, -2, 3, -4, 5, 256};
    static const int64_t dims[2] = {2, 3};
    struct datafile file;
    struct why why;
    void *read;

    ck_assert_int_eq(datafile_write("a.bin", GPURUN_INT16, 2, dims, data, &why), GPURUN_OK);
    read = read_whole("a.bin", GPURUN_INT16, &file);
    ck_assert_int_eq(file.elems, 6);
    ck_assert_mem_eq(read, data, sizeof data);
    free(read);
}
END_TEST

/* A file that exists is replaced, and its new permissions are those of any new file. */
START_TEST(test_write_replaces)
{
    static const int32_t data[2] = {1, 2};
    static const int64_t dims[1] = {2};
    struct stat info;
    struct why why;

    umask(027);
    put_file("a.bin", "old and longer", 14);
    put_file(".gpurun-1-0.tmp", "someone else's", 14);
    ck_assert_int_eq(datafile_write("./a.bin", GPURUN_INT32, 1, dims, data, &why), GPURUN_OK);
    ck_assert_int_eq(stat("a.bin", &info), 0);
    ck_assert_int_eq(info.st_size, 8);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

START_TEST(test_write_refused)
{
    static const struct bad_case cases[] = {
        {"folder.npy", "folder.npy: cannot be written: it is a directory, not a file"},
        {"missing/a.npy", "cannot create a file in missing: No such file or directory"},
        {"file/a.npy", "cannot create a file in file: Not a directory"},
        {"/dev/null", "/dev/null: cannot be written: it is a device or pipe, not a file"},
        {"folder.npy/", "names no file"},
        {"", "names no file"},
    };
    static const int64_t dims[1] = {1};
    struct why why;

    ck_assert_int_eq(mkdir("folder.npy", 0777), 0);
    put_file("file", "x", 1);
    for (size_t i = 0; i < GPURUN_COUNT(cases); i++) {
        ck_assert_int_eq(datafile_write(cases[i].name, GPURUN_INT8, 1, dims, "x", &why),
                         GPURUN_ERROR);
        ck_assert_msg(strstr(why.text, cases[i].reason) != NULL, "%s", why.text);
    }
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

/* A write that fails half-way (here at a limit on file sizes) leaves the target as it was. */
START_TEST(test_write_fails_half_way)
{
    static const int64_t dims[1] = {1 << 20};
    const struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
    void *data = calloc(1 << 20, 1);
    struct datafile file;
    struct why why;

    put_file("a.npy", "old", 3);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(datafile_write("a.npy", GPURUN_INT8, 1, dims, data, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text, "a.npy: cannot be written: File too large");
    ck_assert_int_eq(count_files(), 1);
    ck_assert_int_eq(datafile_inspect("a.npy", GPURUN_AUTO, &file, &why), GPURUN_ERROR);
    ck_assert_ptr_nonnull(strstr(why.text, "does not start as a NumPy file"));
    free(data);
}
END_TEST

/* --- pictures: test_picture.c looks into them, here they are files --------------------------------- */

#define PICTURES TEST_DATA "/pictures/"

START_TEST(test_picture)
{
    struct datafile file;
    struct why why = {""};
    uint8_t *own = read_whole(PICTURES "rgb8.png", GPURUN_AUTO, &file);
    double *wide;

    ck_assert_int_eq(file.dtype, GPURUN_UINT8);
    ck_assert_int_eq(file.rank, 3);
    ck_assert_int_eq(file.elems, 5 * 7 * 3);
    ck_assert(file.dims[0] == 5 && file.dims[1] == 7 && file.dims[2] == 3);
    wide = read_whole(PICTURES "rgb8.png", GPURUN_DOUBLE, &file);
    ck_assert_int_eq(file.dtype, GPURUN_DOUBLE);
    for (int i = 0; i < 5 * 7 * 3; i++) {
        const int y = i / 21, x = i / 3 % 7, c = i % 3;

        ck_assert_int_eq(own[i], (37 * y + 11 * x + 101 * c + 7) % 256);
        ck_assert(wide[i] == own[i]);
    }
    ck_assert_int_eq(datafile_check_limit("x.png", &file, 840, &why), GPURUN_OK);
    ck_assert_int_eq(datafile_check_limit("x.png", &file, 839, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text,
                     "x.png: is a picture of 7 by 5, which takes 840 bytes, above "
                     "picture_limit (839): if it is to be read, write picture_limit = 840");
    file.format = PICTURE_NONE;
    ck_assert_int_eq(datafile_check_limit("x.npy", &file, 839, &why), GPURUN_OK);
    free(own);
    free(wide);
}
END_TEST

START_TEST(test_picture_refused)
{
    static const int64_t asked[] = {GPURUN_INT32, GPURUN_UINT16, GPURUN_HALF};
    struct datafile file;
    struct why why = {""};

    for (size_t i = 0; i < GPURUN_COUNT(asked); i++) {
        ck_assert_int_eq(datafile_inspect(PICTURES "gray8.png", asked[i], &file, &why),
                         GPURUN_ERROR);
        ck_assert_ptr_nonnull(strstr(why.text, "gray8.png: holds uint8, the job says "));
    }
    ck_assert_int_eq(datafile_inspect(PICTURES "bad_cmyk.jpg", GPURUN_UINT8, &file, &why),
                     GPURUN_ERROR);
    ck_assert_ptr_nonnull(strstr(why.text, "bad_cmyk.jpg: holds CMYK colours"));
    ck_assert_int_eq(datafile_inspect("missing.png", GPURUN_UINT8, &file, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text, "missing.png: cannot be opened: No such file or directory");
}
END_TEST

/* Damage that only the pixels show. */
START_TEST(test_damaged_picture)
{
    struct datafile file;
    struct why why = {""};
    uint8_t pixels[5 * 7 * 3];

    ck_assert_int_eq(datafile_inspect(PICTURES "bad_index.png", GPURUN_UINT8, &file, &why),
                     GPURUN_OK);
    ck_assert_int_eq(datafile_read(PICTURES "bad_index.png", &file, pixels, &why), GPURUN_ERROR);
    ck_assert_ptr_nonnull(strstr(why.text, "bad_index.png: its PNG data is damaged: colour 34"));
}
END_TEST

START_TEST(test_write_picture)
{
    static const uint8_t data[] = {1, 2, 3, 4, 5, 6};
    static const int64_t dims[2] = {2, 3};
    struct datafile file;
    struct why why = {""};
    void *read;

    put_file("a.png", "as it was", 9);
    ck_assert_int_eq(datafile_write("a.png", GPURUN_INT32, 2, dims, data, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text,
                     "a.png: cannot be written: a picture holds uint8 or uint16, not int32 "
                     "(name a .npy file)");
    ck_assert_int_eq(datafile_inspect("a.png", GPURUN_AUTO, &file, &why), GPURUN_ERROR);
    ck_assert_str_eq(why.text, "a.png: is no PNG picture");
    ck_assert_int_eq(count_files(), 1);
    ck_assert_int_eq(datafile_write("a.png", GPURUN_UINT8, 2, dims, data, &why), GPURUN_OK);
    read = read_whole("a.png", GPURUN_AUTO, &file);
    ck_assert_int_eq(file.rank, 2);
    ck_assert_mem_eq(read, data, sizeof data);
    ck_assert_int_eq(count_files(), 1);
    free(read);
}
END_TEST

static Suite *datafile_suite(void)
{
    Suite *suite = suite_create("datafile");
    TCase *fixtures = tcase_create("fixtures"), *files = tcase_create("files");

    tcase_add_loop_test(fixtures, test_kind, 0, GPURUN_COUNT(kind_names));
    tcase_add_loop_test(fixtures, test_bfloat16, 0, 2);
    tcase_add_test(fixtures, test_bfloat16_must_be_asked_for);
    tcase_add_test(fixtures, test_picture);
    tcase_add_test(fixtures, test_picture_refused);
    tcase_add_test(fixtures, test_damaged_picture);
    tcase_add_loop_test(fixtures, test_good, 0, (int)GPURUN_COUNT(good_cases));
    tcase_add_loop_test(fixtures, test_bad, 0, (int)GPURUN_COUNT(bad_cases));
    tcase_add_test(fixtures, test_fixtures_all_used);
    tcase_add_test(fixtures, test_header_prefixes);
    tcase_add_test(fixtures, test_dtype_differs);
    tcase_add_test(fixtures, test_header_round_trip);
    suite_add_tcase(suite, fixtures);

    tcase_add_checked_fixture(files, enter_scratch, leave_scratch);
    tcase_set_timeout(files, 60);
    tcase_add_test(files, test_not_a_file);
    tcase_add_test(files, test_raw);
    tcase_add_test(files, test_changed_after_inspection);
    tcase_add_loop_test(files, test_fortran_shapes, 0, 12);
    tcase_add_loop_test(files, test_writes_as_numpy, 0, (int)GPURUN_COUNT(save_cases));
    tcase_add_test(files, test_write_raw);
    tcase_add_test(files, test_write_replaces);
    tcase_add_test(files, test_write_refused);
    tcase_add_test(files, test_write_fails_half_way);
    tcase_add_test(files, test_write_picture);
    suite_add_tcase(suite, files);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(datafile_suite());
    int failed;

    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
