/* File and table disagree on its name. */
#define FAKE_NAME "another_name"
#include "minimal.h"
