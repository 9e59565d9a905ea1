// SPDX-License-Identifier: Apache-2.0
// Formats for the whole library: the one file that compiles fmt. All others include fmt/core.h,
// whose functions call those below.
#define FMT_HEADER_ONLY
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/core/require.h"

// Inline in fmt's headers, so the compiler leaves them out unless somebody asks for their address.
[[gnu::used]] static const auto kFormat =
    static_cast<std::string (*)(fmt::string_view, fmt::format_args)>(fmt::vformat);
[[gnu::used]] static const auto kPrint =
    static_cast<void (*)(std::FILE*, fmt::string_view, fmt::format_args)>(fmt::vprint);

namespace similis {

void refuse(fmt::string_view sentence, fmt::format_args args) {
  throw InvalidArgument(fmt::vformat(sentence, args));
}

}  // namespace similis

auto fmt::formatter<similis::Extents>::format(const similis::Extents& extents,
    format_context& context) const -> fmt::format_context::iterator {
  return fmt::format_to(context.out(), "[{}]", fmt::join(extents.begin(), extents.end(), ", "));
}

auto fmt::formatter<similis::DType>::format(similis::DType dtype, format_context& context) const
    -> fmt::format_context::iterator {
  return fmt::format_to(context.out(), "{}", similis::name(dtype));
}

auto fmt::formatter<similis::Device>::format(
    const similis::Device& device, format_context& context) const -> fmt::format_context::iterator {
  if (device.kind == similis::DeviceKind::cpu) return fmt::format_to(context.out(), "cpu");
  return fmt::format_to(context.out(), "{}:{}", similis::name(device.kind), device.index);
}
