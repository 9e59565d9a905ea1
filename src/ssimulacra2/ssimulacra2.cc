// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1: what is refused, which backgrounds are taken, and which score counts.
#include "src/ssimulacra2/ssimulacra2.h"

#include <algorithm>
#include <vector>

#include "src/core/backend.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"

namespace similis {
namespace ssimulacra2_internal {

Pictures Pictures::picture(std::int64_t index) const {
  Pictures one = *this;
  one.samples.shape[0] = 1;
  one.samples.offset += index * samples.strides[0];
  return one;
}

Backgrounds backgrounds_of(bool reference_has_alpha) {
  if (reference_has_alpha) return {2, {.1f, .9f}};
  return {1, {.5f, .5f}};
}

}  // namespace ssimulacra2_internal

namespace {

using namespace ssimulacra2_internal;

constexpr const char* kOperation = "ssimulacra2";

// One picture is a batch of one.
Pictures checked_side(const char* argument, const TensorView& view, Ssimulacra2Transfer transfer) {
  const int rank = view.shape.rank();
  require(rank == 3 || rank == 4, "{}: {} has shape {}; it must be [C, H, W] or [N, C, H, W]",
      kOperation, argument, view.shape);
  const std::int64_t channels = view.shape[rank - 3];
  require(channels >= 1 && channels <= 4,
      "{}: {} has {} channels; it must have 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and "
      "alpha)",
      kOperation, argument, channels);
  const std::int64_t shorter = std::min(view.shape[rank - 2], view.shape[rank - 1]);
  require(shorter >= kSsimulacra2SmallestSide,
      "{}: {} has shape {}; height and width must be at least {}", kOperation, argument, view.shape,
      kSsimulacra2SmallestSide);
  require(rank == 3 || view.shape[0] > 0, "{}: {} has shape {}; every extent must be at least 1",
      kOperation, argument, view.shape);
  require(!view.empty(), "{}: {} has no data", kOperation, argument);
  require(!is_cpu_only(view.dtype),
      "{}: {} is {}; it must be uint8, uint16, float16, bfloat16, float32 or float64", kOperation,
      argument, view.dtype);
  Pictures side{.samples = view, .transfer = transfer};
  if (rank == 3) {
    side.samples.shape = {1, view.shape[0], view.shape[1], view.shape[2]};
    side.samples.strides = {0, view.strides[0], view.strides[1], view.strides[2]};
  }
  return side;
}

// The shape without its channels: of x and y these are to be the same.
Extents without_channels(const Extents& shape) {
  if (shape.rank() == 3) return {shape[1], shape[2]};
  return {shape[0], shape[2], shape[3]};
}

struct Pair {
  Pictures x, y;
};

Pair checked_pair(const TensorView& x, const TensorView& y, const Ssimulacra2Options& options,
    const Operation<ScorePass>& operation, const Execution& exec) {
  operation.table.check(&options);
  const Pair pair{checked_side("x", x, options.transfer), checked_side("y", y, options.transfer)};
  require(without_channels(x.shape) == without_channels(y.shape),
      "{}: y has shape {}; but for channels it must be that of x, {}", kOperation, y.shape,
      x.shape);
  require(y.dtype == x.dtype, "{}: y is {}; it must be {} as x is", kOperation, y.dtype, x.dtype);
  require(y.device == x.device, "{}: y is on {}; it must be on {} as x is", kOperation, y.device,
      x.device);
  operation.require_runs_on(x.device, exec);
  return pair;
}

Extents score_shape(const TensorView& y) {
  return y.shape.rank() == 4 ? Extents{y.shape[0]} : Extents{};
}

double score_of(const PairSums& sums, const Pictures& y) {
  return score_of_sum(weighted_sum(scales_of(y.height(), y.width()), sums));
}

// The lowest of the scores of one pair on the CPU, and the map of that score.
double score_cpu(
    const Pictures& x, const Pictures& y, Ssimulacra2Mode mode, float* map, const Execution& exec) {
  const Backgrounds backgrounds = backgrounds_of(x.has_alpha());
  double lowest = 0;
  CpuPass worst;
  PairSums worst_sums;
  for (int i = 0; i < backgrounds.count; ++i) {
    const CpuPass pass{.x = x,
        .y = y,
        .background = backgrounds.values[static_cast<std::size_t>(i)],
        .mode = mode};
    const PairSums sums = sums_cpu(pass, exec);
    const double score = score_of(sums, y);
    if (i > 0 && !(score < lowest)) continue;
    lowest = score;
    worst = pass;
    worst_sums = sums;
  }
  if (map == nullptr) return lowest;
  const LossWeights loss = loss_weights(scales_of(y.height(), y.width()), worst_sums);
  std::fill_n(map, y.height() * y.width(), 0.0f);
  worst.loss = &loss;
  worst.map = map;
  sums_cpu(worst, exec);
  return lowest;
}

}  // namespace

void ssimulacra2_internal::ssimulacra2_cpu(const ScorePass& pass, const Execution& exec) {
  const std::int64_t pixels = pass.y.height() * pass.y.width();
  for (std::int64_t i = 0; i < pass.y.count(); ++i) {
    float* map = pass.map.empty() ? nullptr : static_cast<float*>(pass.map.data()) + i * pixels;
    const double score = score_cpu(pass.x.picture(i), pass.y.picture(i), pass.mode, map, exec);
    if (!pass.value.empty()) static_cast<double*>(pass.value.data())[i] = score;
  }
}

void ssimulacra2_into(const TensorView& x, const TensorView& y, const Ssimulacra2Request& request,
    const Ssimulacra2Options& options, const Execution& exec) {
  const Operation<ScorePass>& operation = request.map.empty() ? kSsimulacra2 : kSsimulacra2Map;
  const Pair pair = checked_pair(x, y, options, operation, exec);
  require_result(kOperation, "value", request.value, score_shape(y), kFloat64, y, "y");
  require_result(kOperation, "map", request.map, without_channels(y.shape), kFloat32, y, "y");
  operation.run(
      {.x = pair.x, .y = pair.y, .mode = options.mode, .value = request.value, .map = request.map},
      y.device, exec);
}

Tensor ssimulacra2(const TensorView& x, const TensorView& y, const Ssimulacra2Options& options,
    const Execution& exec) {
  checked_pair(x, y, options, kSsimulacra2, exec);
  Tensor value = allocate(score_shape(y), DType::f64, y.device, exec);
  ssimulacra2_into(x, y, {.value = value}, options, exec);
  return value;
}

struct Ssimulacra2Reference::State {
  Ssimulacra2Options options;
  Extents size;
  DType dtype;
  Backgrounds backgrounds;
  std::array<std::shared_ptr<const Pyramid>, 2> pyramids;
};

Ssimulacra2Reference::Ssimulacra2Reference(
    const TensorView& x, const Ssimulacra2Options& options, const Execution& exec) {
  const Pictures side = checked_side("x", x, options.transfer);
  require(x.shape.rank() == 3, "{}: x has shape {}; a reference must be one picture, [C, H, W]",
      kOperation, x.shape);
  require_backend(x.device, "ssimulacra2: a reference kept", x.device.kind == DeviceKind::cpu);
  kSsimulacra2.table.check(&options);
  const auto state = std::make_shared<State>();
  state->options = options;
  state->size = {side.height(), side.width()};
  state->dtype = x.dtype;
  state->backgrounds = backgrounds_of(side.has_alpha());
  for (int i = 0; i < state->backgrounds.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    state->pyramids[at] = make_pyramid_cpu(side, state->backgrounds.values[at], options.mode, exec);
  }
  state_ = state;
}

void Ssimulacra2Reference::score_into(
    const TensorView& y, const TensorView& value, const Execution& exec) const {
  const State& state = *state_;
  const Pictures side = checked_side("y", y, state.options.transfer);
  require(Extents({side.height(), side.width()}) == state.size,
      "{}: y has shape {}; its height and width must be those of the reference, {}", kOperation,
      y.shape, state.size);
  require(y.dtype == state.dtype, "{}: y is {}; it must be {} as the reference is", kOperation,
      y.dtype, state.dtype);
  require_backend(y.device, "ssimulacra2: a reference kept", y.device.kind == DeviceKind::cpu);
  require_result(kOperation, "value", value, score_shape(y), kFloat64, y, "y");
  for (std::int64_t i = 0; i < side.count(); ++i) {
    double lowest = 0;
    for (int k = 0; k < state.backgrounds.count; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const CpuPass pass{.x = {},
          .y = side.picture(i),
          .background = state.backgrounds.values[at],
          .mode = state.options.mode,
          .pyramid = state.pyramids[at].get()};
      const double score = score_of(sums_cpu(pass, exec), side);
      lowest = k == 0 ? score : std::min(lowest, score);
    }
    static_cast<double*>(value.data())[i] = lowest;
  }
}

Tensor Ssimulacra2Reference::score(const TensorView& y, const Execution& exec) const {
  checked_side("y", y, state_->options.transfer);
  Tensor value = allocate(score_shape(y), DType::f64, y.device, exec);
  score_into(y, value, exec);
  return value;
}

}  // namespace similis
