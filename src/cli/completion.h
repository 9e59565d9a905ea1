// SPDX-License-Identifier: Apache-2.0
// Shell scripts that complete the program's commands, options and values.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace similis::cli {

/// shell: bash, zsh or fish. Throws UsageError for another.
std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace similis::cli
