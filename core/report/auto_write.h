/* `gpurun report --auto-table`: the table of `variant = auto` (plan/auto_table.h), made from records. */
#ifndef GPURUN_REPORT_AUTO_WRITE_H
#define GPURUN_REPORT_AUTO_WRITE_H

#include <stddef.h>

/* Prints the table of `plugin` to standard output. 0; 1 when the files hold nothing to choose by; 2 when one
 * cannot be read. `gap`: how much slower a variant must be, beyond doubt, to lose to another (verdict_of). */
int auto_write(char *const *paths, size_t count, const char *plugin, double gap);

#endif
