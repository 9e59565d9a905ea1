#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for a number of inputs, or for a number of seconds each where that is not
# 0. Stops at the first failure and says which file reproduces it.
#
#   scripts/fuzz.sh JOBS RUNS SECONDS
set -eu
cd "$(dirname "$0")/.."
jobs=$1 runs=$2 seconds=$3
[ "$seconds" = 0 ] || runs=-1

build=build/asan+ubsan
scripts/configure.sh asan+ubsan
cmake --build $build --parallel "$jobs" --target fuzz_targets
for program in $build/bin/*_fuzz; do
  [ -x "$program" ] || { echo "There is no fuzz target."; exit 1; }
  name=$(basename "$program")
  found=$build/found/$name
  echo "== $name"
  # Several workers share what they find; each does its part of the runs.
  share=$runs
  [ "$runs" = -1 ] || share=$(((runs + jobs - 1) / jobs))
  "$program" -fork="$jobs" -runs="$share" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=1024 -artifact_prefix="$found-" "$found" src/*/fuzz_corpus/"$name"
done
