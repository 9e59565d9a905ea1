// SPDX-License-Identifier: Apache-2.0
#include "src/cli/program.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "src/cli/command_line.h"
#include "src/cli/completion.h"
#include "src/cli/info_command.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/terminal/shell_word.h"
#include "src/cli/usage_error.h"

namespace similis::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int run_command(const CommandLine& line) {
  if (line.compare->parsed()) return compare(line.compare_options);
  if (line.vmaf->parsed()) return vmaf(line.vmaf_options);
  if (line.warp->parsed()) return warp(line.warp_options);
  if (line.registration->parsed()) return register_volumes(line.register_command);
  if (line.merge->parsed()) return merge(line.merge_options);
  if (line.report->parsed()) return make_report(line.report_options);
  if (line.bench->parsed()) return bench(line.bench_options);
  if (line.info->parsed()) {
    write_output(info_text(line.info_options));
  } else {
    write_output(completion_script(line.app, line.shell));
  }
  return 0;
}

// The command as one would type it into a shell.
std::string command_text(int argc, const char* const* argv) {
  std::string text = "similis";
  for (int i = 1; i < argc; ++i) text += ' ' + shell_word(argv[i]);
  return text;
}

// The arguments without the program's name, last first, as CLI11 takes them. "help compare" is
// "compare --help"; "help" of no command is an error as that command is.
std::vector<std::string> arguments_of(int argc, const char* const* argv, const CLI::App& app) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    const std::vector<const CLI::App*> commands = app.get_subcommands({});
    const bool is_known =
        arguments.empty() || arguments.front().starts_with('-') ||
        std::any_of(commands.begin(), commands.end(),
            [&](const CLI::App* command) { return command->get_name() == arguments.front(); });
    if (is_known) arguments.emplace_back("--help");
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

int run_command_line(int argc, const char* const* argv) {
  const std::unique_ptr<CommandLine> line = make_command_line();
  try {
    line->app.parse(arguments_of(argc, argv, line->app));
  } catch (const CLI::Success& wanted) {  // --help and other flags that print and end
    std::ostringstream text;
    line->app.exit(wanted, text, text);
    write_output(text.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    print_error(usage_error_text(*line, error));
    return kWrongUsage;
  }
  require_no_empty_values(*line);
  line->compare_options.command = line->register_command.command = command_text(argc, argv);
  return run_command(*line);
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  std::signal(SIGXFSZ,
      SIG_IGN);  // so that a file at its size limit is an error of write(), as on a full disk
  try {
    return run_command_line(argc, argv);
  } catch (const UsageError& error) {
    print_error(error.what());
    return kWrongUsage;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return kFailed;
}

}  // namespace similis::cli
