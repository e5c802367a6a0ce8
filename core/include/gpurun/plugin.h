/*
 * The contract between gpurun and a plugin: all that a plugin's C files include.
 *
 * A plugin is a shared object that exports one constant, `gpurun_plugin`, and nothing else. The core
 * reads its first four fields, and only when they match runs any of its code. The five hooks are called
 * in one thread of a worker process that owns one device:
 *
 *     setup -> run_cpu, verify -> (run_gpu, verify) per variant -> timed rounds -> teardown
 *
 * Shapes count elements, sizes count bytes, times are in the unit that ends their name. Unless a line
 * says otherwise the core owns every pointer that it hands out, and it stays valid until teardown.
 */
#ifndef GPURUN_PLUGIN_H
#define GPURUN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPURUN_MAGIC UINT32_C(0x47525550) /* "GRUP" */

/* Same major and a minor not above the core's is accepted. Tables only ever grow at their ends: the
 * minor says by how much, the *_size fields let either side step over what it does not know. */
enum { GPURUN_ABI_MAJOR = 1, GPURUN_ABI_MINOR = 3 };

/* Every byte of an `out` tensor before a proved run. What is no part of an answer still holds it when verify
 * is called, or was written to. */
enum { GPURUN_POISON = 0xA5 };

#define GPURUN_EXPORT __attribute__((visibility("default")))

enum gpurun_status {
    GPURUN_OK = 0,
    GPURUN_INVALID,     /* an option or a shape is wrong: the user's to mend */
    GPURUN_ERROR,       /* a file, a library or a system call failed */
    GPURUN_UNSUPPORTED, /* right, but not with this variant, dtype or device */
    GPURUN_NO_MEMORY,   /* host or device memory ran out */
    GPURUN_DEVICE,      /* the device failed; the worker stops using it */
};

enum gpurun_dtype {
    GPURUN_INT8,
    GPURUN_UINT8,
    GPURUN_INT16,
    GPURUN_UINT16,
    GPURUN_INT32,
    GPURUN_UINT32,
    GPURUN_INT64,
    GPURUN_UINT64,
    GPURUN_FLOAT,
    GPURUN_DOUBLE,
    GPURUN_HALF,     /* binary16; gpurun/half.h converts */
    GPURUN_BFLOAT16, /* the upper half of a float */
    GPURUN_DTYPE_COUNT
};

/* What an integer, choice or dtype option holds when its text is `auto`; a real or a duration then holds
 * a NaN of its own, see gpurun_real_is_auto. */
#define GPURUN_AUTO           INT64_MIN
#define GPURUN_AUTO_REAL_BITS UINT64_C(0x7ff8617574666f72)

/* --- options ---------------------------------------------------------------------------------- */

enum gpurun_option_type {
    GPURUN_OPTION_INT,    /* int64_t */
    GPURUN_OPTION_REAL,   /* double */
    GPURUN_OPTION_BOOL,   /* int64_t, 0 or 1 */
    GPURUN_OPTION_CHOICE, /* int64_t, index into choices */
    GPURUN_OPTION_DTYPE,  /* int64_t, enum gpurun_dtype; choices lists the names that are allowed */
    GPURUN_OPTION_DURATION, /* double, seconds */
    GPURUN_OPTION_TEXT,     /* const char *, as written; never NULL */
};

enum {
    GPURUN_OPTION_AUTO = 1,    /* `auto` is a value too, see GPURUN_AUTO; not for BOOL and TEXT */
    GPURUN_OPTION_TUNABLE = 2, /* changes speed, never the answer */
};

struct gpurun_option {
    const char *name; /* the key in a job file */
    const char *help; /* one line, no full stop */
    enum gpurun_option_type type;
    size_t offset;              /* of the field in the options struct */
    const char *def;            /* default, as a user would write it */
    double min, max;            /* INT, REAL, DURATION: inclusive; both 0: unbounded */
    const char *unit;           /* "elements", "threads", ...; may be NULL */
    const char *const *choices; /* CHOICE and DTYPE: ends with NULL */
    unsigned flags;
};

/* --- tensors ---------------------------------------------------------------------------------- */

enum { GPURUN_RANK_MAX = 4 };

enum gpurun_role { GPURUN_IN, GPURUN_OUT, GPURUN_INOUT };

/* A dense row-major array. A plugin asks for it in setup; memory is there once setup has returned. */
struct gpurun_tensor {
    const char *name;
    enum gpurun_role role;
    enum gpurun_dtype dtype;
    int rank;
    int64_t dims[GPURUN_RANK_MAX];
    int64_t elems;
    size_t bytes;
    void *host; /* run_cpu reads and writes here; verify reads the answer here, whoever made it */
    void *dev;  /* what kernels are given; NULL without a device */
    /* inout: what `host` held before any run, for verify to hold the answer against; else NULL */
    const void *original;
    /* setup may set it: another run of the same case may write other bytes here that are as right */
    bool varies;
};

/* What a file says of a tensor, see gpurun_input_shape. */
struct gpurun_shape {
    int64_t dtype; /* enum gpurun_dtype or GPURUN_AUTO */
    int rank;      /* 0: the input is a generator, any shape will do */
    int64_t dims[GPURUN_RANK_MAX];
};

/* --- memory strategies ------------------------------------------------------------------------ */

enum gpurun_memory {
    GPURUN_EXPLICIT, /* pageable host memory, device memory, copies */
    GPURUN_PINNED,   /* page-locked host memory, device memory, asynchronous copies */
    GPURUN_ZEROCOPY, /* mapped page-locked host memory, read over the link */
    GPURUN_MANAGED,  /* one allocation, pages migrate */
    GPURUN_MEMORY_COUNT
};

#define GPURUN_MEMORY_BIT(strategy) (1u << (strategy))
#define GPURUN_MEMORY_ALL           ((1u << GPURUN_MEMORY_COUNT) - 1)

/* --- a job, as its plugin sees it --------------------------------------------------------------- */

typedef void *gpurun_stream; /* a cudaStream_t; opaque here, so that C needs no CUDA header */

struct gpurun_device {
    int compute;         /* compute capability, 10 * major + minor; 0: no device */
    int sm_count;        /* multiprocessors */
    size_t shared_bytes; /* most shared memory one block can opt in to */
    size_t l2_bytes;     /* L2 cache */
    size_t global_bytes; /* device memory */
};

/* The least work that any implementation must do in one run: what GB/s and % of limit are made of. */
struct gpurun_work {
    double bytes_read;
    double bytes_written;
    double operations; /* arithmetic operations; 0 where bytes are what counts */
    double elements;   /* problem size for elements per second */
};

struct gpurun_core;

struct gpurun_ctx {
    const struct gpurun_core *core;
    void *options;               /* the options struct; setup replaces each auto by what it chose */
    void *state;                 /* state_bytes of the plugin, zeroed before setup */
    struct gpurun_work work;     /* setup fills it */
    struct gpurun_device device; /* all zero without a device */
    int threads;                 /* run_cpu uses so many */
    gpurun_stream stream;        /* run_gpu enqueues here and nowhere else */
    void *scratch;       /* device, scratch_bytes of the variant; shared, contents undefined */
    void *variant_state; /* device, state_bytes of the variant; zeroed once, then kept */
};

/* --- proof -------------------------------------------------------------------------------------- */

enum gpurun_verify { GPURUN_VERIFY_AUTO, GPURUN_VERIFY_FULL, GPURUN_VERIFY_CERTIFY };

struct gpurun_proof {
    enum gpurun_verify mode; /* in: what is asked; out: FULL or CERTIFY, what was done */
    unsigned relaxed;        /* in: GPURUN_UNSORTED and so on, from the variant that answered */
    int64_t checked;         /* out: elements held against the truth */
    int64_t wrong;           /* out: counted by gpurun_wrong */
    double worst_error;      /* out: largest error seen, in units of the value */
    double bound;            /* out: largest error allowed; 0: exact */
    const char *detects;     /* out: the smallest fault that this proof cannot miss */
    /* out: the largest and the mean error, each divided by the scale of its element that relative_to
     * names, "|A||B|" for one; NULL: not reported */
    double worst_relative, mean_relative;
    const char *relative_to;
};

/* --- variants ----------------------------------------------------------------------------------- */

enum {
    GPURUN_PEER = 1,          /* only calls a vendor library */
    GPURUN_UNSORTED = 2,      /* promises the right set, in any order */
    GPURUN_TIES_ANY = 4,      /* may take any of equal elements */
    GPURUN_FLOAT_BY_BITS = 8, /* orders NaN by its bits */
};

struct gpurun_variant {
    const char *name; /* its idea in a word; also the file's and the kernel's name */
    const char *idea; /* one line */
    unsigned capabilities;
    int min_compute; /* least compute capability, 75 for 7.5; 0: any */
    /* Optional. GPURUN_OK, or GPURUN_UNSUPPORTED through gpurun_fail with the reason. */
    enum gpurun_status (*supported)(struct gpurun_ctx *ctx);
    /* Optional, 0 if absent. Called after supported() said yes. */
    size_t (*scratch_bytes)(struct gpurun_ctx *ctx);
    size_t (*state_bytes)(struct gpurun_ctx *ctx);
    /* Enqueues one run on ctx->stream: no allocation, no synchronisation, no printing. */
    enum gpurun_status (*launch)(struct gpurun_ctx *ctx);
};

/* --- the plugin ----------------------------------------------------------------------------------- */

struct gpurun_plugin {
    uint32_t magic; /* GPURUN_MAGIC */
    uint16_t abi_major, abi_minor;
    uint32_t struct_size;

    uint32_t option_size, option_count;   /* sizeof(struct gpurun_option), rows */
    uint32_t variant_size, variant_count; /* sizeof(struct gpurun_variant), rows */
    const char *name;                     /* also the directory's and the file's: NAME.so */
    const char *summary;                  /* one line */
    const struct gpurun_option *options;
    const struct gpurun_variant *variants; /* from naive to best, peers last; NULL without CUDA */
    size_t options_bytes, state_bytes;     /* sizes of the plugin's two structs */
    unsigned memory;                       /* GPURUN_MEMORY_BIT of each strategy that works */
    enum gpurun_memory memory_default;
    const char *memory_why; /* why that one, one line */

    /* Checks options, asks for tensors, fills ctx->work. Cheap: it runs for `gpurun check` too, with no
     * device and no data. Required. */
    enum gpurun_status (*setup)(struct gpurun_ctx *ctx);
    /* Enqueues one run of a variant: v->launch(ctx) and what the plugin's variants have in common.
     * `in` tensors are never written; `inout` ones are restored by the core before each run. Required
     * where there are variants. */
    enum gpurun_status (*run_gpu)(struct gpurun_ctx *ctx, const struct gpurun_variant *v);
    /* The baseline: a fast CPU implementation, from host to host. Required. */
    enum gpurun_status (*run_cpu)(struct gpurun_ctx *ctx);
    /* Holds the answer in the host tensors against the truth, which is never run_cpu's answer. GPURUN_OK
     * when it could be judged, whatever the verdict; proof->wrong is the verdict. An answer that is
     * smaller than its tensor may then be moved together and the tensor's rank, dims, elems and bytes
     * made smaller: that is what is shown and written; the core undoes it before the next run. Required. */
    enum gpurun_status (*verify)(struct gpurun_ctx *ctx, struct gpurun_proof *proof);
    /* Frees what the hooks allocated. Always called, also after a setup that failed half-way. Required. */
    void (*teardown)(struct gpurun_ctx *ctx);
};

/* --- what the core does for a plugin ---------------------------------------------------------------- */

struct gpurun_core {
    uint32_t struct_size;
    struct gpurun_tensor *(*tensor)(struct gpurun_ctx *ctx, const char *name, enum gpurun_role role,
                                    enum gpurun_dtype dtype, int rank, const int64_t *dims);
    enum gpurun_status (*input_shape)(struct gpurun_ctx *ctx, const char *name,
                                      struct gpurun_shape *shape);
    enum gpurun_status (*fail)(struct gpurun_ctx *ctx, enum gpurun_status status, const char *key,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
    void (*wrong)(struct gpurun_ctx *ctx, struct gpurun_proof *proof, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    void *(*library)(struct gpurun_ctx *ctx, const char *const *sonames);
    void (*note)(struct gpurun_ctx *ctx, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
};

/* Asks for a tensor; setup only. `input`, `output`, `input.NAME` and `output.NAME` in the job file name
 * it: the plain keys mean the first tensor of their role. NULL after a failure that the core has noted:
 * return GPURUN_INVALID. */
#define gpurun_tensor(ctx, ...) ((ctx)->core->tensor((ctx), __VA_ARGS__))

/* What is known of an input before it is asked for; setup only. shape->dtype goes in as the job's dtype
 * or GPURUN_AUTO, and comes out as the file's. A file that contradicts the job is a failure. */
#define gpurun_input_shape(ctx, name, shape) ((ctx)->core->input_shape((ctx), (name), (shape)))

/* Notes why a hook fails and returns `status`. `key` is the option at fault or NULL; the core adds where
 * that option was set. Use: return gpurun_fail(ctx, GPURUN_INVALID, "k", "%d is ...", k); */
#define gpurun_fail(ctx, ...) ((ctx)->core->fail((ctx), __VA_ARGS__))

/* Counts one wrong element; the first ten texts are shown. verify only. */
#define gpurun_wrong(ctx, proof, ...) ((ctx)->core->wrong((ctx), (proof), __VA_ARGS__))

/* Opens a vendor's library, for supported(): the first of a list that ends with NULL, as in
 * {"libcublas.so.13", "libcublas.so.12", NULL}, that the loader finds or that lies in the CUDA folder
 * ($CUDA_HOME, $CUDA_PATH or /usr/local/cuda). It stays open; the next call gives the same handle, for
 * dlsym. NULL after noting which names were tried: return GPURUN_UNSUPPORTED. */
#define gpurun_library(ctx, sonames) ((ctx)->core->library((ctx), (sonames)))

/* Says which of several ways a run took ("OpenBLAS, 4 threads"): the record's `path`, and what the ratio to
 * the CPU is over. run_cpu and run_gpu only; of a case the last note stays, cut at 120 bytes. */
#define gpurun_note(ctx, ...) ((ctx)->core->note((ctx), __VA_ARGS__))

#define GPURUN_TRY(call)                                                                           \
    do {                                                                                           \
        const enum gpurun_status status_ = (call);                                                 \
        if (status_ != GPURUN_OK)                                                                  \
            return status_;                                                                        \
    } while (0)

#define GPURUN_COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static inline size_t gpurun_dtype_bytes(enum gpurun_dtype dtype)
{
    static const unsigned char bytes[GPURUN_DTYPE_COUNT] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2, 2};
    return bytes[dtype];
}

/* Tells auto from a `nan` that the user wrote. */
static inline int gpurun_real_is_auto(double value)
{
    const union {
        double real;
        uint64_t bits;
    } both = {value};

    return both.bits == GPURUN_AUTO_REAL_BITS;
}

static inline const char *gpurun_dtype_name(enum gpurun_dtype dtype)
{
    static const char *const names[GPURUN_DTYPE_COUNT] = {"int8",  "uint8",  "int16", "uint16",
                                                          "int32", "uint32", "int64", "uint64",
                                                          "float", "double", "half",  "bfloat16"};
    return names[dtype];
}

extern GPURUN_EXPORT const struct gpurun_plugin gpurun_plugin;

#ifdef __cplusplus
}
#endif

#endif
