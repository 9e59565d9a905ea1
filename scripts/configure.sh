#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures a CMake preset with warnings as errors, and says what was found and left out ("CUDA:
# …", "Images: …") when that is news. CMake's own words are shown if it fails.
#
#   scripts/configure.sh release -DSIMILIS_BUILD_BENCHMARKS=ON
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
mkdir -p build
log=build/configure-$preset.log
found=build/found-$preset.txt
if ! cmake --preset "$preset" -DSIMILIS_WERROR=ON "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
sed -n 's/^-- \([A-Z][A-Za-z]*: \)/\1/p' "$log" >"$found.new"
cmp -s "$found.new" "$found" || cat "$found.new"
mv "$found.new" "$found"
