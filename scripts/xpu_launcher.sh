#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the launcher of kernels on Intel's GPUs against SYCL's headers and library in a folder, such as
# a virtual environment with intel-sycl-rt.
#
#   scripts/xpu_launcher.sh FOLDER OUTPUT.so
set -eu
cd "$(dirname "$0")/.."
${CXX:-g++} -std=c++20 -O2 -Wall -Wextra -shared -fPIC -fvisibility=hidden -isystem "$1/include" \
  python/binding/xpu.cc -o "$2" -L "$1/lib" -lsycl
