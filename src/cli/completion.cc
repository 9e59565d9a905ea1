// SPDX-License-Identifier: Apache-2.0
#include "src/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "src/cli/command_line.h"
#include "src/cli/usage_error.h"

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

bool takes_value(const CLI::Option& option) { return option.get_expected_max() > 0; }

// The first line of a description, without what the shells' quoting would trip over.
std::string summary(const std::string& description) {
  std::string text = description.substr(0, description.find('\n'));
  for (char& c : text) {
    if (c == '\'' || c == '[' || c == ']' || c == ':' || c == '\\') c = ' ';
  }
  return text;
}

// ---- bash ----

// Words for `compgen -W`: all options of a command and what its arguments take.
std::string bash_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> more =
        option->get_positional() ? value_choices(*option) : spellings(*option);
    words.insert(words.end(), more.begin(), more.end());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string bash_values(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() || !takes_value(*option)) continue;
    const std::vector<std::string> choices = value_choices(*option);
    text += fmt::format("        {}:{})\n          words='{}'\n          ;;\n", command.get_name(),
        fmt::join(spellings(*option), "|" + command.get_name() + ":"), fmt::join(choices, " "));
  }
  return text;
}

std::string bash_script(const CLI::App& app) {
  std::vector<std::string> names;
  std::string values, words;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    values += bash_values(*command);
    words += fmt::format("        {}:*)\n          words='{}'\n          ;;\n", command->get_name(),
        bash_words(*command));
  }
  return fmt::format(R"(# bash completion for similis
_similis() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='{commands} {options}'
  else
    case "${{COMP_WORDS[1]}}:$previous" in
{values}      *)
        case "${{COMP_WORDS[1]}}:" in
{words}        esac
        ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _similis similis
)",
      fmt::arg("commands", fmt::join(names, " ")), fmt::arg("options", bash_words(app)),
      fmt::arg("values", values), fmt::arg("words", words));
}

// ---- zsh ----

std::string zsh_action(const CLI::Option& option) {
  const std::vector<std::string> choices = value_choices(option);
  if (choices.empty()) return ":_files";
  return fmt::format(":({})", fmt::join(choices, " "));
}

std::string zsh_arguments(const CLI::App& command) {
  std::string text;
  int position = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      text += fmt::format(" \\\n        '{}:{}{}'", ++position, summary(option->get_description()),
          zsh_action(*option));
      continue;
    }
    for (const std::string& name : spellings(*option)) {
      text += fmt::format(" \\\n        '*{}[{}]{}'", name, summary(option->get_description()),
          takes_value(*option) ? ":value" + zsh_action(*option) : "");
    }
  }
  return text;
}

std::string zsh_script(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    commands +=
        fmt::format("    '{}:{}'\n", command->get_name(), summary(command->get_description()));
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

std::string fish_option(const CLI::Option& option, const std::string& condition) {
  std::string line = fmt::format("complete -c similis -n '{}'", condition);
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  const std::vector<std::string> choices = value_choices(option);
  if (takes_value(option)) line += choices.empty() ? " -r -F" : " -x";
  if (!choices.empty()) line += fmt::format(" -a '{}'", fmt::join(choices, " "));
  return line + fmt::format(" -d '{}'\n", summary(option.get_description()));
}

std::string fish_script(const CLI::App& app) {
  std::string text = "# fish completion for similis\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c similis -n __fish_use_subcommand -f -a {} -d '{}'\n",
        command->get_name(), summary(command->get_description()));
    const std::string condition = "__fish_seen_subcommand_from " + command->get_name();
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_positional()) {
        text += fish_option(*option, condition);
      } else if (const auto choices = value_choices(*option); !choices.empty()) {
        text += fmt::format(
            "complete -c similis -n '{}' -f -a '{}'\n", condition, fmt::join(choices, " "));
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
