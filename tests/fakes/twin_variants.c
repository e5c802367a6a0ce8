/* Two variants of one name. */
#define FAKE_NAME "twin_variants"
#define FAKE_VARIANTS                                                                              \
    {.name = "nothing", .idea = "the first", .launch = launch},                                    \
    {                                                                                              \
        .name = "nothing", .idea = "the second", .launch = launch                                  \
    }
#include "minimal.h"
