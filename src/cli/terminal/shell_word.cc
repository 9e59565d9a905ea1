// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/shell_word.h"

#include <string_view>

namespace similis::cli {

std::string shell_word(const std::string& argument) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string word = "'";
  for (const char c : argument) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + '\'';
}

}  // namespace similis::cli
