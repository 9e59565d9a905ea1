// SPDX-License-Identifier: Apache-2.0
#include "src/registration/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "similis/fields.hpp"
#include "similis/lncc.hpp"
#include "similis/mutual_information.hpp"
#include "similis/ncc.hpp"
#include "src/core/require.h"
#include "src/registration/geometry.h"
#include "src/registration/levels.h"
#include "src/registration/options.h"
#include "src/registration/passes.h"
#include "src/registration/similarity.h"

namespace similis {
namespace registration_internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kManyRepairs = 0.01, kStrongWarp = 1, kFewVoxels = 0.5;  // from here on: a warning

Json metric_json(const MetricTerm& term) {
  Json metric = {{"name", name(term.metric)}, {"weight", term.weight}};
  if (term.metric == RegisterMetric::lncc) metric["window_size"] = term.window_size;
  if (term.metric == RegisterMetric::mi) {
    metric["bins"] = term.num_bins;
    metric["sampling"] = term.sampling;
    metric["seed"] = term.seed;
  }
  return metric;
}

Json settings_json(const Registration& result, const RegisterOptions& options) {
  Json stages = Json::array(), metrics = Json::array();
  for (const RegisterStage stage : options.stages) stages.push_back(name(stage));
  for (const MetricTerm& term : options.metrics) metrics.push_back(metric_json(term));
  Json settings = {{"stages", stages}, {"init", name(options.start)},
      {"preset", name(options.preset)}, {"linear_metric", metric_json(options.linear_metric)},
      {"metrics", metrics}};
  if (!result.levels.empty()) {
    settings["levels"] = result.levels;
    settings["iterations"] = result.iterations;
    settings["fluid"] = result.fluid;
    settings["elastic"] = result.elastic;
  }
  settings["step"] = options.step;
  settings["min_jacobian"] = options.min_jacobian;
  settings["tolerance"] = options.tolerance;
  settings["nan"] = options.mask_not_finite ? "mask" : "error";
  settings["fixed_mask"] = !options.fixed_mask.empty();
  settings["moving_mask"] = !options.moving_mask.empty();
  return settings;
}

Json stages_json(const Registration& result) {
  Json stages = Json::array();
  for (const RegisterStageReport& stage : result.stages) {
    Json levels = Json::array();
    for (const RegisterLevel& level : stage.levels) {
      Json json = {{"shrink", level.shrink}, {"iterations", level.loss.size()},
          {"loss", level.loss}, {"stopped", level.stopped}};
      if (!level.min_jacobian.empty()) json["min_jacobian"] = level.min_jacobian;
      levels.push_back(json);
    }
    stages.push_back({{"name", name(stage.stage)}, {"seconds", stage.seconds}, {"levels", levels}});
  }
  return stages;
}

double quantile(std::vector<float>& values, double share) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

Json jacobian_json(const Tensor& given) {
  const Tensor jacobian = on_cpu(given, {});
  const float* const begin = jacobian.elements<float>();
  std::vector<float> values(begin, begin + jacobian.shape.count());
  double sum = 0, squares = 0;
  for (const float value : values) {
    const double logarithm = std::log(std::max(1e-6, static_cast<double>(value)));
    sum += logarithm;
    squares += logarithm * logarithm;
  }
  const auto count = static_cast<double>(values.size());
  const double deviation = std::sqrt(std::max(0.0, squares / count - sum / count * sum / count));
  return {{"min", quantile(values, 0)}, {"p1", quantile(values, 0.01)},
      {"p99", quantile(values, 0.99)}, {"max", quantile(values, 1)}, {"log_sd", deviation}};
}

Json displacement_json(const Tensor& displacement) {
  const Extents& shape = displacement.shape;
  Grid grid{.rank = static_cast<int>(shape[shape.rank() - 1]), .device = displacement.device};
  grid.size[0] = shape.count() / grid.rank;
  const RegisterSummary found = lengths(GridRows(grid), displacement.elements<float>(), {});
  return {{"mean", found.mean}, {"max", found.max}};
}

// The image as f32, 0 outside the mask.
Tensor masked(const TensorView& image, const Tensor& mask, const Execution& exec) {
  constexpr float kHalf = 0.5f;
  const Tensor result = allocate(image.shape, DType::f32, image.device, exec);
  to_floats(image, result.elements<float>(), exec);
  const std::int64_t voxels = mask.shape.count();
  const Grid grid{.size = {voxels, 1, 1}, .device = image.device};
  for (std::int64_t at = 0; at < image.shape.count(); at += voxels) {
    divide(GridRows(grid), mask.elements<float>(), kHalf, result.elements<float>() + at, exec);
  }
  return result;
}

Json warnings_of(
    const Registration& result, const ReportedSimilarity* similarity, double log_deviation) {
  Json warnings = Json::array();
  if (result.repaired_share > kManyRepairs) {
    warnings.push_back(fmt::format(
        "the guard repaired {:.1f} % of the voxels in one iteration", 100 * result.repaired_share));
  }
  if (log_deviation > kStrongWarp) {
    warnings.push_back(
        fmt::format("the logarithms of the determinants deviate by {:.2f}: the warp "
                    "changes volumes by much",
            log_deviation));
  }
  if (similarity != nullptr && similarity->after.ncc < similarity->before.ncc &&
      similarity->after.mi < similarity->before.mi) {
    warnings.push_back("the images are less alike than before");
  }
  if (result.overlap < kFewVoxels) {
    warnings.push_back(fmt::format(
        "only {:.0f} % of the fixed voxels lie inside the moving image", 100 * result.overlap));
  }
  return warnings;
}

}  // namespace

ReportedSimilarity reported_similarity(const Registration& registration, const Volume& fixed,
    const Volume& moving, const ReportMasks& masks, const Execution& exec) {
  const Tensor own = mask_of("fixed", masks.fixed, grid_of(fixed), exec),
               other = mask_of("moving", masks.moving, grid_of(moving), exec);
  const Tensor values = other.empty() ? Tensor() : masked(moving.data, other, exec);
  const Volume inside{other.empty() ? moving.data : TensorView(values), moving.to_world};
  const auto moved_by = [&](const Registration& map) {
    return apply_registration(map, fixed, inside, false, exec);
  };
  const auto by = [&](const Registration& map, const Tensor& moved) {
    if (other.empty()) return register_similarity(fixed.data, moved, own, exec);
    const Tensor counted = apply_registration(map, fixed, {other, moving.to_world}, false, exec);
    const std::int64_t count = counted.shape.count();
    threshold(counted.device, count, kInsideMask, counted.elements<float>(), exec);
    if (!own.empty()) {
      multiply(counted.device, count, own.elements<float>(), counted.elements<float>(), exec);
    }
    return register_similarity(fixed.data, moved, counted, exec);
  };
  const Registration unmoved, affine{.affine = registration.affine};
  return {.before = by(unmoved, moved_by(unmoved)),
      .affine = by(affine, moved_by(affine)),
      .after = by(registration, other.empty() ? registration.warped : moved_by(registration))};
}

Json report_of(const Registration& registration, const RegisterOptions& options,
    const ReportedSimilarity* similarity, const Tensor& jacobian) {
  Json json = {
      {"settings", settings_json(registration, options)}, {"stages", stages_json(registration)}};
  if (similarity != nullptr) {
    const auto row = [&](double RegisterSimilarity::*number) -> Json {
      return {{"before", similarity->before.*number}, {"affine", similarity->affine.*number},
          {"after", similarity->after.*number}};
    };
    json["similarity"] = {{"ncc", row(&RegisterSimilarity::ncc)},
        {"mi", row(&RegisterSimilarity::mi)}, {"lncc", row(&RegisterSimilarity::lncc)}};
  }
  json["overlap"] = registration.overlap;
  double log_deviation = 0;
  if (!registration.displacement.empty()) {
    json["folds"] = registration.min_jacobian > 0 ? 0 : 1;  // the guard lets none pass
    json["corner_jacobian_min"] = registration.min_jacobian;
    if (!jacobian.empty()) {
      json["jacobian"] = jacobian_json(jacobian);
      log_deviation = json["jacobian"]["log_sd"].get<double>();
    }
    const RegisterSummary& error = registration.inverse_error_mm;
    json["inverse_consistency_mm"] = {{"mean", error.mean}, {"p99", error.p99}, {"max", error.max}};
    json["displacement_mm"] = displacement_json(registration.displacement);
    json["repairs"] = registration.repairs;
  }
  json["warnings"] = warnings_of(registration, similarity, log_deviation);
  return json;
}

}  // namespace registration_internal

using namespace registration_internal;

namespace {

// The voxels of `given`, or of all, where all channels of both images are finite, as 1, or an empty
// tensor for all voxels. The others become 0 in the images.
Tensor without_gaps(const Grid& grid, const Tensor& f, const Tensor& j, const TensorView& given,
    const Execution& exec) {
  const GridRows rows(grid);
  Extents shape = f.shape;
  shape[1] = 1;
  const Tensor mask = allocate(shape, DType::f32, grid.device, exec);
  if (given.empty()) {
    fill(grid.device, rows.voxels(), 1, mask.elements<float>(), exec);
  } else {
    to_floats(given, mask.elements<float>(), exec);
    normalize_mask(grid.device, rows.voxels(), mask.elements<float>(), exec);
  }
  std::int64_t gaps = 0;
  const auto each_channel = [&](const auto& take) {
    for (const Tensor* const image : {&f, &j}) {
      for (std::int64_t at = 0; at < image->shape.count(); at += rows.voxels()) {
        take(image->elements<float>() + at);
      }
    }
  };
  each_channel([&](const float* values) {
    gaps += look_for_gaps(rows, values, mask.elements<float>(), true, exec);
  });
  if (gaps == 0 && given.empty()) return {};
  constexpr float kHalf = 0.5f;
  each_channel([&](float* values) { divide(rows, mask.elements<float>(), kHalf, values, exec); });
  return mask;
}

}  // namespace

RegisterSimilarity register_similarity(const TensorView& fixed, const TensorView& other,
    const TensorView& mask, const Execution& exec) {
  require(fixed.shape == other.shape,
      "register_similarity: other has shape {}; it must be that of fixed, {}", other.shape,
      fixed.shape);
  require(other.device == fixed.device,
      "register_similarity: other is on {}; it must be on {} as fixed is", other.device,
      fixed.device);
  Extents one_channel = fixed.shape;
  one_channel[1] = 1;
  require(mask.empty() || mask.shape == one_channel,
      "register_similarity: mask has shape {}; it must be {}", mask.shape, one_channel);
  require(mask.empty() || mask.device == fixed.device,
      "register_similarity: mask is on {}; it must be on {} as fixed is", mask.device,
      fixed.device);
  const Tensor f = allocate(fixed.shape, DType::f32, fixed.device, exec),
               j = allocate(fixed.shape, DType::f32, fixed.device, exec);
  to_floats(fixed, f.elements<float>(), exec);
  to_floats(other, j.elements<float>(), exec);
  const std::int64_t voxels = fixed.shape.count() / (fixed.shape[0] * fixed.shape[1]);
  const Grid grid{.size = {voxels, 1, 1}, .device = fixed.device};
  const Tensor counted = without_gaps(grid, f, j, mask, exec);
  const Grid all{.size = {fixed.shape.count(), 1, 1}, .device = fixed.device};
  const Spread found = spread(GridRows(all), f.elements<float>(), nullptr, exec);
  // LNCC's smoothing takes intensities of about 1.
  const float span = found.most > found.least ? found.most - found.least : 1;
  for (const Tensor& each : {f, j}) {
    scale(each.device, each.shape.count(), 1 / span, each.elements<float>(), each.elements<float>(),
        exec);
  }
  if (!counted.empty()) {
    const std::int64_t count = count_nonzero(GridRows(grid), counted.elements<float>(), exec);
    if (count == 0) return {.ncc = std::nan(""), .mi = std::nan(""), .lncc = std::nan("")};
    const LnccOptions windows{
        .window_size = 5, .padding = Padding::renormalize, .valid_mask = counted};
    return {.ncc = similarity(
                {{.metric = RegisterMetric::ncc}}, grid, f, j, counted, count, TensorView(), exec),
        .mi = item(mutual_information(f, j, {.mask = counted}, exec)),
        .lncc = item(lncc(f, j, windows, exec))};
  }
  return {.ncc = item(ncc(f, j, Reduction::mean, exec)),
      .mi = item(mutual_information(f, j, {}, exec)),
      .lncc = item(lncc(f, j, {.window_size = 5}, exec))};
}

Tensor registration_jacobian(
    const Registration& registration, const Volume& fixed, const Execution& exec) {
  const Tensor& u = registration.displacement;
  require(!u.empty(), "registration_jacobian: the registration has no displacement");
  const Grid grid = grid_of(fixed);
  require(grid.field_shape() == u.shape,
      "registration_jacobian: fixed has shape {} but the displacement {}", fixed.data.shape,
      u.shape);
  // Millimetres become the coordinates of jacobian_determinant(), from -1 to 1.
  Matrix to_units = inverse(grid.to_world.linear);
  for (int r = 0; r < grid.rank; ++r) {
    const auto extent = static_cast<double>(grid.size[static_cast<std::size_t>(r)]);
    for (int c = 0; c < grid.rank; ++c) to_units(r, c) *= 2 / (extent - 1);
  }
  const Tensor units = allocate(u.shape, DType::f32, u.device, exec);
  turn(GridRows(grid), to_units, u.elements<float>(), units.elements<float>(), exec);
  return jacobian_determinant(units, true, {}, {}, exec).determinant;
}

}  // namespace similis
