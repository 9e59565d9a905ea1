#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of a kit (make gpu-kit) on this machine's GPU, several at a time, and ends with
# "N passed, N failed, N skipped".
#
#   kit/run.sh [FOLDER for logs] [SECONDS for each part] [gtest filter]
kit=$(cd "$(dirname "$0")" && pwd)
logs=${1:-$kit/logs}
seconds=${2:-600}
filter=${3:-*}
shards=$(nproc)
mkdir -p "$logs"
if [ -e "$kit/data" ]; then export SIMILIS_TEST_DATA="$kit/data"; fi
# Libraries that another library needs are not found by the program's own $ORIGIN.
export LD_LIBRARY_PATH="$kit${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
while read -r test; do
  for shard in $(seq 0 $((shards - 1))); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard timeout "$seconds" \
      "$kit/$test" --gtest_filter="$filter" >"$logs/$test.$shard" 2>&1 || echo "$test.$shard" >>"$logs/broken" &
  done
  wait
done <"$kit/tests.txt"
# These of the program's tests choose a GPU.
SIMILIS_TEST_PROGRAM="$kit/similis" timeout "$seconds" "$kit/cli_test" --gtest_filter='*OnAGpu*' \
  >"$logs/cli_test.0" 2>&1 || echo "cli_test" >>"$logs/broken"
cat "$logs"/*_test.* >"$logs/all.log"
rm -f "$logs"/*_test.*
grep -hE '^\[  (FAILED|SKIPPED) ' "$logs/all.log" | grep -v 'tests\?[,.]' | sort -u | head -40
count() { grep -cE "^\[ *$1 *\].*\([0-9]+ ms\)\$" "$logs/all.log"; }
passed=$(count OK) failed=$(count FAILED) skipped=$(count SKIPPED)
if [ -e "$logs/broken" ] && [ "$failed" = 0 ]; then
  echo "these did not end well: $(tr '\n' ' ' <"$logs/broken")"
  failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
