# SPDX-License-Identifier: Apache-2.0
# The library and its tests need these; `make` installs what is missing.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)  # headers only
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
