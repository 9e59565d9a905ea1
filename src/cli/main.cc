// SPDX-License-Identifier: Apache-2.0
#include "src/cli/program.h"

int main(int argc, char** argv) { return similis::cli::run_program(argc, argv); }
