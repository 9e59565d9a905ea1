// SPDX-License-Identifier: Apache-2.0
// Integer SSIM through Vulkan, as cuda.cu has it: terms, maps of what chunks of them do to the
// running sum, and the walk over the maps. Planes on the CPU are copied over in the same commands.
#include <algorithm>
#include <memory>
#include <utility>

#include "src/gpu/launch/vulkan/elements.h"
#include "src/gpu/launch/vulkan/staged_batches.h"
#include "src/gpu/vulkan/device_functions.h"
#include "src/libvmaf_ssim/integer/formula.h"
#include "src/libvmaf_ssim/libvmaf_ssim.h"
#include "src/libvmaf_ssim/samples.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using gpu::vulkan::Commands;
using gpu::vulkan::Elements;
using gpu::vulkan::Gpu;
using gpu::vulkan::KernelArguments;

// As in the kernels.
constexpr std::int64_t kColumns = 120, kChunkTerms = 64, kGroupTerms = 8192, kMapBytes = 64;
constexpr std::int64_t kRows = 32;  // of a stripe, which reads 8 more
// Several frames go together, as long as their terms take at most 512 MB.
constexpr std::int64_t kMostTerms = std::int64_t{1} << 26, kMostFrames = 4096;

// Arguments of the kernels, laid out as theirs.
struct TermsArguments : KernelArguments {
  std::int32_t width, height, bit_depth;
  double c1, c2;
  std::int32_t rows;
  std::int32_t offset_x, strides_x[3], offset_y, strides_y[3];
};
struct MapsArguments : KernelArguments {
  std::int32_t width, height, rows, tiles, stripes;
};
struct WalkArguments : KernelArguments {
  std::int32_t count, first_score;
  double total_weight;
};

std::int64_t parts(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

// The frames of a batch.
TensorView frames_of(const TensorView& planes, std::int64_t first, std::int64_t count) {
  TensorView frames = planes;
  frames.offset += first * planes.strides[0];
  frames.shape[0] = count;
  return frames;
}

void put(const Elements& samples, std::int32_t& offset, std::int32_t (&strides)[3]) {
  offset = samples.offset;
  std::copy_n(samples.strides, 3, strides);
}

// Queues the kernels for a batch of frames; the score of the first goes to scores[first_score].
void score_frames(Commands& commands, const PlanePairs& planes, VkBuffer scores,
    std::int64_t first_score, const char* suffix, const Execution& exec) {
  const std::int64_t width = planes.width(), height = planes.height(), frames = planes.count();
  const std::int64_t count = width * height, terms_count = frames * count;
  const std::int64_t tiles = parts(width, kColumns), stripes = parts(height, kRows);
  const std::int64_t chunks = frames * parts(count, kChunkTerms);
  const std::int64_t groups = frames * parts(count, kGroupTerms);
  const Elements x = gpu::vulkan::elements_of("integer_ssim", commands, planes.x, exec);
  const Elements y = gpu::vulkan::elements_of("integer_ssim", commands, planes.y, exec);
  gpu::vulkan::require_addressable("integer_ssim", commands.gpu(), terms_count, sizeof(double));

  const auto bytes = [](std::int64_t elements, std::int64_t each) {
    return static_cast<std::size_t>(elements * each);
  };
  const VkBuffer terms = commands.workspace(bytes(terms_count, sizeof(double)));
  const VkBuffer tile_sums = commands.workspace(bytes(frames * stripes * tiles, sizeof(float)));
  const VkBuffer exceeded = commands.workspace(bytes(frames, sizeof(std::uint32_t)));
  const VkBuffer chunk_maps = commands.workspace(bytes(chunks, kMapBytes));
  const VkBuffer group_maps = commands.workspace(bytes(groups, kMapBytes));
  commands.clear(exceeded, bytes(frames, sizeof(std::uint32_t)));

  const Weight unit = weight_of(1, planes.bit_depth);
  TermsArguments of_terms{{}, static_cast<std::int32_t>(width), static_cast<std::int32_t>(height),
      planes.bit_depth, unit.c1, unit.c2, kRows, 0, {}, 0, {}};
  put(x, of_terms.offset_x, of_terms.strides_x);
  put(y, of_terms.offset_y, of_terms.strides_y);
  const std::string kernel = planes.bit_depth <= 10 ? "centred_terms" : "whole_terms";
  commands.run({.module = "libvmaf_ssim/" + kernel + suffix,
                   .constants = {static_cast<std::int32_t>(size_bytes(planes.x.dtype))}},
      {x.buffer, y.buffer, terms, tile_sums, exceeded}, of_terms,
      {.x = tiles, .y = stripes, .z = frames});
  const MapsArguments of_maps{{}, static_cast<std::int32_t>(width),
      static_cast<std::int32_t>(height), kRows, static_cast<std::int32_t>(tiles),
      static_cast<std::int32_t>(stripes)};
  commands.run({.module = "libvmaf_ssim/maps"}, {terms, tile_sums, chunk_maps, group_maps}, of_maps,
      {.x = parts(count, kGroupTerms), .y = frames});
  const WalkArguments of_walk{{}, static_cast<std::int32_t>(count),
      static_cast<std::int32_t>(first_score), total_weight(height, width)};
  commands.run({.module = std::string("libvmaf_ssim/walk") + suffix},
      {terms, chunk_maps, group_maps, exceeded, scores}, of_walk, {.x = frames});
}

}  // namespace

void integer_ssim_vulkan(const PlanePairs& planes, const TensorView& value, const Execution& exec) {
  const bool is_staged = planes.x.device.kind == DeviceKind::cpu;
  if (is_staged) require_samples("integer_ssim", planes, exec);
  Gpu& gpu = gpu::vulkan::gpu_of("integer_ssim", planes.x.device, exec);
  const char* const suffix = gpu.exact_arithmetic("integer_ssim").uses_device_doubles ? "_f64" : "";
  const std::int64_t pixels = planes.height() * planes.width();
  const std::int64_t most_terms = std::min<std::int64_t>(
      kMostTerms, gpu.limits().maxStorageBufferRange / static_cast<std::int64_t>(sizeof(double)));
  std::int64_t batch =
      std::clamp<std::int64_t>(most_terms / std::max<std::int64_t>(pixels, 1), 1, kMostFrames);
  if (is_staged) {
    const auto bytes_each = static_cast<std::int64_t>(size_bytes(planes.x.dtype));
    batch = std::min(batch, gpu::vulkan::staged_pairs(2 * pixels * bytes_each));
  }
  gpu::vulkan::StagedBatches staged;
  for (std::int64_t first = 0; first < planes.count(); first += batch) {
    const std::int64_t count = std::min(batch, planes.count() - first);
    PlanePairs frames = planes;
    frames.x = frames_of(planes.x, first, count);
    frames.y = frames_of(planes.y, first, count);
    auto commands = std::make_unique<Commands>(gpu);
    if (!is_staged) {
      score_frames(*commands, frames, static_cast<VkBuffer>(value.handle), value.offset + first,
          suffix, exec);
      commands->submit();
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
    const VkBuffer scores = commands->workspace(bytes);
    score_frames(*commands, frames, scores, 0, suffix, exec);
    const void* const found = commands->download(scores, 0, bytes);
    staged.add(std::move(commands), found, static_cast<double*>(value.data()) + first, bytes);
  }
  staged.finish();
}

}  // namespace similis::libvmaf_ssim_internal
