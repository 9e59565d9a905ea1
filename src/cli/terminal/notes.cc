// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/notes.h"

#include <fmt/core.h>

#include <cstdio>

namespace similis::cli {
namespace {

bool is_silent = false;  // of the process, as stderr is

}  // namespace

void silence_notes() { is_silent = true; }
bool are_notes_silent() { return is_silent; }

std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line += fmt::format("\\x{:02x}", code);
    } else {
      line += c;
    }
  }
  return line;
}

// Failing to write to stderr is not an error.
void print_note(const std::string& text) {
  if (is_silent) return;
  std::fputs(fmt::format("similis: note: {}\n", one_line(text)).c_str(), stderr);
}

void print_error(const std::string& text) {
  std::fputs(fmt::format("similis: {}\n", one_line(text)).c_str(), stderr);
}

void Notes::add(const std::string& file, const std::string& text) {
  for (Note& note : notes_) {
    if (note.text != text) continue;
    if (note.last_file != file) ++note.files;
    note.last_file = file;
    return;
  }
  notes_.push_back({file, file, text});
}

void Notes::add_all(const Notes& notes) {
  for (const Note& note : notes.notes_) add(note.first_file, note.text);
}

std::vector<std::string> Notes::lines() const {
  std::vector<std::string> lines;
  for (const Note& note : notes_) {
    const std::string more = note.files > 1 ? fmt::format(" and {} more", note.files - 1) : "";
    lines.push_back(fmt::format("{}{}: {}", note.first_file, more, note.text));
  }
  return lines;
}

}  // namespace similis::cli
