/* Right, but for one memory strategy only. */
#define FAKE_NAME   "only_explicit"
#define FAKE_MEMORY GPURUN_MEMORY_BIT(GPURUN_EXPLICIT)
#include "minimal.h"
