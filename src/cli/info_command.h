// SPDX-License-Identifier: Apache-2.0
// `similis info`: the SIMD targets, devices and file formats that this build can use on this
// machine.
#pragma once

#include <string>

namespace similis::cli {

std::string describe_build();

}  // namespace similis::cli
