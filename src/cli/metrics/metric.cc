// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/metric.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "src/cli/device.h"
#include "src/cli/inputs/rows.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"

namespace similis::cli {
namespace {

// The pixels whose mask is not 0, as one row for each channel: for measures that ignore where a
// pixel lies.
Tensor pixels_left(const TensorView& image, const Tensor& mask, const Execution& exec) {
  const Tensor values = on_device({image, nullptr}, {}, exec), left_in = on_device(mask, {}, exec);
  const auto* const weights = left_in.elements<std::uint8_t>();
  const std::int64_t pixels = left_in.shape.count(), channels = values.shape[1];
  const std::int64_t columns = values.shape[values.shape.rank() - 1];
  const std::int64_t rows = row_count(values.shape) / channels;
  const std::int64_t count = pixels - std::count(weights, weights + pixels, std::uint8_t{0});
  require(count > 0, "no pixel has finite values on both sides");
  const Tensor left = allocate({1, channels, 1, count}, values.dtype, {}, exec);
  visit_dtype(values.dtype, [&]<class T>(std::type_identity<T>) {
    T* to = static_cast<T*>(left.data());
    for (std::int64_t row = 0; row < rows * channels; ++row) {
      const T* const from = static_cast<const T*>(values.data()) + row_offset(values, row);
      const std::uint8_t* const weight = weights + row % rows * columns;
      for (std::int64_t i = 0; i < columns; ++i) {
        if (weight[i] != 0) *to++ = from[i * row_stride(values)];
      }
    }
  });
  return on_device(left, image.device, exec);
}

}  // namespace

Metric metric(const char* name, const char* description, const ListedOperation& operation,
    PlainMetricFunction function) {
  Metric result{.name = name,
      .description = description,
      .runs_on_gpu = operation.on_cuda,
      .runs_on_vulkan = operation.on_vulkan};
  result.configure = [function](const Settings&) {
    Measure measure;
    measure.value = [function](const FramePair& pair, const Execution& exec) {
      if (pair.mask.empty()) {
        return item(function(pair.reference, pair.distorted, Reduction::mean, exec));
      }
      return item(function(pixels_left(pair.reference, pair.mask, exec),
          pixels_left(pair.distorted, pair.mask, exec), Reduction::mean, exec));
    };
    measure.settings = [](std::optional<double>) { return Settings{}; };
    return measure;
  };
  return result;
}

Metric metric(const char* name, const char* description, const LumaMeasure& luma_measure,
    std::vector<Option<LumaOptions>> options) {
  Metric result{.name = name,
      .description = description,
      .options = described(options),
      .video_planes = VideoPlanes::luma,
      .runs_on_vulkan = luma_measure.runs_on_vulkan};
  result.configure = [&luma_measure, options, name](const Settings& settings) {
    const LumaOptions chosen = with_settings(settings, options);
    Measure measure{.takes_luma = true, .parts = luma_measure.parts(chosen)};
    measure.values = [&luma_measure, chosen, name](const FramePair& pair, const Execution& exec) {
      require(!pair.luma.reference.empty(),
          "{} takes the luma of video; pictures and volumes have none", name);
      return luma_measure.scores(pair.luma, chosen, exec);
    };
    measure.value = [values = measure.values](const FramePair& pair, const Execution& exec) {
      return values(pair, exec).front();
    };
    measure.settings = [chosen, options](
                           std::optional<double>) { return settings_of(chosen, options); };
    return measure;
  };
  return result;
}

std::vector<double> all_values(
    const Measure& measure, const FramePair& pair, const Execution& exec) {
  if (measure.values) return measure.values(pair, exec);
  return {measure.value(pair, exec)};
}

void require_runs_on(const Measure& measure, Device device) {
  const bool is_vulkan = device.kind == DeviceKind::vulkan;
  require(
      device.kind == DeviceKind::cpu || (is_vulkan ? measure.runs_on_vulkan : measure.runs_on_gpu),
      "{} {}; {}", measure.name, is_vulkan ? "has no kernels for Vulkan" : "runs on the CPU alone",
      way_to_cpu(device));
}

FramePair frames_on_device(const FramePair& frames, Device device, const Execution& exec) {
  FramePair moved = frames;
  moved.device = device;
  if (frames.reference.empty()) return moved;
  moved.reference = on_device(frames.reference, device, exec);
  moved.distorted = on_device(frames.distorted, device, exec);
  if (!frames.mask.empty()) moved.mask = on_device(frames.mask, device, exec);
  return moved;
}

}  // namespace similis::cli
