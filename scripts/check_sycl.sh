#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the launcher for Intel's GPUs and runs its kernels as SYCL's, on this CPU by Intel's OpenCL,
# beside the reference in f64. Its packages go into build/sycl/venv and nowhere else.
#
#   scripts/check_sycl.sh [pytest arguments]
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build/sycl
venv=$folder/venv
list=scripts/python/sycl.txt
mkdir -p "$folder"
if ! cmp -s "$list" "$folder/installed.txt"; then
  python3 -m venv "$venv"
  echo "Installing Python packages into build/sycl/venv:" $(sed '/^#/d' "$list")
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list"
  cp "$list" "$folder/installed.txt"
fi
rm -f "$folder"/libsimilis_xpu_*.so
scripts/xpu_launcher.sh "$venv" "$folder"
${CXX:-g++} -std=c++20 -O2 -w -shared -fPIC -isystem "$venv/include" python/tests/other_gpus/sycl/queue.cc \
  -o "$folder/libqueue.so" -L "$venv/lib" -lsycl

# The package of the build folder, with the launcher beside its library.
rm -rf "$folder/python"
mkdir -p "$folder/python/similis/native"
for file in build/python/similis/*; do
  case $file in */native) ;; *) ln -s "$(readlink -f "$file")" "$folder/python/similis/" ;; esac
done
for file in build/python/similis/native/*; do
  ln -s "$(readlink -f "$file")" "$folder/python/similis/native/$(basename "$file")"
done
ln -s "$folder"/libsimilis_xpu_*.so "$folder/python/similis/native/"

LD_LIBRARY_PATH=$venv/lib OCL_ICD_FILENAMES=$venv/lib/libintelocl.so \
  SIMILIS_TEST_QUEUE=$folder/libqueue.so PYTHONPATH=$folder/python OMP_NUM_THREADS=1 \
  .venv/bin/python -m pytest -q -s -p no:cacheprovider python/tests/other_gpus/test_gpu_kernels.py "$@"
