/*
 * What there is: plugins, their options and variants, the core's keys, devices. The describe_ functions
 * run in a worker and gather; the print_ functions run in the parent and write to standard output.
 */
#ifndef GPURUN_REPORT_DESCRIBE_H
#define GPURUN_REPORT_DESCRIBE_H

#include "plan/registry.h"

json_t *describe_plugin(const struct plugin *plugin);
json_t *describe_devices(void);

void print_plugin(const json_t *description);
void print_plugin_line(const char *name, const json_t *description);
void print_core(void);
void print_devices(const json_t *devices);

#endif
