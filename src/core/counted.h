// SPDX-License-Identifier: Apache-2.0
// A number with its noun, in the right number.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace similis {

/// counted(1, "frame") is "1 frame", counted(3, "frame") "3 frames".
template <class Count> std::string counted(Count count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace similis
