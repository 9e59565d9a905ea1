// SPDX-License-Identifier: Apache-2.0
// Refusals: require(condition, "ssim: window_size is {}; it must be odd", window_size).
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "similis/error.hpp"
#include "similis/tensor.hpp"

/// A shape prints as [1, 3, 1080, 1920].
template <> struct fmt::formatter<similis::Extents> : fmt::formatter<std::string_view> {
  auto format(const similis::Extents& extents, format_context& context) const {
    return fmt::format_to(context.out(), "[{}]", fmt::join(extents.begin(), extents.end(), ", "));
  }
};
template <> struct fmt::formatter<similis::DType> : fmt::formatter<std::string_view> {
  auto format(similis::DType dtype, format_context& context) const {
    return fmt::formatter<std::string_view>::format(similis::name(dtype), context);
  }
};
template <> struct fmt::formatter<similis::Device> : fmt::formatter<std::string_view> {
  auto format(const similis::Device& device, format_context& context) const {
    if (device.kind == similis::DeviceKind::cpu) return fmt::format_to(context.out(), "cpu");
    return fmt::format_to(context.out(), "cuda:{}", device.index);
  }
};

namespace similis {

/// Throws InvalidArgument with the formatted sentence unless the condition holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> sentence, Args&&... args) {
  if (!condition) throw InvalidArgument(fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace similis
