// SPDX-License-Identifier: Apache-2.0
// The options of `similis register` as the library takes them.
#pragma once

#include <string>

#include "similis/register.hpp"
#include "src/cli/registration/register_command.h"

namespace similis::cli {

/// All but masks, the start's file and progress. Throws UsageError that names the option.
RegisterOptions parse_register_options(const RegisterCommand& command);

/// The path of --init, or empty for one of its words.
std::string start_file(const RegisterCommand& command);

}  // namespace similis::cli
