// SPDX-License-Identifier: Apache-2.0
// The results of a reduction to numbers on the CPU: which planes make which number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "similis/reduction.hpp"
#include "src/core/tensor/dispatch.h"

namespace similis {

class Groups {
 public:
  /// Of images [N,C,…].
  Groups(Reduction reduction, const Extents& images)
      : reduction_(reduction), images_(images[0]), channels_(images[1]) {}

  std::size_t of(std::int64_t image, std::int64_t channel) const {
    switch (reduction_) {
      case Reduction::per_image: return static_cast<std::size_t>(image);
      case Reduction::per_channel: return static_cast<std::size_t>(image * channels_ + channel);
      default: return 0;
    }
  }
  std::size_t size() const { return of(images_ - 1, channels_ - 1) + 1; }

 private:
  Reduction reduction_;
  std::int64_t images_, channels_;
};

/// The upstream gradient of a plane's number: without axes, [N] or [N,C]; empty is 1.
inline double upstream_of(const TensorView& upstream, std::int64_t image, std::int64_t channel) {
  if (upstream.empty()) return 1;
  std::int64_t offset = 0;
  if (upstream.shape.rank() > 0) offset += image * upstream.strides[0];
  if (upstream.shape.rank() > 1) offset += channel * upstream.strides[1];
  return element(upstream, offset);
}

/// value[group] = of_group(group), in a dense tensor of f32 or f64.
template <class OfGroup> void write_values(const TensorView& value, const OfGroup& of_group) {
  const auto count = static_cast<std::size_t>(value.shape.count());
  for (std::size_t group = 0; group < count; ++group) {
    if (value.dtype == DType::f64) {
      static_cast<double*>(value.data())[group] = of_group(group);
    } else {
      static_cast<float*>(value.data())[group] = static_cast<float>(of_group(group));
    }
  }
}

}  // namespace similis
