// SPDX-License-Identifier: Apache-2.0
// VIF on the CPU. Tasks are stripes of rows at one scale. A stripe is walked in tiles of columns,
// two output rows (on AVX-512 four) and one of the next scale (two) at a time, and keeps no other
// plane:
//   rows 2p, 2p+1 ─> samples and their products, in pairs ─> ring of pairs    first-level cache
//   ring, down    ─> the rows' means and squares, in halves of 16 bits         16 KB
//   row, across   ─> moments of 16-bit columns in even and odd lanes           registers
//   moments       ─> statistics in doubles, logarithms                         sums
// Filters multiply pairs of 16-bit halves and add them in 32 bits, modulo 2^32: halves are shifted
// into the signed range, and what that takes from a sum is a constant, as taps add up to 2^16.
// A pair of rows (or columns) serves the two outputs whose windows begin in it.
// With several distorted images, the reference's moments of a tile are computed first and kept.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/vif/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "src/vmaf/vif/formula.h"
#include "src/vmaf/vif/plan.h"
#include "src/vmaf/vif/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

template <class Sample>
void measure_stripe_of(const VifPlan& plan, std::int64_t stripe, std::span<VifScaleSums> sums) {
#if HWY_TARGET == HWY_AVX3
  if (plan.is_fused) return VifStripe<Sample, true>(plan).measure(stripe, sums);
#endif
  VifStripe<Sample, false>(plan).measure(stripe, sums);
}

void measure_stripe(const VifPlan& plan, std::int64_t stripe, std::span<VifScaleSums> sums) {
  if (plan.reference.is_words) {
    measure_stripe_of<std::uint16_t>(plan, stripe, sums);
  } else {
    measure_stripe_of<std::uint8_t>(plan, stripe, sums);
  }
}

// Logarithms of the vector units, for a test of all of them.
void logarithms(const std::uint32_t* numbers, std::uint32_t* logs, std::size_t count) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto offset = hn::Set(d, kLogOffset);
  alignas(HWY_MAX_BYTES) std::uint32_t words[HWY_MAX_BYTES / sizeof(std::uint32_t)];
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) {
      const auto number = static_cast<double>(numbers[i + lane]);
      words[lane] = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(number) >> 32);
    }
    hn::StoreU(hn::Sub(log_of(d, hn::Load(d, words)), offset), d, logs + i);
  }
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::vmaf_internal {
namespace {

HWY_EXPORT(measure_stripe);
HWY_EXPORT(logarithms);

void add(const VifScaleSums& part, VifScaleSums& sums) {
  sums.flat_count += part.flat_count;
  sums.flat_rest += part.flat_rest;
  sums.reference_information += part.reference_information;
  for (std::size_t i = 0; i < sums.information.size(); ++i) {
    sums.information[i] += part.information[i];
  }
}

}  // namespace

void vif_logarithms_cpu(const std::uint32_t* numbers, std::uint32_t* logs, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(logarithms)(numbers, logs, count);
}

std::size_t vif_workspace_bytes(std::int64_t width, std::int64_t height, std::size_t distorted) {
  std::size_t samples = 0;
  for (int scale = 1; scale < kVifScales; ++scale) {
    samples += static_cast<std::size_t>((width >> scale) * (height >> scale));
  }
  return samples * (1 + distorted) * sizeof(std::uint16_t);
}

void add_vif_tasks(const Plane& reference, std::span<const Plane> distorted,
    std::span<const double> gain_limits, bool skips_scale0, std::byte* memory, FrameTasks& tasks,
    std::vector<VifSums>& sums) {
  struct Scale {
    Scale(const Plane& of_reference, std::vector<Plane> of_distorted, int at, int bit_depth,
        std::span<const double> limits)
        : distorted(std::move(of_distorted)),
          plan(of_reference, distorted, at, bit_depth, limits) {}
    std::vector<Plane> distorted;
    VifPlan plan;
    std::mutex mutex;  // of the sums
  };
  VifScaleSums none;
  none.information.assign(gain_limits.size(), 0);
  sums.resize(distorted.size());
  for (VifSums& of_image : sums) of_image.fill(none);
  auto* free = reinterpret_cast<std::uint16_t*>(memory);
  Plane reference_at_scale = reference;
  std::vector<Plane> distorted_at_scale(distorted.begin(), distorted.end());
  std::int64_t stripe_rows_before = 0;
  for (int scale = 0; scale < kVifScales; ++scale) {
    const auto work = std::make_shared<Scale>(
        reference_at_scale, distorted_at_scale, scale, reference.bit_depth, gain_limits);
    VifPlan& plan = work->plan;
    plan.is_measured = scale > 0 || !skips_scale0;
    const std::int64_t width = plan.reference.width / 2, height = plan.reference.height / 2;
    for (std::size_t i = 0; scale + 1 < kVifScales && i < 1 + distorted.size(); ++i) {
      plan.halved.push_back(free);
      free += width * height;
      Plane& plane = i == 0 ? reference_at_scale : distorted_at_scale[i - 1];
      plane = {plan.halved[i], width, width, height, true, 16};
    }
    const auto run = [work, none, scale, &sums](std::int64_t stripe) {
      std::vector<VifScaleSums> parts(sums.size(), none);
      HWY_DYNAMIC_DISPATCH(measure_stripe)(work->plan, stripe, parts);
      const std::lock_guard lock(work->mutex);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        add(parts[i], sums[i][static_cast<std::size_t>(scale)]);  // whole numbers: in any order
      }
    };
    if (scale == 0) {
      tasks.add(plan.stripes, run);
    } else {
      // Stripes read rows about theirs, which stripes of the scale before have made.
      tasks.add(plan.stripes, run, [work, stripe_rows_before](std::int64_t stripe) {
        const VifPlan& own = work->plan;
        const std::int64_t first = stripe * own.stripe_rows - kVifRowsSeen;
        const std::int64_t last = (stripe + 1) * own.stripe_rows + kVifRowsSeen;
        const std::int64_t height_before = 2 * own.reference.height;
        return stripes_with_rows(2 * first, 2 * last, height_before, stripe_rows_before);
      });
    }
    stripe_rows_before = plan.stripe_rows;
  }
}

}  // namespace similis::vmaf_internal
#endif
