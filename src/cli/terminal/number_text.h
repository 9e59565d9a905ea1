// SPDX-License-Identifier: Apache-2.0
// Numbers to and from text, whatever the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace similis::cli {

/// The fewest digits that read back as the same number: 0.1, 1e-07, inf.
template <class T> std::string shortest(T number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// The finite number that the whole text spells; empty if it spells none.
template <class T> std::optional<T> parse_number(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

/// The numbers of a text such as "1920x1080", each above 0; none if the text is not like that.
inline std::vector<std::int64_t> parse_size(std::string_view text) {
  std::vector<std::int64_t> sides;
  for (;;) {
    const std::size_t x = text.find('x');
    const auto side = parse_number<std::int64_t>(text.substr(0, x));
    if (!side || *side < 1) return {};
    sides.push_back(*side);
    if (x == std::string_view::npos) return sides;
    text.remove_prefix(x + 1);
  }
}

}  // namespace similis::cli
