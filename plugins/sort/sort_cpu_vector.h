/*
 * Between the files of the baseline: the sort of keys without values by vectors, for processors that have AVX2.
 */
#ifndef SORT_CPU_VECTOR_H
#define SORT_CPU_VECTOR_H

#include "sort_cpu.h"

/* How bits become signed keys of the same order, and back: of reals all bits but the sign are turned where that is
 * set, then `flip` is exclusive-ored. */
struct vector_turn {
    uint64_t flip;
    bool is_real;
};

struct vector_job {
    const void *from; /* only read, unless it is `to` or `other` */
    void *to, *other; /* `other` is written anywhere */
    int64_t elems;
    struct vector_turn first,
        last; /* makes keys of what `from` has; elements are made of keys by the reverse of `last` */
    int levels; /* of partitions by a sample; below, ranges of keys are halved */
};

/* Whether this machine can. */
bool sort_cpu_vector_is_here(void);

/* As many levels as samples need on any data but such as was made to deceive them. */
int sort_cpu_vector_levels(int64_t elems);

void sort_cpu_vector32(const struct vector_job *job);
void sort_cpu_vector64(const struct vector_job *job);
/* Of doubles in the order of their values, or with the sign as `flip` in the opposite one; no NaN. Zeros come out as any
 * that went in. */
void sort_cpu_vector_real64(const struct vector_job *job);

/* Zeros and NaNs, whatever their sign, as they lie among reals. */
struct vector_picks {
    void *zeros, *nans; /* with room for 32 bytes more */
    int64_t zero_bytes, nan_bytes;
};

/* Appends those of as many bytes as whole vectors cover; returns how many. */
int64_t sort_cpu_vector_pick32(const void *from, int64_t bytes, struct vector_picks *picks);
int64_t sort_cpu_vector_pick64(const void *from, int64_t bytes, struct vector_picks *picks);

#endif
