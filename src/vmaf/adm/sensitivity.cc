// SPDX-License-Identifier: Apache-2.0
// The eye's sensitivity to a wavelet band: 1 / the step that is just visible.
// Source: Watson et al., IEEE TIP 6(8), 1997, equations 1, 9 and 10. The table is libvmaf's
// (Copyright Netflix, BSD-2-Clause-Patent).
#include <numbers>

#include "src/core/require.h"
#include "src/vmaf/adm/formula.h"

namespace similis::vmaf_internal {
namespace {

constexpr float kThreshold = 0.495f, kCurvature = 0.466f, kFrequency = 0.401f;
constexpr float kDiagonalGain = 0.534f;
constexpr std::array<std::array<float, 2>, kAdmScales> kAmplitudes = {
    {{0.67234f, 0.72709f}, {0.41317f, 0.49428f}, {0.22727f, 0.28688f}, {0.11792f, 0.15214f}}};

float watson(int scale, bool is_diagonal, const AdmSetting& setting) {
  const auto resolution =
      static_cast<float>(setting.view_distance * setting.display_height * std::numbers::pi / 180.0);
  const auto y = static_cast<float>(std::log10(
      std::exp2(scale + 1) * static_cast<double>(kFrequency) *
      static_cast<double>(is_diagonal ? kDiagonalGain : 1) / static_cast<double>(resolution)));
  const float amplitude = kAmplitudes[static_cast<std::size_t>(scale)][is_diagonal ? 1 : 0];
  const auto step = static_cast<float>(2.0 * static_cast<double>(kThreshold) *
                                       std::pow(10.0, static_cast<double>(kCurvature * y * y)) /
                                       static_cast<double>(amplitude));
  return 1.0f / step;
}

struct Steps {
  int display_height;
  double view_distance;
  std::array<std::array<float, kAdmScales>, 2> inverse;  // of h and v, of d
};
constexpr std::array<Steps, 9> kSteps = {{
    {1080, 3,
        {{{0.01183f, 0.025026f, 0.04295f, 0.058621f},
            {0.004302f, 0.011778f, 0.023918f, 0.035901f}}}},
    {1080, 5,
        {{{0.004212f, 0.014809f, 0.029642f, 0.047464f},
            {0.000984f, 0.005852f, 0.0146f, 0.027574f}}}},
    {2160, 3,
        {{{0.00226f, 0.01183f, 0.025026f, 0.04295f},
            {0.000479f, 0.004302f, 0.011778f, 0.023918f}}}},
    {2160, 5,
        {{{9.2e-05f, 0.004212f, 0.014809f, 0.029642f}, {5e-05f, 0.000984f, 0.005852f, 0.0146f}}}},
    {720, 3,
        {{{0.018715f, 0.035637f, 0.052798f, 0.061509f},
            {0.007999f, 0.018396f, 0.031851f, 0.037718f}}}},
    {720, 5,
        {{{0.010144f, 0.022561f, 0.040309f, 0.05672f},
            {0.003463f, 0.010282f, 0.021839f, 0.034641f}}}},
    {480, 3,
        {{{0.027961f, 0.045875f, 0.060275f, 0.056234f},
            {0.013572f, 0.026277f, 0.036959f, 0.034511f}}}},
    {480, 5,
        {{{0.016781f, 0.032822f, 0.05032f, 0.061594f},
            {0.00691f, 0.016545f, 0.029917f, 0.037777f}}}},
    {2160, 1.5,
        {{{0.01183f, 0.025026f, 0.04295f, 0.058621f},
            {0.004302f, 0.011778f, 0.023918f, 0.035901f}}}},
}};

const Steps& steps_of(const AdmSetting& setting) {
  for (const Steps& steps : kSteps) {
    if (steps.display_height == setting.display_height &&
        steps.view_distance == setting.view_distance) {
      return steps;
    }
  }
  refuse("adm: adm_csf_mode 2 has no table for adm_norm_view_dist {} and adm_ref_display_height {}",
      fmt::make_format_args(setting.view_distance, setting.display_height));
}

}  // namespace

AdmSensitivity adm_sensitivity(const AdmSetting& setting) {
  AdmSensitivity result{};
  const bool is_default =
      setting.csf_mode == 0 &&
      std::abs(setting.view_distance * setting.display_height - kAdmLeastDistance) < 1e-8;
  for (int scale = 0; scale < kAdmScales; ++scale) {
    for (int band = 0; band < kAdmBands; ++band) {
      const auto s = static_cast<std::size_t>(scale), b = static_cast<std::size_t>(band);
      const bool is_diagonal = band == 2;
      const float real = setting.csf_mode == 2 ? steps_of(setting).inverse[is_diagonal ? 1 : 0][s]
                                               : watson(scale, is_diagonal, setting);
      const int bits = scale > 0 ? 32 : is_diagonal ? 23 : 21;
      result.real[s][b] = real;
      result.fixed[s][b] = static_cast<std::int64_t>(std::ldexp(static_cast<double>(real), bits));
      // libvmaf rounds these by hand: the formula has 36451 and 49414.
      if (is_default && scale == 0) result.fixed[s][b] = is_diagonal ? 49417 : 36453;
    }
  }
  return result;
}

}  // namespace similis::vmaf_internal
