// SPDX-License-Identifier: Apache-2.0
// ADM on the CPU. Tasks are stripes of band rows at one scale. Row by row of the bands:
//   four input rows ─> wavelet rows of the images ─> approximation         kept for the next scale
//   wavelet rows    ─> detail, addition, weights of maskers, each setting   ring of three rows
//   ring            ─> thresholds ─> Σ of cubes of the row before           sums
// No band is kept. Rows and columns outside the counted region are transformed only.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/adm/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "src/vmaf/adm/plan.h"
#include "src/vmaf/adm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

template <bool is_fused>
void run_stripe_of(const AdmPlan& plan, std::int64_t stripe, std::span<AdmScaleSums> sums) {
  RowMemory memory;
  if (plan.scale == 0) {
    std::vector<SampleWavelet<is_fused>> wavelets;
    for (const Plane& plane : plan.samples) wavelets.emplace_back(plane, memory);
    AdmStripe<false, is_fused>(plan, std::move(wavelets), memory).run(stripe, sums);
  } else {
    std::vector<DeepWavelet<is_fused>> wavelets;
    for (const AdmPlane& input : plan.inputs) wavelets.emplace_back(input, plan.scale, memory);
    AdmStripe<true, is_fused>(plan, std::move(wavelets), memory).run(stripe, sums);
  }
}

void run_stripe(const AdmPlan& plan, std::int64_t stripe, std::span<AdmScaleSums> sums) {
#if HWY_TARGET == HWY_AVX3
  if (plan.is_fused) return run_stripe_of<true>(plan, stripe, sums);
#endif
  run_stripe_of<false>(plan, stripe, sums);
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

void add(const AdmScaleSums& part, AdmScaleSums& sums) {
  add(part.reference, sums.reference);
  for (std::size_t i = 0; i < part.masked.size(); ++i) {
    add(part.masked[i].detail, sums.masked[i].detail);
    add(part.masked[i].additive, sums.masked[i].additive);
  }
}

// Bytes of an image's approximations that are the next scale's input, in whole cache lines: those
// of scale 0 have 16 bits, and those behind them 32.
struct PlaneSizes {
  PlaneSizes(std::int64_t width, std::int64_t height) {
    for (int scale = 0; scale + 1 < kAdmScales; ++scale) {
      width = (width + 1) / 2;
      height = (height + 1) / 2;
      const std::size_t used =
          static_cast<std::size_t>(adm_stride(width) * height) * adm_approximation_bytes(scale);
      bytes[static_cast<std::size_t>(scale)] = (used + kLine - 1) / kLine * kLine;
    }
  }
  /// The bytes of the place that scales 0 and 2 share.
  std::size_t front() const { return std::max(bytes[0], bytes[2]); }
  static constexpr std::size_t kLine = 64;
  std::array<std::size_t, kAdmScales - 1> bytes;
};

}  // namespace

std::size_t adm_workspace_bytes(std::int64_t width, std::int64_t height, std::size_t distorted) {
  const PlaneSizes sizes(width, height);
  return (1 + distorted) * (sizes.front() + sizes.bytes[1]);
}

void add_adm_tasks(const Plane& reference, std::span<const Plane> distorted,
    std::span<const AdmSetting> settings, bool skips_scale0, std::byte* memory, FrameTasks& tasks,
    std::vector<AdmSums>& sums) {
  struct Work {
    std::vector<AdmSensitivity> sensitivities;
    std::deque<AdmPlan> plans;  // by scale
    std::mutex mutex;           // of the sums
  };
  const auto work = std::make_shared<Work>();
  for (const AdmSetting& setting : settings) {
    work->sensitivities.push_back(adm_sensitivity(setting));
  }
  AdmScaleSums none;
  none.masked.resize(settings.size());
  sums.resize(distorted.size());
  for (AdmSums& of_image : sums) of_image.fill(none);
  const PlaneSizes sizes(reference.width, reference.height);
  std::vector<AdmPlane> views;
  std::int64_t width = reference.width, height = reference.height;
  for (int scale = 0; scale < kAdmScales; ++scale) {
    width = (width + 1) / 2;
    height = (height + 1) / 2;
    AdmPlan& plan = work->plans.emplace_back(scale, width, height, settings, work->sensitivities);
    plan.samples = {reference};
    plan.samples.insert(plan.samples.end(), distorted.begin(), distorted.end());
    plan.inputs = views;
    plan.is_measured = scale > 0 || !skips_scale0;
    // Scales 0 and 2 have their place in front of scale 1's.
    const std::size_t images = plan.samples.size();
    std::byte* const outputs = memory + (scale % 2 == 0 ? 0 : images * sizes.front());
    for (std::size_t i = 0; scale + 1 < kAdmScales && i < images; ++i) {
      plan.approximations.push_back(outputs + i * sizes.bytes[static_cast<std::size_t>(scale)]);
    }
    const auto run = [work, none, scale, &plan, &sums](std::int64_t stripe) {
      std::vector<AdmScaleSums> parts(sums.size(), none);
      HWY_DYNAMIC_DISPATCH(run_stripe)(plan, stripe, parts);
      const std::lock_guard lock(work->mutex);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        add(parts[i], sums[i][static_cast<std::size_t>(scale)]);  // whole numbers: in any order
      }
    };
    if (scale % 2 == 0) {  // scale 2 writes where stripes of scale 1 read
      tasks.add(plan.stripes, run);
    } else {
      const AdmPlan& before = work->plans[static_cast<std::size_t>(scale - 1)];
      tasks.add(plan.stripes, run, [work, &plan, &before](std::int64_t stripe) {
        const std::int64_t first = 2 * stripe * plan.stripe_rows - kAdmRowsSeen;
        const std::int64_t last = 2 * (stripe + 1) * plan.stripe_rows + kAdmRowsSeen;
        return stripes_with_rows(first, last, before.height, before.stripe_rows);
      });
    }
    views.clear();
    for (void* approximation : plan.approximations) views.push_back({approximation, width, height});
  }
}

}  // namespace similis::vmaf_internal
#endif
