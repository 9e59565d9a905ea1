#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of CUDA kernels on the CPU, where tests/gpu_on_cpu stands in for CUDA's runtime: the
# threads of a block by turns, forward and then backward, under the address sanitizer. Tests that take
# minutes this way are left out and named below.
#
#   scripts/check_gpu_on_cpu.sh JOBS [CTEST FILTER]
set -eu
cd "$(dirname "$0")/.."
jobs=$1
filter=${2:-Cuda|FastPath|^Jacobian|^Exponentiate|^Invert}
too_long='MoreThan2To31|AWorkspaceChangesNoBit|SlabsAndStrips|WidestWindows'
build=build/gpu-on-cpu
scripts/configure.sh gpu-on-cpu
cmake --build $build --parallel "$jobs" --target gpu_tests
for order in forward backward; do
  echo "== threads run $order"
  SIMILIS_GPU_ORDER=$order ctest --test-dir $build --parallel "$jobs" --no-tests=error \
    --output-on-failure -R "$filter" -E "$too_long"
done
