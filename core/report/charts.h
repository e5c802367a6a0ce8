/* Which charts a set of records makes, and what there is to say about them. */
#ifndef GPURUN_REPORT_CHARTS_H
#define GPURUN_REPORT_CHARTS_H

#include <jansson.h>

/* The charts of the records, in the order of a page: {"plugin": [chart]}; a chart is plot.h's, and has a
 * "title" and a "text" (a sentence, may be empty) besides. For the caller to free.
 *
 * Jobs of one section and of the same sweep values but for `n` and `memory` go together. Of them come
 * the ladder (the variants' rates at the largest n), time against n where that was swept, the phases of
 * every memory strategy where that was, and the samples of each job that kept them. */
json_t *charts_of(const json_t *records);

/* The rate that counts, in units of *unit: operations where they are declared, else bytes. 0 for none. */
double charts_rate(const json_t *record, const char **unit);

#endif
