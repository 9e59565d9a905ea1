#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles a GPU source by hipcc: CMake calls it as a launcher, with the C++ compiler behind.
#
#   scripts/as_hip.sh HIPCC COMPILER ARGUMENTS…
set -eu
hipcc=$1
shift 2
HIP_PLATFORM=amd exec "$hipcc" "$@"
