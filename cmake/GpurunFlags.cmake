# Languages, warnings and sanitizers: the same for the core, the plugins and the tests.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
# Asserts stay in a development build's C, and out of every kernel.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3 -g -DNDEBUG")

add_library(gpurun_flags INTERFACE)
target_compile_definitions(gpurun_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
target_compile_options(gpurun_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:C>:-ffp-contract=off;-Wall;-Wextra;-Wpedantic;-Wshadow;-Wstrict-prototypes;-Wmissing-prototypes;-Wvla>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;-Xcompiler=-Wall,-Wextra>")
# Messages have buffers of fixed size and may be cut: that is what snprintf is for.
include(CheckCCompilerFlag)
check_c_compiler_flag(-Wformat-truncation=0 gpurun_has_format_truncation)
if(gpurun_has_format_truncation)
    target_compile_options(gpurun_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:-Wformat-truncation=0>")
endif()
# The build id tells records of two builds apart.
target_link_options(gpurun_flags INTERFACE -Wl,--build-id=sha1)

if(GPURUN_WERROR)
    target_compile_options(gpurun_flags INTERFACE
        "$<$<COMPILE_LANGUAGE:C>:-Werror>" "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()
if(GPURUN_NATIVE)
    target_compile_options(gpurun_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:-march=native>")
endif()
if(GPURUN_SANITIZE)
    target_compile_options(gpurun_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:-fno-omit-frame-pointer>"
        "$<$<COMPILE_LANGUAGE:C>:-fsanitize=address,undefined;-fno-sanitize-recover=all>"
        # clang warns of loops that its checks keep from being vectorised
        "$<$<COMPILE_LANG_AND_ID:C,Clang>:-Wno-pass-failed>")
    target_link_options(gpurun_flags INTERFACE -fsanitize=address,undefined)
endif()
