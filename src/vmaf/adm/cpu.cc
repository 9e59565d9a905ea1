// SPDX-License-Identifier: Apache-2.0
// ADM on the CPU. Tasks are stripes of band rows at one scale. Row by row of the bands:
//   four input rows ─> wavelet rows of both images ─> approximation        kept for the next scale
//   wavelet rows    ─> detail, addition, weights of maskers, each setting   ring of three rows
//   ring            ─> thresholds ─> Σ of cubes of the row before           sums
// No band is kept. Rows and columns outside the counted region are transformed only.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/adm/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <mutex>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/adm/plan.h"
#include "src/vmaf/adm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

void run_stripe(const AdmPlan& plan, std::int64_t stripe, AdmScaleSums& sums) {
  if (plan.scale == 0) {
    AdmStripe<false>(
        plan, SampleWavelet(plan.samples.reference), SampleWavelet(plan.samples.distorted))
        .run(stripe, sums);
  } else {
    AdmStripe<true>(
        plan, DeepWavelet(plan.inputs[0], plan.scale), DeepWavelet(plan.inputs[1], plan.scale))
        .run(stripe, sums);
  }
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::vmaf_internal {
namespace {

HWY_EXPORT(run_stripe);

void add(const AdmBandSums& part, AdmBandSums& sums) {
  for (std::size_t band = 0; band < sums.size(); ++band) sums[band] += part[band];
}

}  // namespace

AdmSums adm_cpu(const PlanePair& planes, std::span<const AdmSetting> settings, bool skips_scale0,
    AdmWorkspace& workspace, const Execution& exec) {
  std::vector<AdmSensitivity> sensitivities;
  for (const AdmSetting& setting : settings) sensitivities.push_back(adm_sensitivity(setting));
  AdmSums sums;
  auto& [inputs, outputs] = workspace;
  std::array<AdmPlane, 2> views;
  std::int64_t width = planes.reference.width, height = planes.reference.height;
  for (int scale = 0; scale < kAdmScales; ++scale) {
    width = (width + 1) / 2;
    height = (height + 1) / 2;
    AdmPlan plan(scale, width, height, settings, sensitivities);
    plan.samples = planes;
    plan.inputs = views;
    plan.is_measured = scale > 0 || !skips_scale0;
    if (scale + 1 < kAdmScales) {
      for (std::size_t i = 0; i < 2; ++i) {
        const auto count = static_cast<std::size_t>(width * height);
        if (outputs[i].size() < count) outputs[i].resize(count);
        plan.approximations[i] = outputs[i].data();
      }
    }
    AdmScaleSums& of_scale = sums[static_cast<std::size_t>(scale)];
    of_scale.masked.resize(settings.size());
    std::mutex mutex;
    parallel_for(exec, plan.stripes, [&](std::int64_t stripe) {
      AdmScaleSums part;
      part.masked.resize(settings.size());
      HWY_DYNAMIC_DISPATCH(run_stripe)(plan, stripe, part);
      const std::lock_guard lock(mutex);
      add(part.reference, of_scale.reference);  // whole numbers: in any order
      for (std::size_t i = 0; i < settings.size(); ++i) {
        add(part.masked[i].detail, of_scale.masked[i].detail);
        add(part.masked[i].additive, of_scale.masked[i].additive);
      }
    });
    std::swap(inputs, outputs);
    for (std::size_t i = 0; i < 2; ++i) views[i] = {inputs[i].data(), width, height};
  }
  return sums;
}

}  // namespace similis::vmaf_internal
#endif
