// SPDX-License-Identifier: Apache-2.0
// The passes of VIF in vectors; vif/cpu.cc says how they follow one another. Included once per SIMD
// target, hence the guard that flips.
#if defined(SIMILIS_VMAF_VIF_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_VIF_TILE_INL_H
#undef SIMILIS_VMAF_VIF_TILE_INL_H
#else
#define SIMILIS_VMAF_VIF_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/vif/halve-inl.h"
#include "src/vmaf/vif/information-inl.h"
#include "src/vmaf/vif/plan.h"
#include "src/vmaf/vif/rows-inl.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// A walk through a tile computes one of these: all moments of a pair; those of the reference alone,
// which are kept; or the others, beside kept ones.
enum class VifWalk : std::uint8_t { pair, reference, distorted };
constexpr bool has_mean(VifWalk walk, std::size_t kind) {  // x, y
  return walk == VifWalk::pair || (kind == 0) == (walk == VifWalk::reference);
}
constexpr bool has_square(VifWalk walk, std::size_t kind) {  // xx, yy, xy
  return has_mean(walk, kind);
}

// is_fused: by the instruction that multiplies pairs and adds, a sixth less time.
template <class Sample, bool is_fused> class VifStripe {
  // A product of two bytes is one half; that of two words has a lower and an upper one.
  static constexpr bool kIsNarrow = sizeof(Sample) == 1;
  static constexpr std::size_t kHalves = kIsNarrow ? 1 : 2;
  static constexpr std::size_t kRingRows = 2 + 3 * kHalves;  // x, y, then halves of xx, yy, xy
  static constexpr std::size_t kDownRows = 8;                // x, y, then both halves of each
  using D = hn::ScalableTag<Word>;
  using V = hn::Vec<D>;
  static constexpr Word kBias = 0x80008000u;
  // Output rows of a pass over the ring. Four read half as much of the ring, which is larger than
  // the first-level cache of processors with AVX-512; their sums fill more registers than AVX2 has.
  static constexpr std::size_t kPassRows = HWY_TARGET == HWY_AVX3 ? 4 : 2;
  static constexpr std::size_t kPassPairs = kPassRows / 2;
  static constexpr std::size_t kVectors = 4 / kPassRows;  // a pass sums at once
  static constexpr std::size_t kMostLanes = HWY_MAX_BYTES / sizeof(Word);

 public:
  explicit VifStripe(const VifPlan& plan)
      : plan_(plan),
        pairs_(kVifPairs[plan.scale]),
        mean_shift_(plan.scale == 0 ? plan.bit_depth : 16),
        square_shift_(plan.scale == 0 ? 2 * (plan.bit_depth - 8) : 16),
        information_(plan.gain_limits) {
    for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(pairs_) + kPassPairs; ++i) {
      ring_.push_back(std::make_unique_for_overwrite<RingRow>());
    }
  }

  void measure(std::int64_t stripe, std::span<VifScaleSums> sums) {
    const std::int64_t first = stripe * plan_.stripe_rows;
    const std::int64_t last = std::min(first + plan_.stripe_rows, plan_.reference.height);
    for (std::int64_t x = 0; x < plan_.reference.width; x += kVifTileColumns) {
      if constexpr (kIsNarrow) {  // the smaller scales have words
        measure_tile<0>(first, last, x, sums);
      } else {
        switch (plan_.scale) {
          case 0: measure_tile<0>(first, last, x, sums); break;
          case 1: measure_tile<1>(first, last, x, sums); break;
          case 2: measure_tile<2>(first, last, x, sums); break;
          default: measure_tile<3>(first, last, x, sums);
        }
      }
    }
    for (VifScaleSums& other : sums.subspan(1)) {
      other.reference_information = sums.front().reference_information;
    }
  }

 private:
  // The words of even columns' pairs and those of odd ones', vector by vector.
  struct PairRow {
    alignas(64) std::array<Word, 2 * kRowWords> words;
  };
  using RingRow = std::array<PairRow, kRingRows>;
  // The pairs that the windows of a pass see, from above.
  using Window = std::array<const RingRow*, kVifPairs[0] + kPassPairs - 1>;

  template <int scale>
  void measure_tile(
      std::int64_t first, std::int64_t last, std::int64_t column, std::span<VifScaleSums> sums) {
    constexpr std::size_t vectors = kVectors * kMostLanes;  // filters down take
    const std::int64_t columns = std::min(kVifTileColumns, plan_.reference.width - column);
    const auto seen = static_cast<std::size_t>(columns + 2 * kVifMargin + 1) / 2;
    words_ = std::min(kTileWords, (seen + vectors - 1) / vectors * vectors);
    if (sums.size() == 1) {
      walk_tile<scale, VifWalk::pair>(0, first, last, column, sums[0]);
      return;
    }
    if (kept_ == nullptr) {
      kept_ =
          std::make_unique_for_overwrite<KeptRow[]>(static_cast<std::size_t>(plan_.stripe_rows));
    }
    walk_tile<scale, VifWalk::reference>(0, first, last, column, sums[0]);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      skips_reference_ = i > 0;
      walk_tile<scale, VifWalk::distorted>(i, first, last, column, sums[i]);
    }
    skips_reference_ = false;
  }

  // index: of the distorted image.
  template <int scale, VifWalk walk>
  void walk_tile(std::size_t index, std::int64_t first, std::int64_t last, std::int64_t column,
      VifScaleSums& sums) {
    constexpr int pairs = kVifPairs[scale], seen = pairs + static_cast<int>(kPassPairs) - 1;
    const Plane& distorted = plan_.distorted[index];
    const std::int64_t columns = std::min(kVifTileColumns, plan_.reference.width - column);
    Window window{};
    for (int j = 0; j + 1 < pairs; ++j) {
      load_pair<walk>(distorted, first - (pairs - 1) + 2 * j, j, column);
    }
    int next = pairs - 1;
    for (std::int64_t row = first; row < last; row += kPassRows) {
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(kPassRows); i += 2) {
        load_pair<walk>(distorted, row + pairs - 1 + i, next, column);
        next = (next + 1) % seen;
      }
      for (int j = 0; j < seen; ++j) {
        window[static_cast<std::size_t>(j)] =
            ring_[static_cast<std::size_t>((next + j) % seen)].get();
      }
      if constexpr (scale + 1 < kVifScales) {
        for (std::size_t pair = 0; pair < kPassPairs; ++pair) {
          for (std::size_t kind = 0; kind < 2; ++kind) {
            if (has_mean(walk, kind)) halve_rows<scale + 1>(window, pair, kind);
          }
        }
      }
      if (plan_.is_measured) filter_down<scale, walk>(window);
      if constexpr (scale + 1 < kVifScales) {
        for (std::size_t pair = 0; pair < kPassPairs; ++pair) {
          const std::int64_t at = row + 2 * static_cast<std::int64_t>(pair);
          for (std::size_t kind = 0; kind < 2 && at < last; ++kind) {
            if (!has_mean(walk, kind)) continue;
            halve_columns<scale + 1>(pair, kind, kind == 0 ? 0 : 1 + index, at, column);
          }
        }
      }
      if (!plan_.is_measured) continue;
      const auto rows = static_cast<std::int64_t>(kPassRows);
      for (std::int64_t i = 0; i < std::min(rows, last - row); ++i) {
        KeptRow* kept = nullptr;
        if constexpr (walk != VifWalk::pair) {
          kept = &kept_[static_cast<std::size_t>(row - first + i)];
        }
        filter_across<scale, walk>(down_[static_cast<std::size_t>(i)], columns, kept);
      }
    }
    if constexpr (walk != VifWalk::reference) information_.end_tile(sums);
  }

  // The next scale's rows of an image, from one kind of rows. Its columns follow when these have
  // left the processor's stores: loads that span two of those wait for them, 5 % of VIF on AVX-512.
  template <int scale> void halve_rows(const Window& window, std::size_t pair, std::size_t kind) {
    PairsOfRows<scale> rows;
    for (std::size_t j = 0; j < rows.size(); ++j) rows[j] = (*window[pair + j])[kind].words.data();
    halve_down<scale, kIsNarrow, is_fused>(rows, words_, mean_shift_, halved_down_[pair][kind]);
  }
  // The part of an image's next scale that windows about row `row` make.
  template <int scale>
  void halve_columns(std::size_t pair, std::size_t kind, std::size_t image, std::int64_t row,
      std::int64_t column) const {
    const std::int64_t width = plan_.reference.width / 2, height = plan_.reference.height / 2;
    const std::int64_t count = std::min(kVifTileColumns / 2, width - column / 2);
    if (row / 2 >= height || count <= 0) return;
    halve_across<scale, is_fused>(halved_down_[pair][kind], static_cast<std::size_t>(count),
        plan_.halved[image] + row / 2 * width + column / 2);
  }

  // Rows `row` and row + 1 of the tile, as pairs, into a place of the ring.
  template <VifWalk walk>
  void load_pair(const Plane& distorted, std::int64_t row, int place, std::int64_t column) {
    // Two rows of the reference and, unless it is walked alone, two of the distorted image.
    constexpr std::size_t rows = walk == VifWalk::reference ? 2 : 4;
    const std::int64_t left = column - kVifMargin;
    const auto row_of = [&](std::size_t k) {
      const Plane& plane = k < 2 ? plan_.reference : distorted;
      const std::int64_t at = row + static_cast<std::int64_t>(k % 2);
      const std::int64_t ahead = inside(at + std::int64_t{kPassRows}, plane.height);
      prefetch_columns(plane.row<Sample>(ahead), plane.width, column);
      return plane.row<Sample>(inside(at, plane.height));
    };
    // From the image where the tile lies inside.
    const std::int64_t end = left + 2 * static_cast<std::int64_t>(words_);
    if (left >= 0 && end <= plan_.reference.width) {
      std::array<const Sample*, rows> from;
      for (std::size_t k = 0; k < rows; ++k) from[k] = row_of(k) + left;
      return make_pairs<walk>(place,
          [from](std::size_t k, std::size_t i) HWY_ATTR { return words_at(from[k] + 2 * i); });
    }
    alignas(64) RowOfWords words[rows];
    for (std::size_t k = 0; k < rows; ++k) {
      load_columns(row_of(k), plan_.reference.width, left, words_, words[k].data());
    }
    make_pairs<walk>(
        place, [&](std::size_t k, std::size_t i) HWY_ATTR { return hn::Load(D(), &words[k][i]); });
  }

  // words_of(k, i): words from i on of the upper and the lower row of the reference, and of the
  // distorted image.
  template <VifWalk walk, class WordsOf>
  HWY_INLINE void make_pairs(int place, const WordsOf& words_of) {
    RingRow& ring = *ring_[static_cast<std::size_t>(place)];
    const D d;
    const V bias = hn::Set(d, kBias), sample_bias = hn::Set(d, kIsNarrow ? 0 : kBias);
    for (std::size_t i = 0; i < words_; i += hn::Lanes(d)) {
      const V a0 = words_of(0, i), a1 = words_of(1, i);
      V b0 = a0, b1 = a1;
      if constexpr (walk != VifWalk::reference) {
        b0 = words_of(2, i);
        b1 = words_of(3, i);
      }
      const auto store = [&](std::size_t kind, V upper, V lower, V by) HWY_ATTR {
        store_pairs(d, hn::Xor(upper, by), hn::Xor(lower, by), &ring[kind].words[2 * i]);
      };
      if constexpr (has_mean(walk, 0)) store(0, a0, a1, sample_bias);
      if constexpr (has_mean(walk, 1)) store(1, b0, b1, sample_bias);
      const auto store_products = [&](std::size_t kind, V p0, V q0, V p1, V q1) HWY_ATTR {
        store(2 + kHalves * kind, multiply_low(d, p0, q0), multiply_low(d, p1, q1), bias);
        if constexpr (!kIsNarrow) {
          store(3 + kHalves * kind, multiply_high(d, p0, q0), multiply_high(d, p1, q1), bias);
        }
      };
      if constexpr (has_square(walk, 0)) store_products(0, a0, a0, a1, a1);
      if constexpr (has_square(walk, 1)) store_products(1, b0, b0, b1, b1);
      if constexpr (has_square(walk, 2)) store_products(2, a0, b0, a1, b1);
    }
  }

  // Sums down of one kind of row in even and odd columns, of each output row of a pass, as they are
  // without the bias. Vectors of words from word i on share the taps' loads, and two output rows
  // those of their pairs with the next two.
  struct Down {
    V even[kPassRows], odd[kPassRows];
  };
  template <int scale>
  HWY_INLINE void sums_down(const Window& window, const VifTaps<scale>& taps, std::size_t kind,
      std::size_t i, Word start, Down (&sums)[kVectors]) const {
    const D d;
    for (Down& of_vector : sums) {
      for (std::size_t row = 0; row < kPassRows; ++row) {
        of_vector.even[row] = of_vector.odd[row] = hn::Set(d, start);
      }
    }
    // step(pairs, row 2r, row 2r + 1) of pair j of the window for output rows 2r and 2r + 1.
    const auto each = [&](int j, std::size_t r, auto step) HWY_ATTR {
      const Word* pairs = &(*window[static_cast<std::size_t>(j)])[kind].words[2 * i];
      for (Down& of_vector : sums) {
        step(hn::Load(d, pairs), of_vector.even[2 * r], of_vector.even[2 * r + 1]);
        pairs += hn::Lanes(d);
        step(hn::Load(d, pairs), of_vector.odd[2 * r], of_vector.odd[2 * r + 1]);
        pairs += hn::Lanes(d);
      }
    };
    const auto add = [&](int j, std::size_t r, V even_taps, V odd_taps) HWY_ATTR {
      each(j, r, [&](V pairs, V& upper, V& lower) HWY_ATTR {
        filter_step<is_fused>(d, pairs, even_taps, odd_taps, upper, lower);
      });
    };
#if HWY_TARGET == HWY_AVX3
    constexpr int pairs = kVifPairs[scale];
    add(0, 0, taps.even(0), taps.odd(0));
#pragma GCC unroll 9
    for (int j = 1; j < pairs; ++j) {
      add(j, 0, taps.even(j), taps.odd(j));
      add(j, 1, taps.even(j - 1), taps.odd(j - 1));
    }
    add(pairs, 1, taps.even(pairs - 1), taps.odd(pairs - 1));
#else
    for (int j = 0; j < pairs_; ++j) add(j, 0, taps.even(j), taps.odd(j));
#endif
    if constexpr (scale == 3) {
      for (std::size_t r = 0; r < kPassPairs; ++r) {
        each(1 + static_cast<int>(r), r,
            [&](V pairs, V& upper, V& lower) HWY_ATTR { add_centre(d, pairs, upper, lower); });
      }
    }
  }

  template <int scale, VifWalk walk> HWY_NOINLINE void filter_down(const Window& window) {
    const D d;
    const V bias = hn::Set(d, kBias);
    const VifTaps<scale> taps;
    constexpr Word whole = 0x80000000u;  // subtracted from a sum by the bias
    const Word mean_rounding = Word{1} << (mean_shift_ - 1);
    const Word rounding = square_shift_ == 0 ? 0 : Word{1} << (square_shift_ - 1);
    const VectorShift<D> by_mean(mean_shift_), by_square(square_shift_);
    const VectorShift<D> to_square(16 - square_shift_);
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t i = 0; i < words_; i += kVectors * lanes) {
      for (std::size_t kind = 0; kind < 2; ++kind) {
        if (!has_mean(walk, kind)) continue;
        Down sums[kVectors];
        sums_down(window, taps, kind, i, mean_rounding + (kIsNarrow ? 0 : whole), sums);
        for (std::size_t v = 0; v < kVectors; ++v) {
          for (std::size_t row = 0; row < kPassRows; ++row) {
            const V even = by_mean.right(sums[v].even[row]);
            const V odd = by_mean.right(sums[v].odd[row]);
            hn::Store(
                hn::Xor(lower_halves(d, even, odd), bias), d, &down_[row][kind][i + v * lanes]);
          }
        }
      }
      for (std::size_t kind = 0; kind < 3; ++kind) {
        if (!has_square(walk, kind)) continue;
        const std::size_t in = 2 + kHalves * kind, out = 2 + 2 * kind;
        Down sums[kVectors];
        sums_down(window, taps, in, i, whole + rounding, sums);
        if constexpr (!kIsNarrow) {
          Down upper[kVectors];
          sums_down(window, taps, in + 1, i, whole, upper);
          const auto joined = [&](V low, V high) HWY_ATTR {
            return hn::Add(by_square.right(low), to_square.left(high));
          };
          for (std::size_t v = 0; v < kVectors; ++v) {
            for (std::size_t row = 0; row < kPassRows; ++row) {
              sums[v].even[row] = joined(sums[v].even[row], upper[v].even[row]);
              sums[v].odd[row] = joined(sums[v].odd[row], upper[v].odd[row]);
            }
          }
        }
        for (std::size_t v = 0; v < kVectors; ++v) {
          for (std::size_t row = 0; row < kPassRows; ++row) {
            const V even = sums[v].even[row], odd = sums[v].odd[row];
            const std::size_t at = i + v * lanes;
            hn::Store(hn::Xor(lower_halves(d, even, odd), bias), d, &down_[row][out][at]);
            hn::Store(hn::Xor(upper_halves(d, even, odd), bias), d, &down_[row][out + 1][at]);
          }
        }
      }
    }
  }

  using DownRow = std::array<RowOfWords, kDownRows>;

  // Sums across of these kinds of rows, of even and odd columns from word i on.
  template <int scale, std::size_t... kinds>
  HWY_INLINE void sums_across(const DownRow& rows, const VifTaps<scale>& taps, std::size_t i,
      V (&even)[kDownRows], V (&odd)[kDownRows]) const {
    const D d;
    constexpr Word whole = 0x80000000u, rounding = 0x8000u;
    constexpr int pairs = kVifPairs[scale];
    constexpr std::size_t first = (static_cast<std::size_t>(kVifMargin) - (pairs - 1)) / 2;
    constexpr auto start = [](std::size_t kind) {  // lower halves are rounded
      return kind >= 2 && kind % 2 == 0 ? whole + rounding : whole;
    };
    ((even[kinds] = odd[kinds] = hn::Set(d, start(kinds))), ...);
    const std::size_t at = i + first;
    const auto add = [&](int j) HWY_ATTR {
      const V even_taps = taps.even(j), odd_taps = taps.odd(j);
      (filter_step<is_fused>(d, hn::LoadU(d, &rows[kinds][at + static_cast<std::size_t>(j)]),
           even_taps, odd_taps, even[kinds], odd[kinds]),
          ...);
    };
#if HWY_TARGET == HWY_AVX3
    // Half of the words are moved together from two vectors: loads that cross lines of the cache
    // take as long as products, and with all words from either, one waits for the other.
    constexpr int moved = scale <= 1 ? 5 - static_cast<int>(first) : 0;
    if constexpr (moved > 0) {
      const auto add_moved = [&](std::size_t kind) HWY_ATTR {
        const V here = loaded(hn::Load(d, &rows[kind][i]));
        const V next = loaded(hn::Load(d, &rows[kind][i + hn::Lanes(d)]));
        const auto step = [&](V words, int j) HWY_ATTR {
          filter_step<is_fused>(d, words, taps.even(j), taps.odd(j), even[kind], odd[kind]);
        };
        if constexpr (scale == 0) {
          step(here, 0);
          step(V{_mm512_alignr_epi32(next.raw, here.raw, 1)}, 1);
        }
        step(V{_mm512_alignr_epi32(next.raw, here.raw, 2)}, moved - 3);
        step(V{_mm512_alignr_epi32(next.raw, here.raw, 3)}, moved - 2);
        step(V{_mm512_alignr_epi32(next.raw, here.raw, 4)}, moved - 1);
      };
      (add_moved(kinds), ...);
    }
#pragma GCC unroll 9
    for (int j = moved; j < pairs; ++j) add(j);
#else
    constexpr int together = pairs % 3 == 0 ? 3 : pairs;
    for (int first_of = 0; first_of < pairs_; first_of += together) {
#pragma GCC unroll 5
      for (int j = first_of; j < first_of + together; ++j) add(j);
    }
#endif
    if constexpr (scale == 3) {
      (add_centre(d, hn::LoadU(d, &rows[kinds][at + 1]), even[kinds], odd[kinds]), ...);
    }
  }

  // The reference's moments of one row of a tile: mean and square of even and odd columns.
  struct KeptRow {
    alignas(64) std::array<RowOfWords, 4> moments;
  };

  // As a part of its caller GCC 12 makes it 1.1 times as slow on AVX2.
  template <int scale, VifWalk walk>
  HWY_NOINLINE void filter_across(
      const DownRow& rows, std::int64_t columns, [[maybe_unused]] KeptRow* kept) {
    const D d;
    if constexpr (walk != VifWalk::reference) information_.begin();
    const VifTaps<scale> taps;
    const auto words = static_cast<std::size_t>((columns + 1) / 2);
    for (std::size_t i = 0; i < words; i += hn::Lanes(d)) {
      V even[kDownRows], odd[kDownRows];
      // In groups that fit the registers.
      if constexpr (walk == VifWalk::pair) {
        sums_across<scale, 0, 1, 2, 3>(rows, taps, i, even, odd);
        sums_across<scale, 4, 5, 6, 7>(rows, taps, i, even, odd);
      } else if constexpr (walk == VifWalk::reference) {
        sums_across<scale, 0, 2, 3>(rows, taps, i, even, odd);
      } else {
        sums_across<scale, 1, 4, 5>(rows, taps, i, even, odd);
        sums_across<scale, 6, 7>(rows, taps, i, even, odd);
      }
      for (std::size_t kind = 0; kind < 3; ++kind) {
        if (!has_square(walk, kind)) continue;
        const std::size_t lower = 2 + 2 * kind, upper = 3 + 2 * kind;
        even[2 + kind] = hn::Add(even[upper], hn::ShiftRight<16>(even[lower]));
        odd[2 + kind] = hn::Add(odd[upper], hn::ShiftRight<16>(odd[lower]));
      }
      if constexpr (walk == VifWalk::reference) {
        hn::Store(even[0], d, &kept->moments[0][i]);
        hn::Store(odd[0], d, &kept->moments[1][i]);
        hn::Store(even[2], d, &kept->moments[2][i]);
        hn::Store(odd[2], d, &kept->moments[3][i]);
        continue;
      }
      if constexpr (walk == VifWalk::distorted) {
        even[0] = hn::Load(d, &kept->moments[0][i]);
        odd[0] = hn::Load(d, &kept->moments[1][i]);
        even[2] = hn::Load(d, &kept->moments[2][i]);
        odd[2] = hn::Load(d, &kept->moments[3][i]);
      }
      const auto left = columns - 2 * static_cast<std::int64_t>(i);
      information_.add(even, static_cast<std::size_t>((left + 1) / 2));
      information_.add(odd, static_cast<std::size_t>(left / 2));
    }
    if constexpr (walk != VifWalk::reference) information_.finish(!skips_reference_);
  }

  const VifPlan& plan_;
  int pairs_;  // not a constant to the compiler, which would unroll loops and spill their sums
  int mean_shift_, square_shift_;
  std::size_t words_ = kTileWords;              // of the tile and its margins, in whole vectors
  std::vector<std::unique_ptr<RingRow>> ring_;  // by pair of rows
  alignas(64) std::array<DownRow, kPassRows> down_;
  // By pair of output rows; of the reference, of the distorted image.
  alignas(64) std::array<std::array<RowOfWords, 2>, kPassPairs> halved_down_;
  VifInformation<2 * kRowWords> information_;
  std::unique_ptr<KeptRow[]> kept_;  // by row of the stripe
  bool skips_reference_ = false;     // its information is known from another distorted image
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_VIF_TILE_INL_H
