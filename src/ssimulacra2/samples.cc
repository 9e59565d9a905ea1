// SPDX-License-Identifier: Apache-2.0
#include "src/ssimulacra2/samples.h"

#include <array>
#include <cstddef>

#include "src/ssimulacra2/formula.h"
#include "src/ssimulacra2/ssimulacra2.h"

namespace similis {

std::span<const float> ssimulacra2_backgrounds(bool reference_has_alpha) {
  static const std::array all = {
      ssimulacra2_internal::backgrounds_of(false), ssimulacra2_internal::backgrounds_of(true)};
  const ssimulacra2_internal::Backgrounds& backgrounds = all[reference_has_alpha ? 1 : 0];
  return std::span(backgrounds.values).first(static_cast<std::size_t>(backgrounds.count));
}

std::vector<float> ssimulacra2_blend(
    std::span<const float> samples, int channels, float background) {
  const auto step = static_cast<std::size_t>(channels), colors = step - 1;
  std::vector<float> result;
  result.reserve(samples.size() / step * colors);
  for (std::size_t i = 0; i < samples.size(); i += step) {
    for (std::size_t c = 0; c < colors; ++c) {
      result.push_back(
          ssimulacra2_internal::blended(samples[i + c], samples[i + colors], background));
    }
  }
  return result;
}

void ssimulacra2_linearize(std::span<float> samples) {
  for (float& sample : samples) sample = ssimulacra2_internal::linear_of_srgb(sample);
}

}  // namespace similis
