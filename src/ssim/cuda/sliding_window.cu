// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU, the fast path: finds the instance of the sliding window kernel that suits a
// pass, and hands it the images as they lie in memory. Rows of unit stride that begin at multiples
// of 16 bytes go through the copy engine; threads load all others.
#include <algorithm>
#include <optional>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/sliding_window_kernel.cuh"
#include "src/window/window.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {
namespace {

constexpr int kThreads = 256;

// Adds the sums of the segments, plane by plane.
__global__ void __launch_bounds__(kThreads)
    segments_kernel(std::int64_t planes, int strips, std::int64_t pairs_a_strip, int blocks,
        double blocks_a_pair, const Partial* partials, PlaneSums* sums) {
  const std::int64_t pairs = planes * strips * pairs_a_strip;
  for (std::int64_t p = blockIdx.x; p < planes; p += gridDim.x) {
    const Partial sum = sliding_window::segments_sum(partials, blocks, blocks_a_pair, pairs,
        p * strips, strips, pairs_a_strip, static_cast<int>(threadIdx.x), kThreads);
    const double term = gpu::block_sum<kThreads>(sum.term), l1 = gpu::block_sum<kThreads>(sum.l1);
    if (threadIdx.x == 0) {
      sums[p].of[kTerm] = term;
      sums[p].of[kL1] = l1;
    }
    __syncthreads();
  }
}

bool is_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// Returns the planes' layout if the copy engine can walk it.
std::optional<PlaneArray> planes_in(const TensorView& view) {
  const std::int64_t at_once = 16 / static_cast<std::int64_t>(size_bytes(view.dtype));
  const std::int64_t images = view.shape[0], channels = view.shape[1];
  if (view.dtype == DType::f64 || !is_aligned(view.data())) return {};
  if (view.shape[4] > 1 && view.strides[4] != 1) return {};
  // The copy engine walks planes, rows and columns; the stride of each is a multiple of the next.
  const std::int64_t row = view.shape[3] > 1 ? view.strides[3] : round_up(view.shape[4], at_once);
  if (row < view.shape[4] || row % at_once != 0) return {};
  const std::int64_t channel = channels > 1 ? view.strides[1] : row * view.shape[3];
  if (channel < row || channel % row != 0) return {};
  const std::int64_t image = images > 1 ? view.strides[0] : channel * channels;
  if (image < channel || image % channel != 0) return {};
  return PlaneArray{view.data(), row, channel, image};
}

SlidingWindowVariant variant_of(const Pass& pass, bool is_in_place, SlidingWindowKind kind) {
  if (pass.of_sums) return sliding_window_of_sums(kind);
  if (!is_in_place) return sliding_window_of_any(kind);
  switch (pass.x.dtype) {
    case DType::u8: return sliding_window_of_u8(kind);
    case DType::f16: return sliding_window_of_f16(kind);
    case DType::bf16: return sliding_window_of_bf16(kind);
    default: return sliding_window_of_f32(kind);
  }
}

// The kernel itself turns sums into values if one launch makes at most this many.
constexpr std::int64_t kGroupsInKernel = 256;

class SlidingWindowRun {
 public:
  explicit SlidingWindowRun(CudaPlan& plan)
      : plan_(plan), pass_(plan.pass), x_(planes_in(pass_.x)), y_(planes_in(pass_.y)) {}

  void run() {
    sums_ = plan_.reduces() && !pass_.value.empty();
    finishes_ = sums_ && !plan_.has_masks() && plan_.groups <= kGroupsInKernel;
    if (plan_.reduces() && plan_.has_masks()) {
      plan_.allocate_sums();
      sum_weights(plan_);
    } else if (sums_ && !finishes_) {
      plan_.allocate_sums();
      fill_weights(plan_);
    }
    slope_ = slope_of(plan_);
    run_planes();
    if (sums_ && !finishes_) write_values(plan_);
  }

 private:
  bool is_in_place() const { return x_ && y_; }
  bool wants_map() const { return !plan_.reduces() && !pass_.value.empty(); }

  SlidingWindow arguments() const {
    const Geometry& g = plan_.geometry;
    const auto taps = taps_in_f32(pass_.window.x);
    SlidingWindow m = {};
    if (is_in_place()) {
      m.x = *x_;
      m.y = *y_;
    }
    m.any_x = gpu::View(pass_.x);
    m.any_y = gpu::View(pass_.y);
    m.planes = g.planes;
    m.images = pass_.x.shape[0];
    m.channels = g.channels;
    m.width = static_cast<int>(g.extent[2]);
    m.height = static_cast<int>(g.extent[1]);
    m.map_x0 = static_cast<int>(g.first_centre[2]);
    m.map_x1 = m.map_x0 + static_cast<int>(g.map_extent[2]);
    m.map_y0 = static_cast<int>(g.first_centre[1]);
    m.map_y1 = m.map_y0 + static_cast<int>(g.map_extent[1]);
    const std::size_t radius = taps.size() / 2;  // the outer taps of a smaller window are 0
    std::copy_n(taps.begin(), radius + 1, m.taps + 5 - radius);
    const Constants<float> constants = doubled_constants(pass_);
    m.c1 = constants.c1;
    m.c2 = constants.c2;
    m.slope = slope_;
    m.extras.mask = gpu::View(pass_.mask);
    if (!plan_.reduces()) m.extras.upstream = gpu::View(pass_.upstream);
    return m;
  }

  // Values, and all else that is written once, come with the first gradient; maps have a launch of
  // their own.
  void run_planes() {
    SlidingWindow m = arguments();
    const bool is_alone = !plan_.has_gradient();
    if (is_alone || wants_map()) run_value(m, is_alone);
    if (!pass_.x_gradient.empty()) run_gradient(m, pass_.x_gradient, true);
    if (pass_.y_gradient.empty()) return;
    if (pass_.of_sums) {
      m.extras.difference_sign = -1;
    } else {
      std::swap(m.x, m.y);  // SSIM is symmetric
      std::swap(m.any_x, m.any_y);
    }
    run_gradient(m, pass_.y_gradient, pass_.x_gradient.empty());
  }

  void run_value(SlidingWindow m, bool is_first) {
    if (wants_map()) {
      m.extras.map = gpu::View(pass_.value);
      m.extras.map_bias = static_cast<float>(pass_.bias);
      m.extras.map_slope = static_cast<float>(pass_.term_weight);
    }
    m.first_row = m.map_y0 - 5;
    m.rows = m.map_y1 - m.map_y0;
    launch(m, false, is_first);
  }

  void run_gradient(SlidingWindow m, const TensorView& gradient, bool is_first) {
    m.first_row = -10;
    m.rows = m.height;
    if (const auto in_place = planes_in(gradient)) {
      m.gradient = *in_place;
      m.gradient_dtype = gradient.dtype;
    } else {
      m.extras.any_gradient = gpu::View(gradient);
    }
    launch(m, true, is_first);
  }

  Scope scope_of(const SlidingWindow& m) const {
    const bool is_odd_gradient =
        is_in_place() &&
        (m.extras.any_gradient.data != nullptr ||
            (m.gradient.data != nullptr && !pass_.of_sums && m.gradient_dtype != pass_.x.dtype));
    if (!pass_.mask.empty() || !plan_.reduces() || is_odd_gradient) return Scope::all;
    return pass_.l1_weight != 0 || !pass_.halved_sum.empty() ? Scope::training : Scope::plain;
  }

  // Returns the first column of the first strip's copies: it is before all that its windows see.
  static int first_column(const SlidingWindow& m, const SlidingWindowVariant& v, bool gradient) {
    const int seen = gradient ? -10 : m.map_x0 - 5;
    return seen - (seen % v.align + v.align) % v.align;
  }

  // A strip of a value owns columns of the map, from the sixth that it loads on; a strip of a
  // gradient owns columns of the image. A single strip may own all that it loads the windows of.
  struct Strips {
    int count, owned;
    bool is_whole;
  };
  static Strips strips(const SlidingWindow& m, const SlidingWindowVariant& v, bool gradient) {
    const int columns = gradient ? m.width : m.map_x1 - (first_column(m, v, gradient) + 5);
    const bool sees_all = !gradient || m.map_x0 == 5;
    if (columns > v.owned && columns <= v.owned_alone && sees_all) {
      return {1, v.owned_alone, gradient};
    }
    return {(columns + v.owned - 1) / v.owned, v.owned, false};
  }

  // Returns the width whose strips load fewer columns in all.
  SlidingWindowVariant variant_for(const SlidingWindow& m, bool gradient) const {
    const Scope scope = scope_of(m);
    const SlidingWindowVariant wide = variant_of(pass_, is_in_place(), {gradient, scope, true});
    const SlidingWindowVariant narrow = variant_of(pass_, is_in_place(), {gradient, scope, false});
    const bool fits = wide.shared_bytes <= gpu::limits(plan_.device).shared_bytes_a_block;
    const auto loaded = [&](const SlidingWindowVariant& v) {
      return strips(m, v, gradient).count * v.loaded;
    };
    return fits && loaded(wide) <= loaded(narrow) ? wide : narrow;
  }

  // Returns the number of blocks, and decides whether the beginning of a strip counts as work: if
  // shares are short, a block in two strips would work much longer than others. Whole fractions of
  // strips do as well if few blocks are left over. With long shares this gains nothing:
  // 5×5×1080×1920 takes 0.6 % more.
  int share_out(SlidingWindow& m, const SlidingWindowVariant& v) const {
    constexpr int kShort = 9;  // leads
    const int blocks = v.blocks(m, plan_.device);
    const std::int64_t strips = m.planes * m.strips, each = blocks / strips;
    const int odd = m.rows % 2;
    m.lead = odd;
    if (strips * m.rows > std::int64_t{kShort} * v.lead * blocks) return blocks;
    m.lead = v.lead + odd;
    if (each == 0 || m.rows / each > 2 * m.pairs() / blocks) return blocks;
    m.lead = odd;
    return static_cast<int>(each * strips);
  }

  // Launches an instance, with memory for the segments' sums and a counter of blocks before them.
  void launch(SlidingWindow& m, bool gradient, bool is_first) {
    const SlidingWindowVariant v = variant_for(m, gradient);
    const Strips cut = strips(m, v, gradient);
    m.strips = cut.count;
    m.owned = cut.owned;
    m.is_whole = cut.is_whole;
    m.first_column = first_column(m, v, gradient);
    if (is_first) {
      m.extras.sums_l1 = sums_ && pass_.l1_weight != 0;
      m.extras.halved_sum = gpu::View(pass_.halved_sum);
      m.extras.halved_difference = gpu::View(pass_.halved_difference);
    }
    const int blocks = share_out(m, v);
    if (!sums_ || !is_first) return v.launch(m, blocks, plan_.exec);
    constexpr std::size_t kCountBytes = 256;
    const std::size_t bytes =
        kCountBytes + static_cast<std::size_t>(blocks + m.planes * m.strips) * sizeof(Partial);
    const auto memory = allocate_bytes(bytes, plan_.device, plan_.exec);
    m.partials = reinterpret_cast<Partial*>(static_cast<char*>(memory.get()) + kCountBytes);
    m.blocks_a_pair = blocks / static_cast<double>(m.pairs());
    if (finishes_) {
      auto* const own = static_cast<unsigned*>(memory.get());
      m.finish = finish(pass_.counter != nullptr ? pass_.counter : own);
      if (pass_.counter == nullptr) {
        gpu::clear("ssim", plan_.exec.queue.handle, own, sizeof *own);
      }
    }
    v.launch(m, blocks, plan_.exec);
    if (finishes_) return;
    gpu::launch("ssim", plan_.exec.queue.handle, gpu::blocks_of(m.planes), kThreads, 0,
        segments_kernel, m.planes, m.strips, m.pairs_a_strip(), blocks, m.blocks_a_pair, m.partials,
        plan_.sums);
  }

  SlidingWindowFinish finish(unsigned* arrived) const {
    const PlaneSlopes each = plan_.each_slopes();
    const bool is_sum = pass_.reduction == Reduction::sum;
    const double elements = static_cast<double>(plan_.planes_each * plan_.geometry.map_elements());
    return {pass_.value.data(), pass_.value.dtype, plan_.groups, plan_.planes_each,
        is_sum ? pass_.bias * elements : pass_.bias, each.term, each.l1, arrived};
  }

  CudaPlan& plan_;
  const Pass& pass_;
  const std::optional<PlaneArray> x_, y_;
  bool sums_ = false, finishes_ = false;
  PlaneSlope slope_;
};

}  // namespace

bool can_slide_window(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.geometry;
  // Only the direct kernels know |x - y| in a map or under a mask.
  const bool is_simple = pass.valid_mask.empty() && pass.x.dtype != DType::f64 &&
                         (pass.l1_weight == 0 || (plan.reduces() && pass.mask.empty())) &&
                         (pass.padding == Padding::valid || pass.padding == Padding::same);
  // A tap of 0 lets what is not finite into windows that do not see it. A sum over all windows is
  // not finite then anyhow, but some elements of a map are, and so may be a sum under a mask.
  const bool fits = g.radius[1] == 5 || (g.radius[1] < 5 && plan.reduces() && pass.mask.empty());
  const bool is_plane =
      g.extent[0] == 1 && g.radius[0] == 0 && fits && pass.window.y == pass.window.x;
  const bool is_countable = g.extent[1] < 1 << 28 && g.extent[2] < 1 << 28 &&
                            g.planes * (g.extent[2] / 160 + 1) < 1 << 30;
  if (!is_simple || !is_plane || !is_countable) return false;
  const gpu::Limits& limits = gpu::limits(plan.device);
  return limits.compute_major >= 9 &&
         limits.shared_bytes_a_block >=
             variant_of(pass, false, {plan.has_gradient(), Scope::all, false}).shared_bytes;
}

void run_sliding_window(CudaPlan& plan) { SlidingWindowRun(plan).run(); }

}  // namespace similis::ssim_internal

#else

namespace similis::ssim_internal {

// The copy engine and the layout of the kernel are CUDA's.
bool can_slide_window(const CudaPlan&) { return false; }
void run_sliding_window(CudaPlan&) {}

}  // namespace similis::ssim_internal

#endif
