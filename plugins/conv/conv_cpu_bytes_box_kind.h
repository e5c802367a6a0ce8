/*
 * Of conv_cpu_bytes_two_kind.h, the box of 3 x 3: conv_cpu_bytes.h says how.
 */

/* A line under a box, a sum each of three pixels in a row and the one in the middle, and what is kept of the two
 * before. */
struct box_line {
    vector row, middle;
};

struct box_kept {
    vector rows, cross; /* both sums; the lower one and both in the middle */
    struct box_line lower;
};

INLINE struct box_line box_line(vector sides, vector middle)
{
    struct box_line line = {.middle = V(add_epi16)(middle, V(set1_epi16)(CONV_CPU_BOX_EXTRA))};

    line.row = V(add_epi16)(V(maddubs_epi16)(sides, V(set1_epi8)(1)), line.middle);
    return line;
}

/* Of the sum of all nine pixels and that of the middle row and column, the middle one twice: with what box_line
 * adds. */
INLINE vector box_result(vector all, vector cross)
{
    const vector most = V(mulhi_epu16)(all, V(set1_epi16)(CONV_CPU_BOX_NINTH));
    const vector left =
        V(sub_epi16)(V(sub_epi16)(V(mullo_epi16)(all, V(set1_epi16)(CONV_CPU_BOX_ALL)),
                                  V(mullo_epi16)(most, V(set1_epi16)(CONV_CPU_BOX_STEP))),
                     V(add_epi16)(cross, V(set1_epi16)(CONV_CPU_BOX_LEAST)));

    return V(add_epi16)(most, V(srai_epi16)(left, 15));
}

/* Two lines into the sums that they belong to, and these into results. */
INLINE void box_lines(struct box_line upper, struct box_line lower, int16_t *sums, vector done[2])
{
    struct box_kept *const kept = (struct box_kept *)(void *)sums;
    const vector rows = V(add_epi16)(upper.row, lower.row);
    const vector middles = V(add_epi16)(upper.middle, lower.middle);

    done[0] =
        box_result(V(add_epi16)(kept->rows, upper.row), V(add_epi16)(kept->cross, upper.middle));
    done[1] = box_result(V(add_epi16)(kept->lower.row, rows),
                         V(add_epi16)(V(add_epi16)(upper.row, kept->lower.middle), middles));
    *kept = (struct box_kept){rows, V(add_epi16)(lower.row, middles), lower};
}

INLINE void box_vector(const struct laid *mask, const char *above, const char *below, int16_t *sums,
                       vector *upper, vector *lower)
{
    const vector none = {0};
    vector sides[4], middles[4], low[2], high[2];

    unpack(bytes_at(above), bytes_at(above + 2 * mask->step), &sides[0], &sides[1]);
    unpack(bytes_at(below), bytes_at(below + 2 * mask->step), &sides[2], &sides[3]);
    unpack(bytes_at(above + mask->step), none, &middles[0], &middles[1]);
    unpack(bytes_at(below + mask->step), none, &middles[2], &middles[3]);
    box_lines(box_line(sides[0], middles[0]), box_line(sides[2], middles[2]), sums, low);
    box_lines(box_line(sides[1], middles[1]), box_line(sides[3], middles[3]), sums + 4 * WORDS,
              high);
    *upper = V(packus_epi16)(low[0], high[0]);
    *lower = V(packus_epi16)(low[1], high[1]);
}
