# The target `device` collects .device/: all that a machine with a GPU and without our packages needs.
#
#     .device/gpurun  plugins/NAME/NAME.so  fakes/NAME/NAME.so  tests/test_contract  tests/every_size  tests/event_timing  lib/  jobs/  gpu-suite
set(device ${PROJECT_SOURCE_DIR}/.device)
set(steps COMMAND ${CMAKE_COMMAND} -E rm -rf ${device}
          COMMAND ${CMAKE_COMMAND} -E make_directory ${device} ${device}/lib ${device}/tests
          COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:gpurun> ${device}
          COMMAND ${CMAKE_COMMAND} -E copy ${OpenMP_gomp_LIBRARY} ${device}/lib/libgomp.so.1
          COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/jobs ${device}/jobs)

get_property(plugins GLOBAL PROPERTY GPURUN_PLUGINS)
get_property(fakes GLOBAL PROPERTY GPURUN_FAKES)
get_property(tests GLOBAL PROPERTY GPURUN_TEST_PROGRAMS)
foreach(kind plugins fakes)
    foreach(target IN LISTS ${kind})
        set(to ${device}/${kind}/$<TARGET_FILE_BASE_NAME:${target}>)
        list(APPEND steps COMMAND ${CMAKE_COMMAND} -E make_directory ${to}
                          COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${target}> ${to})
        set(table ${PROJECT_SOURCE_DIR}/plugins/${target}/${target}.auto)
        if(kind STREQUAL "plugins" AND EXISTS ${table})
            list(APPEND steps COMMAND ${CMAKE_COMMAND} -E copy ${table} ${to})
        endif()
    endforeach()
endforeach()
list(FILTER tests INCLUDE REGEX
     "^(test_contract|test_(.*_)?gpu_.*|every_size|event_timing)$") # the others need no device
foreach(target IN LISTS tests)
    list(APPEND steps COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${target}> ${device}/tests)
endforeach()
if(EXISTS ${PROJECT_SOURCE_DIR}/tests/gpu-suite)
    list(APPEND steps COMMAND cp -r ${PROJECT_SOURCE_DIR}/tests/gpu-suite ${device})
endif()

add_custom_target(device ${steps} COMMAND du -sh ${device} COMMENT "Collecting .device/" VERBATIM)
add_dependencies(device programs ${fakes} ${tests})
