# SPDX-License-Identifier: Apache-2.0
# One test program per room, from the room's *_test.cc.
enable_testing()
find_package(GTest REQUIRED)
find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
include(GoogleTest)

# similis_add_test(NAME SOURCES… [LINK libraries])
function(similis_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE similis_internal ${arg_LINK} GTest::gmock GTest::gtest
    GTest::gtest_main ${RAPIDCHECK_LIBRARY})
  target_include_directories(${name} PRIVATE ${RAPIDCHECK_INCLUDE})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()

set(rooms "")
foreach(source IN LISTS similis_test_sources)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET folder FILENAME room)
  list(APPEND rooms ${room})
  list(APPEND ${room}_sources ${source})
endforeach()
list(REMOVE_DUPLICATES rooms)
foreach(room IN LISTS rooms)
  similis_add_test(${room}_test ${${room}_sources})
endforeach()
