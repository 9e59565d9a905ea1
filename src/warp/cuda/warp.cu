// SPDX-License-Identifier: Apache-2.0
// Sampling on the GPU: the memory and the launches of a pass, and the small kernels before and
// behind it. fast_path.cu has the fast path; values.cu, gradients.cu and labels.cu have the others.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "similis/error.hpp"
#include "src/core/tensor/memory.h"
#include "src/warp/cuda/cell.cuh"
#include "src/warp/cuda/fast_path.h"
#include "src/warp/cuda/kernels.h"

namespace similis::warp_internal {
namespace {

struct Matrix {
  const void* data;
  DType dtype;
  std::int64_t strides[3];

  explicit Matrix(const TensorView& view) : data(view.data()), dtype(view.dtype), strides{} {
    for (int axis = 0; axis < 3 && !view.empty(); ++axis) strides[axis] = view.strides[axis];
  }
  __device__ double at(std::int64_t n, int i, int j) const {
    if (data == nullptr) return i == j ? 1 : 0;
    return gpu::load_element(data, dtype, n * strides[0] + i * strides[1] + j * strides[2]);
  }
};

// Computes what make_transform() does, with its bits. A warp makes one transform, and a lane each
// of its numbers: the elements of both matrices are loaded at once, not one after the other.
__global__ void transforms_kernel(const GpuPass p, Matrix affine, Matrix grid_affine, bool is_grid,
    std::int64_t batch, Transform* out) {
  constexpr int kMap = 12, kNumbers = kMap + 9;  // of Transform::m and s
  static_assert(sizeof(Transform) == kNumbers * sizeof(double));
  const std::int64_t n = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kTileX;
  const int lane = static_cast<int>(threadIdx.x % kTileX);
  const bool is_map = lane < kMap, is_constant = is_map && lane % 4 == 3;
  const int row = is_map ? lane / 4 : (lane - kMap) / 3;
  const int column = is_map ? lane % 4 : (lane - kMap) % 3;
  const bool exists =
      n < batch && lane < kNumbers && row < p.rank && (column < p.rank || is_constant);
  double element = 0;
  if (exists && !(is_map && is_grid)) {
    element =
        is_map ? affine.at(n, row, is_constant ? p.rank : column) : grid_affine.at(n, row, column);
  }
  double constant = 0;
  for (int j = 0; j < p.rank; ++j) {
    constant += gpu::value_of(element, is_map ? 4 * row + j : lane) * p.axes[j].origin;
  }
  if (n >= batch || lane >= kNumbers) return;
  double number = 0;
  if (exists) {
    const double scale = p.axes[row].scale;
    number = is_constant ? (constant + element) * scale + p.axes[row].shift
             : is_map    ? element * p.axes[column].step * scale
                         : element * scale * p.field_factor;
  }
  reinterpret_cast<double*>(out + n)[lane] = number;
}

// Each block computes one element of a matrix's gradient.
__global__ void matrices_kernel(const GpuPass p, void* data, DType dtype, std::int64_t s0,
    std::int64_t s1, std::int64_t s2, int columns, std::int64_t shared, bool is_position) {
  const int element = static_cast<int>(blockIdx.x) % (p.rank * columns);
  const std::int64_t n = blockIdx.x / (p.rank * columns);
  const int i = element / columns, j = element % columns;
  const Axis* axes = p.axes;
  double total = 0;
  const std::int64_t rows = shared * p.blocks;
  const auto sums_of = [&](int k) { return p.sums + k * p.sum_rows + n * rows; };
  const double scale = axes[i].scale;
  if (is_position && j < p.rank) {
    const double origin = axes[j].origin, step = axes[j].step;
    const double *const constants = sums_of(4 * i + 3), *const along = sums_of(4 * i + j);
#pragma unroll 4
    for (std::int64_t row = threadIdx.x; row < rows; row += kThreads)
      total += scale * (origin * constants[row] + step * along[row]);
  } else {
    const double* const sums = sums_of(is_position ? 4 * i + 3 : kPositionSums + 3 * i + j);
#pragma unroll 4
    for (std::int64_t row = threadIdx.x; row < rows; row += kThreads) total += scale * sums[row];
  }
  const double sum = gpu::block_sum<kThreads>(total);
  if (threadIdx.x == 0) gpu::store_element(data, dtype, n * s0 + i * s1 + j * s2, sum);
}

// Row-major element number `i` of [N,C,Z,Y,X] in a view, or element `i` of its memory if it is
// flat.
struct Shape {
  std::int64_t extents[5];
  bool is_flat = false;
  __device__ std::int64_t offset(const gpu::View& view, std::int64_t i) const {
    if (is_flat) return i;
    std::int64_t offset = 0;
    for (int axis = 4; axis >= 0; --axis) {
      const std::int64_t outer = i / extents[axis];
      offset += (i - outer * extents[axis]) * view.strides[axis];
      i = outer;
    }
    return offset;
  }
};

__global__ __launch_bounds__(kThreads) void largest_kernel(
    gpu::View view, Shape shape, std::int64_t count, unsigned long long* largest) {
  __shared__ double shared[kThreads];
  double mine = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const double value = fabs(view.load(shape.offset(view, i)));
    if (isfinite(value) && value > mine) mine = value;
  }
  shared[threadIdx.x] = mine;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      shared[threadIdx.x] = fmax(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
  }
  if (threadIdx.x == 0) atomicMax(largest, bits_as<unsigned long long>(shared[0]));
}

// Sets `to` to 0, to `from`, to `from` + fixed, or to `from` + `to`; the two may be one.
enum class Fill : std::uint8_t { zero, copy, add_fixed, add };

__global__ __launch_bounds__(kThreads) void fill_kernel(
    Fill fill, gpu::View from, gpu::View to, Shape shape, std::int64_t count, FixedPoint fixed) {
  const double scale = fill == Fill::add_fixed ? fixed_scale(fixed) : 1;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    double value = fill == Fill::zero ? 0 : from.load(shape.offset(from, i));
    if (fill == Fill::add_fixed) {
      double sum = static_cast<double>(fixed.high[i]);
      if (fixed.low != nullptr) sum += static_cast<double>(fixed.low[i]) / kLowUnits;
      value += sum / scale;
    }
    if (fill == Fill::add) value += to.load(shape.offset(to, i));
    to.store(shape.offset(to, i), value);
  }
}

// Rounds a dense array of f32 to halves, both aligned to 16 bytes: a thread takes 8 numbers, and
// the last ones those that are left.
template <class E>
__global__ __launch_bounds__(kThreads) void round_kernel(
    const float* from, E* to, std::int64_t count) {
  constexpr int kEach = 8;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x, vectors = count / kEach;
  if (i < vectors) {
    const float4* in = reinterpret_cast<const float4*>(from) + 2 * i;
    const float4 a = in[0], b = in[1];
    reinterpret_cast<uint4*>(to)[i] = {gpu::rounded_pair<E>(a.x, a.y),
        gpu::rounded_pair<E>(a.z, a.w), gpu::rounded_pair<E>(b.x, b.y),
        gpu::rounded_pair<E>(b.z, b.w)};
  } else if (i < vectors + count % kEach) {
    const std::int64_t at = i - vectors + vectors * kEach;
    to[at] = gpu::rounded<E>(from[at]);
  }
}

// Rounds as round_kernel() does, if both arrays suit it.
bool round_to_halves(const TensorView& from, const TensorView& to, const Execution& exec) {
  const auto is_aligned = [](const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  };
  if (from.dtype != DType::f32 || (to.dtype != DType::f16 && to.dtype != DType::bf16) ||
      !is_aligned(from.data()) || !is_aligned(to.data())) {
    return false;
  }
  const std::int64_t count = to.shape.count(), items = count / 8 + count % 8;
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  if (blocks == 0 || blocks > INT32_MAX) return false;
  const auto* in = static_cast<const float*>(from.data());
  const auto launch = [&]<class E>(E* out) {
    gpu::launch("sample", exec.queue.handle, static_cast<unsigned>(blocks), kThreads, 0,
        round_kernel<E>, in, out, count);
  };
  if (to.dtype == DType::f16) {
    launch(static_cast<F16*>(to.data()));
  } else {
    launch(static_cast<BF16*>(to.data()));
  }
  return true;
}

Shape shape_of(const TensorView& view) {
  Shape shape{};
  for (int axis = 0; axis < 5; ++axis) shape.extents[axis] = view.shape[axis];
  return shape;
}

// Returns whether an array's elements are all different and are all that lies in its memory.
bool is_dense(const TensorView& view) {
  std::int64_t span = 1;
  for (int axis = 0; axis < 5; ++axis) {
    if (view.shape[axis] == 1) continue;
    if (view.strides[axis] <= 0) return false;
    span += (view.shape[axis] - 1) * view.strides[axis];
  }
  return span == view.shape.count();
}

gpu::View volumes(const TensorView& view) { return gpu::View(view); }

void fill(Fill what, const TensorView& from, const TensorView& to, const FixedPoint& fixed,
    const Execution& exec) {
  const std::int64_t count = to.shape.count();
  Shape shape = shape_of(to);
  bool is_alike = true;
  for (int axis = 0; axis < 5; ++axis) {
    is_alike &= to.shape[axis] == 1 || from.strides[axis] == to.strides[axis];
  }
  shape.is_flat = what == Fill::copy && is_alike && is_dense(to);
  if (shape.is_flat && round_to_halves(from, to, exec)) return;
  gpu::launch("sample", exec.queue.handle, blocks_for_items(count), kThreads, 0, fill_kernel, what,
      volumes(from), volumes(to), shape, count, fixed);
}

// The memory and launches of a call, in their order.
class Call {
 public:
  Call(const Pass& pass, const Execution& exec)
      : pass_(pass), exec_(exec), is_wide_(pass.image.dtype == DType::f64) {
    GpuPass& p = p_;
    for (int a = 0; a < 3; ++a) p.axes[a] = pass.axes[a];
    p.rank = pass.rank;
    p.channels = pass.channels;
    p.padding = pass.padding;
    p.align_corners = pass.align_corners;
    p.image = volumes(pass.image);
    p.upstream = volumes(pass.upstream);
    p.output = volumes(pass.output);
    p.addend = volumes(pass.addend);
    p.weight = volumes(pass.weight);
    p.field = volumes(pass.field);
    p.field_gradient = volumes(pass.field_gradient);
    p.has_full_s = !pass.grid_affine.empty();
    p.is_nearest = pass.mode == Interpolation::nearest;
    const Axis& cut = pass.axes[pass.rank - 1];
    if (cut.is_part()) {
      p.part = {.rows = static_cast<int>(cut.extent),
          .start = static_cast<int>(cut.start),
          .first_cell = static_cast<int>(cut.first_cell),
          .end_cell = static_cast<int>(cut.end_cell)};
    }
    p.factor = pass.factor;
    p.field_factor = pass.field_factor;
    p.background = pass.background;
    p.smallest_label = pass.smallest_label;
    p.images = static_cast<int>(pass.field_gradient.empty() ? 1 : pass.images_of_field());
    const auto tiles = [](std::int64_t extent, int tile) {
      return static_cast<unsigned>((extent + tile - 1) / tile);
    };
    p.tiles_x = tiles(pass.axes[0].out_extent, kTileX);
    p.tiles_y = tiles(pass.axes[1].out_extent, kTileY);
    p.tiles = p.tiles_x * p.tiles_y * tiles(pass.axes[2].out_extent, kTileZ);
    groups_ = static_cast<unsigned>(pass.batch / p.images);
  }

  void run() {
    if (!pass_.output.empty() || !pass_.weight.empty()) run_values();
    if (pass_.has_coordinate_gradient() || !pass_.image_gradient.empty()) run_gradients();
  }

 private:
  std::shared_ptr<void> take(std::int64_t bytes) {
    return memory_.emplace_back(
        allocate_bytes(static_cast<std::size_t>(bytes), pass_.image.device, exec_));
  }

  // Returns the transforms of a pass, or null if they are made without a matrix.
  const Transform* fast_transforms() {
    if (pass_.affine.empty() && pass_.grid_affine.empty()) return nullptr;
    make_transforms();
    return p_.transforms;
  }

  void make_transforms() {
    if (p_.transforms != nullptr) return;
    const std::int64_t batch = pass_.batch;
    auto* out =
        static_cast<Transform*>(take(batch * static_cast<std::int64_t>(sizeof(Transform))).get());
    gpu::launch(pass_.operation, exec_.queue.handle, blocks_for_items(batch * kTileX), kThreads, 0,
        transforms_kernel, p_, Matrix(pass_.affine), Matrix(pass_.grid_affine), pass_.is_grid,
        batch, out);
    p_.transforms = out;
  }

  void run_values() {
    if (takes_fast_values(pass_)) return run_fast_values(pass_, fast_transforms(), exec_);
    if (pass_.reached.end != 0) {
      throw InvalidArgument(std::string(pass_.operation) +
                            ": reached is given, and the call is not on a GPU's fast path");
    }
    make_transforms();
    GpuPass p = p_;
    p.blocks = p.tiles;
    p.images = 1;
    const Kernel kernel = pass_.form == Form::labels ? labels_kernel_for(is_wide_, false)
                                                     : values_kernel_for(is_wide_, pass_.mode);
    const auto images = static_cast<unsigned>(pass_.batch);
    gpu::launch(pass_.operation, exec_.queue.handle, images * p.blocks, kThreads, 0, kernel, p);
  }

  void run_gradients() {
    const bool with_sums = !pass_.affine_gradient.empty() || !pass_.grid_affine_gradient.empty();
    TensorView sums;
    if (!pass_.image_gradient.empty()) sums = prepare_scatter();
    const bool is_fast = takes_fast_gradients(pass_, sums);
    if (!sums.empty() && !(is_fast && clears_fast_sums(pass_, sums))) clear(sums);
    p_.blocks = with_sums ? std::min(p_.tiles, kBlocksWithSums) : p_.tiles;
    if (with_sums) {
      if (is_fast) p_.blocks = fast_sum_blocks(pass_);
      p_.sum_rows = pass_.batch * p_.blocks;
      const std::int64_t bytes = p_.sum_rows * kSums * std::int64_t{sizeof(double)};
      p_.sums = static_cast<double*>(take(bytes).get());
      if (!is_fast) clear(p_.sums, bytes);
    }
    if (is_fast) {
      run_fast_gradients(pass_, fast_transforms(), sums, p_.sums, exec_);
    } else {
      make_transforms();
      Tensor addend;
      if (pass_.adds_to_field_gradient) {
        const TensorView& gradient = pass_.field_gradient;
        addend = allocate(gradient.shape, gradient.dtype, gradient.device, exec_);
        p_.field_gradient = volumes(addend);
      }
      const Kernel kernel = pass_.form == Form::labels
                                ? labels_kernel_for(is_wide_, true)
                                : gradients_kernel_for(is_wide_, pass_.mode, with_sums);
      gpu::launch(
          pass_.operation, exec_.queue.handle, groups_ * p_.blocks, kThreads, 0, kernel, p_);
      if (!addend.empty()) fill(Fill::add, addend, pass_.field_gradient, {}, exec_);
    }
    if (!sums.empty()) finish_scatter(sums);
    if (with_sums) store_matrices();
  }

  // Returns the array that sums the image's gradient, which is not cleared yet: the gradient
  // itself, or an f32 one for halves.
  TensorView prepare_scatter() {
    const TensorView& gradient = pass_.image_gradient;
    TensorView sums = gradient;
    if (gradient.dtype != DType::f32 && gradient.dtype != DType::f64) {
      sums = memory_tensor_ = allocate(gradient.shape, DType::f32, gradient.device, exec_);
    }
    p_.image_sums = volumes(sums);
    if (gradient.shape[0] < pass_.batch) p_.image_sums.strides[0] = 0;
    if (pass_.deterministic) prepare_fixed(sums);
    return sums;
  }

  void clear(const TensorView& sums) {
    if (is_dense(sums)) {
      clear(sums.data(), sums.shape.count() * size_bytes(sums.dtype));
    } else {
      fill(Fill::zero, sums, sums, {}, exec_);
    }
  }

  void prepare_fixed(const TensorView& sums) {
    const std::int64_t bytes = sums.shape.count() * std::int64_t{sizeof(std::int64_t)};
    const bool has_low = sums.dtype == DType::f64;
    char* memory = static_cast<char*>(take(bytes * (has_low ? 2 : 1) + 8).get());
    clear(memory, bytes * (has_low ? 2 : 1) + 8);
    FixedPoint& fixed = p_.fixed;
    fixed.high = reinterpret_cast<std::int64_t*>(memory);
    if (has_low) fixed.low = fixed.high + sums.shape.count();
    auto* largest = reinterpret_cast<unsigned long long*>(memory + bytes * (has_low ? 2 : 1));
    fixed.largest = reinterpret_cast<const std::uint64_t*>(largest);
    // A voxel of the output adds at most its upstream to a voxel of the image (a spline a little
    // less).
    const std::int64_t voxels = pass_.upstream.shape.count() / pass_.channels;
    while (fixed.headroom < 62 && (std::int64_t{1} << fixed.headroom) < voxels) ++fixed.headroom;
    const std::int64_t count = pass_.upstream.shape.count();
    gpu::launch(pass_.operation, exec_.queue.handle, std::min(blocks_for_items(count), 2048u),
        kThreads, 0, largest_kernel, p_.upstream, shape_of(pass_.upstream), count, largest);
  }

  void finish_scatter(const TensorView& sums) {
    if (pass_.deterministic) {
      fill(Fill::add_fixed, sums, pass_.image_gradient, p_.fixed, exec_);
    } else if (sums.data() != pass_.image_gradient.data()) {
      fill(Fill::copy, sums, pass_.image_gradient, {}, exec_);
    }
  }

  void store_matrices() {
    for (const bool is_position : {true, false}) {
      const TensorView& out = is_position ? pass_.affine_gradient : pass_.grid_affine_gradient;
      if (out.empty()) continue;
      const int columns = pass_.rank + (is_position ? 1 : 0);
      const std::int64_t shared = out.shape[0] < pass_.batch ? pass_.batch : 1;
      const auto blocks = static_cast<unsigned>(out.shape[0] * pass_.rank * columns);
      gpu::launch(pass_.operation, exec_.queue.handle, blocks, kThreads, 0, matrices_kernel, p_,
          out.data(), out.dtype, out.strides[0], out.strides[1], out.strides[2], columns, shared,
          is_position);
    }
  }

  void clear(void* memory, std::int64_t bytes) {
    gpu::clear(pass_.operation, exec_.queue.handle, memory, static_cast<std::size_t>(bytes));
  }

  static constexpr unsigned kBlocksWithSums = 1056;  // 8 on each of an H200's multiprocessors
  const Pass& pass_;
  const Execution& exec_;
  const bool is_wide_;
  GpuPass p_;
  unsigned groups_ = 1;
  std::vector<std::shared_ptr<void>> memory_;
  Tensor memory_tensor_;
};

}  // namespace

void sample_cuda(const Pass& pass, const Execution& exec) {
  const gpu::Current current(pass.image.device);
  Call(pass, exec).run();
}

void copy_cuda(const TensorView& from, const TensorView& to, const Execution& exec) {
  const gpu::Current current(from.device);
  const auto five_axes = [](TensorView view) {
    const Extents shape = view.shape, strides = view.strides;
    const int missing = 5 - shape.rank();
    view.shape = {1, 1, 1, 1, 1};
    view.strides = {0, 0, 0, 0, 0};
    for (int axis = 0; axis < shape.rank(); ++axis) {
      view.shape[axis + missing] = shape[axis];
      view.strides[axis + missing] = strides[axis];
    }
    return view;
  };
  fill(Fill::copy, five_axes(from), five_axes(to), {}, exec);
}

}  // namespace similis::warp_internal
