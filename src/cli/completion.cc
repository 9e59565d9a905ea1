// SPDX-License-Identifier: Apache-2.0
#include "src/cli/completion.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "src/cli/command_line.h"
#include "src/cli/usage_error.h"
#include "src/core/joined.h"

namespace similis::cli {
namespace {

using Commands = std::vector<const CLI::App*>;

Commands commands_of(const CLI::App& app) { return app.get_subcommands({}); }

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// True for FILE, and for arguments without a type.
bool takes_file(const CLI::Option& option) {
  return option.get_type_name() == "FILE" || option.get_type_name().empty();
}

std::vector<std::string> spellings_of_all(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : spellings(*option)) names.push_back(name);
  }
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_expected_max() > 0; }

// The first clause of a description.
std::string summary(const std::string& description) {
  std::string clause = description.substr(0, description.find_first_of(";(:"));
  std::replace(clause.begin(), clause.end(), '\n', ' ');
  return clause.substr(0, clause.find_last_not_of(" :") + 1);
}

// `text` with a backslash before each character that is special in the shell's quotes.
std::string escaped(const std::string& text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// ---- bash ----

std::string bash_case(const std::string& pattern, const std::vector<std::string>& words) {
  return fmt::format("    {}) words='{}' ;;\n", pattern, joined(words, " "));
}

// One case for the value of each option, one for the options, one for the other arguments.
std::string bash_cases(const CLI::App& command) {
  const std::string& name = command.get_name();
  std::vector<std::string> options, arguments;
  std::string cases;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> choices = value_choices(*option);
    if (option->get_positional()) {
      arguments.insert(arguments.end(), choices.begin(), choices.end());
      continue;
    }
    const std::vector<std::string> names = spellings(*option);
    options.insert(options.end(), names.begin(), names.end());
    if (!takes_value(*option)) continue;
    std::vector<std::string> patterns;
    for (const std::string& spelling : names) {
      patterns.push_back(fmt::format("'{} {} '*", name, spelling));
    }
    cases += bash_case(joined(patterns, "|"), choices);
  }
  return cases + bash_case(fmt::format("'{} '*' -'*", name), options) +
         bash_case(fmt::format("'{} '*", name), arguments);
}

// If no word fits, bash completes file names.
std::string bash_script(const CLI::App& app) {
  std::vector<std::string> first = spellings_of_all(app);
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    first.push_back(command->get_name());
    cases += bash_cases(*command);
  }
  return fmt::format(R"(# bash completion for similis
_similis() {{
  local at=$COMP_CWORD words=''
  local current=${{COMP_WORDS[at]}}
  [ "$current" = = ] && current='' && at=$((at + 1))
  [ "${{COMP_WORDS[at-1]}}" = = ] && at=$((at - 1))  # bash takes --format=json for three words
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[at-1]}} $current" in
{cases}  esac
  [ "$COMP_CWORD" -eq 1 ] && words='{first}'
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _similis similis
)",
      fmt::arg("cases", cases), fmt::arg("first", joined(first, " ")));
}

// ---- zsh ----

std::string zsh_text(const std::string& description) {
  const std::string text = escaped(summary(description), "[]:\\");
  return joined(CLI::detail::split(text, '\''), "'\\''");
}

std::string zsh_action(const CLI::Option& option) {
  if (takes_file(option)) return ":_files";
  return fmt::format(":({})", joined(value_choices(option), " "));
}

std::string zsh_arguments(const CLI::App& command) {
  std::string text;
  int position = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      text += fmt::format(" \\\n        '{}:{}{}'", ++position, zsh_text(option->get_description()),
          zsh_action(*option));
      continue;
    }
    for (const std::string& name : spellings(*option)) {
      text += fmt::format(" \\\n        '*{}[{}]{}'", name, zsh_text(option->get_description()),
          takes_value(*option) ? ":value" + zsh_action(*option) : "");
    }
  }
  return text;
}

std::string zsh_script(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    commands +=
        fmt::format("    '{}:{}'\n", command->get_name(), zsh_text(command->get_description()));
    cases += fmt::format(
        "      {})\n      _arguments{}\n      ;;\n", command->get_name(), zsh_arguments(*command));
  }
  return fmt::format(R"(#compdef similis
_similis() {{
  local -a commands=(
{commands}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=${{words[2]}}
  shift words
  (( CURRENT-- ))
  case $command in
{cases}  esac
}}
if [ "$funcstack[1]" = "_similis" ]; then
  _similis "$@"
else
  compdef _similis similis
fi
)",
      fmt::arg("commands", commands), fmt::arg("cases", cases));
}

// ---- fish ----

std::string fish_text(const std::string& description) {
  return escaped(summary(description), "'\\");
}

std::string fish_option(const CLI::Option& option, const std::string& condition) {
  std::string line = fmt::format("complete -c similis -n '{}'", condition);
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  const std::vector<std::string> choices = value_choices(option);
  if (takes_value(option)) line += takes_file(option) ? " -r -F" : " -x";
  if (!choices.empty()) line += fmt::format(" -a '{}'", joined(choices, " "));
  return line + fmt::format(" -d '{}'\n", fish_text(option.get_description()));
}

std::string fish_script(const CLI::App& app) {
  std::string text = "# fish completion for similis\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c similis -n __fish_use_subcommand -f -a {} -d '{}'\n",
        command->get_name(), fish_text(command->get_description()));
    const std::string condition = "__fish_seen_subcommand_from " + command->get_name();
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_positional()) {
        text += fish_option(*option, condition);
      } else if (const auto choices = value_choices(*option); !choices.empty()) {
        text += fmt::format(
            "complete -c similis -n '{}' -f -a '{}'\n", condition, joined(choices, " "));
      }
    }
  }
  for (const CLI::Option* option : app.get_options()) {
    text += fish_option(*option, "__fish_use_subcommand");
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, std::string_view shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  if (shell == "fish") return fish_script(app);
  throw UsageError(
      fmt::format("there is no completion for \"{}\"; it must be bash, zsh or fish", shell));
}

}  // namespace similis::cli
