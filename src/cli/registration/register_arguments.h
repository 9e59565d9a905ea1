// SPDX-License-Identifier: Apache-2.0
// The arguments of `similis register` but those that every command has.
#pragma once

#include <CLI/CLI.hpp>

#include "src/cli/registration/register_command.h"

namespace similis::cli {

void add_register_arguments(CLI::App& app, RegisterCommand& command);

}  // namespace similis::cli
