/* Records as one HTML page that needs nothing else: no network, no other file. */
#ifndef GPURUN_REPORT_HTML_H
#define GPURUN_REPORT_HTML_H

#include <jansson.h>
#include <stdbool.h>

/* Writes the page to `path`, whole or not at all. False, with the reason printed, when that fails. */
bool html_write(const char *path, const json_t *records);

/* The page's style and its script, which sorts a table by the column that is clicked. */
extern const char html_style[], html_script[];

#endif
