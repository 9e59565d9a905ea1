#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel that `make wheel` leaves in dist/: compiled in pip's isolated environment, then
# given the libraries it links, by auditwheel, and their licences. It reads PNG, JPEG and WebP by its
# own libraries. CUDA_ARCHITECTURES names fewer architectures, in CMake's forms.
#
#   scripts/wheel.sh JOBS [arguments of `python -m build`, such as -Ccmake.define.SIMILIS_VULKAN=OFF]
set -eu
cd "$(dirname "$0")/.."
jobs=$1
shift
architectures=${CUDA_ARCHITECTURES:-80-real;86-real;89-real;90-real;100-real;120}
bin=$PWD/.venv/bin
scratch=build/wheel
rm -rf "$scratch/raw" "$scratch/repaired" dist/similis-*.whl

PATH=$bin:$PATH CMAKE_BUILD_PARALLEL_LEVEL=$jobs "$bin/python" -m build --wheel \
  --outdir "$scratch/raw" "-Cbuild-dir=$scratch/{wheel_tag}" \
  -Ccmake.define.SIMILIS_WITH_AVIF=OFF -Ccmake.define.SIMILIS_WITH_JXL=OFF \
  -Ccmake.define.SIMILIS_WITH_TIFF=OFF -Ccmake.define.SIMILIS_WITH_EXR=OFF \
  -Ccmake.define.SIMILIS_WITH_HDF5=OFF \
  "-Ccmake.define.SIMILIS_CUDA_ARCHITECTURES=$architectures" "$@"
PATH=$bin:$PATH "$bin/python" -m auditwheel repair --wheel-dir "$scratch/repaired" \
  "$scratch"/raw/similis-*.whl
# Launchers for Intel's GPUs, one for each major version of SYCL's library that torch comes with. They
# are small, and link nothing that the wheel would have to carry.
rm -rf "$scratch/launchers"
mkdir -p "$scratch/launchers"
for version in 2025.3.3 2026.2.0; do
  sycl=$scratch/sycl-$version
  "$bin/python" -m venv "$sycl"
  if "$sycl/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    "intel-sycl-rt==$version"; then
    scripts/xpu_launcher.sh "$sycl" "$scratch/launchers"
  else
    echo "Intel's GPUs: left out for SYCL of $version, which the package index does not offer"
  fi
done
scripts/wheel_licences.py "$scratch"/repaired/similis-*.whl dist "$scratch"/launchers/*.so
"$bin/python" -m auditwheel show dist/similis-*.whl
