// SPDX-License-Identifier: Apache-2.0
// Values of options as the command line spells them: per C++ type, what text it takes, how that is
// read, and how the value stands in a JSON document. Metrics name their options' members, and the
// rest follows from the members' types.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "similis/window.hpp"
#include "src/cli/terminal/number_text.h"

namespace similis::cli {

/// Which numbers an option takes, and the words for them.
struct Numbers {
  const char* words;
  bool (*holds)(double);
};
inline constexpr Numbers any_number{"a number", [](double) { return true; }};
inline constexpr Numbers above_0{"a number above 0", [](double number) { return number > 0; }};
inline constexpr Numbers at_least_0{
    "a number of 0 or more", [](double number) { return number >= 0; }};
inline constexpr Numbers odd_up_to_65535{"an odd number from 1 to 65535", [](double number) {
                                           return number > 0 && number <= 65535 &&
                                                  static_cast<int>(number) % 2 == 1;
                                         }};

/// The names of an enumeration's values.
template <class E> using Choices = std::vector<std::pair<const char*, E>>;

/// takes() in words; parse() of a whole text; json() of a value, empty for one that is not there.
template <class T> struct OptionValue;

template <class T>
requires std::integral<T> || std::floating_point<T>
struct OptionValue<T> {
  static std::string takes(const Numbers& numbers) { return numbers.words; }
  static std::optional<T> parse(std::string_view text, const Numbers& numbers) {
    const std::optional<T> number = parse_number<T>(text);
    if (!number || !numbers.holds(static_cast<double>(*number))) return std::nullopt;
    return number;
  }
  static std::string json(T number, const Numbers&) { return shortest(number); }
};

/// An option that may be left out, and then takes its value from the images.
template <class T> struct OptionValue<std::optional<T>> {
  static std::string takes(const Numbers& numbers) { return OptionValue<T>::takes(numbers); }
  static std::optional<std::optional<T>> parse(std::string_view text, const Numbers& numbers) {
    const std::optional<T> value = OptionValue<T>::parse(text, numbers);
    if (!value) return std::nullopt;
    return std::optional<std::optional<T>>(std::in_place, value);
  }
  static std::string json(const std::optional<T>& value, const Numbers& numbers) {
    return value ? OptionValue<T>::json(*value, numbers) : "";
  }
};

/// 1,2,3
template <class T> struct OptionValue<std::vector<T>> {
  static std::string takes(const Numbers& numbers) {
    return fmt::format("{}, or several separated by commas", numbers.words);
  }
  static std::optional<std::vector<T>> parse(std::string_view text, const Numbers& numbers) {
    std::vector<T> values;
    for (;;) {
      const std::size_t comma = text.find(',');
      const std::optional<T> value = OptionValue<T>::parse(text.substr(0, comma), numbers);
      if (!value) return std::nullopt;
      values.push_back(*value);
      if (comma == std::string_view::npos) return values;
      text.remove_prefix(comma + 1);
    }
  }
  static std::string json(const std::vector<T>& values, const Numbers&) {
    std::string text = "[";
    for (const T value : values) {
      if (text.size() > 1) text += ',';
      text += shortest(value);
    }
    return text + "]";
  }
};

/// One number for all axes, or y,x, or z,y,x of volumes.
template <class T> struct OptionValue<PerAxis<T>> {
  static std::string takes(const Numbers& numbers) {
    return fmt::format("{}, or one an axis: y,x or z,y,x", numbers.words);
  }
  static std::optional<PerAxis<T>> parse(std::string_view text, const Numbers& numbers) {
    const std::optional<std::vector<T>> values = OptionValue<std::vector<T>>::parse(text, numbers);
    if (!values || values->size() > 3) return std::nullopt;
    const std::vector<T>& v = *values;
    if (v.size() == 3) return PerAxis<T>(v[0], v[1], v[2]);
    return v.size() == 1 ? PerAxis<T>(v[0]) : PerAxis<T>(v[0], v[1]);
  }
  static std::string json(const PerAxis<T>& value, const Numbers& numbers) {
    if (value.count() == 1) return shortest(value.x());
    if (value.count() == 3) {
      return OptionValue<std::vector<T>>::json({value.z(), value.y(), value.x()}, numbers);
    }
    return OptionValue<std::vector<T>>::json({value.y(), value.x()}, numbers);
  }
};

/// One name of an enumeration. A bool is one too: {{"true", true}, {"false", false}}.
template <class E> struct NamedValue {
  static std::string takes(const Choices<E>& choices) {
    std::string words;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      words += i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
      words += choices[i].first;
    }
    return words;
  }
  static std::optional<E> parse(std::string_view text, const Choices<E>& choices) {
    for (const auto& [name, value] : choices) {
      if (text == name) return value;
    }
    return std::nullopt;
  }
  static std::string json(E wanted, const Choices<E>& choices) {
    for (const auto& [name, value] : choices) {
      if (value == wanted) return std::is_same_v<E, bool> ? name : fmt::format("\"{}\"", name);
    }
    return "";
  }
};

}  // namespace similis::cli
