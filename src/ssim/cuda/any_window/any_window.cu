// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU under any window of up to 33 along each axis, with any padding and masks, in f32,
// or in f64 for f64 images. Blocks take tiles of slices; a 2-D image is one slice:
//   windows kernel        columns of x, y from memory: averages down ─> shared ─> averages across
//   ─>
//                         moments ─ formula ─> sum, map; 3 derivatives divided by the window's
//                         weight
//   gradient kernel       columns of derivatives from memory: sums down ─> shared ─> sums across,
//                         with x and y ─> gradient
// and of volumes between them:
//   deep kernel           averages of slices from memory: averages along z ─> formula, as above
//   deep gradient kernel  derivatives of slices: sums along z
// A thread averages 8 neighbours (4 in f64 and along z), of all fields at once: a tap is one load
// from the constant bank and 32 fused multiply-adds. Averages of s, d, s², d², and of the mask if
// pixels are masked. Windows see pixels beyond the edge by the index that they load. Gradients go
// back by the same taps; where windows see pixels of the rim twice, by a table of taps for those.
// As many planes as fit into 128 MiB, and at least one, have their derivatives in memory at a time:
// 12 B a pixel in f32, 28 of a volume and 32 under a mask. Fused operations per pixel: 8·(2r +
// 1)·k, with the gradient 14·(2r + 1)·k, where k is 128/(128 - 2r) down and 1 across.
#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/any_window/any_window_deep.cuh"
#include "src/ssim/cuda/any_window/any_window_gradient.cuh"
#include "src/ssim/cuda/any_window/any_window_windows.cuh"
#include "src/window/window.h"

namespace similis::ssim_internal {
namespace {

using namespace any_window;

template <class T> constexpr int kSharedOfField = Tiling<T>::kArray* static_cast<int>(sizeof(T));
template <class T>
constexpr int kSharedOfGradient = kDerivatives* kSharedOfField<T> +
                                  2 * static_cast<int>(sizeof(RimTable<T>));

constexpr std::int64_t kPlaneBytes = std::int64_t{128} << 20;

std::int64_t pieces(std::int64_t length, std::int64_t piece) {
  return (length + piece - 1) / piece;
}

// Numbers of blocks that a plane takes, of any kernel.
template <class T> std::int64_t most_blocks_of_plane(const Geometry& g) {
  const std::int64_t owned = kLoaded - 2 * kMostRadius;
  const std::int64_t flat =
      g.extent[0] * pieces(g.extent[1], Tiling<T>::kHigh) * pieces(g.extent[2], owned);
  const std::int64_t deep =
      pieces(g.extent[0], kDeepOutputs) * pieces(g.extent[1] * (g.extent[2] + 8), kThreads);
  return std::max(flat, deep);
}
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;

template <class T> class AnyWindow {
  using Layout = Tiling<T>;

 public:
  explicit AnyWindow(CudaPlan& plan)
      : plan_(plan),
        pass_(plan.pass),
        is_volume_(plan.is_volume()),
        fields_(plan.pass.valid_mask.empty() ? 4 : 5) {
    const Geometry& g = plan.geometry;
    const std::vector<double>* const taps[kAxes] = {
        &pass_.window.y, &pass_.window.x, &pass_.window.z};
    for (int axis = 0; axis < kAxes; ++axis) {
      const int from = (axis + 1) % kAxes;  // geometry is along z, y, x
      work_.extent[axis] = static_cast<int>(g.extent[from]);
      work_.map_extent[axis] = static_cast<int>(g.map_extent[from]);
      work_.first_centre[axis] = static_cast<int>(g.first_centre[from]);
      work_.radius[axis] = g.radius[from];
      copy_taps(*taps[axis], work_.taps[axis]);
    }
    work_.pitch =
        static_cast<int>(pieces(work_.map_extent[kAcross], Layout::kOutputs)) * Layout::kOutputs;
    work_.owned = (kLoaded - 2 * work_.radius[kAcross]) / Layout::kOutputs * Layout::kOutputs;
    work_.channels = g.channels;
    work_.x = gpu::View(pass_.x);
    work_.y = gpu::View(pass_.y);
    work_.mask = gpu::View(pass_.mask);
    work_.valid_mask = gpu::View(pass_.valid_mask);
    work_.padding = g.padding;
    work_.contrast = pass_.term == Term::contrast;
    work_.reduces = plan.reduces();
    work_.of_sums = pass_.of_sums;
    work_.middle = static_cast<const float*>(pass_.middle.data());
    work_.bias = static_cast<T>(pass_.bias);
    work_.term_weight = static_cast<T>(pass_.term_weight);
    work_.l1_weight = static_cast<T>(pass_.l1_weight);
    if constexpr (std::is_same_v<T, float>) {
      work_.constants = doubled_constants(pass_);
    } else {
      work_.constants = {pass_.c1, pass_.c2};
    }
    if (!plan.reduces()) work_.upstream = gpu::View(pass_.upstream);
  }

  void run() {
    const Geometry& g = plan_.geometry;
    const bool sums = plan_.reduces() && !pass_.value.empty();
    const bool has_sums = plan_.reduces() && (plan_.has_masks() || pass_.l1_weight != 0);
    if (has_sums) {
      plan_.allocate_sums();
      sum_weights(plan_);
    }
    work_.slope = slope_of(plan_);
    const std::int64_t array = std::int64_t{work_.map_extent[kDown]} * work_.pitch;
    const std::int64_t averages = is_volume_ ? fields_ * work_.extent[kDeep] * array : 0;
    const std::int64_t derivatives =
        plan_.has_gradient() ? kDerivatives * work_.map_extent[kDeep] * array : 0;
    const std::int64_t plane_bytes =
        (averages + derivatives) * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t at_once =
        std::clamp<std::int64_t>(plane_bytes > 0 ? kPlaneBytes / plane_bytes : g.planes, 1,
            std::min(g.planes, kMostBlocks / most_blocks_of_plane<T>(g)));
    std::shared_ptr<void> memory, partials;
    if (plane_bytes > 0) {
      memory =
          allocate_bytes(static_cast<std::size_t>(plane_bytes * at_once), plan_.device, plan_.exec);
    }
    averages_ = averages > 0 ? static_cast<T*>(memory.get()) : nullptr;
    derivatives_ = derivatives > 0 ? static_cast<T*>(memory.get()) + averages * at_once : nullptr;
    const std::int64_t slots = is_volume_ ? deep_blocks(kMap) : tiles(work_.map_extent);
    if (sums) {
      partials = allocate_bytes(
          static_cast<std::size_t>(g.planes * slots) * sizeof(double), plan_.device, plan_.exec);
    }
    for (std::int64_t plane = 0; plane < g.planes; plane += at_once) {
      work_.first_plane = plane;
      work_.planes = std::min(at_once, g.planes - plane);
      work_.partials = static_cast<double*>(partials.get());
      run_planes();
    }
    if (!sums) return;
    const auto* const of_blocks = static_cast<const double*>(partials.get());
    if (!has_sums) return write_values(plan_, of_blocks, slots);
    sum_partials(plan_, of_blocks, static_cast<int>(slots), kTerm);
    write_values(plan_);
  }

 private:
  enum Slices { kMap, kImage };

  static void copy_taps(const std::vector<double>& taps, T (&to)[kMostTaps]) {
    if constexpr (std::is_same_v<T, float>) {
      const std::vector<float> rounded = taps_in_f32(taps);
      std::copy(rounded.begin(), rounded.end(), to);
    } else {
      std::copy(taps.begin(), taps.end(), to);
    }
  }

  // Cuts slices into tiles, and returns the number of them.
  std::int64_t tiles(const int (&extent)[kAxes]) {
    work_.down = static_cast<int>(pieces(extent[kDown], Layout::kHigh));
    work_.across = static_cast<int>(pieces(extent[kAcross], work_.owned));
    return std::int64_t{work_.down} * work_.across;
  }
  // Returns the number of blocks of the deep kernels for a plane.
  std::int64_t deep_blocks(Slices of) const {
    const int slices = of == kMap ? work_.map_extent[kDeep] : work_.extent[kDeep];
    return pieces(slices, kDeepOutputs) *
           pieces(std::int64_t{work_.map_extent[kDown]} * work_.pitch, kThreads);
  }

  // Values and maps come with the first gradient.
  void run_planes() {
    const bool wants_map = !plan_.reduces() && !pass_.value.empty();
    work_.map = wants_map ? gpu::View(pass_.value) : gpu::View();
    work_.sign = 1;
    if (!plan_.has_gradient()) run_windows();
    if (!pass_.x_gradient.empty()) run_gradient(pass_.x_gradient);
    work_.sign = -1;
    if (!pass_.y_gradient.empty()) run_gradient(pass_.y_gradient);
  }

  void run_windows() {
    const std::int64_t blocks = work_.planes * work_.extent[kDeep] * tiles(work_.map_extent);
    work_.averages = averages_;
    work_.derivatives = derivatives_;
    const auto kernel = fields_ == 4 ? any_windows_kernel<T, false> : any_windows_kernel<T, true>;
    launch(kernel, blocks, fields_ * kSharedOfField<T>, work_);
    if (is_volume_) launch(any_deep_kernel<T>, work_.planes * deep_blocks(kMap), 0, work_);
    work_.map = {};
    work_.partials = nullptr;
  }

  void run_gradient(const TensorView& gradient) {
    run_windows();
    if (is_volume_) {  // the averages are no longer needed
      launch(any_deep_gradient_kernel<T>, work_.planes * deep_blocks(kImage), 0, work_, averages_);
      work_.derivatives = averages_;
    }
    work_.gradient = gpu::View(gradient);
    const std::int64_t blocks = work_.planes * work_.extent[kDeep] * tiles(work_.extent);
    launch(any_gradient_kernel<T>, blocks, kSharedOfGradient<T>, work_);
  }

  template <class... Arguments>
  void launch(void (*kernel)(Arguments...), std::int64_t blocks, int shared_bytes,
      const Arguments&... arguments) {
    if (shared_bytes > 0) gpu::allow_shared_bytes(kernel, static_cast<std::size_t>(shared_bytes));
    gpu::launch("ssim", plan_.exec.queue.handle, static_cast<unsigned>(blocks), kThreads,
        static_cast<std::size_t>(shared_bytes), kernel, arguments...);
  }

  CudaPlan& plan_;
  const Pass& pass_;
  const bool is_volume_;
  const int fields_;
  Work<T> work_ = {};
  T *averages_ = nullptr, *derivatives_ = nullptr;
};

template <class T> bool fits(const CudaPlan& plan) {
  const int fields = plan.pass.valid_mask.empty() ? 4 : 5;
  return gpu::limits(plan.device).shared_bytes_a_block >=
             std::max(fields * kSharedOfField<T>, kSharedOfGradient<T>) &&
         most_blocks_of_plane<T>(plan.geometry) < kMostBlocks;
}

}  // namespace

bool can_take_any_window(const CudaPlan& plan) {
  const Geometry& g = plan.geometry;
  for (int axis = 0; axis < kAxes; ++axis) {
    if (g.radius[axis] > kMostRadius || g.extent[axis] >= 1 << 28) return false;
  }
  if (g.planes >= 1 << 30) return false;
  return plan.pass.x.dtype == DType::f64 ? fits<double>(plan) : fits<float>(plan);
}

void run_any_window(CudaPlan& plan) {
  plan.pass.x.dtype == DType::f64 ? AnyWindow<double>(plan).run() : AnyWindow<float>(plan).run();
}

}  // namespace similis::ssim_internal
