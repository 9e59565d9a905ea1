// SPDX-License-Identifier: Apache-2.0
// Integer SSIM on the CPU. Tasks are stripes of rows: each finds the terms of its pixels, reduces
// every chunk to its effect on the running sum (ordered_sum.h), and hands that to the ordered walk.
// No plane of terms or moments is kept: a chunk whose map does not hold is computed again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/libvmaf_ssim/integer/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <array>
#include <deque>
#include <vector>

#include "src/core/parallel.h"
#include "src/libvmaf_ssim/integer/formula.h"
#include "src/libvmaf_ssim/integer/ordered_sum.h"
#include "src/libvmaf_ssim/integer/plan.h"
#include "src/libvmaf_ssim/integer/tile-inl.h"
#include "src/libvmaf_ssim/integer/walk.h"

HWY_BEFORE_NAMESPACE();
namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE {

double total(const double* terms) {
  std::array<double, 8> sums{};
  for (std::size_t i = 0; i < kTileColumns; i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += terms[i + lane];
  }
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

// The map of a chunk, of which `count` terms are not padding. All sums but that of the magnitudes
// are exact, so lanes add up in any order.
ChunkMap map_of(const double* HWY_RESTRICT terms, std::int64_t count, int first_exponent) {
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const Binade b[kBinades] = {
      binade(first_exponent), binade(first_exponent + 1), binade(first_exponent + 2)};
  const V middle0 = hn::Set(d, b[0].middle), half0 = hn::Set(d, b[0].unit / 2);
  const V middle1 = hn::Set(d, b[1].middle), half1 = hn::Set(d, b[1].unit / 2);
  const V middle2 = hn::Set(d, b[2].middle), half2 = hn::Set(d, b[2].unit / 2);
  V sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, magnitudes = sum0;
  auto halfway0 = hn::Ne(sum0, sum0), halfway1 = halfway0, halfway2 = halfway0;
  for (std::size_t i = 0; i < kTileColumns; i += hn::Lanes(d)) {
    const V term = hn::Load(d, terms + i);
    const V units0 = hn::Sub(hn::Add(term, middle0), middle0);
    const V units1 = hn::Sub(hn::Add(term, middle1), middle1);
    const V units2 = hn::Sub(hn::Add(term, middle2), middle2);
    sum0 = hn::Add(sum0, units0);
    sum1 = hn::Add(sum1, units1);
    sum2 = hn::Add(sum2, units2);
    halfway0 = hn::Or(halfway0, hn::Eq(hn::Abs(hn::Sub(term, units0)), half0));
    halfway1 = hn::Or(halfway1, hn::Eq(hn::Abs(hn::Sub(term, units1)), half1));
    halfway2 = hn::Or(halfway2, hn::Eq(hn::Abs(hn::Sub(term, units2)), half2));
    magnitudes = hn::Add(magnitudes, hn::Abs(term));
  }
  ChunkMap map;
  map.first_exponent = first_exponent;
  map.reach = reach_of(hn::GetLane(hn::SumOfLanes(d, magnitudes)), count, first_exponent);
  map.from_even[0] = map.from_odd[0] = hn::GetLane(hn::SumOfLanes(d, sum0));
  map.from_even[1] = map.from_odd[1] = hn::GetLane(hn::SumOfLanes(d, sum1));
  map.from_even[2] = map.from_odd[2] = hn::GetLane(hn::SumOfLanes(d, sum2));
  if (!hn::AllFalse(d, halfway0)) map_in_order(terms, count, 0, map);
  if (!hn::AllFalse(d, halfway1)) map_in_order(terms, count, 1, map);
  if (!hn::AllFalse(d, halfway2)) map_in_order(terms, count, 2, map);
  return map;
}

// A stripe's maps. The running sum at a chunk is predicted from the mean so far: that of the walk
// when the stripe began, or else that of the stripe itself.
template <class Sample, class Sums>
void map_tiles(const IntegerPlan& plan, std::int64_t pair, std::int64_t stripe,
    const KnownSum& known, ChunkMap* maps) {
  alignas(64) double terms[kTileColumns];
  const std::int64_t first_row = plan.first_row(stripe), width = plan.planes.width();
  KnownSum own;
  for (std::int64_t at = 0; at < plan.tiles; ++at) {
    IntegerTile<Sample, Sums> tile(plan, pair, at);
    tile.start(first_row);
    for (std::int64_t row = 0; row < plan.rows(stripe); ++row) {
      tile.next(first_row + row, terms);
      if (known.pixels == 0) {
        own.sum += total(terms);
        own.pixels += tile.columns();
      }
      const KnownSum& mean = known.pixels == 0 ? own : known;
      const auto pixels = static_cast<double>((first_row + row) * width + at * kTileColumns);
      const double expected = mean.sum / static_cast<double>(mean.pixels) * pixels;
      maps[row * plan.tiles + at] = map_of(terms, tile.columns(), first_exponent_about(expected));
    }
  }
}

template <class Sample, class Sums>
double add_terms(const IntegerPlan& plan, const ChunkPlace& place, double sum) {
  alignas(64) double terms[kTileColumns];
  IntegerTile<Sample, Sums> tile(plan, place.pair, place.tile);
  tile.start(place.row);
  tile.next(place.row, terms);
  return add_one_by_one(sum, terms, tile.columns());
}

void map_stripe(const IntegerPlan& plan, std::int64_t pair, std::int64_t stripe,
    const KnownSum& known, ChunkMap* maps) {
  if (plan.planes.x.dtype == DType::u8) {
    map_tiles<std::uint8_t, In32>(plan, pair, stripe, known, maps);
  } else if (plan.planes.bit_depth <= 10) {
    map_tiles<std::uint16_t, In32ThenDouble>(plan, pair, stripe, known, maps);
  } else {
    map_tiles<std::uint16_t, InDouble>(plan, pair, stripe, known, maps);
  }
}

double add_chunk(const IntegerPlan& plan, const ChunkPlace& place, double sum) {
  if (plan.planes.x.dtype == DType::u8) return add_terms<std::uint8_t, In32>(plan, place, sum);
  return plan.planes.bit_depth <= 10 ? add_terms<std::uint16_t, In32ThenDouble>(plan, place, sum)
                                     : add_terms<std::uint16_t, InDouble>(plan, place, sum);
}

}  // namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::libvmaf_ssim_internal {
namespace {

HWY_EXPORT(map_stripe);
HWY_EXPORT(add_chunk);

}  // namespace

void integer_ssim_cpu(const PlanePairs& planes, double* scores, const Execution& exec) {
  const IntegerPlan plan(planes);
  std::deque<IntegerWalk> walks;
  for (std::int64_t pair = 0; pair < planes.count(); ++pair) walks.emplace_back(plan, pair);
  parallel_for(exec, planes.count() * plan.stripes, [&](std::int64_t task) {
    const std::int64_t pair = task / plan.stripes, stripe = task % plan.stripes;
    IntegerWalk& walk = walks[static_cast<std::size_t>(pair)];
    std::vector<ChunkMap> maps(static_cast<std::size_t>(plan.chunks(stripe)));
    HWY_DYNAMIC_DISPATCH(map_stripe)(plan, pair, stripe, walk.known(), maps.data());
    walk.finish(stripe, std::move(maps), HWY_DYNAMIC_DISPATCH(add_chunk));
  });
  for (std::size_t pair = 0; pair < walks.size(); ++pair) {
    scores[pair] = walks[pair].sum() / total_weight(planes.height(), planes.width());
  }
}

}  // namespace similis::libvmaf_ssim_internal
#endif
