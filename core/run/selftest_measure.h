/*
 * Does the instrument read right? Work of known length, no work, and the same work twice, read as a job's
 * cases are: on the first device, or by the CPU's clock where there is none.
 */
#ifndef GPURUN_RUN_SELFTEST_MEASURE_H
#define GPURUN_RUN_SELFTEST_MEASURE_H

#include <jansson.h>

/* {"passed":BOOL,"by":TEXT,"lines":[TEXT...]}: whose clock it was, and what was read, one line per test. */
json_t *selftest_measure(void);

#endif
