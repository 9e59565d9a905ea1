# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: src/<room>/<name>_fuzz.cc is one libFuzzer program, and its seeds stand in
# src/<room>/fuzz_corpus/<name>_fuzz/. As a test each is given its seeds and 2,000 inputs made from
# them; `make fuzz` runs longer. Inputs that failed once are kept among the seeds.
add_custom_target(fuzz_targets)
if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
  message(FATAL_ERROR "Fuzz targets need clang: cmake --preset asan+ubsan")
endif()

# similis_add_fuzzer(SOURCE [LINK libraries])
function(similis_add_fuzzer source)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  cmake_path(GET source STEM name)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(ABSOLUTE_PATH folder OUTPUT_VARIABLE folder)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE similis_internal ${arg_LINK})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets ${name})
  # Its finds go to a folder of their own: the seeds are under version control.
  set(found ${PROJECT_BINARY_DIR}/found/${name})
  file(MAKE_DIRECTORY ${found})
  add_test(NAME replay/${name} COMMAND ${name} -runs=2000 -seed=1 -timeout=10 -rss_limit_mb=1024
    -print_final_stats=1 -artifact_prefix=${PROJECT_BINARY_DIR}/found/${name}- ${found}
    ${folder}/fuzz_corpus/${name})
  set_tests_properties(replay/${name} PROPERTIES TIMEOUT 600)
endfunction()

foreach(source IN LISTS similis_fuzz_sources)
  similis_add_fuzzer(${source})
endforeach()
