/* Its table does not start with the magic number. */
#define FAKE_NAME  "bad_magic"
#define FAKE_MAGIC 0x12345678
#include "minimal.h"
