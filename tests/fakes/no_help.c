/* An option that says nothing of itself. */
#define FAKE_NAME "no_help"
#define FAKE_OPTIONS                                                                               \
    {                                                                                              \
        .name = "n", .type = GPURUN_OPTION_INT, .def = "1"                                         \
    }
#include "minimal.h"
