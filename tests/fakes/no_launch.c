/* Its variant has no launcher. */
#define FAKE_NAME "no_launch"
#define FAKE_VARIANTS                                                                              \
    {                                                                                              \
        .name = "nothing", .idea = "cannot be launched"                                            \
    }
#include "minimal.h"
