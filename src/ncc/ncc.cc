// SPDX-License-Identifier: Apache-2.0
// NCC: refusals, dispatch, and the CPU's sums. Slabs of a plane are summed each by itself and then
// in their order, so that results do not depend on the number of threads.
#include "src/ncc/ncc.h"

#include <algorithm>
#include <vector>

#include "src/core/backend.h"
#include "src/core/dispatch.h"
#include "src/core/parallel.h"
#include "src/core/reduction.h"
#include "src/core/require.h"
#include "src/window/validate.h"

namespace similis {
namespace ncc_internal {
namespace {

constexpr std::int64_t kRowsOfSlab = 256;

struct Slab {
  std::int64_t image, channel, first_row, last_row;  // rows of all of the plane's depth
};

template <class T> Sums sums_of(const Pass& pass, const Slab& slab) {
  const Extents& shape = pass.x.shape;
  const auto first = [&](const TensorView& view) {
    return static_cast<const T*>(view.data) + slab.image * view.strides[0] +
           slab.channel * view.strides[1];
  };
  const T *const x = first(pass.x), *const y = first(pass.y);
  const Extents &along_x = pass.x.strides, &along_y = pass.y.strides;
  const auto centre = [&](const T* plane, const Extents& strides) {
    const double value = load(
        plane[shape[2] / 2 * strides[2] + shape[3] / 2 * strides[3] + shape[4] / 2 * strides[4]]);
    return std::isfinite(value) ? value : 0;
  };
  const double shift_x = centre(x, along_x), shift_y = centre(y, along_y);
  Sums sums;
  for (std::int64_t row = slab.first_row; row < slab.last_row; ++row) {
    const std::int64_t z = row / shape[3], h = row % shape[3];
    const T* of_x = x + z * along_x[2] + h * along_x[3];
    const T* of_y = y + z * along_y[2] + h * along_y[3];
    Sums of_row;
    for (std::int64_t w = 0; w < shape[4]; ++w) {
      of_row.add_pixel(load(of_x[w * along_x[4]]) - shift_x, load(of_y[w * along_y[4]]) - shift_y);
    }
    sums.add(of_row);
  }
  return sums;
}

}  // namespace

void ncc_cpu(const Pass& pass, const Execution& exec) {
  const Extents& shape = pass.x.shape;
  const std::int64_t rows = shape[2] * shape[3], planes = shape[0] * shape[1];
  const std::int64_t slabs = (rows + kRowsOfSlab - 1) / kRowsOfSlab;
  std::vector<Sums> sums(static_cast<std::size_t>(planes * slabs));
  parallel_for(exec, planes * slabs, [&](std::int64_t i) {
    const std::int64_t plane = i / slabs, first = i % slabs * kRowsOfSlab;
    const Slab slab{plane / shape[1], plane % shape[1], first, std::min(rows, first + kRowsOfSlab)};
    visit_dtype(pass.x.dtype, [&]<class T>(std::type_identity<T>) {
      sums[static_cast<std::size_t>(i)] = sums_of<T>(pass, slab);
    });
  });
  auto* const values = static_cast<double*>(pass.value.data);
  const std::int64_t groups = pass.value.shape.count(), planes_each = planes / groups;
  std::fill_n(values, groups, 0.0);
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    Sums total;
    for (std::int64_t i = 0; i < slabs; ++i) {
      total.add(sums[static_cast<std::size_t>(plane * slabs + i)]);
    }
    const double share = pass.is_sum ? 1 : 1 / static_cast<double>(planes_each);
    values[plane / planes_each] += share * correlation(total, static_cast<double>(rows * shape[4]));
  }
}

}  // namespace ncc_internal

Tensor ncc(const TensorView& x, const TensorView& y, Reduction reduction, const Execution& exec) {
  require_image_pair("ncc", x, y);
  require(reduction <= Reduction::per_channel && reduction != Reduction::none,
      "ncc: reduction is {}; it must be mean, sum, per_image or per_channel",
      reduction == Reduction::none ? "none" : std::to_string(static_cast<int>(reduction)));
  require_backend(x.device, "ncc", Runs::on_cpu_and_gpu);
  const Tensor value = allocate(reduced_shape(x.shape, reduction), DType::f64, x.device, exec);
  const ncc_internal::Pass pass{.x = as_volumes(x),
      .y = as_volumes(y),
      .value = value,
      .is_sum = reduction == Reduction::sum};
#ifdef SIMILIS_HAS_CUDA
  if (x.device.kind == DeviceKind::cuda) {
    ncc_internal::ncc_cuda(pass, exec);
    return value;
  }
#endif
  ncc_internal::ncc_cpu(pass, exec);
  return value;
}

}  // namespace similis
