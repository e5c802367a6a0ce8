/*
 * The header of a .npy file: magic, version, length, then the text of a Python dict with the keys
 * descr, fortran_order and shape. Only what NumPy writes is taken; everything else is refused with
 * its reason. NumPy has no name for bfloat16: ml_dtypes lets it write raw records of 2 bytes, V2.
 */
#include "run/datafile.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian, and so are we");

static const char magic[] = "\x93NUMPY";

enum {
    MAGIC_BYTES = 6,
    TEXT_MAX = 32, /* longest string that can be a key or a dtype */
};

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4 };

struct cursor {
    const unsigned char *at, *end;
    struct why *why;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || (*c->at >= '\t' && *c->at <= '\r')))
        c->at++;
}

/* Takes `expected` if it comes next, after blanks. */
static bool take(struct cursor *c, char expected)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != (unsigned char)expected)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    const size_t length = strlen(word);

    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static enum gpurun_status expect(struct cursor *c, char expected, const char *where)
{
    if (take(c, expected))
        return GPURUN_OK;
    return why_fail(c->why, GPURUN_ERROR, "its header is broken: '%c' is missing %s", expected,
                    where);
}

/* Takes a quoted string without escapes. What it holds is printable, so that messages may show
 * it. */
static enum gpurun_status take_string(struct cursor *c, char out[TEXT_MAX], const char *what)
{
    const unsigned char quote = take(c, '\'') ? '\'' : '"';
    size_t length = 0;

    if (quote == '"' && !take(c, '"'))
        return why_fail(c->why, GPURUN_ERROR, "its header is broken: %s is not a string", what);
    for (; c->at < c->end && *c->at != quote; c->at++) {
        if (length == TEXT_MAX - 1 || *c->at < ' ' || *c->at > '~' || *c->at == '\\')
            return why_fail(c->why, GPURUN_ERROR, "its header is broken: %s is no known text",
                            what);
        out[length++] = (char)*c->at;
    }
    if (c->at == c->end)
        return why_fail(c->why, GPURUN_ERROR, "its header is broken: %s has no closing quote",
                        what);
    c->at++;
    out[length] = '\0';
    return GPURUN_OK;
}

/* --- descr ------------------------------------------------------------------------------------ */

static const struct {
    char name[3];
    enum gpurun_dtype dtype;
} kinds[] = {
    {"i1", GPURUN_INT8},  {"u1", GPURUN_UINT8},  {"i2", GPURUN_INT16}, {"u2", GPURUN_UINT16},
    {"i4", GPURUN_INT32}, {"u4", GPURUN_UINT32}, {"i8", GPURUN_INT64}, {"u8", GPURUN_UINT64},
    {"f4", GPURUN_FLOAT}, {"f8", GPURUN_DOUBLE}, {"f2", GPURUN_HALF},  {"V2", GPURUN_BFLOAT16},
};

/* What NumPy calls the kinds that gpurun has no use for, by the letter that starts them. */
static const char *refused_name(const char *kind)
{
    switch (kind[0]) {
    case 'b':
    case '?':
        return "bool";
    case 'c':
        return "complex numbers";
    case 'f':
        return "long doubles";
    case 'O':
        return "Python objects";
    case 'S':
    case 'a':
        return "byte strings";
    case 'U':
        return "text";
    case 'V':
        return "raw records";
    case 'M':
    case 'm':
        return "dates or times";
    default:
        return "elements of an unknown kind";
    }
}

static enum gpurun_status parse_descr(struct cursor *c, struct datafile *out)
{
    char text[TEXT_MAX];
    const char *kind = text;

    if (take(c, '['))
        return why_fail(
            c->why, GPURUN_ERROR,
            "it holds structured elements; gpurun takes plain int8 to uint64, half, float and "
            "double");
    GPURUN_TRY(take_string(c, text, "descr"));
    if (text[0] != '\0' && strchr("<>=|", text[0]) != NULL)
        kind++;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            out->dtype = kinds[i].dtype;
            out->swapped = text[0] == '>' && gpurun_dtype_bytes(out->dtype) > 1;
            return GPURUN_OK;
        }
    }
    return why_fail(c->why, GPURUN_ERROR,
                    "it holds %s ('%s'); gpurun takes int8 to uint64, half, float and double",
                    refused_name(kind), text);
}

/* --- shape ------------------------------------------------------------------------------------ */

static enum gpurun_status parse_length(struct cursor *c, int64_t *out)
{
    const unsigned char *start;

    if (take(c, '-'))
        return why_fail(c->why, GPURUN_ERROR, "its header is broken: shape has a negative length");
    skip_blanks(c);
    *out = 0;
    for (start = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *c->at - '0', out))
            return why_fail(c->why, GPURUN_ERROR, "its shape does not fit 64 bits");
    }
    if (c->at == start)
        return why_fail(c->why, GPURUN_ERROR,
                        "its header is broken: shape is not a tuple of numbers");
    if (c->at < c->end && *c->at == 'L') /* Python 2 wrote long numbers so */
        c->at++;
    return GPURUN_OK;
}

/* A tuple: (), (n,), (a, b) or (a, b,). */
static enum gpurun_status parse_shape(struct cursor *c, struct datafile *out)
{
    bool comma = true;
    int rank = 0;

    GPURUN_TRY(expect(c, '(', "where shape starts"));
    for (; !take(c, ')'); rank++) {
        if (!comma)
            return why_fail(c->why, GPURUN_ERROR, "its header is broken: shape has no end");
        if (rank == GPURUN_RANK_MAX)
            return why_fail(c->why, GPURUN_ERROR, "it has more than %d dimensions",
                            GPURUN_RANK_MAX);
        GPURUN_TRY(parse_length(c, &out->dims[rank]));
        comma = take(c, ',');
    }
    if (rank == 1 && !comma)
        return why_fail(c->why, GPURUN_ERROR,
                        "its header is broken: shape is a number where a tuple must be");
    if (rank == 0)
        out->dims[rank++] = 1;
    out->rank = rank;
    return GPURUN_OK;
}

/* Counts elements and refuses what wraps, also where a length of 0 would hide it. */
static enum gpurun_status count_elems(struct datafile *out, struct why *why)
{
    int64_t product = (int64_t)gpurun_dtype_bytes(out->dtype);

    out->elems = 1;
    for (int i = 0; i < out->rank; i++) {
        const int64_t length = out->dims[i];

        if (length > 0 && __builtin_mul_overflow(product, length, &product))
            return why_fail(why, GPURUN_ERROR, "its shape is larger than any file can be");
        out->elems = length == 0 ? 0 : out->elems * length;
    }
    return GPURUN_OK;
}

/* --- the dict ---------------------------------------------------------------------------------- */

static enum gpurun_status parse_order(struct cursor *c, struct datafile *out)
{
    out->fortran = take_word(c, "True");
    if (out->fortran || take_word(c, "False"))
        return GPURUN_OK;
    return why_fail(c->why, GPURUN_ERROR,
                    "its header is broken: fortran_order is neither True nor False");
}

/* One `key: value`; *seen gains the key's bit. */
static enum gpurun_status parse_item(struct cursor *c, struct datafile *out, unsigned *seen)
{
    char key[TEXT_MAX];
    unsigned bit = 0;

    GPURUN_TRY(take_string(c, key, "a key"));
    if (strcmp(key, "descr") == 0)
        bit = HAS_DESCR;
    else if (strcmp(key, "fortran_order") == 0)
        bit = HAS_ORDER;
    else if (strcmp(key, "shape") == 0)
        bit = HAS_SHAPE;
    if (bit == 0 || (*seen & bit) != 0)
        return why_fail(c->why, GPURUN_ERROR, "its header is broken: %s key '%s'",
                        bit == 0 ? "unknown" : "repeated", key);
    *seen |= bit;
    GPURUN_TRY(expect(c, ':', "after a key"));
    if (bit == HAS_DESCR)
        return parse_descr(c, out);
    return bit == HAS_ORDER ? parse_order(c, out) : parse_shape(c, out);
}

static enum gpurun_status parse_dict(struct cursor *c, struct datafile *out)
{
    unsigned seen = 0;
    bool comma = true;

    GPURUN_TRY(expect(c, '{', "at its start"));
    while (!take(c, '}')) {
        if (!comma)
            return why_fail(c->why, GPURUN_ERROR,
                            "its header is broken: '}' is missing at its end");
        GPURUN_TRY(parse_item(c, out, &seen));
        comma = take(c, ',');
    }
    skip_blanks(c);
    if (c->at != c->end)
        return why_fail(c->why, GPURUN_ERROR, "its header is broken: text follows the closing '}'");
    if (seen != (HAS_DESCR | HAS_ORDER | HAS_SHAPE))
        return why_fail(c->why, GPURUN_ERROR, "its header is broken: the key %s is missing",
                        !(seen & HAS_DESCR)   ? "descr"
                        : !(seen & HAS_ORDER) ? "fortran_order"
                                              : "shape");
    return GPURUN_OK;
}

/* Finds the dict's text: a length of 2 bytes in version 1, of 4 bytes in versions 2 and 3. */
static enum gpurun_status find_dict(const unsigned char *bytes, size_t size, struct cursor *c)
{
    size_t at = MAGIC_BYTES + 2, length = 0, width;

    if (size < MAGIC_BYTES + 4 || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return why_fail(c->why, GPURUN_ERROR, "it does not start as a NumPy file does");
    if (bytes[MAGIC_BYTES] < 1 || bytes[MAGIC_BYTES] > 3 || bytes[MAGIC_BYTES + 1] != 0)
        return why_fail(c->why, GPURUN_ERROR,
                        "it is of .npy version %d.%d; gpurun reads 1.0 to 3.0", bytes[MAGIC_BYTES],
                        bytes[MAGIC_BYTES + 1]);
    width = bytes[MAGIC_BYTES] == 1 ? 2 : 4;
    if (size < at + width)
        return why_fail(c->why, GPURUN_ERROR, "it ends within its header");
    for (size_t i = 0; i < width; i++)
        length |= (size_t)bytes[at + i] << (8 * i);
    at += width;
    if (length > NPY_DICT_MAX)
        return why_fail(c->why, GPURUN_ERROR, "its header of %zu bytes is longer than %d", length,
                        NPY_DICT_MAX);
    if (length > size - at)
        return why_fail(c->why, GPURUN_ERROR, "it ends within its header");
    c->at = bytes + at;
    c->end = c->at + length;
    return GPURUN_OK;
}

enum gpurun_status npy_parse_header(const unsigned char *bytes, size_t size, struct datafile *out,
                                    struct why *why)
{
    struct datafile file = {.rank = 0};
    struct cursor c = {.why = why};

    GPURUN_TRY(find_dict(bytes, size, &c));
    file.data_at = c.end - bytes;
    GPURUN_TRY(parse_dict(&c, &file));
    GPURUN_TRY(count_elems(&file, why));
    *out = file;
    return GPURUN_OK;
}

/* --- writing ----------------------------------------------------------------------------------- */

static const char *descr(enum gpurun_dtype dtype)
{
    size_t i = 0;

    while (kinds[i].dtype != dtype)
        i++;
    return kinds[i].name;
}

/* NumPy leaves room for the first length to grow to 21 digits, then pads to 64 bytes: always at
 * least one blank or newline, and a full 64 where the text would end exactly there. */
size_t npy_format_header(enum gpurun_dtype dtype, int rank, const int64_t *dims,
                         char out[NPY_HEADER_MAX])
{
    enum { PREFIX_BYTES = MAGIC_BYTES + 4, GROWTH_DIGITS = 21, ALIGN = 64 };
    char *dict = out + PREFIX_BYTES;
    const size_t room = NPY_HEADER_MAX - PREFIX_BYTES;
    size_t length, total;

    length = (size_t)snprintf(dict, room, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                              gpurun_dtype_bytes(dtype) == 1 ? '|' : '<', descr(dtype));
    for (int i = 0; i < rank; i++)
        length += (size_t)snprintf(dict + length, room - length, "%s%lld%s", i == 0 ? "" : ", ",
                                   (long long)dims[i], rank == 1 ? "," : "");
    length += (size_t)snprintf(dict + length, room - length, "), }");
    if (rank > 0)
        length += (size_t)(GROWTH_DIGITS - snprintf(NULL, 0, "%lld", (long long)dims[0]));
    total = PREFIX_BYTES + length + 1;
    total += ALIGN - total % ALIGN;
    length = strlen(dict);
    memset(dict + length, ' ', total - PREFIX_BYTES - length);
    out[total - 1] = '\n';
    memcpy(out, magic, MAGIC_BYTES);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((total - PREFIX_BYTES) & 0xff);
    out[9] = (char)((total - PREFIX_BYTES) >> 8);
    return total;
}
