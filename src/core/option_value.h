// SPDX-License-Identifier: Apache-2.0
// Rows of an operation's table from member pointers. The C++ member's type says how a value crosses
// to C and to text:
//
//   C++                    C                    text and JSON
//   double, int, uint64    double, int32, …     1.5
//   std::optional<T>       T, 0 if empty        1.5, null if empty
//   PerAxis<T>             T[3]: z, y, x        11, or 7,11
//   bool                   int32: 0 or 1        true, false
//   an enumeration         int32                "valid"
//   std::vector<double>    pointer and count    1,2,3
//   TensorView             pointer              none
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "similis/c/core.h"
#include "similis/tensor.hpp"
#include "similis/window.hpp"
#include "src/core/number_text.h"
#include "src/core/option.h"
#include "src/core/tensor/dlpack.h"

namespace similis {

/// The way in which values of a C++ type cross to C and to text.
template <class T> struct OptionValue;

template <class T>
requires(std::integral<T> || std::floating_point<T>) &&
    (!std::same_as<T, bool>)struct OptionValue<T> {
  using C = std::conditional_t<std::same_as<T, int>, std::int32_t, T>;
  static constexpr OptionType type = std::integral<T> ? OptionType::integer : OptionType::number;
  static constexpr CType c_type = std::same_as<C, double>          ? CType::f64
                                  : std::same_as<C, std::int32_t>  ? CType::i32
                                  : std::same_as<C, std::uint64_t> ? CType::u64
                                                                   : CType::i64;
  static T from_c(const Option&, const char*, const C& given, int) { return given; }
  static void check(const Option& option, const char* operation, const T& value) {
    if (option.bounds.hold(static_cast<double>(value))) return;
    refuse_value(option, operation, shortest(value));
  }
  static std::optional<T> parse(const Option& option, std::string_view text) {
    const std::optional<T> value = parse_number<T>(text);
    if (!value || !option.bounds.hold(static_cast<double>(*value))) return std::nullopt;
    return value;
  }
  static std::string json(const Option&, const T& value) { return shortest(value); }
};

template <class T> struct OptionValue<std::optional<T>> {
  using Of = OptionValue<T>;
  using C = typename Of::C;
  static constexpr OptionType type = Of::type;
  static constexpr CType c_type = Of::c_type;
  static std::optional<T> from_c(
      const Option& option, const char* operation, const C& given, int axes) {
    if (given == 0) return std::nullopt;
    return Of::from_c(option, operation, given, axes);
  }
  static void check(const Option& option, const char* operation, const std::optional<T>& value) {
    if (value) Of::check(option, operation, *value);
  }
  static std::optional<std::optional<T>> parse(const Option& option, std::string_view text) {
    const std::optional<T> value = Of::parse(option, text);
    if (!value) return std::nullopt;
    return std::optional<std::optional<T>>(std::in_place, value);
  }
  static std::string json(const Option& option, const std::optional<T>& value) {
    return value ? Of::json(option, *value) : "null";
  }
};

template <> struct OptionValue<std::vector<double>> {
  static constexpr OptionType type = OptionType::numbers;
  static void check(
      const Option& option, const char* operation, const std::vector<double>& values) {
    for (const double value : values) OptionValue<double>::check(option, operation, value);
  }
  static std::optional<std::vector<double>> parse(const Option& option, std::string_view text) {
    std::vector<double> values;
    for (;;) {
      const std::size_t comma = text.find(',');
      const auto value = OptionValue<double>::parse(option, text.substr(0, comma));
      if (!value) return std::nullopt;
      values.push_back(*value);
      if (comma == std::string_view::npos) return values;
      text.remove_prefix(comma + 1);
    }
  }
  static std::string json(const Option&, const std::vector<double>& values) {
    std::string text = "[";
    for (const double value : values) {
      if (text.size() > 1) text += ',';
      text += shortest(value);
    }
    return text + "]";
  }
};

template <class T> struct OptionValue<PerAxis<T>> {
  using Of = OptionValue<T>;
  using C = typename Of::C[3];
  static constexpr OptionType type = Of::type;
  static constexpr CType c_type = Of::c_type;
  /// z belongs to volumes alone.
  static PerAxis<T> from_c(const Option&, const char*, const C& zyx, int axes) {
    if (axes == 3) return {zyx[0], zyx[1], zyx[2]};
    return {zyx[1], zyx[2]};
  }
  static void check(const Option& option, const char* operation, const PerAxis<T>& value) {
    if (value.count() == 3) Of::check(option, operation, value.z());
    Of::check(option, operation, value.y());
    Of::check(option, operation, value.x());
  }
  static std::optional<PerAxis<T>> parse(const Option& option, std::string_view text) {
    std::vector<T> values;
    for (;;) {
      const std::size_t comma = text.find(',');
      const std::optional<T> value = Of::parse(option, text.substr(0, comma));
      if (!value || values.size() == 3) return std::nullopt;
      values.push_back(*value);
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
    }
    if (values.size() == 3) return PerAxis<T>(values[0], values[1], values[2]);
    return values.size() == 1 ? PerAxis<T>(values[0]) : PerAxis<T>(values[0], values[1]);
  }
  static std::string json(const Option&, const PerAxis<T>& value) {
    if (value.count() == 1) return shortest(value.x());
    const std::string z = value.count() == 3 ? shortest(value.z()) + "," : "";
    return "[" + z + shortest(value.y()) + "," + shortest(value.x()) + "]";
  }
};

template <> struct OptionValue<bool> {
  using C = std::int32_t;
  static constexpr OptionType type = OptionType::flag;
  static constexpr CType c_type = CType::i32;
  static bool from_c(const Option& option, const char* operation, C given, int) {
    if (given != 0 && given != 1) refuse_value(option, operation, shortest(given));
    return given == 1;
  }
  static void check(const Option&, const char*, bool) {}
  static std::optional<bool> parse(const Option&, std::string_view text) {
    if (text != "true" && text != "false") return std::nullopt;
    return text == "true";
  }
  static std::string json(const Option&, bool value) { return value ? "true" : "false"; }
};

template <class T>
requires std::is_enum_v<T>
struct OptionValue<T> {
  using C = std::int32_t;
  static constexpr OptionType type = OptionType::choice;
  static constexpr CType c_type = CType::i32;
  static T from_c(const Option& option, const char* operation, C given, int) {
    const auto index = static_cast<std::size_t>(given);  // above all words if negative
    if (index >= option.choices.words.size()) refuse_value(option, operation, shortest(given));
    return static_cast<T>(given);
  }
  static void check(const Option& option, const char* operation, T value) {
    const auto index = static_cast<std::size_t>(value);
    if (option.choices.take(index)) return;
    const bool has_word = index < option.choices.words.size();
    refuse_value(option, operation,
        has_word ? option.choices.words[index] : shortest(static_cast<int>(value)));
  }
  static std::optional<T> parse(const Option& option, std::string_view text) {
    for (std::size_t i = 0; i < option.choices.words.size(); ++i) {
      if (option.choices.take(i) && text == option.choices.words[i]) return static_cast<T>(i);
    }
    return std::nullopt;
  }
  static std::string json(const Option& option, T value) {
    return '"' + std::string(option.choices.words[static_cast<std::size_t>(value)]) + '"';
  }
};

template <> struct OptionValue<TensorView> {
  using C = const similis_tensor*;
  static constexpr OptionType type = OptionType::tensor;
  static constexpr CType c_type = CType::pointer;
  static TensorView from_c(const Option& option, const char* operation, C given, int) {
    return from_dlpack(operation, option.name, *given);
  }
  static void check(const Option&, const char*, const TensorView&) {}
  static std::optional<TensorView> parse(const Option&, std::string_view) { return std::nullopt; }
  static std::string json(const Option&, const TensorView&) { return "null"; }
};

namespace option_internal {

template <class T> struct MemberPointer;
template <class Struct, class T> struct MemberPointer<T Struct::*> {
  using Holder = Struct;
  using Type = T;
};
template <auto member> using Holder = typename MemberPointer<decltype(member)>::Holder;
template <auto member> using Type = typename MemberPointer<decltype(member)>::Type;

template <auto member> std::size_t offset_in_c() {
  static const Holder<member> probe{};
  return static_cast<std::size_t>(
      reinterpret_cast<const char*>(&(probe.*member)) - reinterpret_cast<const char*>(&probe));
}

template <auto member> void check(const Option& option, const char* operation, const void* in) {
  OptionValue<Type<member>>::check(
      option, operation, static_cast<const Holder<member>*>(in)->*member);
}
template <auto member> bool parse(const Option& option, std::string_view text, void* into) {
  auto value = OptionValue<Type<member>>::parse(option, text);
  if (value) static_cast<Holder<member>*>(into)->*member = *value;
  return value.has_value();
}
template <auto member> std::string json(const Option& option, const void* in) {
  return OptionValue<Type<member>>::json(option, static_cast<const Holder<member>*>(in)->*member);
}

}  // namespace option_internal

/// A row. Its bounds or choices follow by `numbers()`, `choices()`; a flag or a tensor has neither.
template <auto member, auto c_member>
constexpr Option option(const char* name, const char* description = nullptr) {
  using namespace option_internal;
  using Value = OptionValue<Type<member>>;
  static_assert(std::same_as<Type<c_member>, typename Value::C>,
      "the C member's type is not the one that carries the C++ member's");
  return {.name = name,
      .description = description,
      .type = Value::type,
      .c_type = Value::c_type,
      .c_count = std::is_array_v<typename Value::C> ? 3 : 1,
      .may_be_empty = !std::is_array_v<typename Value::C> && requires(Type<member> m){m.has_value();
}
, .bounds = Value::type == OptionType::flag ? Bounds{.words = "true or false"} : kAnyNumber,
  .c_offset = offset_in_c<c_member>,
  .from_c =
      [](const Option& row, const char* operation, const void* c_struct, int axes, void* into) {
        const auto& given = static_cast<const Holder<c_member>*>(c_struct)->*c_member;
        if constexpr (Value::type == OptionType::tensor) {
          if (given == nullptr) return;  // the view is empty already, and large
        }
        static_cast<Holder<member>*>(into)->*member = Value::from_c(row, operation, given, axes);
      },
  .check = check<member>, .parse = parse<member>, .json = json<member>
};  // namespace similis
}

/// A row of numbers within bounds.
template <auto member, auto c_member>
constexpr Option option(const char* name, const Bounds& bounds, const char* description = nullptr) {
  Option row = option<member, c_member>(name, description);
  row.bounds = bounds;
  return row;
}

/// A row of one of some words.
template <auto member, auto c_member>
constexpr Option option(
    const char* name, const Choices& choices, const char* description = nullptr) {
  Option row = option<member, c_member>(name, description);
  row.choices = choices;
  return row;
}

/// A row of a list, which C has as a pointer and a count; NULL and 0: the library's own.
template <auto member, auto c_member, auto c_count>
constexpr Option list_option(
    const char* name, const Bounds& bounds, const char* description = nullptr) {
  using namespace option_internal;
  static_assert(std::same_as<Type<c_member>, const double*>);
  static_assert(std::same_as<Type<c_count>, std::size_t>);
  return {.name = name,
      .description = description,
      .type = OptionType::numbers,
      .c_type = CType::pointer,
      .c_count = 1,
      .may_be_empty = true,
      .bounds = bounds,
      .c_offset = offset_in_c<c_member>,
      .from_c =
          [](const Option& row, const char* operation, const void* c_struct, int, void* into) {
            const auto& given = *static_cast<const Holder<c_member>*>(c_struct);
            const std::size_t count = given.*c_count;
            if (given.*c_member == nullptr) {
              if (count == 0) return;
              refuse_null_list(row, operation, count);
            }
            static_cast<Holder<member>*>(into)->*member = {
                given.*c_member, given.*c_member + count};
          },
      .check = check<member>,
      .parse = parse<member>,
      .json = json<member>};
}

/// The least value is that of the second number.
inline constexpr Bounds kStartAndExtent{.words = "(start, extent)", .least = 1};
inline constexpr Bounds kFirstAndEnd{.words = "(first, end)"};

/// A row of two integers that follow one another in C; both are 0 if they are left out. The
/// operation checks them against the images. Nothing but C and Python reads them, so that they have
/// no text.
template <auto member, auto c_first, auto c_second>
constexpr Option interval_option(const char* name, const Bounds& bounds = kStartAndExtent) {
  using namespace option_internal;
  static_assert(std::same_as<Type<c_first>, std::int64_t>);
  return {.name = name,
      .description = nullptr,
      .type = OptionType::interval,
      .c_type = CType::i64,
      .c_count = 2,
      .may_be_empty = true,
      .bounds = bounds,
      .c_offset = offset_in_c<c_first>,
      .from_c =
          [](const Option&, const char*, const void* c_struct, int, void* into) {
            const auto& given = *static_cast<const Holder<c_first>*>(c_struct);
            static_cast<Holder<member>*>(into)->*member = {given.*c_first, given.*c_second};
          },
      .check = [](const Option&, const char*, const void*) {},
      .parse = [](const Option&, std::string_view, void*) { return false; },
      .json = [](const Option&, const void*) { return std::string("null"); }};
}

/// The row of a member of the C struct that must be 0.
template <auto c_member> constexpr Option reserved() {
  using namespace option_internal;
  return {.name = "reserved",
      .description = nullptr,
      .type = OptionType::reserved,
      .c_type = CType::i32,
      .c_count = 1,
      .may_be_empty = false,
      .bounds = {.words = "0", .least = 0, .most = 0},
      .c_offset = offset_in_c<c_member>,
      .from_c =
          [](const Option& row, const char* operation, const void* c_struct, int, void*) {
            const std::int32_t given = static_cast<const Holder<c_member>*>(c_struct)->*c_member;
            if (given != 0) refuse_value(row, operation, shortest(given));
          },
      .check = [](const Option&, const char*, const void*) {},
      .parse = [](const Option&, std::string_view, void*) { return false; },
      .json = [](const Option&, const void*) { return std::string("0"); }};
}

}  // namespace similis
