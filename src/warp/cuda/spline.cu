// SPDX-License-Identifier: Apache-2.0
// B-spline coefficients on the GPU: one thread filters one line of the image.
#include <cstdint>

#include "src/warp/cuda/voxels.cuh"
#include "src/warp/spline.h"

namespace similis::warp_internal {
namespace {

// Dense: [outer][count][stride].
template <class T>
__global__ __launch_bounds__(kThreads) void spline_kernel(
    T* image, std::int64_t lines, std::int64_t count, std::int64_t stride, bool is_transposed) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < lines; i += step) {
    filter_line(image + i / stride * count * stride + i % stride, count, stride, is_transposed);
  }
}

}  // namespace

void spline_filter_cuda(const TensorView& image, int rank, Filter filter, const Execution& exec) {
  const gpu::Current current(image.device);
  const bool is_transposed = filter == Filter::transposed;
  for (int axis = 5 - rank; axis < 5; ++axis) {
    const std::int64_t count = image.shape[axis], stride = image.strides[axis];
    const std::int64_t lines = image.shape.count() / count;
    if (image.dtype == DType::f64) {
      gpu::launch("sample", exec.queue.handle, blocks_for_items(lines), kThreads, 0,
          spline_kernel<double>, static_cast<double*>(image.data()), lines, count, stride,
          is_transposed);
    } else {
      gpu::launch("sample", exec.queue.handle, blocks_for_items(lines), kThreads, 0,
          spline_kernel<float>, static_cast<float*>(image.data()), lines, count, stride,
          is_transposed);
    }
  }
}

}  // namespace similis::warp_internal
