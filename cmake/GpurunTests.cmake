# How a test becomes a CTest entry. Every test may skip itself by exiting with 77.
set(GPURUN_FUZZ_SECONDS 5 CACHE STRING "How long each fuzzer runs under CTest")
set(GPURUN_TEST_DATA ${PROJECT_SOURCE_DIR}/tests/data CACHE STRING "What TEST_DATA is in the tests")

set(gpurun_test_environment
    GPURUN=${PROJECT_BINARY_DIR}/gpurun
    GPURUN_SOURCE=${PROJECT_SOURCE_DIR}
    GPURUN_BUILD=${PROJECT_BINARY_DIR}
    UBSAN_OPTIONS=print_stacktrace=1
    CK_DEFAULT_TIMEOUT=60 # seconds; Check's own 4 are few where tests run side by side
    OMP_WAIT_POLICY=passive # for the same reason a thread that waits must not spin
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/data/leaks.txt:print_suppressions=0)
# The search for leaks takes what stands before a thread's memory that begins 16 bytes into a page for glibc's own header, and
# dies where it is not: it shall not look there.
set(gpurun_asan_options allocator_may_return_null=1:intercept_tls_get_addr=0)
# A plugin that crashes must die of its signal under a sanitizer too.
set(gpurun_asan_options_fault
    ${gpurun_asan_options}:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0)

# Kinds of tests that take longer start earlier, so that at the end no processor waits for the last one.
set(gpurun_cost_unit 1)
set(gpurun_cost_cli 2)
set(gpurun_cost_fault 3)
set(gpurun_cost_contract 4)
set(gpurun_cost_gpu 4)
set(gpurun_cost_slow 5)

# gpurun_add_test(name label timeout command...); the label gpu keeps a test off other tests' device.
function(gpurun_add_test name label timeout)
    set(asan_options ${gpurun_asan_options})
    if(label STREQUAL fault)
        set(asan_options ${gpurun_asan_options_fault})
    endif()
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77
                         COST ${gpurun_cost_${label}}
                         ENVIRONMENT "${gpurun_test_environment};ASAN_OPTIONS=${asan_options}")
    if(label STREQUAL gpu)
        set_tests_properties(${name} PROPERTIES RESOURCE_LOCK gpu)
    endif()
endfunction()

# A program of the tests: gpurun_add_test_program(name sources...).
function(gpurun_add_test_program name)
    add_executable(${name} ${ARGN})
    target_compile_definitions(${name} PRIVATE TEST_DATA="${GPURUN_TEST_DATA}")
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fakes)
    target_link_libraries(${name} PRIVATE gpurun_check gpurun_flags)
    set_target_properties(${name} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set_property(GLOBAL APPEND PROPERTY GPURUN_TEST_PROGRAMS ${name})
endfunction()

# gpurun_add_check_test(file LINK libraries... [PREFIX prefix]): one Check program, label unit; a file
# test_gpu_*.c needs a device, label gpu.
function(gpurun_add_check_test file)
    cmake_parse_arguments(arg "" PREFIX LINK ${ARGN})
    cmake_path(GET file STEM stem)
    string(REGEX REPLACE "^test_" "test_${arg_PREFIX}" name ${stem})
    gpurun_add_test_program(${name} ${file})
    target_link_libraries(${name} PRIVATE ${arg_LINK})
    if(stem MATCHES "^test_gpu_")
        gpurun_add_test(${name} gpu 600 ${name})
    else()
        gpurun_add_test(${name} unit 300 ${name})
    endif()
endfunction()
