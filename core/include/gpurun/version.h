/* The version of gpurun that these headers belong to. */
#ifndef GPURUN_VERSION_H
#define GPURUN_VERSION_H

#define GPURUN_VERSION "0.1.0"

#endif
