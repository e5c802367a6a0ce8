/*
 * A short sorted list, best first, kept as one column of two shared arrays: slot j is at j * stride, so
 * that the threads of a warp touch neighbouring words. The caller holds its length.
 */
#ifndef TOPK_LIST_CUH
#define TOPK_LIST_CUH

#include <stdint.h>

template <typename BITS> struct topk_list {
    int64_t *index;
    BITS *key;
    int stride;
};

/* Whether (key, index) comes before (other_key, other_index). */
template <typename BITS>
static __host__ __device__ __forceinline__ bool topk_before(BITS key, int64_t index, BITS other_key,
                                                            int64_t other_index)
{
    return key > other_key || (key == other_key && index < other_index);
}

/* Inserts an element in its place and drops the last of more than k. Returns the new length. */
template <typename BITS>
static __host__ __device__ int topk_list_offer(struct topk_list<BITS> l, int count, int k, BITS key,
                                               int64_t index, bool distinct)
{
    const int stride = l.stride;
    int at = count;

    while (at > 0 && topk_before(key, index, l.key[(at - 1) * stride], l.index[(at - 1) * stride]))
        at--;
    if (distinct && at > 0 && l.key[(at - 1) * stride] == key)
        return count; /* known, at a lower index */
    if (distinct && at < count && l.key[at * stride] == key) {
        l.index[at * stride] = index; /* known, at a higher index */
        return count;
    }
    if (at == k)
        return count;
    count = count < k ? count + 1 : k;
    for (int slot = count - 1; slot > at; slot--) {
        l.key[slot * stride] = l.key[(slot - 1) * stride];
        l.index[slot * stride] = l.index[(slot - 1) * stride];
    }
    l.key[at * stride] = key;
    l.index[at * stride] = index;
    return count;
}

/* Which list's head comes first: below 0 a's, above 0 b's, 0 both (distinct: the same key). */
template <typename BITS>
static __host__ __device__ __forceinline__ int topk_list_side(struct topk_list<BITS> a, int a_slot,
                                                              struct topk_list<BITS> b, int b_slot,
                                                              bool distinct)
{
    const BITS a_key = a.key[a_slot * a.stride], b_key = b.key[b_slot * b.stride];

    if (distinct && a_key == b_key)
        return 0;
    return topk_before(a_key, a.index[a_slot * a.stride], b_key, b.index[b_slot * b.stride]) ? -1
                                                                                             : 1;
}

/*
 * Merges `b` into `a` and keeps k: first finds how many of each are kept, then moves them from the last
 * back to the first, which never overwrites an element of `a` that is still to be moved. Returns the new
 * length of `a`.
 */
template <typename BITS>
static __host__ __device__ int topk_list_merge(struct topk_list<BITS> a, int a_count,
                                               struct topk_list<BITS> b, int b_count, int k,
                                               bool distinct)
{
    int i = 0, j = 0, count = 0;

    for (; count < k && (i < a_count || j < b_count); count++) {
        const int side = i == a_count   ? 1
                         : j == b_count ? -1
                                        : topk_list_side(a, i, b, j, distinct);
        i += side <= 0;
        j += side >= 0;
    }
    for (int to = count - 1; j > 0; to--) {
        const int side = i == 0 ? -1 : topk_list_side(a, i - 1, b, j - 1, distinct);
        const bool from_a =
            side > 0 || (side == 0 && a.index[(i - 1) * a.stride] < b.index[(j - 1) * b.stride]);

        i -= side >= 0;
        j -= side <= 0;
        a.key[to * a.stride] = from_a ? a.key[i * a.stride] : b.key[j * b.stride];
        a.index[to * a.stride] = from_a ? a.index[i * a.stride] : b.index[j * b.stride];
    }
    return count;
}

#endif
