// SPDX-License-Identifier: Apache-2.0
// The errors of a command line that is wrong, in the words of the option or argument.
#include <fmt/core.h>

#include <algorithm>

#include "src/cli/command_line.h"
#include "src/cli/terminal/nearest.h"
#include "src/cli/usage_error.h"

namespace similis::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// The error for an argument that no option or positional takes.
std::string extra_argument_text(
    const CLI::App& app, const std::string& argument, bool may_be_option) {
  if (may_be_option && argument.size() > 1 && argument.front() == '-') {
    const std::string name = argument.substr(0, argument.find('='));
    return fmt::format("there is no option {}{}", name, nearest_hint(name, option_names(app)));
  }
  if (app.get_parent() == nullptr) {
    return fmt::format(
        "there is no command \"{}\"{}", argument, nearest_hint(argument, command_names(app)));
  }
  std::string takes;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) takes += (takes.empty() ? "" : " and ") + option->get_name();
  }
  return fmt::format("{} takes {}; \"{}\" is one too many", app.get_name(),
      takes.empty() ? "no arguments" : takes, argument);
}

// The error for an option without a value, or given more than once.
std::string mismatch_text(const CLI::App& app, const std::string& message) {
  const std::string name = message.substr(0, message.find(':'));
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return message;
  if (option->count() > 1) return fmt::format("{} is given {} times", name, option->count());
  return fmt::format("{} has no value; write {} {}", name, name, option->get_type_name());
}

}  // namespace

void require_no_empty_values(const CommandLine& line) {
  for (const CLI::App* command : line.app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      const std::vector<std::string>& values = option->results();
      if (std::find(values.begin(), values.end(), "") == values.end()) continue;
      const std::string name = option->get_name();
      throw UsageError(option->get_positional() ? fmt::format("{} is empty", name)
                                                : fmt::format("{} is empty; write {} {}", name,
                                                      name, option->get_type_name()));
    }
  }
}

std::string usage_error_text(const CommandLine& line, const CLI::ParseError& error) {
  const std::vector<CLI::App*> commands = line.app.get_subcommands();
  const CLI::App& app = commands.empty() ? line.app : *commands.front();
  bool may_be_option = true;
  for (const std::string& argument : app.remaining()) {
    if (argument != "--") return extra_argument_text(app, argument, may_be_option);
    may_be_option = false;
  }
  if (&app == &line.app) return "a command is missing; similis --help shows them";
  const std::string message = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::string name = message.substr(0, message.find(' '));
    return fmt::format(
        "{} is missing; similis {} --help shows how to call it", name, app.get_name());
  }
  return mismatch_text(app, message);
}

}  // namespace similis::cli
