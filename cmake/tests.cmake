# SPDX-License-Identifier: Apache-2.0
# One test program per room, from the room's *_test.cc. Tests of the whole stand in tests/.
find_package(GTest REQUIRED)
find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
include(GoogleTest)

# The library is under test and must be fast; a test compiles in a third of the time. The libraries of
# some rooms ask for -pthread, and precompiled headers serve one set of flags alone.
add_library(similis_test_flags INTERFACE)
target_compile_options(similis_test_flags INTERFACE $<$<CONFIG:Release>:-O0> -pthread)
if(SIMILIS_SANITIZE)
  target_compile_options(similis_test_flags INTERFACE -O0 -fno-sanitize=undefined)
  target_compile_definitions(similis_test_flags INTERFACE SIMILIS_SANITIZED)
endif()

set(similis_test_environment
  # A test forks; the child may start threads all the same. Every test is a program of its own, and the
  # sanitizer would have each sleep for a second before it ends.
  TSAN_OPTIONS=die_after_fork=0:atexit_sleep_ms=0
  UBSAN_OPTIONS=print_stacktrace=1
  # If Vulkan runs on the CPU, a kernel takes longer to compile than to run.
  GALLIVM_PERF=nopt)

# The thread sanitizer sees a room's loops once: in the tests whose names speak of threads. It runs
# these alone and builds only their files.
function(similis_keep_threaded variable)
  set(kept "")
  foreach(source IN LISTS ${variable})
    file(STRINGS ${source} tests REGEX "^TEST.*Thread" LIMIT_COUNT 1)
    if(tests OR source MATCHES "\\.c$")  # called by a test in C++
      list(APPEND kept ${source})
    endif()
  endforeach()
  set(${variable} ${kept} PARENT_SCOPE)
endfunction()

# The headers of the test framework take two seconds of the six that a test takes to compile: every
# program uses what this one compiled.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "")
add_executable(similis_test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
target_link_libraries(similis_test_headers PRIVATE similis_internal GTest::gmock GTest::gtest
  GTest::gtest_main similis_test_flags)
target_precompile_headers(similis_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)

# similis_add_test(NAME SOURCES… [LINK libraries])
function(similis_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  set(sources ${arg_UNPARSED_ARGUMENTS})
  if(SIMILIS_SANITIZE MATCHES thread)
    similis_keep_threaded(sources)
  endif()
  if(NOT sources)
    return()
  endif()
  similis_batch(sources ${name})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE similis_internal ${arg_LINK} GTest::gmock GTest::gtest
    GTest::gtest_main ${RAPIDCHECK_LIBRARY})
  target_include_directories(${name} SYSTEM PRIVATE ${RAPIDCHECK_INCLUDE})
  if(SIMILIS_HAS_CUDA)  # tests make streams and graphs
    target_link_libraries(${name} PRIVATE ${SIMILIS_CUDA_RUNTIME})
    target_compile_definitions(${name} PRIVATE SIMILIS_HAS_CUDA)
  endif()
  if(SIMILIS_HAS_VULKAN)
    target_compile_definitions(${name} PRIVATE SIMILIS_HAS_VULKAN)
    target_include_directories(${name} SYSTEM PRIVATE ${SIMILIS_VULKAN_INCLUDE})
  endif()
  target_link_libraries(${name} PRIVATE similis_test_flags)  # last, after the library's own -O3
  target_precompile_headers(${name} REUSE_FROM similis_test_headers)
  set(in_c ${sources})
  list(FILTER in_c INCLUDE REGEX "\\.c$")
  set_source_files_properties(${in_c} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  if(SIMILIS_SANITIZE MATCHES thread)
    # GCC's runtime finds no place for its shadow where addresses are widely randomised.
    set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "setarch;-R")
  endif()
  similis_add_shards(${name})
  if(NOT SIMILIS_SANITIZE)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 600 LABELS alone)
  endif()
endfunction()

# Under a sanitizer a program takes longer to start and to look for leaks than most tests take to run,
# and without one to look for a Vulkan device and to compile its kernels: two processes share its tests.
# scripts/check.py counts them from their reports. A release has each test by its name too, for ctest -R;
# `ctest -C together -LE alone` runs the shards.
set(similis_test_reports ${PROJECT_BINARY_DIR}/reports)
function(similis_add_shards name)
  set(chosen "*")
  set(configurations "")
  if(SIMILIS_SANITIZE MATCHES thread)
    set(chosen "*Thread*")
  elseif(SIMILIS_SANITIZE)
    set(chosen "*-*Quality.*")  # quality of long runs: shorter tests run the same code
  else()
    set(configurations CONFIGURATIONS together)
  endif()
  foreach(shard 0 1)
    set(test ${name}/${shard})
    add_test(NAME ${test} ${configurations} COMMAND ${name} --gtest_filter=${chosen}
      --gtest_output=xml:${similis_test_reports}/${name}-${shard}.xml)
    set_tests_properties(${test} PROPERTIES TIMEOUT 1800 ENVIRONMENT
      "${similis_test_environment};GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

set(rooms "")
foreach(source IN LISTS similis_test_sources)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE room)
  string(REGEX REPLACE "/.*" "" room ${room})
  list(APPEND rooms ${room})
  list(APPEND ${room}_sources ${source})
endforeach()
list(REMOVE_DUPLICATES rooms)
foreach(room IN LISTS rooms)
  similis_add_test(${room}_test ${${room}_sources})
  if(TARGET ${room}_test)
    target_compile_definitions(${room}_test PRIVATE SIMILIS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  endif()
endforeach()

# These run on a GPU: the rooms with GPU code, and the core. scripts/gpu_kit.sh builds the target and
# reads the list.
set(gpu_tests core_test)
foreach(room IN LISTS rooms)
  file(GLOB_RECURSE gpu_sources CONFIGURE_DEPENDS src/${room}/*.cu src/${room}/*.comp)
  if(gpu_sources)
    list(APPEND gpu_tests ${room}_test)
  endif()
endforeach()
list(REMOVE_DUPLICATES gpu_tests)
add_custom_target(gpu_tests DEPENDS ${gpu_tests})
list(JOIN gpu_tests "\n" gpu_test_lines)
file(WRITE ${PROJECT_BINARY_DIR}/gpu_tests.txt "${gpu_test_lines}\n")
