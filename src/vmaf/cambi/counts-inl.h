// SPDX-License-Identifier: Apache-2.0
// Counts of values in the windows of a row's columns, and the contrasts that they make. Included
// once per SIMD target, hence the guard that flips.
//
// A row enters and leaves the counts in runs of one value. A run adds a trapezoid to the counts of
// its value: one more a column while windows begin to see it, then all that fit, then one less.
#if defined(SIMILIS_VMAF_CAMBI_COUNTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_CAMBI_COUNTS_INL_H
#undef SIMILIS_VMAF_CAMBI_COUNTS_INL_H
#else
#define SIMILIS_VMAF_CAMBI_COUNTS_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/cambi/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Columns first to last of a row are counted and hold one value.
struct Run {
  int value;
  std::int64_t first, last;
};

// Finds the runs of a row. `keys` has room for the row, a place beside it and a vector.
inline void find_runs(const CambiPlan& plan, const CambiImage& image, std::int64_t row,
    std::uint16_t* HWY_RESTRICT keys, std::vector<Run>& runs) {
  const std::uint16_t* HWY_RESTRICT values = image.row(row);
  const std::uint8_t* HWY_RESTRICT mask = image.mask_row(row);
  const int largest = plan.largest_counted;
  const std::int64_t width = image.width;
  // Keys are 0 where nothing is counted, else the value and 1 more; the row begins at index 1.
  keys[0] = 0;
  for (std::int64_t x = 0; x < width; ++x) {
    const bool is_counted = (mask[x] != 0) & (values[x] <= largest);
    keys[x + 1] = static_cast<std::uint16_t>(is_counted ? values[x] + 1 : 0);
  }
  keys[width + 1] = 0;
  const hn::ScalableTag<std::uint16_t> d;
  runs.clear();
  const auto change = [&](std::int64_t x) {
    if (keys[x] != 0) runs.back().last = x;
    if (keys[x + 1] != 0) runs.push_back({keys[x + 1] - 1, x, width});
  };
  for (std::int64_t begin = 0; begin <= width; begin += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto differs = hn::Ne(hn::LoadU(d, keys + begin), hn::LoadU(d, keys + begin + 1));
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, differs, bits);
    std::uint64_t changes;
    std::memcpy(&changes, bits, sizeof(changes));
    for (; changes != 0; changes &= changes - 1) {
      const std::int64_t x = begin + std::countr_zero(changes);
      if (x > width) break;
      change(x);
    }
  }
}

enum class Change : std::uint8_t { enter, leave };

class WindowCounts {
  using Counts = hn::ScalableTag<std::uint16_t>;
  // Runs are short, and a gather of twice as many lanes takes twice as long.
  using Wide = hn::CappedTag<std::int32_t, 8>;
  static constexpr std::int64_t kRoom = HWY_MAX_BYTES / sizeof(std::uint16_t);

 public:
  WindowCounts(const CambiPlan& plan, std::int64_t width)
      : plan_(plan),
        radius_(plan.window.radius),
        rows_below_(static_cast<std::int64_t>(plan.limits.largest.size())),
        stride_(width + 2 * radius_),
        counts_(static_cast<std::size_t>(
            (rows_below_ + plan.largest_counted + 1) * stride_ + 2 * kRoom)) {}

  // A run of a row that enters the windows, or leaves them.
  template <Change change> void add(const Run& run) {
    const Counts d;
    const hn::RebindToSigned<Counts> di;
    const std::int64_t count = run.last - run.first + 2 * radius_;
    const std::int64_t top = std::min(run.last - run.first, 2 * radius_ + 1);
    std::uint16_t* HWY_RESTRICT to = row(run.value) + run.first;
    const auto lane = hn::Iota(di, 0), one = hn::Set(di, 1), zero = hn::Zero(di);
    const auto most = hn::Set(di, static_cast<std::int16_t>(top));
    const auto limited = [](std::int64_t n) {  // what is above `top` makes no difference
      return static_cast<std::int16_t>(std::min<std::int64_t>(n, kCambiWidestWindow + kRoom));
    };
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto up = hn::Add(hn::Set(di, limited(i)), hn::Add(lane, one));
      const auto down = hn::Sub(hn::Set(di, limited(count - i)), lane);
      const auto by = hn::BitCast(d, hn::Max(zero, hn::Min(most, hn::Min(up, down))));
      const auto counts = hn::LoadU(d, to + i);
      hn::StoreU(change == Change::enter ? hn::Add(counts, by) : hn::Sub(counts, by), d, to + i);
    }
  }

  // Appends the contrasts above 0 of a run; returns how many those are. `to` has room for a vector
  // more.
  std::int64_t contrasts(const Run& run, float* HWY_RESTRICT to) const {
    const Wide d;
    const hn::Rebind<float, Wide> df;
    const hn::Rebind<std::uint16_t, Wide> narrow;
    const int value = run.value;
    const std::int64_t first = run.first, last = run.last;
    const std::uint32_t steps = plan_.steps_of[static_cast<std::size_t>(value)];
    std::int64_t appended = 0;
    const auto counts_of = [&](int of, std::int64_t x)
                               HWY_ATTR { return hn::LoadU(narrow, row(of) + x + radius_); };
    for (std::int64_t x = first; steps != 0 && x < last;
         x += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto own = hn::PromoteTo(d, counts_of(value, x));
      auto largest = hn::Zero(df);
      for (std::uint32_t left = steps; left != 0; left &= left - 1) {
        const int step = std::countr_zero(left) + 1;
        const auto other =
            hn::PromoteTo(d, hn::Max(counts_of(value + step, x), counts_of(value - step, x)));
        if (hn::AllFalse(d, hn::Gt(other, hn::Zero(d)))) continue;
        const auto weight = hn::Set(d, kCambiWeights[static_cast<std::size_t>(step - 1)]);
        const auto product = hn::ConvertTo(df, hn::Mul(weight, hn::Mul(own, other)));
        const auto inverse = hn::GatherIndex(df, plan_.inverses.data(), hn::Add(own, other));
        largest = hn::Max(largest, hn::Mul(product, inverse));
      }
      const auto valid = std::min(static_cast<std::size_t>(last - x), hn::Lanes(d));
      const auto is_kept = hn::And(hn::Gt(largest, hn::Zero(df)), hn::FirstN(df, valid));
      hn::StoreU(hn::Compress(largest, is_kept), df, to + appended);
      appended += static_cast<std::int64_t>(hn::CountTrue(df, is_kept));
    }
    return appended;
  }

 private:
  // The counts of a value: column x's is at x + radius. Rows below 0 stay empty.
  std::uint16_t* row(int value) { return counts_.data() + (rows_below_ + value) * stride_; }
  const std::uint16_t* row(int value) const {
    return counts_.data() + (rows_below_ + value) * stride_;
  }

  const CambiPlan& plan_;
  std::int64_t radius_, rows_below_, stride_;
  std::vector<std::uint16_t> counts_;
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_CAMBI_COUNTS_INL_H
