// SPDX-License-Identifier: Apache-2.0
// PSNR-HVS on the CPU: each lane of a vector is a block.
//   rows of blocks ─> samples, a vector for each place of a block ─> transform, mask ─> terms
//   terms above 0  ─> one float, block by block as they lie
// Only the last step is not parallel: three or four cycles a term.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/psnr_hvs/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/psnr_hvs/psnr_hvs.h"
#include "src/vmaf/psnr_hvs/sensitivity.h"

static_assert(std::endian::native == std::endian::little, "words hold the first sample below");

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Float = hn::ScalableTag<float>;
using Integer = hn::RebindToSigned<Float>;
using F = hn::Vec<Float>;
using I = hn::Vec<Integer>;
constexpr std::size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);

struct alignas(64) Samples {
  std::int32_t values[64][kMostLanes];
};

// A vector for each place of a block. A row of a block is read in words of 32 bits, which are taken
// apart in vectors.
template <class Sample>
void gather(
    const Plane& plane, std::int64_t y, std::int64_t first, std::int64_t blocks, Samples& to) {
  constexpr std::size_t samples_of_word = 4 / sizeof(Sample), words = 8 / samples_of_word;
  const hn::RebindToUnsigned<Integer> d;
  const std::size_t lanes = hn::Lanes(d);
  alignas(64) std::uint32_t rows[8 * words][kMostLanes];
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t block = std::min(first + static_cast<std::int64_t>(lane), blocks - 1);
    const Sample* from = plane.row<Sample>(y) + kPsnrHvsStep * block;
    for (std::size_t i = 0; i < 8; ++i, from += plane.row_stride) {
      for (std::size_t k = 0; k < words; ++k) {
        std::memcpy(&rows[i * words + k][lane], from + k * samples_of_word, 4);
      }
    }
  }
  constexpr int bits = 8 * sizeof(Sample);
  const auto mask = hn::Set(d, (1u << bits) - 1);
  for (std::size_t i = 0; i < 8 * words; ++i) {
    auto word = hn::Load(d, rows[i]);
    for (std::size_t k = 0; k < samples_of_word; ++k, word = hn::ShiftRight<bits>(word)) {
      hn::Store(hn::BitCast(Integer(), hn::And(word, mask)), Integer(),
          to.values[i * samples_of_word + k]);
    }
  }
}

// Toward zero.
HWY_INLINE I half(I value) {
  return hn::ShiftRight<1>(hn::Sub(value, hn::BroadcastSignBit(value)));
}
template <int shift> HWY_INLINE I scaled(std::int32_t factor, I value) {
  const Integer d;
  const I half_unit = hn::Set(d, 1 << (shift - 1));
  return hn::ShiftRight<shift>(hn::Add(hn::Mul(hn::Set(d, factor), value), half_unit));
}

HWY_INLINE void transform(std::int32_t (*values)[kMostLanes], std::size_t step) {
  const Integer tag;
  const auto load = [&](std::size_t i) HWY_ATTR { return hn::Load(tag, values[i * step]); };
  const I x0 = load(0), x1 = load(1), x2 = load(2), x3 = load(3);
  const I x4 = load(4), x5 = load(5), x6 = load(6), x7 = load(7);
  I d = hn::Sub(x0, x7);
  const I y = half(d), m = hn::Sub(x0, y), s = hn::Add(x1, x6);
  I e = hn::Sub(x6, half(s)), f = hn::Sub(x2, x5);
  const I n = hn::Sub(x2, half(f)), t = hn::Add(x3, x4);
  I h = hn::Sub(half(t), x4), a = hn::Add(m, half(t)), g = hn::Sub(a, t);
  I c = hn::Sub(half(s), n), b = hn::Sub(c, s);
  a = hn::Sub(a, scaled<15>(13573, b));
  b = hn::Add(b, scaled<14>(11585, a));
  a = hn::Sub(a, scaled<15>(13573, b));
  g = hn::Sub(g, scaled<15>(21895, c));
  c = hn::Add(c, scaled<14>(15137, g));
  g = hn::Sub(g, scaled<15>(21895, c));
  f = hn::Add(f, scaled<15>(19195, e));
  e = hn::Add(e, scaled<14>(11585, f));
  f = hn::Sub(f, scaled<13>(7489, e));
  h = hn::Sub(half(e), h);
  e = hn::Sub(e, h);
  f = hn::Sub(y, f);
  d = hn::Sub(d, f);
  h = hn::Add(h, scaled<15>(3227, d));
  d = hn::Sub(d, scaled<15>(6393, h));
  h = hn::Add(h, scaled<15>(3227, d));
  e = hn::Add(e, scaled<13>(2485, f));
  f = hn::Sub(f, scaled<15>(18205, e));
  e = hn::Add(e, scaled<13>(2485, f));
  hn::Store(a, tag, values[0]);
  hn::Store(d, tag, values[step]);
  hn::Store(c, tag, values[2 * step]);
  hn::Store(f, tag, values[3 * step]);
  hn::Store(b, tag, values[4 * step]);
  hn::Store(e, tag, values[5 * step]);
  hn::Store(g, tag, values[6 * step]);
  hn::Store(h, tag, values[7 * step]);
}

HWY_INLINE F squared_distance(F sum, F value, F mean) {
  const F distance = hn::Sub(value, mean);
  return hn::Add(sum, hn::Mul(distance, distance));
}

// The sum of the variances of the quarters over that of the block; 0 of flat blocks.
F variance_ratio(const Samples& samples) {
  const Float d;
  const Integer di;
  // Quarters: left top, left bottom, right top, right bottom. Two at a time stay in registers.
  std::array<I, 4> sums;
  for (std::size_t half = 0; half < 2; ++half) {
    I left = hn::Zero(di), right = hn::Zero(di);
    for (std::size_t row = 4 * half; row < 4 * half + 4; ++row) {
      const auto* const of_row = samples.values + 8 * row;
      for (std::size_t k = 0; k < 4; ++k) left = hn::Add(left, hn::Load(di, of_row[k]));
      for (std::size_t k = 4; k < 8; ++k) right = hn::Add(right, hn::Load(di, of_row[k]));
    }
    sums[half] = left;
    sums[half + 2] = right;
  }
  const I whole_sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  const F mean = hn::Mul(hn::ConvertTo(d, whole_sum), hn::Set(d, 1 / 64.0f));
  std::array<F, 4> means, squares;
  for (std::size_t q = 0; q < 4; ++q) {
    means[q] = hn::Mul(hn::ConvertTo(d, sums[q]), hn::Set(d, 1 / 16.0f));
  }
  F whole = hn::Zero(d);
  for (std::size_t half = 0; half < 2; ++half) {
    F left = hn::Zero(d), right = hn::Zero(d);
    const F left_mean = means[half], right_mean = means[half + 2];
    for (std::size_t row = 4 * half; row < 4 * half + 4; ++row) {
      const auto* const of_row = samples.values + 8 * row;
      for (std::size_t k = 0; k < 4; ++k) {
        const F value = hn::ConvertTo(d, hn::Load(di, of_row[k]));
        whole = squared_distance(whole, value, mean);
        left = squared_distance(left, value, left_mean);
      }
      for (std::size_t k = 4; k < 8; ++k) {
        const F value = hn::ConvertTo(d, hn::Load(di, of_row[k]));
        whole = squared_distance(whole, value, mean);
        right = squared_distance(right, value, right_mean);
      }
    }
    squares[half] = left;
    squares[half + 2] = right;
  }
  whole = hn::Mul(whole, hn::Set(d, 1 / 63.0f * 64));
  const F unit = hn::Set(d, 1 / 15.0f * 16);
  F parts = hn::Add(hn::Mul(squares[0], unit), hn::Mul(squares[1], unit));
  parts = hn::Add(parts, hn::Mul(squares[2], unit));
  parts = hn::Add(parts, hn::Mul(squares[3], unit));
  return hn::IfThenElseZero(hn::Gt(whole, hn::Zero(d)), hn::Div(parts, whole));
}

F mask_of(const Samples& coefficients, F ratio, const PsnrHvsWeights& weights) {
  const Float d;
  const Integer di;
  F sum = hn::Zero(d);
  for (std::size_t k = 1; k < 64; ++k) {
    const I value = hn::Load(di, coefficients.values[k]);
    const F square = hn::ConvertTo(d, hn::Mul(value, value));
    sum = hn::Add(sum, hn::Mul(square, hn::Set(d, weights.mask[k])));
  }
  return hn::Mul(hn::Sqrt(hn::Mul(sum, ratio)), hn::Set(d, 1 / 32.0f));
}

template <class Sample>
F prepare(const Plane& plane, std::int64_t y, std::int64_t first, std::int64_t blocks,
    const PsnrHvsWeights& weights, Samples& samples) {
  gather<Sample>(plane, y, first, blocks, samples);
  const F ratio = variance_ratio(samples);
  for (std::size_t column = 0; column < 8; ++column) transform(samples.values + column, 8);
  for (std::size_t row = 0; row < 8; ++row) transform(samples.values + 8 * row, 1);
  return mask_of(samples, ratio, weights);
}

template <class Sample>
std::int64_t row_of(const PlanePair& planes, std::int64_t y, std::int64_t blocks,
    const PsnrHvsWeights& weights, float* HWY_RESTRICT terms) {
  const Float d;
  const Integer di;
  Samples x, z;
  const float* const begin = terms;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t first = 0; first < blocks; first += lanes) {
    const F of_x = prepare<Sample>(planes.reference, y, first, blocks, weights, x);
    const F of_z = prepare<Sample>(planes.distorted, y, first, blocks, weights, z);
    const F mask = hn::Max(of_x, of_z);
    alignas(64) float errors[64][kMostLanes];
    for (std::size_t k = 0; k < 64; ++k) {
      const I difference = hn::Sub(hn::Load(di, x.values[k]), hn::Load(di, z.values[k]));
      F seen = hn::ConvertTo(d, hn::Abs(difference));
      if (k > 0) {
        const F hidden = hn::Div(mask, hn::Set(d, weights.mask[k]));
        seen = hn::Max(hn::Zero(d), hn::Sub(seen, hidden));
      }
      const F weighted = hn::Mul(seen, hn::Set(d, weights.sensitivity[k]));
      hn::Store(hn::Mul(weighted, weighted), d, errors[k]);
    }
    for (std::int64_t lane = 0; lane < std::min(lanes, blocks - first); ++lane) {
      for (int k = 0; k < 64; ++k) {
        *terms = errors[k][lane];
        terms += *terms != 0 ? 1 : 0;
      }
    }
  }
  return terms - begin;
}

// The terms above 0 of the blocks of a row, of which there are 64 at most in each; returns how
// many. There is room for one more.
std::int64_t terms_of_row(const PlanePair& planes, std::int64_t y, std::int64_t blocks,
    const PsnrHvsWeights& weights, float* terms) {
  if (planes.reference.is_words) {
    return row_of<std::uint16_t>(planes, y, blocks, weights, terms);
  }
  return row_of<std::uint8_t>(planes, y, blocks, weights, terms);
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::vmaf_internal {
namespace {

HWY_EXPORT(terms_of_row);

// Rows of blocks whose terms are kept at a time: 1.1 MB of a frame 1920 wide.
constexpr std::int64_t kRowsAtOnce = 16;

}  // namespace

float psnr_hvs_cpu(const PlanePair& planes, int component, const Execution& exec) {
  const PsnrHvsWeights weights = psnr_hvs_weights(component);
  const std::int64_t columns = (planes.reference.width - 8) / kPsnrHvsStep + 1;
  const std::int64_t rows = (planes.reference.height - 8) / kPsnrHvsStep + 1;
  const auto terms_of = static_cast<std::size_t>(64 * columns + 1);
  std::vector<float> terms(terms_of * static_cast<std::size_t>(std::min(rows, kRowsAtOnce)));
  std::array<std::int64_t, kRowsAtOnce> counts{};
  float error = 0;
  for (std::int64_t first = 0; first < rows; first += kRowsAtOnce) {
    const std::int64_t count = std::min(kRowsAtOnce, rows - first);
    const auto terms_at = [&](std::int64_t row) {
      return terms.data() + terms_of * static_cast<std::size_t>(row);
    };
    parallel_for(exec, count, [&](std::int64_t row) {
      counts[static_cast<std::size_t>(row)] = HWY_DYNAMIC_DISPATCH(terms_of_row)(
          planes, (first + row) * kPsnrHvsStep, columns, weights, terms_at(row));
    });
    for (std::int64_t row = 0; row < count; ++row) {
      const float* of_row = terms_at(row);
      for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(row)]; ++i) error += of_row[i];
    }
  }
  const std::int64_t largest = (1 << planes.reference.bit_depth) - 1;
  return error / static_cast<float>(64 * rows * columns) / static_cast<float>(largest * largest);
}

}  // namespace similis::vmaf_internal
#endif
