# SPDX-License-Identifier: Apache-2.0
# One test program per room, from the room's *_test.cc. What looks at the whole stands in tests/.
find_package(GTest REQUIRED)
find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
include(GoogleTest)

set(similis_test_environment
  # A test forks; the child may start threads all the same. Every test is a program of its own, and the
  # sanitizer would have each sleep for a second before it ends.
  TSAN_OPTIONS=die_after_fork=0:atexit_sleep_ms=0
  UBSAN_OPTIONS=print_stacktrace=1)

# similis_add_test(NAME SOURCES… [LINK libraries] [RUN_SERIAL])
function(similis_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RUN_SERIAL" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE similis_internal ${arg_LINK} GTest::gmock GTest::gtest
    GTest::gtest_main ${RAPIDCHECK_LIBRARY})
  target_include_directories(${name} SYSTEM PRIVATE ${RAPIDCHECK_INCLUDE})
  if(SIMILIS_HAS_CUDA)  # tests make streams and graphs
    target_link_libraries(${name} PRIVATE CUDA::cudart_static)
    target_compile_definitions(${name} PRIVATE SIMILIS_HAS_CUDA)
  endif()
  set(properties TIMEOUT 600 ENVIRONMENT "${similis_test_environment}")
  if(arg_RUN_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  if(SIMILIS_SANITIZE)  # the library is what must be fast there; a test compiles in half the time
    set_source_files_properties(${arg_UNPARSED_ARGUMENTS} PROPERTIES COMPILE_OPTIONS -O0)
  endif()
  if(SIMILIS_SANITIZE MATCHES thread)
    # GCC's runtime finds no place for its shadow where addresses are widely randomised.
    set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "setarch;-R")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES ${properties})
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
  target_compile_definitions(${room}_test PRIVATE SIMILIS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endforeach()

# What runs on a GPU: the rooms with GPU code, and the core. scripts/gpu_kit.sh builds the target and
# reads the list.
set(gpu_tests core_test)
foreach(room IN LISTS rooms)
  file(GLOB_RECURSE gpu_sources CONFIGURE_DEPENDS src/${room}/*.cu)
  if(gpu_sources)
    list(APPEND gpu_tests ${room}_test)
  endif()
endforeach()
list(REMOVE_DUPLICATES gpu_tests)
add_custom_target(gpu_tests DEPENDS ${gpu_tests})
list(JOIN gpu_tests "\n" gpu_test_lines)
file(WRITE ${PROJECT_BINARY_DIR}/gpu_tests.txt "${gpu_test_lines}\n")
