// SPDX-License-Identifier: Apache-2.0
// Refusals: require(condition, "ssim: window_size is {}; it must be odd", window_size).
//
// Includes fmt's declarations alone: the formatting is compiled once, in refuse.cc.
#pragma once

#include <fmt/core.h>

#include "similis/error.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// Formats a type that has no specification of its own after the colon.
struct PlainFormatter {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
};

/// Throws InvalidArgument with the formatted sentence.
[[noreturn]] void refuse(fmt::string_view sentence, fmt::format_args args);

/// Throws InvalidArgument with the formatted sentence unless the condition holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> sentence, Args&&... args) {
  if (!condition) refuse(sentence, fmt::make_format_args(args...));
}

}  // namespace similis

/// A shape prints as [1, 3, 1080, 1920].
template <> struct fmt::formatter<similis::Extents> : similis::PlainFormatter {
  fmt::format_context::iterator format(
      const similis::Extents& extents, format_context& context) const;
};
template <> struct fmt::formatter<similis::DType> : similis::PlainFormatter {
  fmt::format_context::iterator format(similis::DType dtype, format_context& context) const;
};
template <> struct fmt::formatter<similis::Device> : similis::PlainFormatter {
  fmt::format_context::iterator format(
      const similis::Device& device, format_context& context) const;
};
