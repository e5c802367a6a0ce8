/* Built for an ABI after ours: same major, higher minor. */
#define FAKE_NAME  "new_abi"
#define FAKE_MINOR (GPURUN_ABI_MINOR + 1)
#include "minimal.h"
