// SPDX-License-Identifier: Apache-2.0
// Suggests what a mistyped name may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace similis::cli {

/// The candidate that takes the fewest inserted, deleted, replaced or swapped letters to become
/// `name`, whatever their case; empty if every one takes more than a third of the longer name's
/// length, but at least 2.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// "; did you mean ssim?", or nothing.
std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace similis::cli
