/* Has a variant, but no run_gpu hook. */
#define FAKE_NAME    "no_run_gpu"
#define FAKE_RUN_GPU NULL
#include "minimal.h"
