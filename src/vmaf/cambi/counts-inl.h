// SPDX-License-Identifier: Apache-2.0
// Counts of values in the windows of a row's columns, and the contrasts that they make. Included
// once per SIMD target, hence the guard that flips.
//
// A row enters and leaves the counts in runs of one value. A run adds a trapezoid to the counts of
// its value: one more a column while windows begin to see it, then all that fit, then one less.
// If the row that enters equals the row that leaves, nothing changes.
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
#include <type_traits>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/cambi/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using CambiWords = hn::CappedTag<std::uint16_t, 32>;
constexpr std::int64_t kCambiRoom = HWY_MAX_BYTES / sizeof(std::uint16_t);

// Columns first to last of a row are counted and hold one value.
struct Run {
  int value;
  std::int64_t first, last;
};

// The bits of a mask, the first lane's lowest.
template <class Tag> HWY_INLINE std::uint32_t bits_of(Tag d, hn::Mask<Tag> mask) {
  using Bits = std::conditional_t<hn::MaxLanes(Tag()) <= 8, std::uint8_t,
      std::conditional_t<hn::MaxLanes(Tag()) <= 16, std::uint16_t, std::uint32_t>>;
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  Bits bits;  // as wide as the store: a wider load would wait for it
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

// A row of keys: 0 where nothing is counted, else the value and 1 more. There are a 0 and room for
// a vector on either side.
class KeyRow {
 public:
  explicit KeyRow(std::int64_t width)
      : keys_(static_cast<std::size_t>(width + 2 * kCambiRoom + 1)), width_(width) {}

  std::uint16_t* data() { return keys_.data() + kCambiRoom; }

  // Calls visit(run) for each run, from the left.
  template <class Visitor> HWY_INLINE void visit_runs(const Visitor& visit) {
    const CambiWords d;
    const std::uint16_t* HWY_RESTRICT keys = data();
    std::fill_n(data() + width_, kCambiRoom, std::uint16_t{0});
    std::int64_t begin_of_run = 0;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t begin = 0; begin <= width_; begin += lanes) {
      std::uint32_t changes =
          bits_of(d, hn::Ne(hn::LoadU(d, keys + begin - 1), hn::LoadU(d, keys + begin)));
      for (; changes != 0; changes &= changes - 1) {
        const std::int64_t x = begin + std::countr_zero(changes);
        const int key = keys[x - 1];
        if (key != 0) visit(Run{key - 1, begin_of_run, x});
        begin_of_run = x;
      }
    }
  }

 private:
  std::vector<std::uint16_t> keys_;
  std::int64_t width_;
};

enum class Change : std::uint8_t { enter, leave };

class WindowCounts {
  using Counts = CambiWords;
  // Runs are short, and a gather of twice as many lanes takes twice as long.
  using Wide = hn::CappedTag<std::int32_t, 8>;
  // Trapezoids of runs up to this length are looked up.
  static constexpr std::int64_t kLongestStored = 32;

 public:
  WindowCounts(const CambiPlan& plan, const CambiImage& image, CambiTable& table)
      : plan_(plan),
        image_(image),
        table_(table),
        radius_(plan.window.radius),
        steps_(static_cast<std::int64_t>(plan.limits.largest.size())),
        trapezoid_stride_((kLongestStored + 2 * radius_ + 2 * kCambiRoom) & -kCambiRoom),
        trapezoids_(static_cast<std::size_t>(kLongestStored * trapezoid_stride_)),
        entering_(image.width),
        leaving_(image.width),
        packed_stride_(image.width + 2 * kCambiRoom),
        packed_(static_cast<std::size_t>((steps_ + 1) * packed_stride_)) {
    for (std::int64_t length = 1; length <= kLongestStored; ++length) {
      const std::int64_t count = length + 2 * radius_;
      std::uint16_t* to = trapezoids_.data() + (length - 1) * trapezoid_stride_;
      for (std::int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<std::uint16_t>(std::min({length, 2 * radius_ + 1, i + 1, count - i}));
      }
    }
    const std::int64_t rows = plan.largest_counted + 1 + 2 * steps_;
    table.counts.resize(
        std::max(table.counts.size(), static_cast<std::size_t>(rows * stride() + 2 * kCambiRoom)));
    table.places.resize(static_cast<std::size_t>(rows));
    table.is_filled.resize(static_cast<std::size_t>(rows));
  }

  // Moves the windows to row y, from the row above where the table holds that one's.
  void move_to(std::int64_t y) {
    const bool continues = table_.next_row == y && table_.stride == stride();
    if (!continues) {
      table_.clear();
      table_.stride = stride();
      for (std::int64_t row = y - radius_; row < y + radius_; ++row) change(row, -1);
    }
    change(y + radius_, continues ? y - radius_ - 1 : -1);
    table_.next_row = y + 1;
  }

  // Appends the contrasts of a row's places that are above 0, and some that are 0; returns how many
  // those are. `to` has room for the row and a vector more.
  std::int64_t contrasts(std::int64_t y, float* HWY_RESTRICT to) {
    const CambiWords d;
    std::uint16_t* HWY_RESTRICT keys = entering_.data();
    const std::uint16_t* HWY_RESTRICT words = image_.row(y);
    for (std::int64_t x = 0; x < image_.width; x += static_cast<std::int64_t>(hn::Lanes(d))) {
      hn::StoreU(counted(hn::LoadU(d, words + x)), d, keys + x);
    }
    runs_.clear();
    std::uint32_t steps = 0;  // those that any run has
    entering_.visit_runs([&](const Run& run) HWY_ATTR {
      const std::uint32_t of_run = present_steps(run.value);
      if (of_run != 0) runs_.push_back(run);
      steps |= of_run;
    });
    std::int64_t found = 0;
    for (const Run& run : runs_) found += pack_counts(run, steps, found);
    for (int step = 0; step <= steps_; ++step) {  // else the last vector would hold any sums
      hn::StoreU(hn::Zero(d), d, packed(step) + found);
    }
    contrasts_of_packed(steps, found, to);
    return found;
  }

 private:
  std::int64_t stride() const { return image_.width + 2 * radius_; }
  // The counts of a value: column x's is at x + radius.
  std::uint16_t* row(std::int64_t value) {
    return table_.counts.data() + (steps_ + value) * table_.stride;
  }
  std::int32_t& places(std::int64_t value) {
    return table_.places[static_cast<std::size_t>(steps_ + value)];
  }

  // Keys of words.
  HWY_INLINE hn::Vec<CambiWords> counted(hn::Vec<CambiWords> words) const {
    const CambiWords d;
    const auto largest = hn::Set(d, static_cast<std::uint16_t>(plan_.largest_counted + 1));
    return hn::IfThenElseZero(hn::Eq(hn::Min(words, largest), words), words);
  }

  // A row enters the windows and another leaves them; neither has to be one of the image.
  void change(std::int64_t enters, std::int64_t leaves) {
    const CambiWords d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const bool has_entering = enters >= 0 && enters < image_.height, has_leaving = leaves >= 0;
    if (!has_entering && !has_leaving) return;
    const std::uint16_t* HWY_RESTRICT in = image_.row(has_entering ? enters : leaves);
    const std::uint16_t* HWY_RESTRICT out = image_.row(has_leaving ? leaves : enters);
    const auto kept_in = hn::Set(d, static_cast<std::uint16_t>(has_entering ? 0xFFFF : 0));
    const auto kept_out = hn::Set(d, static_cast<std::uint16_t>(has_leaving ? 0xFFFF : 0));
    std::uint16_t* HWY_RESTRICT keys_in = entering_.data();
    std::uint16_t* HWY_RESTRICT keys_out = leaving_.data();
    for (std::int64_t x = 0; x < image_.width; x += lanes) {
      const auto a = hn::And(kept_in, counted(hn::LoadU(d, in + x)));
      const auto b = hn::And(kept_out, counted(hn::LoadU(d, out + x)));
      const auto differ = hn::Ne(a, b);
      hn::StoreU(hn::IfThenElseZero(differ, a), d, keys_in + x);
      hn::StoreU(hn::IfThenElseZero(differ, b), d, keys_out + x);
    }
    if (has_entering) {
      entering_.visit_runs([&](const Run& run) HWY_ATTR { add<Change::enter>(run); });
    }
    if (has_leaving) {
      leaving_.visit_runs([&](const Run& run) HWY_ATTR { add<Change::leave>(run); });
    }
  }

  template <Change change> HWY_INLINE void add(const Run& run) {
    const Counts d;
    const hn::RebindToSigned<Counts> di;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t length = run.last - run.first, count = length + 2 * radius_;
    std::uint16_t* HWY_RESTRICT to = row(run.value) + run.first;
    const auto change_by = [&](std::int64_t i, hn::Vec<Counts> by) HWY_ATTR {
      const auto counts = hn::LoadU(d, to + i);
      hn::StoreU(change == Change::enter ? hn::Add(counts, by) : hn::Sub(counts, by), d, to + i);
    };
    table_.is_filled[static_cast<std::size_t>(steps_ + run.value)] = 1;
    places(run.value) += static_cast<std::int32_t>(change == Change::enter ? length : -length);
    if (length <= kLongestStored) {
      const std::uint16_t* HWY_RESTRICT by = trapezoids_.data() + (length - 1) * trapezoid_stride_;
      for (std::int64_t i = 0; i < count; i += lanes) change_by(i, hn::LoadU(d, by + i));
      return;
    }
    const auto lane = hn::Iota(di, 0), one = hn::Set(di, 1), zero = hn::Zero(di);
    const auto most = hn::Set(di, static_cast<std::int16_t>(std::min(length, 2 * radius_ + 1)));
    const auto limited = [](std::int64_t n) {  // numbers above `most` make no difference
      return static_cast<std::int16_t>(std::min<std::int64_t>(n, kCambiWidestWindow + kCambiRoom));
    };
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto up = hn::Add(hn::Set(di, limited(i)), hn::Add(lane, one));
      const auto down = hn::Sub(hn::Set(di, limited(count - i)), lane);
      change_by(i, hn::BitCast(d, hn::Max(zero, hn::Min(most, hn::Min(up, down)))));
    }
  }

  // The steps that are seen from a value to one that windows of the row may hold.
  HWY_INLINE std::uint32_t present_steps(int value) {
    std::uint32_t steps = plan_.steps_of[static_cast<std::size_t>(value)];
    for (std::uint32_t left = steps; left != 0; left &= left - 1) {
      const int step = std::countr_zero(left) + 1;
      if ((places(value + step) | places(value - step)) == 0) steps ^= left & -left;
    }
    return steps;
  }

  // Counts beside each other, of places of which some may have a contrast: of their own value, and
  // for each step of the greater one of the values that step away.
  std::uint16_t* packed(int step) { return packed_.data() + step * packed_stride_; }

  // Packs the counts of a run behind others; returns of how many places.
  HWY_INLINE std::int64_t pack_counts(
      const Run& run, std::uint32_t steps_of_row, std::int64_t packed_before) {
    const Counts d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::uint32_t seen = plan_.steps_of[static_cast<std::size_t>(run.value)];
    const std::uint16_t* const counts = row(run.value) + radius_;
    std::int64_t at = packed_before;
    for (std::int64_t x = run.first; x < run.last; x += lanes) {
      auto any = hn::Zero(d);
      for (std::uint32_t left = steps_of_row; left != 0; left &= left - 1) {
        const int step = std::countr_zero(left) + 1;
        const std::int64_t offset = step * table_.stride;
        auto other = hn::Zero(d);
        if ((seen & left & -left) != 0) {
          other = hn::Max(hn::LoadU(d, counts + x + offset), hn::LoadU(d, counts + x - offset));
        }
        hn::StoreU(other, d, packed(step) + at);
        any = hn::Or(any, other);
      }
      if (hn::AllTrue(d, hn::Eq(any, hn::Zero(d)))) continue;
      hn::StoreU(hn::LoadU(d, counts + x), d, packed(0) + at);
      at += std::min(run.last - x, lanes);
    }
    return at - packed_before;
  }

  void contrasts_of_packed(std::uint32_t steps, std::int64_t count, float* HWY_RESTRICT to) {
    const Wide d;
    const hn::Rebind<float, Wide> df;
    const hn::Rebind<std::uint16_t, Wide> narrow;
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto own = hn::PromoteTo(d, hn::LoadU(narrow, packed(0) + i));
      auto largest = hn::Zero(df);
      for (std::uint32_t left = steps; left != 0; left &= left - 1) {
        const int step = std::countr_zero(left) + 1;
        const auto other = hn::PromoteTo(d, hn::LoadU(narrow, packed(step) + i));
        if (hn::AllTrue(d, hn::Eq(other, hn::Zero(d)))) continue;
        const auto weight = hn::Set(d, kCambiWeights[static_cast<std::size_t>(step - 1)]);
        const auto product = hn::ConvertTo(df, hn::Mul(weight, hn::Mul(own, other)));
        const auto inverse = hn::GatherIndex(df, plan_.inverses.data(), hn::Add(own, other));
        largest = hn::Max(largest, hn::Mul(product, inverse));
      }
      hn::StoreU(largest, df, to + i);
    }
  }

  const CambiPlan& plan_;
  const CambiImage& image_;
  CambiTable& table_;
  std::int64_t radius_, steps_, trapezoid_stride_;
  std::vector<std::uint16_t> trapezoids_;
  KeyRow entering_, leaving_;
  std::vector<Run> runs_;
  std::int64_t packed_stride_;
  std::vector<std::uint16_t> packed_;
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_CAMBI_COUNTS_INL_H
