# SPDX-License-Identifier: Apache-2.0
# The rooms' *_bench.cc make one program, similis_bench. bench/ holds what they share, and the
# comparison with other libraries that `make bench` runs.
find_package(benchmark REQUIRED)
add_executable(similis_bench bench/main.cc bench/image_pair_bench.cc ${similis_bench_sources})
target_link_libraries(similis_bench PRIVATE similis_internal benchmark::benchmark)
if(SIMILIS_HAS_VULKAN)
  target_sources(similis_bench PRIVATE bench/vulkan_bench.cc bench/vulkan_exact_bench.cc)
endif()
