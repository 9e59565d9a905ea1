#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the Python package with kernels for AMD's GPUs, by HIP, in build/rocm: build/rocm/python can
# be imported from, beside torch for ROCm, whose tensors are "cuda" to Python. Nothing of it has run on
# such a GPU; docs/gpus.md says what was tried.
#
#   scripts/wheel_rocm.sh JOBS
set -eu
cd "$(dirname "$0")/.."
if ! command -v hipcc >/dev/null; then
  echo "wheel_rocm.sh: there is no hipcc; install Debian's package hipcc, or ROCm" >&2
  exit 1
fi
cmake -S . -B build/rocm -G Ninja -DCMAKE_BUILD_TYPE=Release -DSIMILIS_CUDA=HIP \
  -DSIMILIS_BUILD_TESTS=OFF ${ROCM_ARCHITECTURES:+-DSIMILIS_HIP_ARCHITECTURES=$ROCM_ARCHITECTURES}
cmake --build build/rocm --parallel "$1" --target similis_python
echo "The package is in build/rocm/python; it has not run on a GPU of AMD's"
