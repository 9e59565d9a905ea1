// SPDX-License-Identifier: Apache-2.0
// Motion on the CPU, in tasks of rows. A row's difference is filtered down and then across. Those
// of up to 12 bits are pairs of columns in 16-bit halves, whose products with taps are added in
// pairs. Sums of 16-bit samples are too wide for 32 bits and are kept as multiples of 256 and the
// rest, in plain loops of 32-bit integers, which the compiler makes vectors of.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/motion/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "src/vmaf/fused_products.h"
#include "src/vmaf/motion/motion.h"
#include "src/vmaf/row_memory.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

constexpr int kRadius = 2;
constexpr std::int32_t kOuter = 3571, kInner = 16004, kCentre = 26386;

// Differences of two rows of samples.
void subtract(const std::uint16_t* HWY_RESTRICT earlier, const std::uint16_t* HWY_RESTRICT later,
    std::int64_t width, std::int32_t* HWY_RESTRICT to) {
  for (std::int64_t x = 0; x < width; ++x) to[x] = earlier[x] - later[x];
}

// Five taps over rows or columns, over 2^shift, rounded. Differences have up to 17 bits and so have
// the results: multiples of 256 and rests are filtered apart, each within 32 bits.
HWY_INLINE std::int32_t filtered(
    std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d, std::int32_t e, int shift) {
  const std::int32_t outer = a + e, inner = b + d;
  const std::int32_t upper = kOuter * (outer >> 8) + kInner * (inner >> 8) + kCentre * (c >> 8);
  const std::int32_t lower = kOuter * (outer & 255) + kInner * (inner & 255) + kCentre * (c & 255) +
                             (std::int32_t{1} << (shift - 1));
  return (upper + (lower >> 8)) >> (shift - 8);
}

std::int64_t sad_of_rows(
    const Plane& earlier, const Plane& later, std::int64_t first, std::int64_t last) {
  const std::int64_t width = later.width, height = later.height;
  const auto room = static_cast<std::size_t>(width) + 2 * kRadius;
  std::array<std::vector<std::int32_t>, 2 * kRadius + 1> ring;
  for (auto& row : ring) row.resize(room);
  std::vector<std::int32_t> down(room);
  const auto load = [&](std::int64_t row) {
    const std::int64_t at = reflected(row, height);
    subtract(earlier.row<std::uint16_t>(at), later.row<std::uint16_t>(at), width,
        ring[static_cast<std::size_t>(row + 5) % ring.size()].data());
  };
  for (std::int64_t row = first - kRadius; row < first + kRadius; ++row) load(row);
  const int shift = later.bit_depth;
  std::int64_t sad = 0;
  for (std::int64_t row = first; row < last; ++row) {
    load(row + kRadius);
    const std::int32_t* HWY_RESTRICT rows[5];
    for (int k = 0; k < 5; ++k) {
      rows[k] = ring[static_cast<std::size_t>(row - kRadius + k + 5) % ring.size()].data();
    }
    std::int32_t* HWY_RESTRICT to = down.data() + kRadius;
    for (std::int64_t x = 0; x < width; ++x) {
      to[x] = filtered(rows[0][x], rows[1][x], rows[2][x], rows[3][x], rows[4][x], shift);
    }
    for (std::int64_t k = 1; k <= kRadius; ++k) {
      to[-k] = to[k];
      to[width - 1 + k] = to[width - 1 - k];
    }
    // Windows of 2^12 columns: their sum has 29 bits.
    for (std::int64_t begin = 0; begin < width; begin += 4096) {
      const std::int64_t end = std::min(width, begin + 4096);
      std::int32_t sum = 0;
      for (std::int64_t x = begin; x < end; ++x) {
        sum += std::abs(filtered(to[x - 2], to[x - 1], to[x], to[x + 1], to[x + 2], 16));
      }
      sad += sum;
    }
  }
  return sad;
}

using D = hn::ScalableTag<std::uint32_t>;
using V = hn::Vec<D>;

constexpr std::uint32_t tap_pair(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint32_t>(first) | static_cast<std::uint32_t>(second) << 16;
}

// A row of words, each of two columns from the even one on, with room for a word to the left and a
// vector and a word to the right.
class RowOfPairs {
 public:
  RowOfPairs(std::int64_t width, RowMemory& memory) {
    const std::size_t bytes = 3 * kPaddingBytes + static_cast<std::size_t>(width) * 2;
    std::byte* const row = memory.take(bytes);
    std::memset(row, 0, bytes);  // columns behind the last one have no difference
    words_ = reinterpret_cast<std::uint32_t*>(row + kPaddingBytes);
  }
  std::uint32_t* get() { return words_; }

 private:
  static constexpr std::size_t kPaddingBytes =
      std::max<std::size_t>(HWY_MAX_BYTES, RowMemory::kAlignment);
  std::uint32_t* words_;
};

// Repeats columns beyond the row's ends as windows see them.
inline void reflect_ends(std::uint32_t* words, std::int64_t width) {
  const auto column = [&](std::int64_t x) {
    const std::int64_t at = reflected(x, width);
    return words[at / 2] >> (at % 2 * 16) & 0xffff;
  };
  words[-1] = column(-2) | column(-1) << 16;
  const std::int64_t last = (width - 1) / 2;  // the word of the last column
  if (width % 2 != 0) words[last] = column(width - 1) | column(width) << 16;
  words[last + 1] = column(2 * last + 2) | (width % 2 == 0 ? column(2 * last + 3) << 16 : 0);
}

// Differences of 13 bits: all sums of products stay within 32 bits, and results have 17 bits, of
// which the lowest is filtered apart. is_fused: products are added by one instruction.
template <bool is_fused> class NarrowMotion {
 public:
  NarrowMotion(const Plane& earlier, const Plane& later)
      : earlier_(earlier),
        later_(later),
        half_(later.width, memory_),
        lowest_(later.width, memory_) {
    for (int i = 0; i < 2 * kRadius + 1; ++i) ring_.emplace_back(later.width, memory_);
  }

  template <class Sample> std::int64_t sad(std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first - kRadius; row < first + kRadius; ++row) load<Sample>(row);
    std::int64_t sad = 0;
    for (std::int64_t row = first; row < last; ++row) {
      load<Sample>(row + kRadius);
      if (filter_small_down(row)) {
        reflect_ends(half_.get(), later_.width);
        sad += sum_across<true>();
        continue;
      }
      filter_down(row);
      reflect_ends(half_.get(), later_.width);
      reflect_ends(lowest_.get(), later_.width);
      sad += sum_across<false>();
    }
    return sad;
  }

 private:
  std::uint32_t* difference(std::int64_t row) {
    return ring_[static_cast<std::size_t>(row + 5) % ring_.size()].get();
  }

  template <class Sample> void load(std::int64_t row) {
    const std::int64_t at = reflected(row, later_.height);
    const Sample* HWY_RESTRICT a = earlier_.row<Sample>(at);
    const Sample* HWY_RESTRICT b = later_.row<Sample>(at);
    std::uint32_t* HWY_RESTRICT to = difference(row);
    const auto minus = [&](std::int64_t x) { return static_cast<std::uint32_t>(a[x] - b[x]); };
    const std::int64_t words = later_.width / 2;
    std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const D d;
    const hn::Repartition<std::uint16_t, D> d16;
    const hn::Rebind<Sample, decltype(d16)> from;
    const auto columns = [&](const Sample* row_of) HWY_ATTR {
      const auto samples = hn::LoadU(from, row_of + 2 * i);
      if constexpr (sizeof(Sample) == 1) {
        return hn::PromoteTo(d16, samples);
      } else {
        return samples;
      }
    };
    for (const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)); i + lanes <= words;
         i += lanes) {
      hn::StoreU(hn::BitCast(d, hn::Sub(columns(a), columns(b))), d, to + i);
    }
#endif
    for (; i < words; ++i) {
      to[i] = (minus(2 * i) & 0xffff) | minus(2 * i + 1) << 16;
    }
    if (later_.width % 2 != 0) to[words] = minus(2 * words) & 0xffff;
  }

  // store(i, even, odd) takes the filter's results of a vector of words from word i on.
  template <class Store> HWY_INLINE void filter_each(std::int64_t row, const Store& store) {
    const D d;
    const hn::RebindToSigned<D> di;
    const std::uint32_t *a = difference(row - 2), *b = difference(row - 1), *c = difference(row);
    const std::uint32_t *e = difference(row + 1), *f = difference(row + 2);
    const int shift = later_.bit_depth;
    const V rounding = hn::Set(d, std::uint32_t{1} << (shift - 1));
    const V outer = hn::Set(d, tap_pair(kOuter, kInner));
    const V even_centre = hn::Set(d, tap_pair(kCentre, 0));
    const V odd_centre = hn::Set(d, tap_pair(0, kCentre));
    const auto result = [&](V pairs, V centre, V centre_taps) HWY_ATTR {
      const V outer_sum = add_products<is_fused>(d, rounding, pairs, outer);
      const V sum = add_products<is_fused>(d, outer_sum, centre, centre_taps);
      return hn::BitCast(d, hn::ShiftRightSame(hn::BitCast(di, sum), shift));
    };
    for (std::int64_t i = 0; 2 * i < later_.width; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const V ends = add_halves(d, hn::LoadU(d, a + i), hn::LoadU(d, f + i));
      const V inner = add_halves(d, hn::LoadU(d, b + i), hn::LoadU(d, e + i));
      const V centre = hn::LoadU(d, c + i);
      store(i, result(lower_halves(d, ends, inner), centre, even_centre),
          result(upper_halves(d, ends, inner), centre, odd_centre));
    }
  }

  // The row of the filter's results, if none has more than 16 bits, as where no smoothed difference
  // is above half the range. False if one has.
  bool filter_small_down(std::int64_t row) {
    const D d;
    const V least = hn::Set(d, 0x8000);
    V beyond = hn::Zero(d);
    filter_each(row, [&](std::int64_t i, V even, V odd) HWY_ATTR {
      beyond = hn::Or(beyond, hn::Or(hn::Add(even, least), hn::Add(odd, least)));
      hn::StoreU(lower_halves(d, even, odd), d, half_.get() + i);
    });
    return hn::AllTrue(d, hn::Eq(hn::ShiftRight<16>(beyond), hn::Zero(d)));
  }

  // Rows of the filter's results, halved, and of their lowest bits.
  void filter_down(std::int64_t row) {
    const D d;
    const V one = hn::Set(d, 1);
    filter_each(row, [&](std::int64_t i, V even, V odd) HWY_ATTR {
      hn::StoreU(
          lower_halves(d, hn::ShiftRight<1>(even), hn::ShiftRight<1>(odd)), d, half_.get() + i);
      hn::StoreU(lower_halves(d, hn::And(even, one), hn::And(odd, one)), d, lowest_.get() + i);
    });
  }

  // is_small: results are whole in one row.
  template <bool is_small> std::int64_t sum_across() {
    const D d;
    const hn::RebindToSigned<D> di;
    const std::uint32_t *half = half_.get(), *lowest = lowest_.get();
    const V even0 = hn::Set(d, tap_pair(kOuter, kInner));
    const V even1 = hn::Set(d, tap_pair(kCentre, kInner)), even2 = hn::Set(d, tap_pair(kOuter, 0));
    const V odd0 = hn::Set(d, tap_pair(0, kOuter)), odd1 = hn::Set(d, tap_pair(kInner, kCentre));
    const V odd2 = hn::Set(d, tap_pair(kInner, kOuter));
    const V rounding = hn::Set(d, 0x8000), none = hn::Zero(d);
    const auto filter = [&](const std::uint32_t* row, V start, V t0, V t1, V t2) HWY_ATTR {
      V sum = add_products<is_fused>(d, start, hn::LoadU(d, row - 1), t0);
      sum = add_products<is_fused>(d, sum, hn::LoadU(d, row), t1);
      return add_products<is_fused>(d, sum, hn::LoadU(d, row + 1), t2);
    };
    const auto magnitude = [&](std::int64_t i, V t0, V t1, V t2) HWY_ATTR {
      if constexpr (is_small) {
        const V result = filter(half + i, rounding, t0, t1, t2);
        return hn::Abs(hn::ShiftRight<16>(hn::BitCast(di, result)));
      } else {
        const V of_lowest = filter(lowest + i, rounding, t0, t1, t2);
        const V result = hn::Add(filter(half + i, none, t0, t1, t2), hn::ShiftRight<1>(of_lowest));
        return hn::Abs(hn::ShiftRight<15>(hn::BitCast(di, result)));
      }
    };
    auto sum = hn::Zero(di);  // of at most 2^15 windows a row and lane, of 16 bits
    std::int64_t sad = 0;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t i = 0; 2 * i < later_.width; i += lanes) {
      const auto even = magnitude(i, even0, even1, even2);
      const auto odd = magnitude(i, odd0, odd1, odd2);
      const std::int64_t left = later_.width - 2 * i;
      if (left >= 2 * lanes) {
        sum = hn::Add(sum, hn::Add(even, odd));
      } else {
        const auto first = [&](std::int64_t n) {
          return hn::FirstN(di, static_cast<std::size_t>(n));
        };
        sum = hn::Add(sum, hn::Add(hn::IfThenElseZero(first((left + 1) / 2), even),
                               hn::IfThenElseZero(first(left / 2), odd)));
      }
      if (i % 4096 == 4096 - lanes) {
        sad += sum_of_lanes(di, sum);
        sum = hn::Zero(di);
      }
    }
    return sad + sum_of_lanes(di, sum);
  }

  const Plane &earlier_, &later_;
  RowMemory memory_;
  std::vector<RowOfPairs> ring_;
  RowOfPairs half_, lowest_;
};

template <bool is_fused>
std::int64_t narrow_sad(
    const Plane& earlier, const Plane& later, std::int64_t first, std::int64_t last) {
  NarrowMotion<is_fused> motion(earlier, later);
  return later.is_words ? motion.template sad<std::uint16_t>(first, last)
                        : motion.template sad<std::uint8_t>(first, last);
}

std::int64_t sad(const Plane& earlier, const Plane& later, std::int64_t first, std::int64_t last) {
  if (later.bit_depth > 12) return sad_of_rows(earlier, later, first, last);
#if HWY_TARGET == HWY_AVX3
  if (fuses_products()) return narrow_sad<true>(earlier, later, first, last);
#endif
  return narrow_sad<false>(earlier, later, first, last);
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::vmaf_internal {
namespace {

HWY_EXPORT(sad);

constexpr std::int64_t kRowsOfTask = 64;

}  // namespace

void add_motion_tasks(
    const Plane& earlier, const Plane& later, FrameTasks& tasks, std::atomic<std::int64_t>& sum) {
  const std::int64_t count = (later.height + kRowsOfTask - 1) / kRowsOfTask;
  tasks.add(count, [&earlier, &later, &sum](std::int64_t task) {
    const std::int64_t first = task * kRowsOfTask;
    const std::int64_t last = std::min(later.height, first + kRowsOfTask);
    sum += HWY_DYNAMIC_DISPATCH(sad)(earlier, later, first, last);
  });
}

}  // namespace similis::vmaf_internal
#endif
