// SPDX-License-Identifier: Apache-2.0
// The refusals of a clip, and its planes as the features take them.
#include "similis/vmaf.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/core/backend.h"
#include "src/core/require.h"
#include "src/core/validate.h"
#include "src/gpu/device.h"
#include "src/vmaf/clip.h"
#include "src/vmaf/gpu_meter.h"

namespace similis {
namespace {

using namespace vmaf_internal;

void require_plane(const char* name, const TensorView& plane) {
  require(plane.dtype == DType::u8 || plane.dtype == DType::u16,
      "vmaf: {} is {}; it must be uint8 or uint16", name, plane.dtype);
  require_backend(plane.device, "vmaf", plane.device.kind != DeviceKind::vulkan);
}

void require_planes(
    const TensorView& reference, const TensorView& distorted, const Execution& exec) {
  require_plane("reference", reference);
  require_plane("distorted", distorted);
  require(distorted.shape == reference.shape,
      "vmaf: distorted has shape {}; it must be that of reference, {}", distorted.shape,
      reference.shape);
  require(distorted.dtype == reference.dtype,
      "vmaf: distorted is {}; it must be {}, as reference is", distorted.dtype, reference.dtype);
  require(distorted.device == reference.device,
      "vmaf: distorted is on {}; it must be on {}, as reference is", distorted.device,
      reference.device);
  if (reference.device.kind != DeviceKind::cpu) device_of("vmaf", reference.device, exec);
}

int bit_depth_of(const TensorView& plane, std::optional<int> given) {
  if (plane.dtype == DType::u8) {
    require(given.value_or(8) == 8, "vmaf: bit_depth is {}; it must be 8 for uint8", *given);
    return 8;
  }
  const int depth = given.value_or(16);
  require(depth == 8 || depth == 10 || depth == 12 || depth == 16,
      "vmaf: bit_depth is {}; it must be 8, 10, 12 or 16", depth);
  return depth;
}

std::string model_text(const std::string& text) {
  if (text.find('=') != std::string::npos) return text;
  return (text.find('/') != std::string::npos || text.ends_with(".json") ? "path=" : "version=") +
         text;
}

std::vector<Model> models_of(const VmafOptions& options) {
  std::vector<Model> models;
  for (const std::string& text : options.models) {
    const ModelRequest request = parse_model_request(model_text(text));
    const auto other = std::find_if(models.begin(), models.end(),
        [&](const Model& model) { return model.name == request.name; });
    require(
        other == models.end(), "two models are named {}; give one a name with name=", request.name);
    models.push_back(load_model(request));
  }
  return models;
}

FeatureRequest feature_of(const std::string& text) {
  const std::string_view name = std::string_view(text).substr(0, text.find('='));
  auto request = FeatureRequest::named(name);
  require(request.has_value(),
      "there is no feature \"{}\"; those there are: adm, cambi, motion, vif", name);
  request->set_all(std::string_view(text).substr(std::min(text.size(), name.size() + 1)));
  request->require_valid();
  return *request;
}

Clip clip_of(const VmafOptions& options, std::int64_t height, std::int64_t width) {
  try {
    std::vector<Model> models = models_of(options);
    std::vector<FeatureRequest> features;
    for (const std::string& text : options.features) features.push_back(feature_of(text));
    std::vector<FeatureRequest> requests = requests_of(models, features);
    require(!requests.empty(), "models and features are empty; name one at least");
    return Clip(std::move(requests), std::move(models), width, height);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("vmaf: {}", error.what()));
  }
}

// A plane with dense rows: the caller's, or a copy in `memory`.
template <class Sample>
Plane dense_plane(const TensorView& view, int bit_depth, std::vector<std::uint16_t>& memory) {
  const auto* from = static_cast<const Sample*>(view.data());
  const std::int64_t height = view.shape[0], width = view.shape[1];
  Plane plane{from, view.strides[0], width, height, sizeof(Sample) == 2, bit_depth};
  if (view.strides[1] == 1) return plane;
  memory.resize(static_cast<std::size_t>(height * width));
  auto* to = reinterpret_cast<Sample*>(memory.data());
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      to[y * width + x] = from[y * view.strides[0] + x * view.strides[1]];
    }
  }
  plane.samples = to;
  plane.row_stride = width;
  return plane;
}

void require_samples(const char* name, const Plane& plane) {
  if (!plane.is_words || plane.bit_depth == 16) return;
  std::uint16_t largest = 0;
  for (std::int64_t y = 0; y < plane.height; ++y) {
    const auto* row = plane.row<std::uint16_t>(y);
    for (std::int64_t x = 0; x < plane.width; ++x) largest = std::max(largest, row[x]);
  }
  require_sample_depth(name, largest, plane.bit_depth);
}

// Frames as [N,H,W].
TensorView frames_of(const TensorView& planes) {
  if (planes.shape.rank() == 3) return planes;
  return planes.reshaped({1, planes.shape[0], planes.shape[1]},
      {planes.shape[0] * planes.strides[0], planes.strides[0], planes.strides[1]});
}

TensorView frame_of(const TensorView& frames, std::int64_t index) {
  TensorView frame =
      frames.reshaped({frames.shape[1], frames.shape[2]}, {frames.strides[1], frames.strides[2]});
  frame.offset += index * frames.strides[0];
  return frame;
}

}  // namespace

struct VmafScorer::State {
  State(std::int64_t rows, std::int64_t row_samples, const VmafOptions& options)
      : height(rows),
        width(row_samples),
        bit_depth(options.bit_depth),
        clip(clip_of(options, height, width)),
        columns(clip.columns()) {}

  // Later frames look back at earlier ones.
  void require_like_earlier(const TensorView& reference) const {
    require(!device || *device == reference.device,
        "vmaf: reference is on {}; it must be on {}, as the scorer's earlier frames were",
        reference.device, device.value_or(reference.device));
    require(!dtype || *dtype == reference.dtype,
        "vmaf: reference is {}; it must be {}, as the scorer's earlier frames were",
        reference.dtype, dtype.value_or(reference.dtype));
  }
  void push_on_cpu(
      const TensorView& reference, const TensorView& distorted, int depth, const Execution& exec);
  void push_on_gpu(
      const TensorView& reference, const TensorView& distorted, int depth, const Execution& exec);

  std::int64_t height, width;
  std::optional<int> bit_depth;
  Clip clip;
  std::vector<std::string> columns;
  std::vector<std::uint16_t> reference_memory, distorted_memory;
  std::optional<Device> device;  // of the frames so far
  std::optional<DType> dtype;
  std::unique_ptr<GpuMeter> meter;
};

void VmafScorer::State::push_on_cpu(
    const TensorView& reference, const TensorView& distorted, int depth, const Execution& exec) {
  const auto plane = [&](const TensorView& view, std::vector<std::uint16_t>& memory) {
    return view.dtype == DType::u8 ? dense_plane<std::uint8_t>(view, depth, memory)
                                   : dense_plane<std::uint16_t>(view, depth, memory);
  };
  const std::int64_t count = reference.shape[0];
  for (std::int64_t i = 0; i < count; ++i) {  // all are checked before the first is taken
    require_samples("reference", plane(frame_of(reference, i), reference_memory));
    require_samples("distorted", plane(frame_of(distorted, i), distorted_memory));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    clip.push({plane(frame_of(reference, i), reference_memory),
                  plane(frame_of(distorted, i), distorted_memory)},
        true, exec);
  }
}

void VmafScorer::State::push_on_gpu(
    const TensorView& reference, const TensorView& distorted, int depth, const Execution& exec) {
  require(clip.plan().cambi_settings.empty(),
      "vmaf: cambi has no kernels for a GPU; give planes on the CPU");
  if (!meter) meter = make_gpu_meter(clip.plan(), reference.device);
  for (const FrameSums& sums : meter->measure(reference, distorted, depth, exec)) {
    clip.push(sums, sums.pairs.data());
  }
}

VmafScorer::VmafScorer(std::int64_t height, std::int64_t width, const VmafOptions& options)
    : state_(std::make_unique<State>(height, width, options)) {}
VmafScorer::~VmafScorer() = default;
VmafScorer::VmafScorer(VmafScorer&&) noexcept = default;
VmafScorer& VmafScorer::operator=(VmafScorer&&) noexcept = default;

const std::vector<std::string>& VmafScorer::columns() const { return state_->columns; }

void VmafScorer::push(
    const TensorView& reference, const TensorView& distorted, const Execution& exec) {
  State& state = *state_;
  require_planes(reference, distorted, exec);
  const int rank = reference.shape.rank();
  require((rank == 2 || rank == 3) && reference.shape[rank - 2] == state.height &&
              reference.shape[rank - 1] == state.width,
      "vmaf: reference has shape {}; the scorer takes [{}, {}] or several frames of it, [N, {}, "
      "{}]",
      reference.shape, state.height, state.width, state.height, state.width);
  state.require_like_earlier(reference);
  const int bit_depth = bit_depth_of(reference, state.bit_depth);
  const TensorView frames = frames_of(reference), of_distorted = frames_of(distorted);
  if (reference.device.kind == DeviceKind::cpu) {
    state.push_on_cpu(frames, of_distorted, bit_depth, exec);
  } else {
    state.push_on_gpu(frames, of_distorted, bit_depth, exec);
  }
  state.device = reference.device;
  state.dtype = reference.dtype;
}

void VmafScorer::finish() { state_->clip.finish(); }

std::optional<VmafNumbers> VmafScorer::pop() {
  const auto frame = state_->clip.pop();
  if (!frame) return std::nullopt;
  return VmafNumbers{frame->index, values_of(*frame)};
}

void vmaf_into(const TensorView& reference, const TensorView& distorted, const TensorView& value,
    const VmafOptions& options, const Execution& exec) {
  const int rank = reference.shape.rank();
  require(rank == 2 || rank == 3, "vmaf: reference has shape {}; it must be [H, W] or [N, H, W]",
      reference.shape);
  require_planes(reference, distorted, exec);
  require(!options.models.empty(), "vmaf: models is empty; name one at least");
  const Extents shape = rank == 3 ? Extents{reference.shape[0]} : Extents{};
  require(!value.empty(), "vmaf: value is empty; it must have the result's shape, {}", shape);
  require_result("vmaf", "value", value, shape, kFloat64, reference, "reference");
  VmafOptions first = options;
  first.models.resize(1);
  VmafScorer scorer(reference.shape[rank - 2], reference.shape[rank - 1], first);
  const auto& columns = scorer.columns();
  const std::string name = parse_model_request(model_text(first.models[0])).name;
  const auto column =
      static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  std::vector<double> scores;
  const auto take = [&] {
    while (const auto numbers = scorer.pop()) scores.push_back(numbers->values[column]);
  };
  // A GPU takes all frames in one call. On the CPU the numbers of a frame are not kept for long.
  const bool is_on_cpu = reference.device.kind == DeviceKind::cpu;
  for (std::int64_t i = 0; is_on_cpu && i < (rank == 3 ? reference.shape[0] : 1); ++i) {
    const auto frame = [&](const TensorView& planes) { return frame_of(frames_of(planes), i); };
    scorer.push(frame(reference), frame(distorted), exec);
    take();
  }
  if (!is_on_cpu) scorer.push(reference, distorted, exec);
  scorer.finish();
  take();
  if (is_on_cpu) {
    std::copy(scores.begin(), scores.end(), static_cast<double*>(value.data()));
  } else {
    gpu::copy_from_cpu(value, scores.data(), scores.size() * sizeof(double), exec.queue.handle);
  }
}

Tensor vmaf(const TensorView& reference, const TensorView& distorted, const VmafOptions& options,
    const Execution& exec) {
  const Extents shape = reference.shape.rank() == 3 ? Extents{reference.shape[0]} : Extents{};
  require_planes(reference, distorted, exec);
  Tensor value = allocate(shape, DType::f64, reference.device, exec);
  vmaf_into(reference, distorted, value, options, exec);
  return value;
}

}  // namespace similis
