// SPDX-License-Identifier: Apache-2.0
#include "src/scale/scale.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "similis/gradient.hpp"
#include "src/core/operation.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"

namespace similis {
namespace scale_internal {

Walk::Walk(const TensorView& tensor) : count(tensor.shape.count()) {
  std::vector<int> axes;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    if (tensor.shape[axis] != 1) axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end(),
      [&](int a, int b) { return std::abs(tensor.strides[a]) < std::abs(tensor.strides[b]); });
  for (const int axis : axes) {
    if (rank > 0 && tensor.strides[axis] == stride[rank - 1] * extent[rank - 1]) {
      extent[rank - 1] *= tensor.shape[axis];
      continue;
    }
    extent[rank] = tensor.shape[axis];
    stride[rank++] = tensor.strides[axis];
  }
}

namespace {

template <class T> void scale_by(const TensorView& tensor, double factor, const Execution& exec) {
  constexpr std::int64_t kPiece = 1 << 16;
  const Walk walk(tensor);
  const auto by = static_cast<decltype(load(T{}))>(factor);
  T* const data = static_cast<T*>(tensor.data());
  parallel_for(exec, (walk.count + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    const std::int64_t first = piece * kPiece, last = std::min(walk.count, first + kPiece);
    if (walk.is_dense()) {
      for (std::int64_t i = first; i < last; ++i) store(load(data[i]) * by, data + i);
    } else {
      for (std::int64_t i = first; i < last; ++i) {
        T* const at = data + walk.offset(i);
        store(load(*at) * by, at);
      }
    }
  });
}

}  // namespace

void scale_cpu(const Pass& pass, const Execution& exec) {
  const double by = element(pass.factor, 0);
  if (by == 1) return;
  visit_dtype(pass.tensor.dtype,
      [&]<class T>(std::type_identity<T>) { scale_by<T>(pass.tensor, by, exec); });
}

namespace {

// It has no options, so C, Python and the program need no table of it.
constinit const Operation<Pass> kScale = {
    .table = {.name = "scale"}, .backends = {{SIMILIS_CPU(scale_cpu), SIMILIS_CUDA(scale_cuda)}}};

}  // namespace
}  // namespace scale_internal

void scale(const TensorView& tensor, const TensorView& factor, const Execution& exec) {
  require(!tensor.empty() && !factor.empty(), "scale: {} has no data",
      tensor.empty() ? "tensor" : "factor");
  require_in_place("scale", "tensor", tensor);
  require(factor.shape.count() == 1, "scale: factor has shape {}; it must have one element",
      factor.shape);
  require(is_floating_point(factor.dtype),
      "scale: factor is {}; it must be float16, bfloat16, float32 or float64", factor.dtype);
  require(factor.device == tensor.device, "scale: factor is on {}; it must be on {} as tensor is",
      factor.device, tensor.device);
  scale_internal::kScale.require_runs_on(tensor.device);
  if (tensor.shape.count() > 0) scale_internal::kScale.run({tensor, factor}, tensor.device, exec);
}

}  // namespace similis
