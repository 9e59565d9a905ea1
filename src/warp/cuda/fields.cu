// SPDX-License-Identifier: Apache-2.0
// Computations on vector fields on the GPU besides sampling them, and B-spline coefficients; a
// thread takes a voxel or a line.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "src/core/tensor/memory.h"
#include "src/warp/cuda/pass.h"
#include "src/warp/jacobian.h"
#include "src/warp/spline.h"

namespace similis::warp_internal {
namespace {

// Voxel number `i` of [Z,Y,X].
struct Voxel {
  std::int64_t x, y, z;

  __device__ Voxel(const Axis (&axes)[3], std::int64_t i)
      : x(i % axes[0].out_extent),
        y(i / axes[0].out_extent % axes[1].out_extent),
        z(i / (axes[0].out_extent * axes[1].out_extent)) {}
  __device__ std::int64_t in(const gpu::View& field, std::int64_t n) const {
    const std::int64_t* s = field.strides;
    return n * s[0] + z * s[1] + y * s[2] + x * s[3];
  }
};

struct GridPass {
  Axis axes[3];
  int rank;
  const void* affine;
  DType affine_dtype;
  std::int64_t affine_strides[3];
  gpu::View field, output, upstream;

  explicit GridPass(const Pass& pass)
      : rank(pass.rank),
        affine(pass.affine.data),
        affine_dtype(pass.affine.dtype),
        field(pass.field),
        output(pass.output),
        upstream(pass.upstream) {
    for (int a = 0; a < 3; ++a) {
      axes[a] = pass.axes[a];
      affine_strides[a] = pass.affine.strides[a];
    }
  }
  __device__ double element(std::int64_t n, int i, int j) const {
    return gpu::load_element(affine, affine_dtype,
        n * affine_strides[0] + i * affine_strides[1] + j * affine_strides[2]);
  }
  __device__ double coordinate(int a, std::int64_t voxel) const {
    return axes[a].origin + axes[a].step * (axes[a].first + static_cast<double>(voxel));
  }
};

__global__ __launch_bounds__(kThreads) void affine_grid_kernel(
    const GridPass p, std::int64_t voxels, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const std::int64_t n = i / voxels;
    const Voxel v(p.axes, i % voxels);
    const double x[3] = {p.coordinate(0, v.x), p.coordinate(1, v.y), p.coordinate(2, v.z)};
    for (int a = 0; a < p.rank; ++a) {
      double value = p.element(n, a, p.rank);
      for (int j = 0; j < p.rank; ++j) value = fma(p.element(n, a, j), x[j], value);
      if (p.field.data != nullptr) value += p.field.load(v.in(p.field, n) + a * p.field.strides[4]);
      p.output.store(v.in(p.output, n) + a * p.output.strides[4], value);
    }
  }
}

// Writes the sums of one block's voxels to partials[n][block][12].
__global__ __launch_bounds__(kThreads) void affine_sums_kernel(
    const GridPass p, std::int64_t voxels, unsigned blocks, double* partials) {
  const std::int64_t n = blockIdx.x / blocks;
  double sums[12] = {};
  for (std::int64_t i = std::int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x; i < voxels;
       i += std::int64_t{blocks} * kThreads) {
    const Voxel v(p.axes, i);
    const double x[3] = {p.coordinate(0, v.x), p.coordinate(1, v.y), p.coordinate(2, v.z)};
    for (int a = 0; a < 3; ++a) {
      if (a >= p.rank) continue;
      const double g = p.upstream.load(v.in(p.upstream, n) + a * p.upstream.strides[4]);
      for (int j = 0; j < 3; ++j) sums[4 * a + j] = fma(g, x[j], sums[4 * a + j]);
      sums[4 * a + 3] += g;
    }
  }
  for (int k = 0; k < 12; ++k) {
    const double sum = gpu::block_sum<kThreads>(sums[k]);
    if (threadIdx.x == 0) partials[std::int64_t{blockIdx.x} * 12 + k] = sum;
    __syncthreads();
  }
}

// Each thread computes an element of the gradient to A.
__global__ void affine_gradient_kernel(const double* partials, std::int64_t rows, int rank,
    std::int64_t matrices, void* data, DType dtype, std::int64_t s0, std::int64_t s1,
    std::int64_t s2) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t n = i / 12;
  const int a = static_cast<int>(i % 12) / 4, j = static_cast<int>(i % 4);
  if (n >= matrices || a >= rank || (j >= rank && j != 3)) return;
  double total = 0;
  for (std::int64_t row = n * rows; row < (n + 1) * rows; ++row)
    total += partials[row * 12 + i % 12];
  gpu::store_element(data, dtype, n * s0 + a * s1 + (j == 3 ? rank : j) * s2, total);
}

// Squares of norms are not negative, so their bits order as they do; NaN stands above all.
__global__ __launch_bounds__(kThreads) void norms_kernel(const gpu::View field, const Axis x,
    const Axis y, const Axis z, int components, std::int64_t voxels, unsigned blocks,
    unsigned long long* largest) {
  __shared__ unsigned long long shared[kThreads];
  const Axis axes[3] = {x, y, z};
  const std::int64_t n = blockIdx.x / blocks;
  unsigned long long most = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x; i < voxels;
       i += std::int64_t{blocks} * kThreads) {
    const std::int64_t at = Voxel(axes, i).in(field, n);
    double square = 0;
    for (int j = 0; j < components; ++j) {
      const double c = field.load(at + j * field.strides[4]);
      square = fma(c, c, square);
    }
    most = max(most, bits_as<unsigned long long>(fabs(square)));
  }
  shared[threadIdx.x] = most;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      shared[threadIdx.x] = max(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
  }
  if (threadIdx.x == 0) atomicMax(largest + n, shared[0]);
}

// Writes counts, or the square roots of numbers given as bits.
__global__ void results_kernel(const unsigned long long* found, std::int64_t count, bool is_square,
    void* data, DType dtype, std::int64_t stride) {
  const std::int64_t n = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= count) return;
  const double result = is_square ? sqrt(bits_as<double>(found[n])) : static_cast<double>(found[n]);
  gpu::store_element(data, dtype, n * stride, result);
}

struct JacobianView {
  Axis axes[3] = {};
  int rank = 3;
  gpu::View u;
  void* determinant = nullptr;
  DType dtype = DType::f32;
  std::int64_t strides[4] = {};
};

__global__ __launch_bounds__(kThreads) void jacobian_kernel(
    const JacobianView p, std::int64_t voxels, unsigned blocks, unsigned long long* folds) {
  __shared__ unsigned long long folded;
  if (threadIdx.x == 0) folded = 0;
  __syncthreads();
  const std::int64_t n = blockIdx.x / blocks;
  for (std::int64_t i = std::int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x; i < voxels;
       i += std::int64_t{blocks} * kThreads) {
    const Voxel v(p.axes, i);
    const std::int64_t here = v.in(p.u, n), voxel[3] = {v.x, v.y, v.z};
    const double value =
        determinant(p.axes, p.rank, voxel, [&](int component, int a, std::int64_t other) {
          return p.u.load(
              here + (other - voxel[a]) * p.u.strides[3 - a] + component * p.u.strides[4]);
        });
    const std::int64_t* s = p.strides;
    gpu::store_element(
        p.determinant, p.dtype, n * s[0] + v.z * s[1] + v.y * s[2] + v.x * s[3], value);
    if (value <= 0) atomicAdd(&folded, 1ull);
  }
  __syncthreads();
  if (threadIdx.x == 0 && folded != 0) atomicAdd(folds + n, folded);
}

// Takes a dense [outer][count][stride].
template <class T>
__global__ __launch_bounds__(kThreads) void spline_kernel(
    T* image, std::int64_t lines, std::int64_t count, std::int64_t stride, bool is_transposed) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < lines; i += step) {
    filter_line(image + i / stride * count * stride + i % stride, count, stride, is_transposed);
  }
}

std::shared_ptr<void> cleared(
    std::int64_t bytes, Device device, const char* operation, const Execution& exec) {
  std::shared_ptr<void> memory = allocate_bytes(static_cast<std::size_t>(bytes), device, exec);
  gpu::clear(operation, exec.stream, memory.get(), static_cast<std::size_t>(bytes));
  return memory;
}

std::int64_t voxel_count(const Axis (&axes)[3]) {
  return axes[0].out_extent * axes[1].out_extent * axes[2].out_extent;
}

}  // namespace

void affine_grid_cuda(const Pass& pass, const Execution& exec) {
  const gpu::Current current(pass.affine.device);
  const GridPass p(pass);
  const std::int64_t voxels = voxel_count(pass.axes);
  if (!pass.output.empty()) {
    gpu::launch("affine_grid", exec.stream, blocks_for_items(voxels * pass.batch), kThreads, 0,
        affine_grid_kernel, p, voxels, voxels * pass.batch);
  }
  const TensorView& gradient = pass.affine_gradient;
  if (gradient.empty()) return;
  const unsigned blocks = std::min(blocks_for_items(voxels), 512u);
  const std::int64_t rows = pass.batch * blocks;
  const auto memory =
      allocate_bytes(static_cast<std::size_t>(rows) * 12 * sizeof(double), gradient.device, exec);
  auto* partials = static_cast<double*>(memory.get());
  gpu::launch("affine_grid", exec.stream, static_cast<unsigned>(rows), kThreads, 0,
      affine_sums_kernel, p, voxels, blocks, partials);
  const Extents& s = gradient.strides;
  const std::int64_t matrices = gradient.shape[0];
  gpu::launch("affine_grid", exec.stream, blocks_for_items(matrices * 12), kThreads, 0,
      affine_gradient_kernel, static_cast<const double*>(partials), rows / matrices, pass.rank,
      matrices, gradient.data, gradient.dtype, s[0], s[1], s[2]);
}

void largest_norm_cuda(const TensorView& field, const TensorView& residual, const Execution& exec) {
  const gpu::Current current(field.device);
  const std::int64_t count = field.shape[0];
  const auto memory = cleared(count * 8, field.device, "invert", exec);
  auto* largest = static_cast<unsigned long long*>(memory.get());
  Axis axes[3];
  for (int a = 0; a < 3; ++a) axes[a].out_extent = field.shape[3 - a];
  const std::int64_t voxels = voxel_count(axes);
  const unsigned blocks = std::min(blocks_for_items(voxels), 1024u);
  gpu::launch("invert", exec.stream, static_cast<unsigned>(count) * blocks, kThreads, 0,
      norms_kernel, gpu::View(field), axes[0], axes[1], axes[2], static_cast<int>(field.shape[4]),
      voxels, blocks, largest);
  gpu::launch("invert", exec.stream, blocks_for_items(count), kThreads, 0, results_kernel,
      static_cast<const unsigned long long*>(largest), count, true, residual.data, residual.dtype,
      residual.strides[0]);
}

void jacobian_cuda(const JacobianPass& pass, const Execution& exec) {
  const gpu::Current current(pass.u.device);
  const std::int64_t count = pass.u.shape[0];
  const auto memory = cleared(count * 8, pass.u.device, "jacobian_determinant", exec);
  auto* folds = static_cast<unsigned long long*>(memory.get());
  JacobianView p;
  p.rank = pass.rank;
  p.u = gpu::View(pass.u);
  p.determinant = pass.determinant.data;
  p.dtype = pass.determinant.dtype;
  for (int a = 0; a < 3; ++a) p.axes[a] = pass.axes[a];
  for (int axis = 0; axis < 4; ++axis) p.strides[axis] = pass.determinant.strides[axis];
  const std::int64_t voxels = voxel_count(pass.axes);
  const unsigned blocks = std::min(blocks_for_items(voxels), 4096u);
  gpu::launch("jacobian_determinant", exec.stream, static_cast<unsigned>(count) * blocks, kThreads,
      0, jacobian_kernel, p, voxels, blocks, folds);
  gpu::launch("jacobian_determinant", exec.stream, blocks_for_items(count), kThreads, 0,
      results_kernel, static_cast<const unsigned long long*>(folds), count, false, pass.folds.data,
      pass.folds.dtype, pass.folds.strides[0]);
}

void spline_filter_cuda(const TensorView& image, int rank, Filter filter, const Execution& exec) {
  const gpu::Current current(image.device);
  const bool is_transposed = filter == Filter::transposed;
  for (int axis = 5 - rank; axis < 5; ++axis) {
    const std::int64_t count = image.shape[axis], stride = image.strides[axis];
    const std::int64_t lines = image.shape.count() / count;
    if (image.dtype == DType::f64) {
      gpu::launch("sample", exec.stream, blocks_for_items(lines), kThreads, 0,
          spline_kernel<double>, static_cast<double*>(image.data), lines, count, stride,
          is_transposed);
    } else {
      gpu::launch("sample", exec.stream, blocks_for_items(lines), kThreads, 0, spline_kernel<float>,
          static_cast<float*>(image.data), lines, count, stride, is_transposed);
    }
  }
}

}  // namespace similis::warp_internal
