// SPDX-License-Identifier: Apache-2.0
// The commands and options of the program. Parsing, --help and shell completion all read this.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "src/cli/bench/bench_command.h"
#include "src/cli/compare/compare.h"
#include "src/cli/corpus/merge_command.h"
#include "src/cli/info_command.h"
#include "src/cli/page/report_command.h"
#include "src/cli/registration/register_command.h"
#include "src/cli/vmaf/vmaf_command.h"
#include "src/cli/warp/warp_command.h"

namespace similis::cli {

struct CommandLine {
  CLI::App app;
  CLI::App* compare = nullptr;
  CLI::App* vmaf = nullptr;
  CLI::App* warp = nullptr;
  CLI::App* registration = nullptr;
  CLI::App* merge = nullptr;
  CLI::App* report = nullptr;
  CLI::App* bench = nullptr;
  CLI::App* info = nullptr;
  CLI::App* completion = nullptr;

  // Values of the parsed options.
  CompareOptions compare_options;
  VmafOptions vmaf_options;
  WarpOptions warp_options;
  RegisterCommand register_command;
  MergeOptions merge_options;
  ReportOptions report_options;
  BenchOptions bench_options;
  InfoOptions info_options;
  std::string shell;
};

std::unique_ptr<CommandLine> make_command_line();

/// The choices that complete the value of an option or argument: those that its type name lists, as
/// "table|json|csv"; or names of metrics; empty if its values are files or free text.
std::vector<std::string> value_choices(const CLI::Option& option);

/// The error as one line for the person who typed the command.
std::string usage_error_text(const CommandLine& line, const CLI::ParseError& error);

/// Throws UsageError if an argument is "", as in a script whose variable is empty.
void require_no_empty_values(const CommandLine& line);

}  // namespace similis::cli
