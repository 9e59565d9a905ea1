// SPDX-License-Identifier: Apache-2.0
// Calls of the room's operations on the chosen backend: a test's arrays are copied to the GPU and
// back where that is one.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "similis/warp.hpp"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"

namespace similis::test {

/// Arguments of one call where the backend wants them.
class Arguments {
 public:
  TensorView in(const TensorView& view) {
    if (!runs_on_gpu() || view.empty()) return view;
    return copies_.emplace_back(view).view();
  }
  TensorView out(const TensorView& view) {
    if (!runs_on_gpu() || view.empty()) return view;
    results_.push_back(&copies_.emplace_back(view));
    return results_.back()->view();
  }
  SampleOptions in(SampleOptions options) {
    options.affine = in(options.affine);
    options.displacement = in(options.displacement);
    options.grid = in(options.grid);
    options.grid_affine = in(options.grid_affine);
    return options;
  }
  void bring_back() const {
    for (const OnGpu* result : results_) result->bring_back();
  }

 private:
  std::deque<OnGpu> copies_;
  std::vector<OnGpu*> results_;
};

inline void call_sample(
    const TensorView& image, SampleRequest request, const SampleOptions& options) {
  Arguments arguments;
  request.upstream = arguments.in(request.upstream);
  for (TensorView* result : {&request.output, &request.image_gradient, &request.affine_gradient,
           &request.grid_gradient, &request.grid_affine_gradient}) {
    *result = arguments.out(*result);
  }
  sample_into(arguments.in(image), request, arguments.in(options), {});
  arguments.bring_back();
}

inline Tensor sampled(const TensorView& image, const Extents& shape, const SampleOptions& options) {
  Tensor output = filled(shape, image.dtype, Layout::dense, kUntouched);
  call_sample(image, {.output = output}, options);
  return output;
}

/// The options for voxels first … first+count-1 along axis 0 (x), 1 or 2 of an output [N,C,whole].
inline SampleOptions part_of_grid(
    SampleOptions options, const Extents& whole, int axis, std::int64_t first, std::int64_t count) {
  const auto at = [&](int a, std::int64_t voxel) {
    const auto n = static_cast<double>(whole[whole.rank() - 1 - a]);
    const auto i = static_cast<double>(voxel);
    if (n == 1) return 0.0;
    return options.align_corners ? -1 + 2 * i / (n - 1) : (2 * i + 1) / n - 1;
  };
  const auto last = [&](int a) { return whole[whole.rank() - 1 - a] - 1; };
  Coordinates low{at(0, 0), at(1, 0), 0}, high{at(0, last(0)), at(1, last(1)), 0};
  if (whole.rank() == 3) low.z = at(2, 0), high.z = at(2, last(2));
  double* const lows[3] = {&low.x, &low.y, &low.z};
  double* const highs[3] = {&high.x, &high.y, &high.z};
  *lows[axis] = at(axis, first);
  *highs[axis] = at(axis, first + count - 1);
  options.min_coords = low;
  options.max_coords = high;
  options.out_shape = whole;
  options.out_shape[whole.rank() - 1 - axis] = count;
  return options;
}

/// Elements first … first+count-1 along one dimension.
inline TensorView slab(TensorView view, int dimension, std::int64_t first, std::int64_t count) {
  view.offset += first * view.strides[dimension];
  view.shape[dimension] = count;
  return view;
}

}  // namespace similis::test
