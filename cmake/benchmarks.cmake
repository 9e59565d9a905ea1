# SPDX-License-Identifier: Apache-2.0
# The rooms' *_bench.cc make one program, similis_bench.
find_package(benchmark REQUIRED)
if(similis_bench_sources)
  add_executable(similis_bench ${similis_bench_sources})
  target_link_libraries(similis_bench PRIVATE similis_internal benchmark::benchmark_main)
endif()
