/* Does nothing, rightly: a run of it takes as long as an empty reading. */
#define FAKE_NAME "null"
#include "minimal.h"
