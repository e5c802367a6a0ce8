/* Built for an ABI before ours. */
#define FAKE_NAME  "old_abi"
#define FAKE_MAJOR 0
#define FAKE_MINOR 9
#include "minimal.h"
