/* Has no verify hook. */
#define FAKE_NAME   "no_hook"
#define FAKE_VERIFY NULL
#include "minimal.h"
