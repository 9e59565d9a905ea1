// SPDX-License-Identifier: Apache-2.0
// The program from its arguments to its exit status.
#pragma once

namespace similis::cli {

/// Returns 0, 1 after an error, 2 if the command line is wrong; errors are printed on stderr.
int run_program(int argc, const char* const* argv);

}  // namespace similis::cli
