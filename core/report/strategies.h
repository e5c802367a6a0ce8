/* Memory strategies held against each other, end to end: which is fastest at which size, and where one overtakes another. */
#ifndef GPURUN_REPORT_STRATEGIES_H
#define GPURUN_REPORT_STRATEGIES_H

#include <jansson.h>

/* "managed, prefetch". For the caller to free. */
char *strategies_name(const json_t *record);

/* What a case reads: the bytes of all its inputs. */
double strategies_bytes(const json_t *record);

/* Of one variant's records: "Fastest end to end: explicit up to 400 KB; pinned from 4 MB. Between 400 KB and 4 MB pinned
 * overtakes explicit; their intervals overlap at 4 MB." A crossing lies between two measured sizes, and is in doubt where
 * the intervals of the medians overlap at one of them. "" where no size has two strategies. For the caller to free. */
char *strategies_overtaking(const json_t *records);

#endif
