// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/aligned_rows.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace similis::cli {
namespace {

// Columns on a terminal: bytes that continue a UTF-8 character take none.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - columns(row[i]), ' ');
      line += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace similis::cli
