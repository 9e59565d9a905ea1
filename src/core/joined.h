// SPDX-License-Identifier: Apache-2.0
// Elements in a line, without fmt/ranges.h, which takes seconds to compile.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace similis {

/// joined(Extents{2, 3}, "x") is "2x3".
template <class Range> std::string joined(const Range& elements, std::string_view separator) {
  std::string text;
  for (const auto& element : elements) {
    if (&element != &*elements.begin()) text += separator;
    text += fmt::format("{}", element);
  }
  return text;
}

}  // namespace similis
