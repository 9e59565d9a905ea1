# SPDX-License-Identifier: Apache-2.0
# A room is a folder src/<operation>; its files, and those of its own folders, say by their names what
# they are, so that adding one takes one line in CMakeLists.txt:
#   *_test.cc   the room's tests      → one program <room>_test, with what it has in *_test.c
#   *_bench.cc  the room's benchmarks → the program similis_bench
#   *_fuzz.cc   a fuzz target each
#   *.cc        the library
#   *.cu        the library, where there is CUDA
#   *.cc in vulkan/  the library, where there is Vulkan; *.comp beside them are its kernels
add_library(similis_objects OBJECT)
target_link_libraries(similis_objects PRIVATE
  similis_flags PkgConfig::hwy nlohmann_json::nlohmann_json)
target_compile_definitions(similis_objects PRIVATE
  $<$<BOOL:${SIMILIS_HAS_CUDA}>:SIMILIS_HAS_CUDA>
  $<$<BOOL:${SIMILIS_HAS_VULKAN}>:SIMILIS_HAS_VULKAN>)
if(SIMILIS_SANITIZE)
  # A build under a sanitizer runs where it is made: its kernels are compiled once, for this processor,
  # and for AVX2 where it has more, so that most machines look at the same code.
  target_compile_definitions(similis_objects PRIVATE HWY_COMPILE_ONLY_STATIC)
  target_compile_options(similis_objects PRIVATE -march=native -mno-avx512f)
else()
  # SSE4, AVX2, AVX3 (AVX-512) and a scalar fallback; each further target costs build time and is no
  # faster here.
  target_compile_definitions(similis_objects PRIVATE
    "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)")
endif()

set(similis_library_sources "")
set(similis_gpu_sources "")
set(similis_test_sources "")
set(similis_bench_sources "")
set(similis_fuzz_sources "")

function(similis_part folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*_test.c ${folder}/*.cu)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE inside)
    if(inside MATCHES "/vulkan/" AND NOT SIMILIS_HAS_VULKAN)
      continue()
    endif()
    if(inside MATCHES "/cuda/.*_cuda_test\\.cc$" AND NOT SIMILIS_HAS_CUDA)
      continue()
    endif()
    if(source MATCHES "_test\\.cc?$")
      list(APPEND similis_test_sources ${source})
    elseif(source MATCHES "_bench\\.cc$")
      list(APPEND similis_bench_sources ${source})
    elseif(source MATCHES "_fuzz\\.cc$")
      list(APPEND similis_fuzz_sources ${source})
    elseif(source MATCHES "\\.cu$")
      list(APPEND similis_gpu_sources ${source})
    else()
      list(APPEND similis_library_sources ${source})
      if(inside MATCHES "^src/vmaf/model/")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${similis_fuzzed}")
      elseif(SIMILIS_SANITIZE AND inside MATCHES "/reference\\.cc$")
        # The oracle of tests is not under test, and takes most of their time.
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-O2;-fno-sanitize=all")
      endif()
    endif()
  endforeach()
  set(similis_library_sources ${similis_library_sources} PARENT_SCOPE)
  set(similis_gpu_sources ${similis_gpu_sources} PARENT_SCOPE)
  set(similis_test_sources ${similis_test_sources} PARENT_SCOPE)
  set(similis_bench_sources ${similis_bench_sources} PARENT_SCOPE)
  set(similis_fuzz_sources ${similis_fuzz_sources} PARENT_SCOPE)
endfunction()
