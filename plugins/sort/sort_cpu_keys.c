/*
 * The baseline for keys without values. Elements become unsigned keys in the first pass and elements again in
 * the last. In memory there is one pass: a sample of the keys tells how to cut their range into buckets that
 * a core's cache holds, whatever the distribution, and each key goes to its bucket through a few lines of the
 * cache that are written when they are full. Small buckets are then sorted by one digit and by exchanges of
 * neighbours, larger ones in two passes by digits, least first; the few keys that these leave open are inserted.
 * Threads share the first pass and then take whole buckets. Where a sample has few values, elements are counted by
 * value instead, as long as there are no others; where the range of all keys is small, or of reals that are whole
 * numbers, they are counted too. Where the processor has vectors, sort_cpu_vector.c sorts what those sort faster:
 * whole arrays that are not too large, and buckets.
 *
 * What a key does not tell, the place of a NaN and the sign of a zero, is copied from the input at the end, in
 * its order. All other equal keys are the same bits, so nothing here needs to be stable.
 */
#include "sort_cpu_keys.h"
#include <omp.h>

#define NAME(x)  x##32
#define BITS     uint32_t
#define REAL     float
#define INFINITE UINT32_C(0x7f800000)
#include "sort_cpu_keys_kind.h"

#define NAME(x)  x##64
#define BITS     uint64_t
#define REAL     double
#define INFINITE UINT64_C(0x7ff0000000000000)
#include "sort_cpu_keys_kind.h"
