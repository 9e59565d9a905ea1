// SPDX-License-Identifier: Apache-2.0
// similis_register(): the functions of register.hpp for C.
#include "similis/c/register.h"

#include <algorithm>
#include <string>
#include <vector>

#include "similis/register.hpp"
#include "src/c_api/call.h"
#include "src/core/require.h"
#include "src/core/tensor/dlpack.h"
#include "src/registration/options.h"
#include "src/registration/passes.h"
#include "src/registration/report.h"

/// The result, and the options as they were taken; the memory of their masks and labels may be
/// gone.
struct similis_registration {
  similis::Registration found;
  similis::RegisterOptions options;
  std::string report;
};

namespace similis {
namespace {

using c_api::Arguments;
using namespace registration_internal;

constexpr const char* kName = "register";

Volume volume_of(const Arguments& arguments, const char* name, const similis_volume* given) {
  require(given != nullptr, "{}: {} is NULL; it must be a volume", kName, name);
  Volume volume{.data = arguments.image(name, given->data)};
  std::copy_n(given->to_world, volume.to_world.size(), volume.to_world.begin());
  return volume;
}

template <class T> std::vector<T> list_of(const char* name, const T* elements, std::int64_t count) {
  require(count >= 0 && (elements != nullptr || count == 0),
      "{}: {} is NULL but its count is {}; give as many elements", kName, name, count);
  return {elements, elements + count};
}

MetricTerm term_of(const Arguments& arguments, const similis_metric_term& term) {
  require(term.reserved == 0, "{}: a metric's reserved is {}; it must be 0", kName, term.reserved);
  return {.metric = arguments.enumerator("metric", term.metric, RegisterMetric::dice),
      .weight = term.weight,
      .window_size = term.window_size,
      .num_bins = term.num_bins,
      .sampling = term.sampling,
      .seed = term.seed};
}

RegisterOptions options_of(const Arguments& arguments, const similis_register_options& given) {
  RegisterOptions options;
  if (given.stages != nullptr || given.stage_count != 0) {
    options.stages.clear();
    for (const std::int32_t stage : list_of("stages", given.stages, given.stage_count)) {
      options.stages.push_back(arguments.enumerator("stages", stage, RegisterStage::symmetric));
    }
  }
  if (given.metrics != nullptr || given.metric_count != 0) {
    options.metrics.clear();
    for (const similis_metric_term& term : list_of("metrics", given.metrics, given.metric_count)) {
      options.metrics.push_back(term_of(arguments, term));
    }
  }
  options.linear_metric = term_of(arguments, given.linear_metric);
  options.iterations = list_of("iterations", given.iterations, given.iteration_count);
  options.levels = list_of("levels", given.levels, given.level_count);
  options.start = arguments.enumerator("start", given.start, RegisterStart::given);
  options.preset = arguments.enumerator("preset", given.preset, RegisterPreset::accurate);
  std::copy_n(given.initial, options.initial.size(), options.initial.begin());
  if (!(given.fluid < 0)) options.fluid = given.fluid;
  if (!(given.elastic < 0)) options.elastic = given.elastic;
  options.step = given.step;
  options.min_jacobian = given.min_jacobian;
  options.tolerance = given.tolerance;
  options.fixed_mask = arguments.optional("fixed_mask", given.fixed_mask);
  options.moving_mask = arguments.optional("moving_mask", given.moving_mask);
  options.fixed_labels = arguments.optional("fixed_labels", given.fixed_labels);
  options.moving_labels = arguments.optional("moving_labels", given.moving_labels);
  if (given.fixed_name != nullptr) options.fixed_name = given.fixed_name;
  if (given.moving_name != nullptr) options.moving_name = given.moving_name;
  require(given.mask_not_finite == 0 || given.mask_not_finite == 1,
      "{}: mask_not_finite is {}; it must be 0 or 1", kName, given.mask_not_finite);
  options.mask_not_finite = given.mask_not_finite == 1;
  require(given.reserved == 0, "{}: reserved is {}; it must be 0", kName, given.reserved);
  if (given.progress == nullptr) return options;
  options.progress = [given](const RegisterProgress& at) {
    const similis_register_progress progress = {static_cast<std::int32_t>(at.stage), at.shrink,
        at.iteration, at.iterations, at.loss, at.min_jacobian};
    return given.progress(given.progress_context, &progress) != 0;
  };
  return options;
}

const similis_registration& checked(const similis_registration* registration) {
  require(registration != nullptr, "{}: registration is NULL; it must be a registration", kName);
  return *registration;
}

similis_status copy_to(const similis_registration* registration, Tensor Registration::*part,
    const char* name, const similis_tensor* output) {
  return c_api::call([&] {
    const Tensor& from = checked(registration).found.*part;
    require(!from.empty(), "{}: there is no {} without a deformable stage", kName, name);
    const TensorView to = Arguments(kName).image("output", output);
    require(to.shape == from.shape && to.strides == dense_strides(from.shape) &&
                to.dtype == DType::f32 &&
                (to.device.kind == DeviceKind::cpu || to.device == from.device),
        "{}: output has shape {}; it must be dense, float32, on the CPU or the images' device, and "
        "have that of the {}, {}",
        kName, to.shape, name, from.shape);
    copy_floats(from, to, {});
  });
}

}  // namespace
}  // namespace similis

similis_status similis_register(const similis_volume* fixed, const similis_volume* moving,
    const similis_register_options* options, similis_registration** registration,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const Arguments arguments(kName);
    require(registration != nullptr, "{}: registration is NULL; it must point to a pointer", kName);
    *registration = nullptr;
    const similis_register_options defaults = SIMILIS_REGISTER_DEFAULTS;
    RegisterOptions own = options_of(arguments, arguments.options(options, defaults));
    const c_api::CallExecution exec(arguments, execution);
    auto result = std::make_unique<similis_registration>();
    result->found = register_images(
        volume_of(arguments, "fixed", fixed), volume_of(arguments, "moving", moving), own, exec);
    own.progress = {};
    result->options = std::move(own);
    *registration = result.release();
  });
}

void similis_registration_destroy(similis_registration* registration) { delete registration; }

similis_status similis_registration_affine(
    const similis_registration* registration, double affine[12]) {
  using namespace similis;
  return c_api::call([&] {
    const AffineRows& rows = checked(registration).found.affine;
    require(affine != nullptr, "{}: affine is NULL; it must point to 12 numbers", kName);
    std::copy(rows.begin(), rows.end(), affine);
  });
}

int32_t similis_registration_has_displacement(const similis_registration* registration) {
  return registration != nullptr && !registration->found.displacement.empty() ? 1 : 0;
}

similis_status similis_registration_displacement(
    const similis_registration* registration, const similis_tensor* output) {
  using similis::Registration;
  return similis::copy_to(registration, &Registration::displacement, "displacement", output);
}

similis_status similis_registration_inverse_displacement(
    const similis_registration* registration, const similis_tensor* output) {
  using similis::Registration;
  return similis::copy_to(
      registration, &Registration::inverse_displacement, "inverse displacement", output);
}

similis_status similis_registration_warped(
    const similis_registration* registration, const similis_tensor* output) {
  return similis::copy_to(registration, &similis::Registration::warped, "warped image", output);
}

similis_status similis_registration_report(similis_registration* registration,
    const similis_volume* fixed, const similis_volume* moving, const similis_tensor* fixed_mask,
    const similis_tensor* moving_mask, const char** json, const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const Arguments arguments(kName);
    const Registration& found = checked(registration).found;
    require(json != nullptr, "{}: json is NULL; it must point to a pointer", kName);
    const c_api::CallExecution exec(arguments, execution);
    Tensor jacobian;
    ReportedSimilarity similarity;
    const bool is_whole = fixed != nullptr || moving != nullptr;
    if (is_whole) {
      const Volume own = volume_of(arguments, "fixed", fixed),
                   other = volume_of(arguments, "moving", moving);
      const ReportMasks masks = {.fixed = arguments.optional("fixed_mask", fixed_mask),
          .moving = arguments.optional("moving_mask", moving_mask)};
      similarity = reported_similarity(found, own, other, masks, exec);
      if (!found.displacement.empty()) jacobian = registration_jacobian(found, own, exec);
    }
    registration->report =
        report_of(found, registration->options, is_whole ? &similarity : nullptr, jacobian).dump();
    *json = registration->report.c_str();
  });
}
