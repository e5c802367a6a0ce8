/* Two options of one name. */
#define FAKE_NAME "twin_options"
#define FAKE_OPTIONS                                                                               \
    {.name = "n", .help = "a number", .type = GPURUN_OPTION_INT, .def = "1"},                      \
    {                                                                                              \
        .name = "n", .help = "a number", .type = GPURUN_OPTION_INT, .def = "2"                     \
    }
#include "minimal.h"
