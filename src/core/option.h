// SPDX-License-Identifier: Apache-2.0
// An option, declared once: a member of an operation's C++ options, the member of its C struct that
// carries it, and the values it takes. C, Python and the program read, check and print options by
// these rows; option_value.h makes them from member pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace similis {

enum class OptionType : std::uint8_t {
  number,
  integer,
  flag,         ///< true or false
  choice,       ///< one of some words
  numbers,      ///< a list of any length
  range,        ///< one of some words, or two numbers: low, high
  tensor,       ///< a mask, or an operand that may be left out
  extents,      ///< a shape of 2 or 3 extents
  coordinates,  ///< x, y and z
  interval,     ///< two integers: where it starts, and its extent or end
  reserved,     ///< a member of the C struct without a meaning, which must be 0
};

/// The numbers that an option takes.
struct Bounds {
  const char* words;  ///< follows "it must be": "a number above 0"
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  ///< the least number itself is refused
  bool odd = false;
  bool finite = true;  ///< infinity and NaN are refused

  constexpr bool hold(double number) const {
    if (!finite) return true;
    if (!(above_least ? number > least : number >= least) || !(number <= most)) return false;
    // Odd numbers are small whole ones.
    return number - number == 0 && (!odd || static_cast<std::int64_t>(number) % 2 != 0);
  }
};
inline constexpr Bounds kAnyNumber{.words = "a number"};
inline constexpr Bounds kAnyFloat{.words = "a number", .finite = false};
inline constexpr Bounds kAbove0{.words = "a number above 0", .least = 0, .above_least = true};
inline constexpr Bounds kAtLeast0{.words = "a number of 0 or more", .least = 0};
/// The taps of a wider window alone would fill memories.
inline constexpr Bounds kWindowSizes{
    .words = "an odd number from 1 to 65535", .least = 1, .most = 65535, .odd = true};

/// The words of an enumeration's values, in their order.
struct Choices {
  std::span<const char* const> words;
  std::uint32_t refused = 0;  ///< bit i: the operation does not take value i

  constexpr bool take(std::size_t value) const {
    return value < words.size() && (refused >> value & 1) == 0;
  }
};
template <class... Enum> constexpr Choices without(Choices choices, Enum... values) {
  ((choices.refused |= 1u << static_cast<unsigned>(values)), ...);
  return choices;
}

/// The type of a C struct's member.
enum class CType : std::uint8_t { f64, i32, i64, u64, pointer };

struct Option {
  const char* name;         ///< in Python and in the program; in C++ and C but for their keywords
  const char* description;  ///< in the program's help; null: the program does not offer it
  OptionType type;
  CType c_type;
  int c_count;                ///< 3 where C has a number for each axis: z, y, x; 2 for an interval
  bool may_be_empty;          ///< 0 or NULL in C: the library chooses
  Bounds bounds;              ///< of numbers
  Choices choices = {};       ///< of words
  std::size_t (*c_offset)();  ///< bytes from the C struct's start
  /// Bytes to the int32 that goes with the member: how many extents there are, or 1 for a value
  /// that is given. Null: there is none.
  std::size_t (*c_count_offset)() = nullptr;

  /// Takes the value from a C struct into C++ options, for images of so many spatial axes. Throws
  /// InvalidArgument if C++ cannot hold the value.
  void (*from_c)(const Option&, const char* operation, const void* c_struct, int axes, void* into);
  /// Throws InvalidArgument unless the value in C++ options is one that the option takes.
  void (*check)(const Option&, const char* operation, const void* options);
  /// Sets the value that the text spells; false if it spells none that the option takes.
  bool (*parse)(const Option&, std::string_view text, void* options);
  /// The value as JSON; "null" for one that is left to the library.
  std::string (*json)(const Option&, const void* options);
};

/// The words after "it must be": a sentence's end for every surface.
std::string accepted_values(const Option& option);

/// "valid, same or renormalize"
std::string listed(const Choices& choices);

/// Throws InvalidArgument: "op: name is value; it must be …".
[[noreturn]] void refuse_value(const Option& option, const char* operation, std::string_view value);

/// Throws InvalidArgument for a list that C gives as NULL and a count above 0.
[[noreturn]] void refuse_null_list(const Option& option, const char* operation, std::size_t count);

}  // namespace similis
