// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU, the fast path: finds the instance of the sliding window kernel that suits a
// pass, and hands it the images as they lie in memory. Rows of unit stride that begin at multiples
// of 16 bytes go through the copy engine; threads load all others. Paddings that the kernel does
// not know differ in the rim alone: it then takes the windows inside, and the rim's kernel the
// rest.
#include <algorithm>
#include <optional>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/rim.h"
#include "src/ssim/cuda/sliding_window_kernel.cuh"
#include "src/ssim/cuda/valid_weights.h"
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
    const double term = gpu::block_sum<kThreads>(sum.term);
    __syncthreads();  // all have read the sum before the next one
    const double l1 = gpu::block_sum<kThreads>(sum.l1);
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

constexpr int kUsualRadius = 5, kMostRadius = 10;

bool knows_padding(const Pass& pass) {
  return pass.padding == Padding::valid || pass.padding == Padding::same;
}

// True if the rim's kernel can take the windows that the sliding window leaves out.
bool can_leave_rim(const CudaPlan& plan) {
  const Geometry& g = plan.geometry;
  return g.radius[1] <= Rim::kRadius && plan.pass.halved_sum.empty() && !plan.pass.of_sums &&
         plan.reduces() && !plan.has_masks() && !plan.pass.sums && plan.pass.counted.are_all() &&
         plan.groups <= kGroupsInKernel && g.extent[1] >= Rim::kLeastExtent &&
         g.extent[2] >= Rim::kLeastExtent &&
         g.planes * rim_tiles(g.extent[1], g.extent[2]) < 1 << 30;
}

class SlidingWindowRun {
 public:
  explicit SlidingWindowRun(CudaPlan& plan)
      : plan_(plan),
        pass_(plan.pass),
        x_(planes_in(pass_.x)),
        y_(planes_in(pass_.y)),
        radius_(plan.geometry.radius[1] <= kUsualRadius ? kUsualRadius : kMostRadius) {}

  void run() {
    sums_ = plan_.reduces() && !pass_.value.empty();
    finishes_ = sums_ && !plan_.has_masks() && !pass_.sums && plan_.groups <= kGroupsInKernel;
    has_rim_ = pass_.valid_mask.empty() && (!knows_padding(pass_) || rim_saves_strips());
    if (!pass_.valid_mask.empty()) {
      valid_ = find_valid_weights(plan_, valid_memory_);
    } else if (plan_.reduces() && plan_.has_masks()) {
      plan_.allocate_sums();
      sum_weights(plan_);
    } else if (pass_.sums || (sums_ && !finishes_)) {
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
    m.map_x0 = has_rim_ ? Rim::kRadius : static_cast<int>(g.first_centre[2]);
    m.map_x1 = m.width - m.map_x0;
    m.map_y0 = has_rim_ ? Rim::kRadius : static_cast<int>(g.first_centre[1]);
    m.map_y1 = has_rim_ ? m.height - Rim::kRadius : m.map_y0 + static_cast<int>(g.map_extent[1]);
    const std::size_t radius = taps.size() / 2;  // the outer taps of a smaller window are 0
    std::copy_n(taps.begin(), radius + 1, m.taps + static_cast<std::size_t>(radius_) - radius);
    const Constants<float> constants = doubled_constants(pass_);
    m.c1 = constants.c1;
    m.c2 = constants.c2;
    m.slope = slope_;
    m.extras.mask = gpu::View(pass_.mask);
    m.extras.valid = valid_;
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
    m.first_row = m.map_y0 - radius_;
    m.rows = m.map_y1 - m.map_y0;
    launch(m, nullptr, is_first);
  }

  void run_gradient(SlidingWindow m, const TensorView& gradient, bool is_first) {
    m.first_row = -2 * radius_;
    m.rows = m.height;
    if (const auto in_place = planes_in(gradient)) {
      m.gradient = *in_place;
      m.gradient_dtype = gradient.dtype;
    } else {
      m.extras.any_gradient = gpu::View(gradient);
    }
    launch(m, &gradient, is_first);
  }

  Scope scope_of(const SlidingWindow& m) const {
    if (!pass_.valid_mask.empty()) return Scope::masked;
    const bool is_odd_gradient =
        is_in_place() &&
        (m.extras.any_gradient.data != nullptr ||
            (m.gradient.data != nullptr && !pass_.of_sums && m.gradient_dtype != pass_.x.dtype));
    if (!pass_.mask.empty() || !plan_.reduces() || is_odd_gradient) return Scope::all;
    return pass_.l1_weight != 0 || !pass_.halved_sum.empty() ? Scope::training : Scope::plain;
  }

  // Returns the first column of the first strip's copies: it is before all that its windows see.
  static int first_column(const SlidingWindow& m, const SlidingWindowVariant& v, bool gradient) {
    const int seen = gradient ? -2 * v.radius : m.map_x0 - v.radius;
    return seen - (seen % v.align + v.align) % v.align;
  }

  // A strip of a value owns columns of the map, from the sixth that it loads on; a strip of a
  // gradient owns columns of the image. A single strip may own all that it loads the windows of.
  struct Strips {
    int count, owned;
    bool is_whole;
  };
  static Strips strips(const SlidingWindow& m, const SlidingWindowVariant& v, bool gradient) {
    const int columns = gradient ? m.width : m.map_x1 - (first_column(m, v, gradient) + v.radius);
    const bool sees_all = !gradient || m.map_x0 == v.radius;
    if (columns > v.owned && columns <= v.owned_alone && sees_all) {
      return {1, v.owned_alone, gradient};
    }
    return {(columns + v.owned - 1) / v.owned, v.owned, false};
  }

  // Returns the width whose strips load fewer columns in all.
  SlidingWindowVariant variant_for(const SlidingWindow& m, bool gradient) const {
    const Scope scope = scope_of(m);
    const SlidingWindowVariant wide =
        variant_of(pass_, is_in_place(), {gradient, scope, true, radius_});
    const SlidingWindowVariant narrow =
        variant_of(pass_, is_in_place(), {gradient, scope, false, radius_});
    const bool fits = wide.shared_bytes <= gpu::limits(plan_.device).shared_bytes_a_block;
    const auto loaded = [&](const SlidingWindowVariant& v) {
      return strips(m, v, gradient).count * v.loaded;
    };
    return fits && loaded(wide) <= loaded(narrow) ? wide : narrow;
  }

  // True if strips load much less where they may leave the rim to its kernel, and the images are so
  // large that its launch, 5 µs, costs less.
  bool rim_saves_strips() {
    constexpr std::int64_t kLeastPixels = std::int64_t{1} << 21;
    const Geometry& g = plan_.geometry;
    const bool is_inside = pass_.padding == Padding::valid && g.radius[1] == Rim::kRadius;
    if (is_inside || g.radius[1] > Rim::kRadius || !plan_.has_gradient() || !can_leave_rim(plan_))
      return false;
    if (g.planes * g.pixels() < kLeastPixels) return false;
    const auto loaded = [&](bool has_rim) {
      has_rim_ = has_rim;
      const SlidingWindow m = arguments();
      const SlidingWindowVariant v = variant_for(m, true);
      return strips(m, v, true).count * v.loaded;
    };
    return 5 * loaded(true) < 4 * loaded(false);
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

  // Launches an instance, with memory for the sums and a counter of blocks before them.
  void launch(SlidingWindow& m, const TensorView* gradient, bool is_first) {
    const bool has_gradient = gradient != nullptr;
    const SlidingWindowVariant v = variant_for(m, has_gradient);
    const Strips cut = strips(m, v, has_gradient);
    m.strips = cut.count;
    m.owned = cut.owned;
    m.is_whole = cut.is_whole;
    m.first_column = first_column(m, v, has_gradient);
    if (is_first) {
      m.extras.sums_l1 = sums_ && pass_.l1_weight != 0;
      m.extras.halved_sum = gpu::View(pass_.halved_sum);
      m.extras.halved_difference = gpu::View(pass_.halved_difference);
    }
    const int blocks = share_out(m, v);
    const bool sums = sums_ && is_first;
    constexpr std::size_t kCountBytes = 256;
    const auto segments = static_cast<std::size_t>(blocks + m.planes * m.strips);
    const auto tiles =
        static_cast<std::size_t>(has_rim_ ? m.planes * rim_tiles(m.height, m.width) : 0);
    std::shared_ptr<void> memory;
    SlidingWindowFinish finish = {};
    if (sums) {
      memory = allocate_bytes(kCountBytes + segments * sizeof(Partial) + tiles * sizeof(double),
          plan_.device, plan_.exec);
      m.partials = reinterpret_cast<Partial*>(static_cast<char*>(memory.get()) + kCountBytes);
      m.blocks_a_pair = blocks / static_cast<double>(m.pairs());
    }
    if (sums && finishes_) {
      auto* const own = static_cast<unsigned*>(memory.get());
      finish = finish_of(pass_.counter != nullptr ? pass_.counter : own);
      if (pass_.counter == nullptr) {
        gpu::clear("ssim", plan_.exec.queue.handle, own, sizeof *own);
      }
    }
    if (!has_rim_) m.finish = finish;  // whoever comes last writes the values
    v.launch(m, blocks, plan_.exec);
    if (has_rim_) {
      Rim rim = rim_beside(m, gradient);
      rim.partials = sums ? reinterpret_cast<double*>(m.partials + segments) : nullptr;
      rim.segments = {m.partials, blocks, m.blocks_a_pair, m.pairs(), m.pairs_a_strip(), m.strips};
      rim.finish = finish;
      run_rim(rim, plan_.exec);
    } else if (sums && !finishes_) {
      gpu::launch("ssim", plan_.exec.queue.handle, gpu::blocks_of(m.planes), kThreads, 0,
          segments_kernel, m.planes, m.strips, m.pairs_a_strip(), blocks, m.blocks_a_pair,
          m.partials, plan_.sums);
    }
  }

  // Returns the rim that a launch leaves out.
  Rim rim_beside(const SlidingWindow& m, const TensorView* gradient) const {
    Rim rim = {};
    rim.x = m.any_x;
    rim.y = m.any_y;
    rim.channels = m.channels;
    rim.planes = m.planes;
    rim.height = m.height;
    rim.width = m.width;
    rim.first = static_cast<int>(plan_.geometry.first_centre[1]);
    rim.padding = pass_.padding;
    set_window(rim, pass_.window.x);
    rim.c1 = m.c1;
    rim.c2 = m.c2;
    rim.slope = m.slope;
    if (gradient != nullptr) {
      rim.gradient = gpu::View(*gradient);
      rim.replaces_gradient = gradient->dtype != DType::f32;
    }
    return rim;
  }

  SlidingWindowFinish finish_of(unsigned* arrived) const {
    const PlaneSlopes each = plan_.each_slopes();
    const bool is_sum = pass_.adds_up();
    const double elements = static_cast<double>(plan_.planes_each * plan_.geometry.map_elements());
    return {pass_.value.data(), pass_.value.dtype, plan_.groups, plan_.planes_each,
        is_sum ? pass_.bias * elements : pass_.bias, each.term, each.l1, arrived};
  }

  CudaPlan& plan_;
  const Pass& pass_;
  const std::optional<PlaneArray> x_, y_;
  const int radius_;  // of the instance's windows
  bool sums_ = false, finishes_ = false, has_rim_ = false;
  ValidWeights valid_;
  std::shared_ptr<void> valid_memory_;
  PlaneSlope slope_;
};

}  // namespace

namespace {

// True if images and gradients are f32 that the copy engine can walk, as few instances take.
bool is_f32_in_place(const Pass& pass) {
  const auto is_in_place = [](const TensorView& view) {
    return view.empty() || (view.dtype == DType::f32 && planes_in(view));
  };
  return is_in_place(pass.x) && is_in_place(pass.y) && is_in_place(pass.x_gradient) &&
         is_in_place(pass.y_gradient) && !pass.of_sums && pass.halved_sum.empty();
}

bool can_weigh_pixels(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  return plan.reduces() && pass.mask.empty() && pass.l1_weight == 0 && is_f32_in_place(pass) &&
         pass.counted.are_all() && plan.geometry.radius[1] == kUsualRadius &&
         (pass.padding == Padding::valid || pass.padding == Padding::renormalize);
}

// A tap of 0 lets what is not finite into windows that do not see it. A sum over all windows is
// not finite then anyhow, but some elements of a map are, and so may be a sum under a mask.
bool has_taps_for(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const int radius = plan.geometry.radius[1];
  if (radius == kUsualRadius) return true;
  if (!plan.reduces() || plan.has_masks()) return false;
  return radius < kUsualRadius || (radius <= kMostRadius && knows_padding(pass) &&
                                      pass.l1_weight == 0 && is_f32_in_place(pass));
}

}  // namespace

bool can_slide_window(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.geometry;
  // Only the direct kernels know |x - y| in a map or under a mask.
  const bool is_simple = pass.x.dtype != DType::f64 &&
                         (pass.l1_weight == 0 || (plan.reduces() && pass.mask.empty())) &&
                         (!pass.valid_mask.empty() ? can_weigh_pixels(plan)
                                                   : knows_padding(pass) || can_leave_rim(plan));
  const bool is_plane = !plan.is_volume() && has_taps_for(plan) && pass.window.y == pass.window.x;
  const bool is_countable = g.extent[1] < 1 << 28 && g.extent[2] < 1 << 28 &&
                            g.planes * (g.extent[2] / 160 + 1) < 1 << 30;
  const bool weighs_sums = pass.of_sums && !pass.mask.empty();  // no kernel does
  if (!is_simple || !is_plane || !is_countable || weighs_sums) return false;
  const gpu::Limits& limits = gpu::limits(plan.device);
  return limits.compute_major >= 9 &&
         limits.shared_bytes_a_block >=
             variant_of(pass, false, {plan.has_gradient(), Scope::all, false}).shared_bytes;
}

bool can_halve_on_the_way(const CudaPlan& plan) {
  return can_slide_window(plan) && knows_padding(plan.pass) && plan.pass.valid_mask.empty() &&
         plan.geometry.radius[1] <= kUsualRadius;
}

void run_sliding_window(CudaPlan& plan) { SlidingWindowRun(plan).run(); }

}  // namespace similis::ssim_internal

#else

namespace similis::ssim_internal {

// The copy engine and the layout of the kernel are CUDA's.
bool can_slide_window(const CudaPlan&) { return false; }
bool can_halve_on_the_way(const CudaPlan&) { return false; }
void run_sliding_window(CudaPlan&) {}

}  // namespace similis::ssim_internal

#endif
