// SPDX-License-Identifier: Apache-2.0
// CAMBI knows this before it sees a frame: at which luma a step is seen, and its window.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "src/core/number_text.h"
#include "src/core/require.h"
#include "src/vmaf/cambi/cambi.h"

namespace similis::vmaf_internal {
namespace {

constexpr int kFoot = 64, kHead = 940;

// In cd/m², of a display from 0.01 to 300.
double bt1886_luminance(double signal) {
  constexpr double gamma = 2.4, white = 300, black = 0.01;
  const double high = std::pow(white, 1 / gamma), low = std::pow(black, 1 / gamma);
  const double gain = std::pow(high - low, gamma), lift = low / (high - low);
  return gain * std::pow(std::max(signal + lift, 0.0), gamma);
}

// SMPTE ST 2084.
double pq_luminance(double signal) {
  constexpr double m1 = 0.1593017578125, m2 = 78.84375, c1 = 0.8359375, c2 = 18.8515625,
                   c3 = 18.6875;
  const double power = std::pow(signal, 1 / m2);
  return 10000 * std::pow(std::max(power - c1, 0.0) / (c2 - c3 * power), 1 / m1);
}

double luminance(int luma, Eotf eotf) {
  const double signal =
      static_cast<double>(std::clamp(luma, kFoot, kHead) - kFoot) / (kHead - kFoot);
  return eotf == Eotf::pq ? pq_luminance(signal) : bt1886_luminance(signal);
}

}  // namespace

CambiLimits cambi_limits(const CambiSetting& setting) {
  CambiLimits limits;
  const int steps = 1 << setting.max_log_contrast;
  for (int step = 1; step <= steps; ++step) {
    const auto is_seen = [&](int luma) {
      const double dark = luminance(luma, setting.eotf);
      return luminance(luma + step, setting.eotf) - dark > setting.threshold * dark;
    };
    const int last = kHead - 1 - step;
    int limit = 0;
    if (is_seen(last + 1)) {
      limit = 1023;
    } else if (is_seen(kFoot)) {
      limit = last;
      while (!is_seen(limit)) --limit;
    }
    limits.largest.push_back(limit);
  }
  int least = kFoot;
  while (least < kHead && luminance(least, setting.eotf) < setting.least_luminance) ++least;
  limits.least = least == kFoot ? 0 : least;
  return limits;
}

std::vector<float> cambi_inverses(std::int64_t count) {
  std::vector<float> inverses = {0};
  for (std::int64_t n = 1; n <= count; ++n) {
    const std::string digits = fmt::format("{:.9g}", 1 / static_cast<double>(n));
    inverses.push_back(*parse_number<float>(digits));
  }
  return inverses;
}

CambiWindow cambi_window(const CambiSetting& setting, std::int64_t width, std::int64_t height) {
  CambiWindow window;
  const std::int64_t pixels = width * height;
  for (const auto& [lines, least] :
      {std::pair{1080, 1920 * 1080}, {1440, 2560 * 1440}, {2160, 3840 * 2160}}) {
    if (setting.halves_height == lines && pixels >= least) window.is_halved = true;
  }
  std::int64_t size = setting.window_size * (width + height) / 375 / 16;
  if (window.is_halved) size = (size + 1) / 2;
  window.radius = size / 2;
  require(2 * window.radius + 1 <= kCambiWidestWindow,
      "cambi: window_size {} is {} samples of frames of {}×{}; it may be {}", setting.window_size,
      2 * window.radius + 1, width, height, kCambiWidestWindow);
  return window;
}

int cambi_least_flat(std::int64_t width, std::int64_t height) {
  const std::int64_t fields = (width / 64) * (height / 64);
  const int magnitude =
      fields == 0 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(fields - 1)));
  return (48 + 3 * (magnitude - 11)) / 2;
}

double cambi_of_scales(const std::array<double, kCambiScales>& scores, const CambiWindow& window) {
  double sum = 0;
  for (std::size_t scale = 0; scale < scores.size(); ++scale) sum += scores[scale] * (16 >> scale);
  return sum / static_cast<double>(window.places());
}

}  // namespace similis::vmaf_internal
