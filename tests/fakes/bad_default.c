/* An option whose default its own table refuses. */
#define FAKE_NAME "bad_default"
#define FAKE_OPTIONS                                                                               \
    {                                                                                              \
        .name = "n", .help = "a number", .type = GPURUN_OPTION_INT, .def = "many"                  \
    }
#include "minimal.h"
