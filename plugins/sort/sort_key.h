/*
 * The order of a sort as the order of unsigned keys. gpurun/key.h has one end for NaN and puts it first when
 * the order is turned round; here NaN is last in either direction.
 */
#ifndef SORT_KEY_H
#define SORT_KEY_H

#include "gpurun/key.h"

/* How bits become keys. Chosen once per job. */
struct sort_map {
    uint64_t flip; /* see gpurun/key.h */
    uint64_t less; /* taken off last: 1 where reals descend, whose NaNs are the only keys of 0 */
    bool is_real;
};

static inline struct sort_map sort_map_for(enum gpurun_dtype dtype, bool descending)
{
    struct sort_map map;

    map.flip = gpurun_key_flip(dtype, descending);
    map.is_real = gpurun_dtype_is_real(dtype);
    map.less = map.is_real && descending;
    return map;
}

GPURUN_KEY_INLINE uint32_t sort_key32(uint32_t bits, struct sort_map map)
{
    return gpurun_key32(bits, map.is_real, (uint32_t)map.flip) - (uint32_t)map.less;
}

GPURUN_KEY_INLINE uint64_t sort_key64(uint64_t bits, struct sort_map map)
{
    return gpurun_key64(bits, map.is_real, map.flip) - map.less;
}

#endif
