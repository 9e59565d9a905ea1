// SPDX-License-Identifier: Apache-2.0
#include "src/cli/help_texts.h"

#include <algorithm>

namespace similis::cli {
namespace {

// Columns on a terminal: bytes that continue a UTF-8 character take none.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Appends the words of a line to a paragraph whose last line begins at `line_start`.
void append_words(std::string_view words, std::string_view indent, std::size_t columns,
    std::size_t& line_start, std::string& text) {
  while (!words.empty()) {
    words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(word.size());
    if (word.empty()) return;
    const std::string_view line = std::string_view(text).substr(line_start);
    const bool is_first = line.size() == indent.size();
    if (!is_first && width_of(line) + 1 + width_of(word) > columns) {
      text += '\n';
      line_start = text.size();
      text += indent;
    } else if (!is_first) {
      text += ' ';
    }
    text += word;
  }
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns) {
  constexpr std::string_view kIndent = "  ";
  std::string result;
  std::size_t line_start = 0;
  bool in_paragraph = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_prose = line.starts_with(kIndent);
    if (!in_paragraph || !is_prose) {
      if (!result.empty()) result += '\n';
      line_start = result.size();
      if (is_prose) result += kIndent;
    }
    append_words(line, is_prose ? kIndent : "", columns, line_start, result);
    in_paragraph = is_prose;
  }
  return result + '\n';
}

}  // namespace similis::cli
