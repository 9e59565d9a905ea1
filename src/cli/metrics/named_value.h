// SPDX-License-Identifier: Apache-2.0
// Options of the program itself, whose values are names: words to values and back. Options of the
// library's operations come from the operations' tables (src/core/option.h).
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace similis::cli {

/// The names of an enumeration's values.
template <class E> using NamedValues = std::vector<std::pair<const char*, E>>;

inline const NamedValues<bool> kSwitch = {{"true", true}, {"false", false}};

/// One name of an enumeration. A bool is one too: kSwitch.
template <class E> struct NamedValue {
  static std::string takes(const NamedValues<E>& choices) {
    std::string words;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      words += i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
      words += choices[i].first;
    }
    return words;
  }
  static std::optional<E> parse(std::string_view text, const NamedValues<E>& choices) {
    for (const auto& [name, value] : choices) {
      if (text == name) return value;
    }
    return std::nullopt;
  }
  static std::string json(E wanted, const NamedValues<E>& choices) {
    for (const auto& [name, value] : choices) {
      if (value == wanted) return std::is_same_v<E, bool> ? name : fmt::format("\"{}\"", name);
    }
    return "";
  }
};

}  // namespace similis::cli
