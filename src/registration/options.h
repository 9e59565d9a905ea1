// SPDX-License-Identifier: Apache-2.0
// The options that register_images() takes: their check, and the words that the program, Python and
// reports have for their enumerations.
#pragma once

#include <array>
#include <cstddef>

#include "similis/register.hpp"

namespace similis::registration_internal {

/// Throws InvalidArgument, "register: NAME is …", for the first option out of its range.
void check_options(const RegisterOptions& options);

inline constexpr std::array kStageNames = {
    "translation", "rigid", "similarity", "affine", "deformable", "symmetric"};
inline constexpr std::array kMetricNames = {"lncc", "ncc", "mi", "mse", "dice"};
inline constexpr std::array kPresetNames = {"quick", "balanced", "accurate"};
/// The last is a map of the caller.
inline constexpr std::array kStartNames = {"auto", "centers", "moments", "identity", "given"};

/// Returns true if the linear stages take the metric.
inline bool is_linear(RegisterMetric metric) {
  return metric != RegisterMetric::lncc && metric != RegisterMetric::dice;
}

inline const char* name(RegisterStage stage) {
  return kStageNames.at(static_cast<std::size_t>(stage));
}
inline const char* name(RegisterMetric metric) {
  return kMetricNames.at(static_cast<std::size_t>(metric));
}
inline const char* name(RegisterPreset preset) {
  return kPresetNames.at(static_cast<std::size_t>(preset));
}
inline const char* name(RegisterStart start) {
  return kStartNames.at(static_cast<std::size_t>(start));
}

}  // namespace similis::registration_internal
