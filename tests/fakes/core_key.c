/* An option with the name of a key of the core. */
#define FAKE_NAME "core_key"
#define FAKE_OPTIONS                                                                               \
    {                                                                                              \
        .name = "repeat", .help = "a number", .type = GPURUN_OPTION_INT, .def = "1"                \
    }
#include "minimal.h"
