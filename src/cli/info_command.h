// SPDX-License-Identifier: Apache-2.0
// `similis info`: what this build can use on this machine, and what it will use.
#pragma once

#include <string>

namespace similis::cli {

std::string describe_build();

}  // namespace similis::cli
