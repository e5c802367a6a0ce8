# The libraries of the core and the tests: gpurun_deps, and gpurun_check for the tests.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)

# An interface library for a pkg-config module; archives instead of shared objects when asked for.
function(gpurun_find_module target module)
    pkg_check_modules(${target} REQUIRED IMPORTED_TARGET ${module})
    add_library(${target} INTERFACE)
    if(NOT GPURUN_STATIC_DEPS)
        target_link_libraries(${target} INTERFACE PkgConfig::${target})
        return()
    endif()
    target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE_DIRS})
    foreach(name IN LISTS ${target}_STATIC_LIBRARIES)
        find_library(${target}_${name}_archive lib${name}.a HINTS ${${target}_STATIC_LIBRARY_DIRS})
        if(name MATCHES "^(m|rt|dl|pthread)$" OR NOT ${target}_${name}_archive)
            target_link_libraries(${target} INTERFACE ${name})
        else()
            target_link_libraries(${target} INTERFACE ${${target}_${name}_archive})
        endif()
    endforeach()
endfunction()

gpurun_find_module(gpurun_inih inih)
gpurun_find_module(gpurun_jansson jansson)
gpurun_find_module(gpurun_png libpng)
gpurun_find_module(gpurun_jpeg libjpeg)
pkg_check_modules(gpurun_xxhash REQUIRED libxxhash) # its header alone is used

add_library(gpurun_deps INTERFACE)
target_compile_definitions(gpurun_deps INTERFACE XXH_INLINE_ALL=)
target_include_directories(gpurun_deps SYSTEM INTERFACE ${gpurun_xxhash_INCLUDE_DIRS})
target_link_libraries(gpurun_deps INTERFACE gpurun_inih gpurun_jansson gpurun_png gpurun_jpeg
                      OpenMP::OpenMP_C
                      Threads::Threads ${CMAKE_DL_LIBS} m)

if(GPURUN_TESTS)
    gpurun_find_module(gpurun_check check)
endif()

# A library of the core from `sources`. The fuzzers build a second one, instrumented.
function(gpurun_add_core target)
    add_library(${target} STATIC ${ARGN})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/core)
    target_link_libraries(${target} PUBLIC gpurun_plugin_api gpurun_flags gpurun_cuda gpurun_deps)
endfunction()
