/* An option that lies behind the end of the options struct. */
#define FAKE_NAME "option_outside"
#define FAKE_OPTIONS                                                                               \
    {                                                                                              \
        .name = "n", .help = "a number", .type = GPURUN_OPTION_INT, .offset = 64, .def = "1"       \
    }
#include "minimal.h"
