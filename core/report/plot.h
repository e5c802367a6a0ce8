/*
 * Plots as SVG, drawn by gnuplot in a child process. gnuplot is given numbers and place-holders only: no
 * text of a record reaches it, and what it answers gets the texts, escaped, in their places.
 */
#ifndef GPURUN_REPORT_PLOT_H
#define GPURUN_REPORT_PLOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A chart, as JSON, is {"kind", "x", "y", "limit", "series": [{"label", "points", "is_limit"}]}. `x` and `y`
 * name the axes, of a bar only x. What a point is:
 *   bars     one number per series, the bar's length; "limit" (may be missing) is a line across all
 *   stacked  three numbers per series: upload, kernel, download
 *   lines    [x, y], both above 0; a series with is_limit is dashed
 *   strip    a number above 0 for each sample, in order
 */

/* False when there is no gnuplot to be run. */
bool plot_is_possible(void);

/* Writes the chart as an <svg> element. `number` keeps the ids of a page's charts apart. False, with
 * nothing written, when gnuplot did not draw it. */
bool plot_write(FILE *to, const json_t *chart, int number);

#endif
