#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds libsimilis_xpu_N.so, which launches kernels on Intel's GPUs, against SYCL's headers and library
# in a folder, such as a virtual environment with intel-sycl-rt. N is the library's major version.
#
#   scripts/xpu_launcher.sh FOLDER OUTPUT_FOLDER
set -eu
cd "$(dirname "$0")/.."
major=$(readelf -d "$1/lib/libsycl.so" | sed -n 's/.*(SONAME).*\[libsycl\.so\.\([0-9]*\).*/\1/p')
${CXX:-g++} -std=c++20 -O2 -Wall -Wextra -shared -fPIC -fvisibility=hidden -isystem "$1/include" \
  python/binding/xpu.cc -o "$2/libsimilis_xpu_$major.so" -L "$1/lib" -lsycl
