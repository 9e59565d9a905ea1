// SPDX-License-Identifier: Apache-2.0
// Arguments as one would type them into a shell.
#pragma once

#include <string>

namespace similis::cli {

/// The argument, in quotes where a shell would read it otherwise.
std::string shell_word(const std::string& argument);

}  // namespace similis::cli
