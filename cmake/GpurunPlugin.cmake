# gpurun_add_plugin(name [RDC file...]): builds plugins/name/name.so from every .c and, with CUDA, .cu file
# of the directory, and the unit tests in its tests/. Of gpurun it sees core/include and nothing else. The table of
# `variant = auto`, name.auto, is put beside it where there is one.
#
# RDC names .cu files that need relocatable device code (dynamic parallelism). They are compiled and
# device-linked in a library of their own, so that it costs the kernels of the other files nothing.
function(gpurun_add_plugin name)
    cmake_parse_arguments(arg "" "" RDC ${ARGN})
    set(directory ${CMAKE_CURRENT_SOURCE_DIR})
    file(GLOB sources CONFIGURE_DEPENDS *.c)
    if(GPURUN_HAVE_CUDA)
        file(GLOB kernels CONFIGURE_DEPENDS *.cu)
        if(arg_RDC)
            list(TRANSFORM arg_RDC PREPEND ${directory}/)
            list(REMOVE_ITEM kernels ${arg_RDC})
        endif()
    endif()

    # Objects first, so that the plugin's own tests can link them.
    add_library(${name}_objects OBJECT ${sources} ${kernels})
    target_include_directories(${name}_objects PUBLIC ${directory})
    target_link_libraries(${name}_objects PUBLIC gpurun_plugin_api gpurun_flags gpurun_cuda
                          OpenMP::OpenMP_C m)
    if(GPURUN_HAVE_CUDA AND arg_RDC)
        add_library(${name}_rdc STATIC ${arg_RDC})
        target_include_directories(${name}_rdc PRIVATE ${directory})
        target_link_libraries(${name}_rdc PRIVATE gpurun_plugin_api gpurun_flags gpurun_cuda)
        set_target_properties(${name}_rdc PROPERTIES CUDA_SEPARABLE_COMPILATION ON
                              CUDA_RESOLVE_DEVICE_SYMBOLS ON)
        target_link_libraries(${name}_objects PUBLIC ${name}_rdc)
    endif()

    add_library(${name} MODULE)
    target_link_libraries(${name} PRIVATE ${name}_objects)
    gpurun_as_plugin(${name} ${name} ${PROJECT_BINARY_DIR}/plugins)
    install(TARGETS ${name} LIBRARY DESTINATION lib/gpurun/plugins/${name})
    file(GLOB table CONFIGURE_DEPENDS ${name}.auto)
    if(table)
        configure_file(${table} ${PROJECT_BINARY_DIR}/plugins/${name}/${name}.auto COPYONLY)
        install(FILES ${table} DESTINATION lib/gpurun/plugins/${name})
    else()
        file(REMOVE ${PROJECT_BINARY_DIR}/plugins/${name}/${name}.auto)
    endif()

    add_dependencies(programs ${name})
    set_property(GLOBAL APPEND PROPERTY GPURUN_PLUGINS ${name})

    if(GPURUN_TESTS)
        file(GLOB tests CONFIGURE_DEPENDS tests/test_*.c)
        foreach(test IN LISTS tests)
            gpurun_add_check_test(${test} LINK ${name}_objects PREFIX ${name}_)
        endforeach()
    endif()
endfunction()

# Name, place and visibility of a loadable module: ROOT/name/name.so, all symbols hidden but one.
function(gpurun_as_plugin target name root)
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SUFFIX .so
                          LIBRARY_OUTPUT_DIRECTORY ${root}/${name} LINK_DEPENDS ${gpurun_plugin_map})
    # -fvisibility=hidden alone will not do: what templates of std:: leave behind stays visible.
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL
                        -Wl,--version-script=${gpurun_plugin_map})
    if(NOT GPURUN_SANITIZE) # its runtime comes with the program
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
endfunction()

set(gpurun_plugin_map ${PROJECT_SOURCE_DIR}/cmake/plugin.map)
