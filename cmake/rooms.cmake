# SPDX-License-Identifier: Apache-2.0
# A room is a folder src/<operation>; its files, and those of its own folders, say by their names what
# they are, so that adding one takes one line in CMakeLists.txt:
#   *_test.cc   the room's tests      → one program <room>_test, with what it has in *_test.c
#   *_bench.cc  the room's benchmarks → the program similis_bench
#   *_fuzz.cc   a fuzz target each
#   *.cc        the library
#   *.cu        the library, where there is CUDA
add_library(similis_objects OBJECT)
target_link_libraries(similis_objects PRIVATE
  similis_flags PkgConfig::hwy nlohmann_json::nlohmann_json)
# SSE4, AVX2, AVX3 (AVX-512) and a scalar fallback; each further target costs build time and is no
# faster here. Threads share rows alike on every target, so the thread sanitizer's build has two.
set(similis_disabled_targets HWY_SSSE3 HWY_AVX3_DL)
if(SIMILIS_SANITIZE)  # SSE4's vectors are as wide as SSE2's, and threads are the same in every target
  list(APPEND similis_disabled_targets HWY_SSE4)
endif()
if(SIMILIS_SANITIZE MATCHES thread)
  list(APPEND similis_disabled_targets HWY_AVX3)
endif()
list(JOIN similis_disabled_targets "|" similis_disabled_targets)
target_compile_definitions(similis_objects PRIVATE
  "HWY_DISABLED_TARGETS=(${similis_disabled_targets})"
  $<$<BOOL:${SIMILIS_HAS_CUDA}>:SIMILIS_HAS_CUDA>
  $<$<BOOL:${SIMILIS_BUILD_FUZZERS}>:HWY_COMPILE_ONLY_STATIC>)  # fuzzed are parsers, not kernels

set(similis_test_sources "")
set(similis_bench_sources "")
set(similis_fuzz_sources "")

function(similis_part folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*_test.c ${folder}/*.cu)
  foreach(source IN LISTS sources)
    if(source MATCHES "_test\\.cc?$")
      list(APPEND similis_test_sources ${source})
    elseif(source MATCHES "_bench\\.cc$")
      list(APPEND similis_bench_sources ${source})
    elseif(source MATCHES "_fuzz\\.cc$")
      list(APPEND similis_fuzz_sources ${source})
    elseif(source MATCHES "\\.cu$")
      if(SIMILIS_HAS_CUDA)
        target_sources(similis_gpu_objects PRIVATE ${source})
      endif()
    else()
      target_sources(similis_objects PRIVATE ${source})
    endif()
  endforeach()
  set(similis_test_sources ${similis_test_sources} PARENT_SCOPE)
  set(similis_bench_sources ${similis_bench_sources} PARENT_SCOPE)
  set(similis_fuzz_sources ${similis_fuzz_sources} PARENT_SCOPE)
endfunction()
