// SPDX-License-Identifier: Apache-2.0
// MS-SSIM on the GPU. The gradient of a level is the gradient of the level's own mean times a
// number of each plane that the means of all levels decide. So each level is one pass of SSIM for
// both, from the finest to the coarsest:
//   level pass      mean of 1 - cs of each plane, its gradient, and the halved images on the way
//   combine         means of all levels ─> values, and each plane's slope at each level
//   mix             at each pixel: slope·gradient of its level and of the coarser ones over it
// Halved images are kept as x + y and x - y: kept as x and y in f32 they would lose x - y where
// images are alike (0.6 % of the gradient at y = x + 1e-4 noise). Passes in f64 have levels in f64.
#include <algorithm>
#include <utility>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/block_sum_of.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ms_ssim/cuda/mix.h"
#include "src/ms_ssim/cuda/rows.cuh"
#include "src/ms_ssim/formula.h"
#include "src/ms_ssim/ms_ssim.h"
#include "src/ssim/cuda/plan.h"

namespace similis::ms_ssim_internal {
namespace {

struct HalveWork {
  gpu::View x, y;  // the finer level: x + y and x - y if of_sums
  bool of_sums;
  Halvings halving;
  int depth;  // number of taps along z: 1 if z is not halved
  gpu::View sum, difference;
  int across;  // threads_across() a row
};

__global__ void __launch_bounds__(kThreads)
    halve_kernel(const HalveWork w, Rows coarse, std::int64_t count) {
  const int rows_at_once = kThreads / w.across;
  const int own_row = static_cast<int>(threadIdx.x) / w.across;
  const int own_column = static_cast<int>(threadIdx.x) % w.across;
  const std::int64_t apart = std::int64_t{gridDim.x} * rows_at_once;
  for (std::int64_t index = std::int64_t{blockIdx.x} * rows_at_once + own_row; index < count;
       index += apart) {
    const Row row(coarse, index);
    const std::int64_t x0 = w.x.plane(row.image, row.channel);
    const std::int64_t y0 = w.y.plane(row.image, row.channel);
    const std::int64_t to_sum = row.in(w.sum), to_difference = row.in(w.difference);
    for (std::int64_t column = own_column; column < coarse.width; column += w.across) {
      double sum = 0, difference = 0;
      for (int i = 0; i < w.depth; ++i) {
        const std::int64_t z = w.halving.z.fine(row.z, i);
        if (z == Halving::kZero) continue;
        double vx[4], vy[4];
        const auto load = [&](auto load_one) {
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            const std::int64_t y = w.halving.y.fine(row.y, k >> 1),
                               x = w.halving.x.fine(column, k & 1);
            const bool exists = y != Halving::kZero && x != Halving::kZero;
            vx[k] = exists ? load_one(w.x, x0 + w.x.at(z, y, x)) : 0;
            vy[k] = exists ? load_one(w.y, y0 + w.y.at(z, y, x)) : 0;
          }
        };
        if (w.x.dtype == DType::f32) {  // all loads are under way at once
          load([](const gpu::View& view, std::int64_t offset) {
            return static_cast<double>(static_cast<const float*>(view.data)[offset]);
          });
        } else {
          load([](const gpu::View& view, std::int64_t offset) { return view.load(offset); });
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          sum += w.of_sums ? vx[k] : vx[k] + vy[k];
          difference += w.of_sums ? vy[k] : vx[k] - vy[k];
        }
      }
      w.sum.store(to_sum + column * w.sum.strides[4], sum / (4 * w.depth));
      w.difference.store(
          to_difference + column * w.difference.strides[4], difference / (4 * w.depth));
    }
  }
}

// The same for images of f32 in rows of whole vectors, see has_vectors(): a thread takes two coarse
// columns.
__global__ void __launch_bounds__(kThreads)
    halve_vectors_kernel(const HalveWork w, Rows coarse, std::int64_t count) {
  constexpr int kRows = 4;  // at most, that a coarse one is the mean of
  const int rows_at_once = kThreads / w.across;
  const std::int64_t index =
      std::int64_t{blockIdx.x} * rows_at_once + static_cast<int>(threadIdx.x) / w.across;
  if (index >= count) return;
  const Row row(coarse, index);
  const auto* const x = static_cast<const float*>(w.x.data) + w.x.plane(row.image, row.channel);
  const auto* const y = static_cast<const float*>(w.y.data) + w.y.plane(row.image, row.channel);
  auto* const to_sum = static_cast<float*>(w.sum.data) + row.in(w.sum);
  auto* const to_difference = static_cast<float*>(w.difference.data) + row.in(w.difference);
  const std::int64_t z[2] = {w.halving.z.fine(row.z, 0), w.halving.z.fine(row.z, 1)};
  const std::int64_t fine_y[2] = {w.halving.y.fine(row.y, 0), w.halving.y.fine(row.y, 1)};
  const double share = w.depth == 2 ? 0.125 : 0.25;
  for (int column = static_cast<int>(threadIdx.x) % w.across; column < coarse.width / 2;
       column += w.across) {
    float4 vx[kRows], vy[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      vx[k] = vy[k] = {0, 0, 0, 0};
      if (k / 2 >= w.depth || z[k / 2] == Halving::kZero || fine_y[k % 2] == Halving::kZero)
        continue;
      const std::int64_t at = 4 * column;
      vx[k] = *reinterpret_cast<const float4*>(x + w.x.at(z[k / 2], fine_y[k % 2], 0) + at);
      vy[k] = *reinterpret_cast<const float4*>(y + w.y.at(z[k / 2], fine_y[k % 2], 0) + at);
    }
    double sum[2] = {}, difference[2] = {};
    const auto add = [&](int i, double one, double other) {
      sum[i] += w.of_sums ? one : one + other;
      difference[i] += w.of_sums ? other : one - other;
    };
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      add(0, vx[k].x, vy[k].x);
      add(0, vx[k].y, vy[k].y);
      add(1, vx[k].z, vy[k].z);
      add(1, vx[k].w, vy[k].w);
    }
    reinterpret_cast<float2*>(to_sum)[column] = {
        static_cast<float>(share * sum[0]), static_cast<float>(share * sum[1])};
    reinterpret_cast<float2*>(to_difference)[column] = {
        static_cast<float>(share * difference[0]), static_cast<float>(share * difference[1])};
  }
}

struct CombineWork {
  const double* means;  // [levels][planes]: mean of 1 - cs (1 - SSIM at the coarsest)
  double* slopes;       // [levels][planes]: d(Σ upstream·value)/d(mean)
  std::int64_t planes, planes_each;
  int levels;
  double weights[kMaxLevels];
  double bias, term_weight;
  bool is_sum;     // of the planes, else their mean
  bool has_masks;  // a plane without weights at a level has no value, and is left out
  gpu::Upstream upstream;
  void* value;  // null if not wanted
  DType dtype;
};

__device__ bool exists(const CombineWork& w, std::int64_t plane) {
  for (int l = 0; w.has_masks && l < w.levels; ++l) {
    if (w.weights[l] != 0 && w.means[l * w.planes + plane] == kNoMean) return false;
  }
  return true;
}

// Each block computes one result.
__global__ void __launch_bounds__(kThreads) combine_kernel(const CombineWork w) {
  __shared__ double existing;
  for (std::int64_t g = blockIdx.x; g < w.planes / w.planes_each; g += gridDim.x) {
    double planes = static_cast<double>(w.planes_each);
    if (w.has_masks) {
      const double found = gpu::block_sum_of<kThreads>(w.planes_each,
          [&](std::int64_t i) { return exists(w, g * w.planes_each + i) ? 1.0 : 0.0; });
      if (threadIdx.x == 0) existing = found;
      __syncthreads();
      planes = existing;
    }
    const double share = w.is_sum || planes == 0 ? 1 : 1 / planes;
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < w.planes_each; i += kThreads) {
      const std::int64_t plane = g * w.planes_each + i;
      double means[kMaxLevels];
      for (int l = 0; l < w.levels; ++l) means[l] = w.means[l * w.planes + plane];
      const Product p = product(means, w.weights, w.levels);
      const bool is_there = exists(w, plane);
      if (is_there) sum += w.bias + w.term_weight * p.dissimilarity;
      const double factor = w.upstream.of(plane) * share * w.term_weight;
      for (int l = 0; l < w.levels; ++l) {
        w.slopes[l * w.planes + plane] = is_there ? factor * slope(p, means[l], w.weights[l]) : 0;
      }
    }
    const double total = gpu::block_sum<kThreads>(sum);
    if (threadIdx.x == 0 && w.value != nullptr) {
      const bool is_unknown = planes == 0 && !w.is_sum && w.bias != 0;
      gpu::store_element(w.value, w.dtype, g, is_unknown ? nan("") : share * total);
    }
    __syncthreads();
  }
}

// Returns whether rows are f32, have unit stride and begin at multiples of 16 bytes.
bool has_whole_rows(const TensorView& view) {
  bool is_whole = view.dtype == DType::f32 && view.strides[4] == 1 &&
                  reinterpret_cast<std::uintptr_t>(view.data()) % 16 == 0;
  for (int axis = 0; axis < 4; ++axis) is_whole &= view.strides[axis] % 4 == 0;
  return is_whole;
}

// Returns whether images of f32 are halved to f32, and each four fine columns to two coarse ones.
bool has_vectors(
    const TensorView& x, const TensorView& y, const TensorView& halved, const Halving& columns) {
  return has_whole_rows(x) && has_whole_rows(y) && has_whole_rows(halved) && x.shape[4] % 4 == 0 &&
         2 * halved.shape[4] == x.shape[4] && columns.fine(0, 1) == 1;  // the rule may shift
}

bool has_even_sides(const Extents& shape) { return shape[3] % 2 == 0 && shape[4] % 2 == 0; }

// Returns whether ssim_cuda() computes the pass in f32: levels in f64 would cost twice the time.
bool computes_in_f32(const ssim_internal::Pass& pass) {
  const ssim_internal::CudaPlan plan(pass, {});
  return pass.x.dtype != DType::f64 &&
         (ssim_internal::can_slide_window(plan) || ssim_internal::can_separate(plan) ||
             ssim_internal::can_take_any_window(plan));
}

struct Level {
  ssim_internal::Pass pass;
  Tensor sum, difference;         // the halved images; empty at the finest level
  Tensor mask;                    // the halved mask
  Tensor x_gradient, y_gradient;  // by the level's means; the caller's at the finest level
};

class Pyramid {
 public:
  Pyramid(const Pass& pass, const Execution& exec)
      : pass_(pass),
        exec_(exec),
        device_(pass.level.x.device),
        halves_on_the_way_(ssim_internal::uses_sliding_window(finest_level(pass))),
        is_f32_(computes_in_f32(finest_level(pass))),
        planes_(pass.level.x.shape[0] * pass.level.x.shape[1]),
        levels_(pass.weights.size()) {
    const auto numbers = static_cast<std::size_t>(planes_) * levels_.size();
    const std::size_t count_bytes = levels_.size() * sizeof *counters_;
    numbers_ = allocate_bytes(2 * numbers * sizeof(double) + count_bytes, device_, exec);
    means_ = static_cast<double*>(numbers_.get());
    slopes_ = means_ + numbers;
    counters_ = reinterpret_cast<unsigned*>(slopes_ + numbers);
    // Volumes under windows with depth need none.
    if (pass.level.window.radius_z() > 0) return;
    gpu::clear("ms_ssim", exec.queue.handle, counters_, count_bytes);
  }

  void run() {
    for (std::size_t l = 0; l < levels_.size(); ++l) run_level(l);
    combine();
    mix(&Level::x_gradient, pass_.x_gradient);
    mix(&Level::y_gradient, pass_.y_gradient);
  }

 private:
  static ssim_internal::Pass finest_level(const Pass& pass) {
    ssim_internal::Pass level = pass.level;
    level.x_gradient = pass.x_gradient;
    level.y_gradient = pass.y_gradient;
    return level;
  }

  void run_level(std::size_t l) {
    Level& level = levels_[l];
    ssim_internal::Pass& pass = level.pass;
    if (l == 0) {
      pass = pass_.level;
    } else {
      pass.x = level.sum;
      pass.y = level.difference;
      pass.of_sums = true;
      if (!level.mask.empty()) pass.mask = broadcast_planes(level.mask, level.sum);
      pass.of_nothing = pass_.level.of_nothing;
      pass.window = pass_.level.window;
      pass.padding = pass_.level.padding;
      pass.c1 = pass_.level.c1;
      pass.c2 = pass_.level.c2;
    }
    const bool is_coarsest = l + 1 == levels_.size();
    pass.counter = counters_ + l;
    pass.term = is_coarsest ? ssim_internal::Term::ssim : ssim_internal::Term::contrast;
    pass.reduction = Reduction::per_channel;
    pass.value = TensorView(means_ + static_cast<std::int64_t>(l) * planes_,
        {pass.x.shape[0], pass.x.shape[1]}, DType::f64, device_);
    level.x_gradient = gradient_at(l, pass_.x_gradient);
    level.y_gradient = gradient_at(l, pass_.y_gradient);
    pass.x_gradient = level.x_gradient;
    pass.y_gradient = level.y_gradient;
    if (!is_coarsest) allocate_coarser(l);
    // The sliding window then begins at even rows.
    const bool is_even = !level.x_gradient.empty() || !level.y_gradient.empty() ||
                         (pass.padding == Padding::valid && pass.window.radius_y() % 2 == 1);
    const bool on_the_way = !is_coarsest && halves_on_the_way_ && is_even &&
                            has_even_sides(pass.x.shape) &&
                            (pass.mask.empty() || ssim_internal::uses_sliding_window(pass));
    if (on_the_way) {
      pass.halved_sum = levels_[l + 1].sum;
      pass.halved_difference = levels_[l + 1].difference;
    }
    ssim_internal::ssim_cuda(pass, exec_);
    if (!is_coarsest && !on_the_way) {
      halve(pass, {pass.x, pass.y, pass.of_sums}, levels_[l + 1].sum, levels_[l + 1].difference);
    }
  }

  // Allocates planes whose rows begin at multiples of 16 bytes, in the dtype that the passes
  // compute with.
  Tensor allocate_planes(const Extents& shape) const {
    const DType dtype = is_f32_ ? DType::f32 : DType::f64;
    const std::int64_t pitch = (shape[4] + 3) / 4 * 4;
    const Tensor padded =
        allocate({shape[0], shape[1], shape[2], shape[3], pitch}, dtype, device_, exec_);
    TensorView view = padded;
    view.shape = shape;
    return Tensor(view, std::make_shared<Tensor>(padded));
  }

  void allocate_coarser(std::size_t l) {
    ssim_internal::Pass& pass = levels_[l].pass;
    pass.halving = halving_of(pass.x.shape, pass_.is_3d, pass_.downsample);
    const Extents shape = coarse_shape(pass.x.shape, pass.halving);
    levels_[l + 1].sum = allocate_planes(shape);
    levels_[l + 1].difference = allocate_planes(shape);
    if (pass.mask.empty()) return;
    const TensorView mask = own_planes(pass.mask);
    const Tensor halved = allocate_planes(coarse_shape(mask.shape, pass.halving));
    levels_[l + 1].mask = halved;
    halve(pass, {mask, mask, true}, halved, halved);
  }

  // Returns the array for a level's own gradient; half types would be rounded before they are
  // mixed.
  Tensor gradient_at(std::size_t l, const TensorView& finest) const {
    if (finest.empty()) return {};
    const bool is_half = size_bytes(finest.dtype) < sizeof(float);
    if (l == 0 && !is_half) return Tensor(finest, nullptr);
    return allocate_planes(levels_[l].pass.x.shape);
  }

  struct Halved {
    TensorView x, y;
    bool are_sums;  // x + y and x - y
  };

  void halve(const ssim_internal::Pass& fine, const Halved& images, const Tensor& sum,
      const Tensor& difference) const {
    const Rows coarse(sum.shape);
    const bool vectors = has_vectors(images.x, images.y, sum, fine.halving[2]);
    const HalveWork work{.x = gpu::View(images.x),
        .y = gpu::View(images.y),
        .of_sums = images.are_sums,
        .halving = halvings_of(fine.halving),
        .depth = pass_.is_3d ? 2 : 1,
        .sum = gpu::View(sum),
        .difference = gpu::View(difference),
        .across = threads_across(vectors ? coarse.width / 2 : coarse.width)};
    const std::int64_t rows_at_once = kThreads / work.across;
    const std::int64_t blocks = (coarse.count() + rows_at_once - 1) / rows_at_once;
    const bool takes_vectors = vectors && blocks <= gpu::kMostBlocks;
    gpu::launch("ms_ssim", exec_.queue.handle, gpu::blocks_of(blocks), kThreads, 0,
        takes_vectors ? halve_vectors_kernel : halve_kernel, work, coarse, coarse.count());
  }

  void combine() {
    const std::int64_t images = pass_.level.x.shape[0], channels = pass_.level.x.shape[1];
    const std::int64_t results = pass_.reduction == Reduction::per_channel ? planes_
                                 : pass_.reduction == Reduction::per_image ? images
                                                                           : 1;
    CombineWork work{.means = means_,
        .slopes = slopes_,
        .planes = planes_,
        .planes_each = planes_ / results,
        .levels = static_cast<int>(levels_.size()),
        .weights = {},
        .bias = pass_.bias,
        .term_weight = pass_.term_weight,
        .is_sum = pass_.reduction == Reduction::sum,
        .has_masks = !pass_.level.mask.empty(),
        .upstream = gpu::Upstream(pass_.upstream, channels),
        .value = pass_.value.data(),
        .dtype = pass_.value.dtype};
    std::copy(pass_.weights.begin(), pass_.weights.end(), work.weights);
    gpu::launch(
        "ms_ssim", exec_.queue.handle, gpu::blocks_of(results), kThreads, 0, combine_kernel, work);
  }

  void mix(Tensor Level::*gradient, const TensorView& finest) const {
    if (finest.empty()) return;
    std::vector<MixedLevel> levels;
    for (const Level& level : levels_) levels.push_back({level.*gradient, level.pass.halving});
    mix_levels(levels, slopes_, is_f32_, finest, exec_);
  }

  const Pass& pass_;
  const Execution& exec_;
  Device device_;
  bool halves_on_the_way_, is_f32_;
  std::int64_t planes_;
  std::vector<Level> levels_;
  std::shared_ptr<void> numbers_;
  double *means_ = nullptr, *slopes_ = nullptr;
  unsigned* counters_ = nullptr;  // one for each level
};

}  // namespace

// A pass of SSIM that has the gradient by y alone swaps x and y, and would halve y - x.
void ms_ssim_cuda(const Pass& given, const Execution& exec) {
  const gpu::Current current(given.level.x.device);
  Pass pass = given;
  if (pass.x_gradient.empty() && !pass.y_gradient.empty()) {  // MS-SSIM is symmetric
    std::swap(pass.level.x, pass.level.y);
    std::swap(pass.x_gradient, pass.y_gradient);
  }
  Pyramid(pass, exec).run();
}

}  // namespace similis::ms_ssim_internal
