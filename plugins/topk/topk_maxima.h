/*
 * Between the files of the maxima variant.
 */
#ifndef TOPK_MAXIMA_H
#define TOPK_MAXIMA_H

#include "topk.h"

enum {
    MAXIMA_K_MAX = 32,
};

#endif
