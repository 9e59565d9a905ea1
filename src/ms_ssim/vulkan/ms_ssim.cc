// SPDX-License-Identifier: Apache-2.0
// MS-SSIM through Vulkan, in the order of cuda.cu: each level is one pass of SSIM for its means and
// their gradients, from the finest to the coarsest; then the means of all levels give the values
// and slopes, by which the gradients are mixed, from the coarsest level to the finest. Halved
// images are kept as x + y and x - y, less the ground of their plane. Images on the CPU are copied
// over, and results back, in the same commands.
#include <algorithm>

#include "src/core/require.h"
#include "src/gpu/vulkan/device_functions.h"
#include "src/ms_ssim/ms_ssim.h"
#include "src/ssim/vulkan/queue.h"

namespace similis::ms_ssim_internal {
namespace {

using gpu::vulkan::Commands;
using gpu::vulkan::Elements;
using gpu::vulkan::Floats;
using gpu::vulkan::KernelArguments;
using gpu::vulkan::Results;

constexpr std::int64_t kThreads = 64;

// A 5-D tensor of images in the kernels' arguments.
struct Layout {
  std::int32_t offset = 0, image = 0, channel = 0, row = 0, column = 0;

  Layout() = default;
  explicit Layout(const TensorView& view)
      : offset(static_cast<std::int32_t>(view.offset)),
        image(static_cast<std::int32_t>(view.strides[0])),
        channel(static_cast<std::int32_t>(view.strides[1])),
        row(static_cast<std::int32_t>(view.strides[3])),
        column(static_cast<std::int32_t>(view.strides[4])) {}
};
struct HalvingArguments {
  std::int32_t coarse_width, coarse_height, shift_x, shift_y, repeats;
};
struct HalveArguments : KernelArguments {
  std::int32_t width, height, channels;
  HalvingArguments halving;
  Layout x, y;
};
struct CombineArguments : KernelArguments {
  std::int32_t planes, planes_each, levels;
  double bias, term_weight, share;
  std::int32_t value_offset, is_f64, has_value;
  std::int32_t upstream_offset, upstream_strides[2], channels;
};
struct MixArguments : KernelArguments {
  std::int32_t width, height, channels;
  HalvingArguments halving;
  std::int32_t first_slope;
  Layout own, gradient;
};

std::int64_t parts(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

std::int32_t i32(std::int64_t value) { return static_cast<std::int32_t>(value); }

HalvingArguments arguments_of(const std::array<Halving, 3>& halving, Downsample rule) {
  return {.coarse_width = i32(halving[2].coarse_extent()),
      .coarse_height = i32(halving[1].coarse_extent()),
      .shift_x = i32(halving[2].coarse(1)),
      .shift_y = i32(halving[1].coarse(1)),
      .repeats = rule == Downsample::vainf ? 0 : 1};
}

class Pyramid {
 public:
  Pyramid(const Pass& pass, Commands& commands, Results& results)
      : pass_(pass),
        commands_(commands),
        results_(results),
        device_{DeviceKind::vulkan, commands.gpu().index()},
        channels_(pass.level.x.shape[1]),
        planes_(pass.level.x.shape[0] * channels_),
        levels_(pass.weights.size()) {}

  void run() {
    x_gradient_ = result(pass_.x_gradient);
    y_gradient_ = result(pass_.y_gradient);
    const auto numbers = static_cast<std::size_t>(planes_) * levels_.size();
    means_ = commands_.workspace(numbers * sizeof(double));
    slopes_ = commands_.workspace(numbers * sizeof(float));
    ground_ = workspace({pass_.level.x.shape[0], channels_, 2});
    for (std::size_t l = 0; l < levels_.size(); ++l) run_level(l);
    combine();
    mix(&Level::x_gradient, x_gradient_);
    mix(&Level::y_gradient, y_gradient_);
  }

 private:
  struct Level {
    ssim_internal::Pass pass;
    HalvingArguments halving = {};                // to the next coarser level
    TensorView x_gradient = {}, y_gradient = {};  // f32, by the level's means
  };

  // A tensor of a call as kernels meet it.
  TensorView view_of(const TensorView& tensor, const Elements& elements) const {
    TensorView view = tensor;
    view.handle = elements.buffer;
    view.offset = elements.offset;
    view.device = device_;
    for (int axis = 0; axis < view.shape.rank(); ++axis)
      view.strides[axis] = elements.strides[axis];
    return view;
  }
  TensorView input(const TensorView& tensor) {
    return view_of(tensor, gpu::vulkan::elements_of("ms_ssim", commands_, tensor));
  }
  TensorView result(const TensorView& tensor) {
    return tensor.empty() ? tensor : view_of(tensor, results_.elements_of(tensor));
  }
  TensorView workspace(const Extents& shape) {
    gpu::vulkan::require_addressable("ms_ssim", commands_.gpu(), shape.count(), sizeof(float));
    const VkBuffer buffer =
        commands_.workspace(static_cast<std::size_t>(shape.count()) * sizeof(float));
    return {buffer, shape, DType::f32, device_};
  }

  void run_level(std::size_t l) {
    Level& level = levels_[l];
    ssim_internal::Pass& pass = level.pass;
    if (l == 0) {
      pass = pass_.level;
      pass.x = input(pass_.level.x);
      pass.y = input(pass_.level.y);
    }
    const bool is_coarsest = l + 1 == levels_.size();
    pass.term = is_coarsest ? ssim_internal::Term::ssim : ssim_internal::Term::contrast;
    pass.reduction = Reduction::per_channel;
    pass.value = TensorView(means_, {pass.x.shape[0], channels_}, DType::f64, device_);
    pass.value.offset = static_cast<std::int64_t>(l) * planes_;
    level.x_gradient = gradient_at(l, x_gradient_);
    level.y_gradient = gradient_at(l, y_gradient_);
    pass.x_gradient = level.x_gradient;
    pass.y_gradient = level.y_gradient;
    ssim_internal::queue_ssim("ms_ssim", commands_, results_, pass, ground_);
    if (!is_coarsest) halve(l);
  }

  // The array for a level's own gradient; half types would be rounded before they are mixed.
  TensorView gradient_at(std::size_t l, const TensorView& finest) {
    if (finest.empty()) return {};
    return l == 0 && finest.dtype == DType::f32 ? finest : workspace(levels_[l].pass.x.shape);
  }

  void halve(std::size_t l) {
    Level& level = levels_[l];
    const ssim_internal::Pass& fine = level.pass;
    const auto halving = halving_of(fine.x.shape, pass_.is_3d, pass_.downsample);
    level.halving = arguments_of(halving, pass_.downsample);
    const Extents shape = coarse_shape(fine.x.shape, halving);
    ssim_internal::Pass& coarse = levels_[l + 1].pass;
    coarse.x = workspace(shape);
    coarse.y = workspace(shape);
    coarse.of_sums = true;
    coarse.window = pass_.level.window;
    coarse.padding = pass_.level.padding;
    coarse.c1 = pass_.level.c1;
    coarse.c2 = pass_.level.c2;
    HalveArguments arguments{};
    arguments.one = 1;
    arguments.width = i32(fine.x.shape[4]);
    arguments.height = i32(fine.x.shape[3]);
    arguments.channels = i32(channels_);
    arguments.halving = level.halving;
    arguments.x = Layout(fine.x);
    arguments.y = Layout(fine.y);
    commands_.run({.module = "ms_ssim/halve",
                      .constants = {static_cast<std::int32_t>(fine.x.dtype), fine.of_sums ? 1 : 0}},
        {buffer_of(fine.x), buffer_of(fine.y), buffer_of(coarse.x), buffer_of(coarse.y),
            buffer_of(ground_)},
        arguments, {.x = parts(shape[4], kThreads), .y = shape[3], .z = planes_});
  }

  void combine() {
    const std::int64_t images = pass_.level.x.shape[0];
    const std::int64_t results = pass_.reduction == Reduction::per_channel ? planes_
                                 : pass_.reduction == Reduction::per_image ? images
                                                                           : 1;
    const VkBuffer weights =
        commands_.workspace_of(pass_.weights.data(), pass_.weights.size() * sizeof(double));
    Floats upstream{.elements = {}, .dtype = DType::f32};
    if (!pass_.upstream.empty())
      upstream = gpu::vulkan::floats_of("ms_ssim", commands_, pass_.upstream);
    Elements value;
    if (!pass_.value.empty()) value = results_.elements_of(pass_.value);
    CombineArguments arguments{};
    arguments.one = 1;
    arguments.planes = i32(planes_);
    arguments.planes_each = i32(planes_ / results);
    arguments.levels = i32(static_cast<std::int64_t>(levels_.size()));
    arguments.bias = pass_.bias;
    arguments.term_weight = pass_.term_weight;
    arguments.share =
        pass_.reduction == Reduction::sum ? 1 : 1 / static_cast<double>(planes_ / results);
    arguments.value_offset = value.offset;
    arguments.is_f64 = pass_.value.dtype == DType::f64 ? 1 : 0;
    arguments.has_value = pass_.value.empty() ? 0 : 1;
    arguments.upstream_offset = upstream.elements.offset;
    const int rank = pass_.upstream.empty() ? 0 : pass_.upstream.shape.rank();
    std::copy_n(upstream.elements.strides, rank, arguments.upstream_strides);
    arguments.channels = i32(channels_);
    const auto or_means = [&](VkBuffer buffer) { return buffer == nullptr ? means_ : buffer; };
    commands_.run(
        {.module = "ms_ssim/combine",
            .constants = {pass_.upstream.empty() ? -1 : static_cast<std::int32_t>(upstream.dtype)}},
        {means_, weights, or_means(upstream.elements.buffer), slopes_, or_means(value.buffer)},
        arguments, {.x = results});
  }

  void mix(TensorView Level::*gradient, const TensorView& finest) {
    if (finest.empty()) return;
    for (std::size_t l = levels_.size(); l-- > 0;) {
      const Level& level = levels_[l];
      const bool has_coarse = l + 1 < levels_.size();
      const TensorView& own = level.*gradient;
      const TensorView& to = l == 0 ? finest : own;
      MixArguments arguments{};
      arguments.one = 1;
      arguments.width = i32(own.shape[4]);
      arguments.height = i32(own.shape[3]);
      arguments.channels = i32(channels_);
      arguments.halving = level.halving;
      arguments.first_slope = i32(static_cast<std::int64_t>(l) * planes_);
      arguments.own = Layout(own);
      arguments.gradient = Layout(to);
      const VkBuffer coarse = buffer_of(has_coarse ? levels_[l + 1].*gradient : own);
      commands_.run({.module = "ms_ssim/mix",
                        .constants = {static_cast<std::int32_t>(to.dtype), has_coarse ? 1 : 0}},
          {slopes_, buffer_of(own), coarse, buffer_of(to)}, arguments,
          {.x = parts(own.shape[4], kThreads), .y = own.shape[3], .z = planes_});
    }
  }

  static VkBuffer buffer_of(const TensorView& view) { return static_cast<VkBuffer>(view.handle); }

  const Pass& pass_;
  Commands& commands_;
  Results& results_;
  Device device_;
  std::int64_t channels_, planes_;
  std::vector<Level> levels_;
  TensorView x_gradient_, y_gradient_;           // as kernels meet the caller's
  TensorView ground_;                            // subtracted from the halved images
  VkBuffer means_ = nullptr, slopes_ = nullptr;  // f64 and f32, [level][plane]
};

}  // namespace

void ms_ssim_vulkan(const Pass& pass, const Execution& exec) {
  ssim_internal::Pass finest = pass.level;
  finest.upstream = pass.upstream;
  ssim_internal::require_kernels("ms_ssim", finest, pass.is_3d);
  Commands commands(gpu::vulkan::gpu_of("ms_ssim", pass.level.x.device, exec));
  Results results("ms_ssim", commands);
  Pyramid(pass, commands, results).run();
  results.finish();
}

}  // namespace similis::ms_ssim_internal
