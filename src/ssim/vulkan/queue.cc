// SPDX-License-Identifier: Apache-2.0
// SSIM's kernels: sliding_window.comp for value, map and gradients, and fold.comp for gradients
// under padding reflect and replicate.
#include "src/ssim/vulkan/queue.h"

#include <algorithm>
#include <cmath>

#include "src/core/require.h"
#include "src/gpu/launch/vulkan/totals.h"

namespace similis::ssim_internal {
namespace {

using gpu::vulkan::Commands;
using gpu::vulkan::Elements;
using gpu::vulkan::Floats;
using gpu::vulkan::KernelArguments;
using gpu::vulkan::Results;

// As in the kernels.
constexpr int kLargestRadius = 5;
constexpr std::int64_t kColumns = 128, kFoldColumns = 64;
constexpr std::int64_t kVector = 4;  // elements
enum Option : std::int32_t {
  kHasMap = 1,
  kHasL1 = 2,
  kUpstreamOfPlanes = 4,
  kUpstreamOfMap = 8,
};

struct WindowArguments : KernelArguments {
  std::int32_t width, height, channels, rows;
  std::int32_t padding, options;
  float c1, c2;
  float taps_x[kLargestRadius + 1], taps_y[kLargestRadius + 1];
  float bias, weight, l1_weight;
  float slope, l1_slope;
  float sign;
};
struct FoldArguments : KernelArguments {
  std::int32_t width, height, channels;
  std::int32_t radius_x, radius_y, padding;
  std::int32_t offset, strides[4];
};

// A 5-D tensor as the kernels' buffer of layouts has it.
struct Layout {
  std::int32_t offset = 0, image = 0, channel = 0, row = 0, column = 0;

  Layout() = default;
  explicit Layout(const Elements& elements)
      : offset(elements.offset),
        image(elements.strides[0]),
        channel(elements.strides[1]),
        row(elements.strides[3]),
        column(elements.strides[4]) {}
  // True if every row begins at a multiple of four elements, and is dense.
  bool is_in_fours() const {
    return column == 1 && offset % 4 == 0 && image % 4 == 0 && channel % 4 == 0 && row % 4 == 0;
  }
};
struct Layouts {
  Layout x, y, x_gradient, y_gradient, map, upstream;
};

std::int64_t parts(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

std::int32_t i32(std::int64_t value) { return static_cast<std::int32_t>(value); }

// Taps by their distance from the centre.
void put_taps(const std::vector<double>& taps, float (&to)[kLargestRadius + 1]) {
  const std::vector<float> in_f32 = taps_in_f32(taps);
  std::copy(in_f32.begin() + static_cast<std::ptrdiff_t>(taps.size() / 2), in_f32.end(), to);
}

bool is_folded(Padding padding) {
  return padding == Padding::reflect || padding == Padding::replicate;
}

class Queue {
 public:
  Queue(const char* operation, Commands& commands, Results& results, const Pass& pass,
      const TensorView& ground)
      : operation_(operation),
        commands_(commands),
        results_(results),
        pass_(pass),
        ground_(ground),
        images_(pass.x.shape[0]),
        channels_(pass.x.shape[1]),
        height_(pass.x.shape[3]),
        width_(pass.x.shape[4]),
        planes_(images_ * channels_),
        map_shape_(map_shape(pass)),
        has_gradient_(!pass.x_gradient.empty() || !pass.y_gradient.empty()) {}

  void run() {
    // SSIM and |x - y| are symmetric: a gradient by y alone is one by x of swapped images.
    const bool is_swapped = pass_.x_gradient.empty() && !pass_.y_gradient.empty();
    const bool swaps_images = is_swapped && !pass_.of_sums;
    Elements x = gpu::vulkan::elements_of(operation_, commands_, pass_.x);
    Elements y = gpu::vulkan::elements_of(operation_, commands_, pass_.y);
    if (swaps_images) std::swap(x, y);
    const TensorView& first = is_swapped ? pass_.y_gradient : pass_.x_gradient;
    const Gradient by_x = gradient_of(first);
    const Gradient by_y = is_swapped ? Gradient{} : gradient_of(pass_.y_gradient);
    const bool reduces = pass_.reduction != Reduction::none;
    const bool has_map = !reduces && !pass_.value.empty();
    Elements map;
    if (has_map) map = results_.elements_of(pass_.value);
    Floats upstream{.elements = {}, .dtype = DType::f32};
    if (has_gradient_ && !pass_.upstream.empty())
      upstream = gpu::vulkan::floats_of(operation_, commands_, pass_.upstream);
    const bool has_upstream = upstream.elements.buffer != nullptr;
    if (pass_.of_sums) upstream.elements = gpu::vulkan::elements_of(operation_, commands_, ground_);

    WindowArguments arguments = window_arguments(is_swapped && pass_.of_sums);
    Layouts layouts;
    layouts.x = Layout(x);
    layouts.y = Layout(y);
    if (by_x.buffer != nullptr) layouts.x_gradient = by_x.layout;
    if (by_y.buffer != nullptr) layouts.y_gradient = by_y.layout;
    if (has_map) layouts.map = Layout(map);
    if (upstream.elements.buffer != nullptr) layouts.upstream = upstream_layout(upstream.elements);
    if (has_map) arguments.options |= kHasMap;
    if (has_upstream) arguments.options |= reduces ? kUpstreamOfPlanes : kUpstreamOfMap;
    const VkBuffer of_layouts = commands_.workspace_of(&layouts, sizeof layouts);

    const Plan plan = plan_of();
    arguments.rows = i32(plan.rows);
    gpu::vulkan::require_addressable(
        operation_, commands_.gpu(), planes_ * plan.tiles(), sizeof(float));
    const VkBuffer sums =
        commands_.workspace(static_cast<std::size_t>(planes_ * plan.tiles()) * sizeof(float));
    const std::int32_t special = arguments.options & ~kUpstreamOfPlanes;
    const bool is_simple = pass_.padding == Padding::valid || pass_.padding == Padding::same;
    const std::int32_t form = special == 0                     ? (is_simple ? 1 : 3)
                              : special == kHasL1 && is_simple ? 2
                                                               : 0;
    // Vectors of images stand where the pixels do: not with positions beyond the image.
    const bool images_in_vectors = has_gradient_ && !is_folded(pass_.padding) &&
                                   pass_.x.dtype == DType::f32 && width_ % 4 == 0 &&
                                   layouts.x.is_in_fours() && layouts.y.is_in_fours();
    const bool gradients_in_vectors = by_x.is_in_vectors && by_y.is_in_vectors;
    const std::int32_t in_vectors = !gradients_in_vectors ? 0 : images_in_vectors ? 1 : 2;
    const auto or_sums = [&](VkBuffer buffer) { return buffer == nullptr ? sums : buffer; };
    const VkBuffer to_x = or_sums(by_x.buffer), to_y = or_sums(by_y.buffer);
    const std::int32_t gradients = by_x.buffer == nullptr ? 0 : by_y.buffer == nullptr ? 1 : 2;
    commands_.run({.module = "ssim/sliding_window",
                      .constants = {i32(kColumns), static_cast<std::int32_t>(pass_.x.dtype),
                          gradients, pass_.window.radius_x(), pass_.window.radius_y(), form,
                          in_vectors, pass_.of_sums ? 1 : 0, static_cast<std::int32_t>(by_x.dtype),
                          static_cast<std::int32_t>(upstream.dtype)}},
        {x.buffer, y.buffer, of_layouts, sums, or_sums(map.buffer),
            or_sums(upstream.elements.buffer), to_x, to_y, x.buffer, y.buffer, to_x, to_y},
        arguments, {.x = plan.strips, .y = plan.segments, .z = planes_});
    fold(by_x);
    fold(by_y);
    if (reduces && !pass_.value.empty()) add_up(sums, plan.tiles());
  }

 private:
  // A gradient as the kernel writes it: as the caller's, or padded, to be folded.
  struct Gradient {
    VkBuffer buffer = nullptr;
    Layout layout;
    DType dtype = DType::f32;
    bool is_in_vectors = true;
    Elements folded;  // the caller's; no buffer if the kernel writes it
    DType folded_dtype = DType::f32;
  };
  struct Plan {
    std::int64_t rows, strips, segments;
    std::int64_t tiles() const { return strips * segments; }
  };

  Gradient gradient_of(const TensorView& tensor) {
    if (tensor.empty()) return {};
    const Elements elements = results_.elements_of(tensor);
    if (!is_folded(pass_.padding)) {
      const Layout layout(elements);
      return {.buffer = elements.buffer,
          .layout = layout,
          .dtype = tensor.dtype,
          .is_in_vectors = tensor.dtype == DType::f32 && width_ % 4 == 0 && layout.is_in_fours()};
    }
    const std::int64_t radius_x = pass_.window.radius_x(), radius_y = pass_.window.radius_y();
    // The kernel begins `radius` before the image, with the first element, and ends in a vector.
    const std::int64_t pitch = padded_pitch(), rows = height_ + 2 * radius_y;
    gpu::vulkan::require_addressable(
        operation_, commands_.gpu(), planes_ * pitch * rows, sizeof(float));
    Gradient padded{.folded = elements, .folded_dtype = tensor.dtype};
    padded.buffer =
        commands_.workspace(static_cast<std::size_t>(planes_ * pitch * rows) * sizeof(float));
    padded.layout.offset = i32(radius_y * pitch + radius_x);
    padded.layout.image = i32(channels_ * pitch * rows);
    padded.layout.channel = i32(pitch * rows);
    padded.layout.row = i32(pitch);
    padded.layout.column = 1;
    return padded;
  }

  std::int64_t padded_pitch() const {
    return parts(width_ + 2 * pass_.window.radius_x(), kVector) * kVector;
  }

  // One number a plane, or one a window; of the ground two a plane.
  Layout upstream_layout(const Elements& elements) const {
    if (pass_.reduction == Reduction::none) return Layout(elements);
    const int rank = pass_.of_sums ? 2 : pass_.upstream.shape.rank();
    Layout layout;
    layout.offset = elements.offset;
    if (rank > 0) layout.image = elements.strides[0];
    if (rank > 1) layout.channel = elements.strides[1];
    return layout;
  }

  // The number of planes that a result is reduced from.
  std::int64_t planes_each() const {
    switch (pass_.reduction) {
      case Reduction::per_channel: return 1;
      case Reduction::per_image: return channels_;
      default: return planes_;
    }
  }
  bool is_mean() const {
    return pass_.reduction != Reduction::none && pass_.reduction != Reduction::sum;
  }
  std::int64_t map_pixels() const { return map_shape_[3] * map_shape_[4]; }

  WindowArguments window_arguments(bool is_negated) const {
    const double windows = is_mean() ? static_cast<double>(planes_each() * map_pixels()) : 1;
    const double pixels = is_mean() ? static_cast<double>(planes_each() * width_ * height_) : 1;
    // Neither is 0, so that no quotient is 0/0.
    const auto doubled = [](double c) { return std::max(1e-37f, static_cast<float>(2 * c)); };
    WindowArguments arguments{};
    arguments.one = 1;
    arguments.width = i32(width_);
    arguments.height = i32(height_);
    arguments.channels = i32(channels_);
    arguments.padding = static_cast<std::int32_t>(pass_.padding);
    if (pass_.l1_weight != 0) arguments.options |= kHasL1;
    // Contrast and structure alone: the term of means is 1, as if C1 were infinite.
    arguments.c1 = pass_.term == Term::contrast ? 1e38f : doubled(pass_.c1);
    arguments.c2 = doubled(pass_.c2);
    put_taps(pass_.window.x, arguments.taps_x);
    put_taps(pass_.window.y, arguments.taps_y);
    arguments.bias = static_cast<float>(pass_.bias);
    arguments.weight = static_cast<float>(pass_.term_weight);
    arguments.l1_weight = static_cast<float>(pass_.l1_weight * windows / pixels);
    arguments.slope = static_cast<float>(4 * pass_.term_weight / windows);
    arguments.l1_slope = static_cast<float>(pass_.l1_weight / pixels);
    arguments.sign = is_negated ? -1.0f : 1.0f;
    return arguments;
  }

  // Rows of a segment: many, since each reads the rim again, but so few that all of the device has
  // work.
  Plan plan_of() const {
    constexpr std::int64_t kWorkgroups = 3072, kLeastRows = 64, kMostRows = 256, kBatch = 4;
    const std::int64_t rims = has_gradient_ ? 2 : 1, rim = rims * pass_.window.radius_x();
    const bool is_padded = has_gradient_ && is_folded(pass_.padding);
    const std::int64_t columns = width_ + (is_padded ? 2 * pass_.window.radius_x() : 0);
    const std::int64_t all_rows = height_ + (is_padded ? 2 * pass_.window.radius_y() : 0);
    const std::int64_t strips = parts(columns, kColumns - 2 * rim);
    const std::int64_t wanted = parts(strips * planes_ * all_rows, kWorkgroups);
    const std::int64_t most = parts(std::clamp(wanted, kLeastRows, kMostRows), kBatch) * kBatch;
    const std::int64_t segments = parts(all_rows, most);
    const std::int64_t rows = parts(parts(all_rows, segments), kBatch) * kBatch;
    return {.rows = rows, .strips = strips, .segments = parts(all_rows, rows)};
  }

  // Queues the kernel that reduces sums over tiles to the values.
  void add_up(VkBuffer sums, std::int64_t tiles) {
    const Elements value = results_.elements_of(pass_.value);
    const auto windows = static_cast<double>(planes_each() * map_pixels());
    const bool is_sum = pass_.reduction == Reduction::sum;
    gpu::vulkan::queue_totals(commands_, sums,
        {.results = planes_ / planes_each(),
            .count = planes_each() * tiles,
            .bias = is_sum ? pass_.bias * windows : pass_.bias,
            .factor = is_sum ? 1 : 1 / windows},
        value, pass_.value.dtype);
  }

  void fold(const Gradient& gradient) {
    if (gradient.folded.buffer == nullptr) return;
    FoldArguments arguments{};
    arguments.one = 1;
    arguments.width = i32(width_);
    arguments.height = i32(height_);
    arguments.channels = i32(channels_);
    arguments.radius_x = pass_.window.radius_x();
    arguments.radius_y = pass_.window.radius_y();
    arguments.padding = static_cast<std::int32_t>(pass_.padding);
    const Layout to(gradient.folded);
    arguments.offset = to.offset;
    const std::int32_t strides[] = {to.image, to.channel, to.row, to.column};
    std::copy_n(strides, 4, arguments.strides);
    commands_.run(
        {.module = "ssim/fold",
            .constants = {static_cast<std::int32_t>(gradient.folded_dtype), i32(kVector)}},
        {gradient.buffer, gradient.folded.buffer}, arguments,
        {.x = parts(width_, kFoldColumns), .y = height_, .z = planes_});
  }

  const char* operation_;
  Commands& commands_;
  Results& results_;
  const Pass& pass_;
  const TensorView& ground_;
  std::int64_t images_, channels_, height_, width_, planes_;
  Extents map_shape_;
  bool has_gradient_;
};

[[noreturn]] void refuse_pass(const char* operation, const char* what) {
  throw DeviceError(fmt::format(
      "{}: {}; through Vulkan it takes images of uint8, float16, bfloat16 or float32 under windows "
      "of up to 11, without masks",
      operation, what));
}

}  // namespace

void require_kernels(const char* operation, const Pass& pass, bool are_volumes) {
  const auto refuse = [&](const char* what) { refuse_pass(operation, what); };
  const Window& window = pass.window;
  if (!pass.mask.empty() || !pass.valid_mask.empty()) refuse("a mask is given");
  if (!pass.counted.are_all()) refuse("rows are given");
  if (pass.sums) refuse("sums are wanted");
  if (are_volumes || window.radius_z() != 0) refuse("the images are volumes");
  if (window.radius_x() > kLargestRadius || window.radius_y() > kLargestRadius)
    refuse("window_size is above 11");
  if (pass.x.dtype != DType::u8 && pass.x.dtype != DType::f16 && pass.x.dtype != DType::bf16 &&
      pass.x.dtype != DType::f32) {
    refuse(fmt::format("x is {}", name(pass.x.dtype)).c_str());
  }
  if (!pass.upstream.empty() && pass.upstream.dtype == DType::f64 &&
      pass.upstream.device.kind != DeviceKind::cpu) {
    refuse("upstream is float64 on the GPU");
  }
}

void queue_ssim(const char* operation, Commands& commands, Results& results, const Pass& pass,
    const TensorView& ground) {
  Queue(operation, commands, results, pass, ground).run();
}

}  // namespace similis::ssim_internal
