// SPDX-License-Identifier: Apache-2.0
// CAMBI, banding in smooth areas, of luma at five scales: how often a flat place's window holds its
// value and another one a small step away, whose contrast is just seen.
// Source: Tandon et al., "CAMBI: Contrast-aware Multiscale Banding Index", PCS 2021, in libvmaf's
// integers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "similis/execution.hpp"
#include "src/vmaf/plane.h"

namespace similis::vmaf_internal {

constexpr std::int64_t kCambiLeastSide = 216;  // of the larger side
constexpr int kCambiScales = 5;
constexpr int kCambiLargest = 1024;  // sample: 16 bits of ones round up to it
/// The widest window whose places are counted in 16 bits.
constexpr std::int64_t kCambiWidestWindow = 255;

enum class Eotf : std::uint8_t { bt1886, pq };

struct CambiSetting {
  int window_size = 65;  ///< of 3840×2160
  double top_share = 0.6, threshold = 0.019, least_luminance = 0;
  int max_log_contrast = 2;
  int encoded_bits = 0;   ///< 0: those of the samples
  int halves_height = 0;  ///< 1080, 1440 or 2160: frames as large begin at half their size
  Eotf eotf = Eotf::bt1886;
  friend bool operator==(const CambiSetting&, const CambiSetting&) = default;
};

/// The luma values at which a step is seen, of 10 bits in limited range.
struct CambiLimits {
  std::vector<int> largest;  ///< by step, from 1 on: the greatest value
  int least = 0;             ///< the least luma that is seen
};
CambiLimits cambi_limits(const CambiSetting& setting);

/// The weight of a step.
constexpr std::array<int, 32> kCambiWeights = {
    1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};

/// 1/n of nine digits, to n = count.
std::vector<float> cambi_inverses(std::int64_t count);

/// The window of frames of this size, and whether they are halved first.
struct CambiWindow {
  std::int64_t radius = 0;
  bool is_halved = false;
  std::int64_t places() const { return (2 * radius + 1) * (2 * radius + 1); }
};
CambiWindow cambi_window(const CambiSetting& setting, std::int64_t width, std::int64_t height);

/// More than so many flat places of 7×7 make a place of a frame of this size count.
int cambi_least_flat(std::int64_t width, std::int64_t height);

/// The score of the scales' ones.
double cambi_of_scales(const std::array<double, kCambiScales>& scores, const CambiWindow& window);

/// The score of a plane, by loops as the definition has them.
double reference_cambi(const Plane& plane, const CambiSetting& setting);

/// The score of frames, one after the other, on the CPU; it keeps its memory from frame to frame.
class CambiMeter {
 public:
  explicit CambiMeter(const CambiSetting& setting);
  ~CambiMeter();
  CambiMeter(CambiMeter&&) noexcept;

  /// The same bits with any number of exec's threads.
  double measure(const Plane& plane, const Execution& exec);

 private:
  struct Memory;
  CambiSetting setting_;
  std::unique_ptr<Memory> memory_;  // of frames of this size
  std::int64_t width_ = 0, height_ = 0;
};

}  // namespace similis::vmaf_internal
