// SPDX-License-Identifier: Apache-2.0
#include "src/core/tensor/doubles.h"

#include "src/core/tensor/dispatch.h"

namespace similis {
namespace {

template <class T>
void append(const T* elements, const TensorView& view, int axis, std::vector<double>& out) {
  if (axis == view.shape.rank()) {
    out.push_back(static_cast<double>(load(*elements)));
    return;
  }
  for (std::int64_t i = 0; i < view.shape[axis]; ++i) {
    append(elements + i * view.strides[axis], view, axis + 1, out);
  }
}

}  // namespace

std::vector<double> to_doubles(const TensorView& view) {
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(view.shape.count()));
  visit_dtype(view.dtype, [&]<class T>(std::type_identity<T>) {
    append(static_cast<const T*>(view.data()), view, 0, result);
  });
  return result;
}

std::vector<double> broadcast_to_doubles(const TensorView& mask, const Extents& shape) {
  if (mask.empty()) return {};
  TensorView wide = mask;
  wide.shape = wide.strides = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int own = axis - (shape.rank() - mask.shape.rank());
    wide.strides[axis] = own < 0 || mask.shape[own] == 1 ? 0 : mask.strides[own];
  }
  return to_doubles(wide);
}

}  // namespace similis
