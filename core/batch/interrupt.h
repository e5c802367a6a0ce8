/* SIGINT and SIGTERM while a batch runs: the first ends it in order, the second at once. */
#ifndef GPURUN_BATCH_INTERRUPT_H
#define GPURUN_BATCH_INTERRUPT_H

/* How many of them have come. */
extern volatile int interrupted;

void interrupt_catch(void);

#endif
