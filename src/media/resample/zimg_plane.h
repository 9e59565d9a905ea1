// SPDX-License-Identifier: Apache-2.0
// One plane of floats at another size, by zimg.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "src/media/resample/resample.h"

namespace similis::media {

/// Samples along one axis: output sample i covers the input from first + i·length/to on, where
/// input sample i covers i to i + 1.
struct ResampledAxis {
  std::int64_t from = 0, to = 0;
  double first = 0, length = 0;
};

class ZimgPlane {
 public:
  ZimgPlane(const ResampledAxis& x, const ResampledAxis& y, Resampling filter);
  ~ZimgPlane();
  ZimgPlane(const ZimgPlane&) = delete;
  ZimgPlane& operator=(const ZimgPlane&) = delete;

  float* input_row(std::int64_t y);
  void run();
  const float* output_row(std::int64_t y) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace similis::media
