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

}  // namespace similis::test
