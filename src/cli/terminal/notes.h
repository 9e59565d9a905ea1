// SPDX-License-Identifier: Apache-2.0
// Notes and errors on stderr, one line each.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

/// The text with control characters spelled out (\n, \x1b), so that a file's name cannot break the
/// line or the terminal.
std::string one_line(const std::string& text);

/// -q: print_note() and Progress write nothing from now on.
void silence_notes();
bool are_notes_silent();

/// "similis: note: text" or "similis: text" to stderr.
void print_note(const std::string& text);
void print_error(const std::string& text);

/// Notes about single files, those with the same text are merged: "b.png and 2 more: …".
class Notes {
 public:
  void add(const std::string& file, const std::string& text);
  void add_all(const Notes& notes);
  std::vector<std::string> lines() const;

 private:
  struct Note {
    std::string first_file, last_file;
    std::string text;
    int files = 1;
  };
  std::vector<Note> notes_;
};

}  // namespace similis::cli
