// SPDX-License-Identifier: Apache-2.0
// Numbers to and from text, whatever the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace similis::cli {

/// The fewest digits that read back as the same number: 0.1, 1e-07, inf.
template <class T> std::string shortest(T number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// The finite number that all of the text spells, if it does.
template <class T> std::optional<T> parse_number(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

}  // namespace similis::cli
