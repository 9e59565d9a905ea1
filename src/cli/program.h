// SPDX-License-Identifier: Apache-2.0
// The program from its arguments to its exit status.
#pragma once

namespace similis::cli {

/// 0, 1 if something could not be done, 2 if the command line is wrong; stderr says what.
int run_program(int argc, const char* const* argv);

}  // namespace similis::cli
