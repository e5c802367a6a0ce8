/*
 * The baseline's loops for one kind of element and one instruction set. Included by matmul_cpu.c with:
 *
 *     NAME(x)       what a function is called
 *     ELEM, ACC     how elements are stored, and what they are multiplied and added in
 *     LOAD, STORE   from one to the other
 *     FACTOR        alpha or beta, a double, as an ACC
 *     TARGET        an attribute, or nothing
 *
 * A block of the product is made by packing pieces of A and B, CPU_K deep, in the order in which the innermost
 * loop reads them: strips of CPU_ROWS rows, strips of two vectors of columns.
 */
#define LANES (CPU_VECTOR_BYTES / (int)sizeof(ACC))
#define STRIP (2 * LANES)

typedef ACC NAME(vector) __attribute__((vector_size(CPU_VECTOR_BYTES)));

/* Rows i of A at k0 and on, CPU_ROWS at a time; rows past the last are zero. */
static TARGET void NAME(pack_a)(const ELEM *a, const struct matmul_layout *l, struct cpu_piece p,
                                ACC *to)
{
    for (int64_t strip = 0; strip < p.rows; strip += CPU_ROWS)
        for (int64_t x = 0; x < p.depth; x++)
            for (int64_t r = strip; r < strip + CPU_ROWS; r++, to++)
                *to = r < p.rows ? LOAD(a[(p.i + r) * l->a_row + (p.x + x) * l->a_col]) : 0;
}

static TARGET void NAME(pack_b)(const ELEM *b, const struct matmul_layout *l, struct cpu_piece p,
                                ACC *to)
{
    for (int64_t strip = 0; strip < p.cols; strip += STRIP)
        for (int64_t x = 0; x < p.depth; x++) {
            const ELEM *from = b + (p.x + x) * l->b_row + (p.j + strip) * l->b_col;
            const int64_t some = p.cols - strip < STRIP ? p.cols - strip : STRIP;

            for (int64_t c = 0; c < some; c++)
                to[c] = LOAD(from[c * l->b_col]);
            for (int64_t c = some; c < STRIP; c++)
                to[c] = 0;
            to += STRIP;
        }
}

/* CPU_ROWS x STRIP sums, kept in registers over the whole depth, then added to `sum`. */
static TARGET void NAME(strips)(const ACC *a, const ACC *b, int64_t depth, ACC *sum)
{
    NAME(vector) part[CPU_ROWS][2] = {0};

    for (int64_t x = 0; x < depth; x++, a += CPU_ROWS, b += STRIP) {
        NAME(vector) left, right;

        memcpy(&left, b, sizeof left);
        memcpy(&right, b + LANES, sizeof right);
        for (int r = 0; r < CPU_ROWS; r++) {
            part[r][0] += a[r] * left;
            part[r][1] += a[r] * right;
        }
    }
    for (int r = 0; r < CPU_ROWS; r++)
        for (int v = 0; v < 2; v++) {
            NAME(vector) total;

            memcpy(&total, sum + r * CPU_N + v * LANES, sizeof total);
            total += part[r][v];
            memcpy(sum + r * CPU_N + v * LANES, &total, sizeof total);
        }
}

static TARGET void NAME(write)(const struct cpu_job *job, struct cpu_piece p, const ACC *sum)
{
    const ACC alpha = (ACC)FACTOR(job->alpha), beta = (ACC)FACTOR(job->beta);

    for (int64_t r = 0; r < p.rows; r++) {
        const int64_t at = p.batch * job->l->c_batch + (p.i + r) * job->l->ldc + p.j;
        ELEM *to = (ELEM *)job->product + at;
        const ELEM *c = job->c ? (const ELEM *)job->c + at : NULL;

        for (int64_t j = 0; j < p.cols; j++) {
            const ACC scaled = alpha * sum[r * CPU_N + j];

            to[j] = STORE(c ? scaled + beta * LOAD(c[j]) : scaled);
        }
    }
}

/* One block of the product, with `room` for the packed pieces and the sums. */
static TARGET void NAME(block)(const struct cpu_job *job, struct cpu_piece p, void *room)
{
    ACC *sum = room, *packed_a = sum + CPU_M * CPU_N, *packed_b = packed_a + CPU_M * CPU_K;
    const ELEM *a = (const ELEM *)job->a + p.batch * job->l->a_batch;
    const ELEM *b = (const ELEM *)job->b + p.batch * job->l->b_batch;

    memset(sum, 0, sizeof(ACC) * CPU_M * CPU_N);
    for (p.x = 0; p.x < job->depth; p.x += CPU_K) {
        p.depth = job->depth - p.x < CPU_K ? job->depth - p.x : CPU_K;
        NAME(pack_a)(a, job->l, p, packed_a);
        NAME(pack_b)(b, job->l, p, packed_b);
        for (int64_t j = 0; j < p.cols; j += STRIP)
            for (int64_t i = 0; i < p.rows; i += CPU_ROWS)
                NAME(strips)
        (packed_a + i * p.depth, packed_b + j * p.depth, p.depth, sum + i * CPU_N + j);
    }
    NAME(write)(job, p, sum);
}

#undef LANES
#undef STRIP
#undef NAME
#undef ELEM
#undef ACC
#undef LOAD
#undef STORE
#undef FACTOR
#undef TARGET
