/* Its table is shorter than its ABI says. */
#define FAKE_NAME "short_table"
#define FAKE_SIZE 64
#include "minimal.h"
