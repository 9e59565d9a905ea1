#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fills .gpukit/kit (which git ignores) with what runs on another machine that has an NVIDIA GPU of
# compute capability 9.0 and a driver, and nothing else installed: the tests of every room with GPU
# code and of the program, the fixtures they read, the program (for PNG, JPEG and video: other
# formats bring 27 MB of libraries), the shared library, the benchmark against peers, and every
# shared library that they need beside glibc; and packs it as .gpukit/kit.tar.xz. On that machine:
# kit/run.sh
set -eu
cd "$(dirname "$0")/.."
jobs=$1
kit=.gpukit/kit
build=build/gpu-kit
scripts/configure.sh gpu-kit
cmake --build $build --parallel "$jobs" --target similis gpu_tests similis_program cli_test
programs="$(cat $build/gpu_tests.txt) cli_test similis"
rm -rf "$kit"
mkdir -p "$kit/bench"
for program in $programs; do cp "$build/bin/$program" "$kit/"; done
cp -L $build/lib/libsimilis.so "$kit/"
cp $build/gpu_tests.txt "$kit/tests.txt"
cp bench/*.py "$kit/bench/"
cp scripts/gpu_kit_run.sh "$kit/run.sh"
if [ -e ../shared/data/golden.json ]; then
  mkdir "$kit/data"
  cp -rL ../shared/data/golden.json ../shared/data/images ../shared/data/video "$kit/data/"
  if [ -e ../shared/data/golden_vmaf.json ]; then cp -L ../shared/data/golden_vmaf.json "$kit/data/"; fi
fi
# The vendor's and the compiler's libraries travel; those of glibc and the loader are the machine's.
for program in $programs libsimilis.so; do ldd "$kit/$program"; done |
  awk '$3 ~ "^/" { print $1, $3 }' | sort -u |
  grep -vE '^(libc|libm|libdl|librt|libpthread)\.so' |
  while read -r name path; do cp -L "$path" "$kit/$name"; done
strip --strip-unneeded "$kit"/*.so* $(for program in $programs; do echo "$kit/$program"; done)
# The programs hold the same library: it is packed once if the window spans them.
tar -C .gpukit -cf - kit | xz --lzma2=preset=1,dict=128MiB >.gpukit/kit.tar.xz
size=$(du -sm .gpukit/kit.tar.xz | cut -f 1)
echo "$kit.tar.xz holds $size MiB, $(du -sm "$kit" | cut -f 1) MiB unpacked"
[ "$size" -lt 60 ] || { echo "gpu_kit.sh: that is more than 60 MiB" >&2; exit 1; }
