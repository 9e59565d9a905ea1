// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/rate_match.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace similis::cli {
namespace {

// x/y with what both share taken out first, so that 24000/1001 to 12000/1001 is exactly 1/2.
double ratio(std::int64_t x, std::int64_t y) {
  const std::int64_t shared = std::gcd(x, y);
  return static_cast<double>(x / shared) / static_cast<double>(y / shared);
}

}  // namespace

RateMatch::RateMatch(const media::FrameRate& reference, const media::FrameRate& distorted)
    : step_(ratio(distorted.numerator, reference.numerator) *
            ratio(reference.denominator, distorted.denominator)) {}

std::int64_t RateMatch::distorted(std::int64_t reference) const {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(reference) * step_ + 0.5));
}

std::int64_t RateMatch::reference_frames(std::int64_t distorted_frames) const {
  const double frames = (static_cast<double>(distorted_frames) - 0.5) / step_;
  auto count = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(frames)));
  while (count > 0 && this->distorted(count - 1) >= distorted_frames) --count;  // rounding
  while (this->distorted(count) < distorted_frames) ++count;
  return count;
}

bool RateMatch::is_wanted(std::int64_t distorted, const FrameSelection& selection) const {
  const std::int64_t frame = selection.next(reference_frames(distorted));
  return selection.has(frame) && this->distorted(frame) == distorted;
}

}  // namespace similis::cli
