// SPDX-License-Identifier: Apache-2.0
// The text that Netpbm's formats and PFM begin with: words between white space, with comments from
// '#' to the end of the line.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/media/picture/reader.h"

namespace similis::media {

class NetpbmText {
 public:
  NetpbmText(const File& file, std::size_t at) : file_(file), at_(at) {}

  /// The next word; empty at the end of the file.
  std::string_view word() {
    while (at_ < size() && (is_space(byte(at_)) || byte(at_) == '#')) {
      if (byte(at_) == '#') {
        skip_line();
      } else {
        ++at_;
      }
    }
    const std::size_t first = at_;
    while (at_ < size() && !is_space(byte(at_)) && byte(at_) != '#') ++at_;
    return text(first, at_);
  }

  /// The rest of this line, without its end.
  std::string_view line() {
    const std::size_t first = at_;
    skip_line();
    return text(first, at_ > first && byte(at_ - 1) == '\n' ? at_ - 1 : at_);
  }

  /// The next word as a number. Refuses a file that has none, in words with `name`.
  std::int64_t number(const char* name) { return number_in(word(), name); }

  std::int64_t number_in(std::string_view digits, const char* name) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 0) {
      refuse_damaged(file_, fmt::format("its {} is \"{}\", not a number", name, digits));
    }
    return value;
  }

  /// Passes the one white space between the header and binary samples.
  void end_header() {
    if (at_ >= size() || !is_space(byte(at_))) refuse_damaged(file_, "its header is not complete");
    ++at_;
  }

  std::size_t position() const { return at_; }
  std::size_t left() const { return size() - at_; }

  static bool is_space(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

 private:
  std::size_t size() const { return file_.bytes.size(); }
  std::uint8_t byte(std::size_t at) const { return file_.bytes[at]; }
  void skip_line() {
    while (at_ < size() && byte(at_) != '\n') ++at_;
    if (at_ < size()) ++at_;
  }
  std::string_view text(std::size_t first, std::size_t end) const {
    return {reinterpret_cast<const char*>(file_.bytes.data()) + first, end - first};
  }

  const File& file_;
  std::size_t at_;
};

}  // namespace similis::media
