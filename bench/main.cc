// SPDX-License-Identifier: Apache-2.0
// similis_bench: the rooms' *_bench.cc register what it runs. Says which version and which SIMD
// instructions the figures are of.
#include <benchmark/benchmark.h>

#include "similis/info.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const similis::Info info = similis::info();
  benchmark::AddCustomContext("similis", info.version);
  benchmark::AddCustomContext("simd_target", info.simd_target);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
