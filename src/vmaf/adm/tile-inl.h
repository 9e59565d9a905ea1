// SPDX-License-Identifier: Apache-2.0
// The passes of ADM over rows; adm/cpu.cc says how they follow one another. Included once per SIMD
// target, hence the guard that flips. They are plain loops over integers, or over doubles that hold
// integers, which the compiler makes vectors of; those that need products of 64 bits are written in
// vectors, since the compiler multiplies 64 bits by 64 there.
#if defined(SIMILIS_VMAF_ADM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_ADM_TILE_INL_H
#undef SIMILIS_VMAF_ADM_TILE_INL_H
#else
#define SIMILIS_VMAF_ADM_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/adm/cubes-inl.h"
#include "src/vmaf/adm/plan.h"
#include "src/vmaf/adm/wavelet-inl.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// True if both images' gradients point alike.
inline bool is_near(std::int64_t oh, std::int64_t ov, std::int64_t th, std::int64_t tv) {
  const auto in_float = [](std::int64_t v) { return static_cast<double>(static_cast<float>(v)); };
  const double product = in_float(oh * th + ov * tv);
  const double original = in_float(oh * oh + ov * ov), distorted = in_float(th * th + tv * tv);
  return product >= 0 && product * product >= kAdmCosine * original * distorted;
}

// All bits where both images' gradients point alike. Floats decide that but for angles so close to
// the limit that their roundings, which are below 2^-19 of either side, might matter.
inline void find_near(
    const WaveletRow& o, const WaveletRow& t, Span span, Coefficient* HWY_RESTRICT near) {
  const I32 d;
  const hn::RebindToFloat<I32> df;
  const auto least = hn::Set(df, static_cast<float>(kAdmCosine * (1 - 0x1p-17)));
  const auto most = hn::Set(df, static_cast<float>(kAdmCosine * (1 + 0x1p-17)));
  for (std::int64_t x = span.first; x < span.last; x += lanes_of_32()) {
    const auto load = [&](const WaveletRow& row, std::size_t band) HWY_ATTR {
      return hn::ConvertTo(df, hn::LoadU(d, row.bands[band].get() + x));
    };
    const auto oh = load(o, 0), ov = load(o, 1), th = load(t, 0), tv = load(t, 1);
    const auto product = hn::MulAdd(oh, th, hn::Mul(ov, tv));
    const auto squares =
        hn::Mul(hn::MulAdd(oh, oh, hn::Mul(ov, ov)), hn::MulAdd(th, th, hn::Mul(tv, tv)));
    const auto square = hn::Mul(product, product);
    const auto is_forward = hn::Ge(product, hn::Zero(df));
    const auto may_be = hn::And(is_forward, hn::Ge(square, hn::Mul(squares, least)));
    const auto must_be = hn::And(is_forward, hn::Ge(square, hn::Mul(squares, most)));
    hn::StoreU(hn::VecFromMask(d, hn::RebindMask(d, must_be)), d, near + x);
    if (HWY_LIKELY(hn::AllFalse(df, hn::AndNot(must_be, may_be)))) continue;
    for (std::int64_t i = x; i < std::min(x + lanes_of_32(), span.last); ++i) {
      const bool is_near_here = is_near(
          o.bands[0].get()[i], o.bands[1].get()[i], t.bands[0].get()[i], t.bands[1].get()[i]);
      near[i] = is_near_here ? -1 : 0;
    }
  }
}

// 2^30 over the sizes of a row's numbers, cut off; that of 0 is 2^30.
inline void find_inverses(
    const Coefficient* HWY_RESTRICT o, Span span, Coefficient* HWY_RESTRICT inverses) {
  const hn::ScalableTag<double> df;
  const hn::Rebind<Coefficient, decltype(df)> d;
  for (std::int64_t x = span.first; x < span.last; x += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto size = hn::Max(hn::Abs(hn::LoadU(d, o + x)), hn::Set(d, 1));
    const auto inverse = hn::Div(hn::Set(df, 0x1p30), hn::PromoteTo(df, size));
    hn::StoreU(hn::DemoteTo(d, inverse), d, inverses + x);
  }
}

#if HWY_TARGET == HWY_AVX3
// The same of sizes of 1 to 2^15, exact. There a division of doubles takes the divider 16 cycles
// for eight, one of floats 10 for sixteen. The first quotient is wrong by 64 / size at most; the
// rest over the size is no nearer than 2^-15 to a whole number that it is not, its float within
// 2^-17.
HWY_INLINE N inverse_of_16_bits(N size) {
  const I32 d;
  const hn::RebindToFloat<I32> df;
  const auto inverse = hn::Div(hn::Set(df, 1.0f), hn::ConvertTo(df, size));
  const N quotient{_mm512_cvttps_epi32(hn::Mul(inverse, hn::Set(df, 0x1p30f)).raw)};
  const N rest = hn::Sub(hn::Set(d, 1 << 30), hn::Mul(quotient, size));
  const auto more = hn::MulAdd(hn::ConvertTo(df, rest), inverse, hn::Set(df, 0x1p-16f));
  constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  return hn::Add(quotient, N{_mm512_cvt_roundps_epi32(more.raw, kDown)});
}
#endif

// Finds the part of the reference's coefficients that is left, without gain. Those of samples have
// 16 bits: if |t| is above |o| + 1, k is at its limit, and all but the quotient fits in 32 bits.
inline void restore_samples(const Coefficient* HWY_RESTRICT o, const Coefficient* HWY_RESTRICT t,
    Span span, Coefficient* HWY_RESTRICT restored) {
  const I32 d;
  const N zero = hn::Zero(d), one = hn::Set(d, 1), half = hn::Set(d, 1 << 14);
#if HWY_TARGET != HWY_AVX3
  find_inverses(o, span, restored);
#endif
  for (std::int64_t x = span.first; x < span.last; x += lanes_of_32()) {
    const N of_o = hn::LoadU(d, o + x), of_t = hn::LoadU(d, t + x), size = hn::Abs(of_o);
    const N along = hn::IfThenElse(hn::Lt(of_o, zero), hn::Neg(of_t), of_t);
    const N limited = hn::Min(hn::Max(along, zero), hn::Add(size, one));
#if HWY_TARGET == HWY_AVX3
    const N inverse = inverse_of_16_bits(hn::Max(size, one));
#else
    const N inverse = hn::LoadU(d, restored + x);
#endif
    const auto product = hn::BitCast(D32(), hn::Add(hn::Mul(inverse, limited), half));
    const N k = hn::Min(hn::BitCast(d, hn::ShiftRight<15>(product)), hn::Set(d, 1 << 15));
    hn::StoreU(hn::ShiftRight<15>(hn::Add(hn::Mul(k, of_o), half)), d, restored + x);
  }
}
#if HWY_TARGET == HWY_AVX3
// Takes 16 coefficients at once, in whole numbers: doubles would wait for the divider and for one
// another. If |t| is above 2 |o|, k is at its limit.
inline void restore_deep(const Coefficient* HWY_RESTRICT o, const Coefficient* HWY_RESTRICT t,
    Span span, Coefficient* HWY_RESTRICT restored) {
  using FloatOf = hn::Vec<hn::RebindToFloat<I32>>;
  const I32 d;
  const D32 u32;
  const auto upper = [](auto v) HWY_ATTR {  // those of odd lanes, in even ones
    return _mm512_shuffle_epi32(v.raw, _MM_PERM_DDBB);
  };
  const N zero = hn::Zero(d), one = hn::Set(d, 1);
  const __m512i half = _mm512_set1_epi64(1 << 14);
  for (std::int64_t x = span.first; x < span.last; x += lanes_of_32()) {
    const N of_o = hn::LoadU(d, o + x), of_t = hn::LoadU(d, t + x), size = hn::Abs(of_o);
    const V32 twice = hn::BitCast(u32, hn::Add(size, size));
    // Fifteen leading bits, rounded: a size of 2^15 and more loses `shrink` bits.
    const auto exponent = hn::ShiftRight<23>(hn::BitCast(
        u32, FloatOf{_mm512_cvt_roundepi32_ps(size.raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}));
    const __m512i shrink = _mm512_subs_epu16(exponent.raw, _mm512_set1_epi32(127 + 14));
    const N leading{_mm512_srlv_epi32(twice.raw, shrink)};
    const N divisor = hn::Max(hn::ShiftRight<1>(hn::Add(leading, one)), one);  // of 0 all is 0
    const N inverse = inverse_of_16_bits(divisor);
    const N along = hn::Max(hn::IfThenElse(hn::Lt(of_o, zero), hn::Neg(of_t), of_t), zero);
    const V32 limited = hn::Min(hn::BitCast(u32, along), twice);
    // 2k and what is cut off, in 64 bits of even and of odd lanes.
    const __m512i shift = _mm512_add_epi32(shrink, _mm512_set1_epi32(14));
    const __m512i even = _mm512_srlv_epi64(
        _mm512_mul_epu32(inverse.raw, limited.raw), _mm512_maskz_mov_epi32(0x5555, shift));
    const __m512i odd = _mm512_srlv_epi64(
        _mm512_mul_epu32(upper(inverse), upper(limited)), _mm512_srli_epi64(shift, 32));
    const N both{_mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA)};
    const N k = hn::Min(hn::ShiftRight<1>(hn::Add(both, one)), hn::Set(d, 1 << 15));
    const __m512i even_product = _mm512_add_epi64(_mm512_mul_epi32(k.raw, of_o.raw), half);
    const __m512i odd_product = _mm512_add_epi64(_mm512_mul_epi32(upper(k), upper(of_o)), half);
    const N result{_mm512_mask_mov_epi32(
        _mm512_srli_epi64(even_product, 15), 0xaaaa, _mm512_slli_epi64(odd_product, 17))};
    hn::StoreU(result, d, restored + x);
  }
}
#else
inline void restore_deep(const Coefficient* HWY_RESTRICT o, const Coefficient* HWY_RESTRICT t,
    Span span, Coefficient* HWY_RESTRICT restored) {
  const hn::ScalableTag<double> df;
  const hn::RebindToUnsigned<decltype(df)> d64;
  const hn::Rebind<Coefficient, decltype(df)> d;
  const auto half = hn::Set(df, 0.5), one = hn::Set(df, 1.0), sign = hn::Set(df, -0.0);
  const auto exponent_bits = hn::Set(d64, std::uint64_t{0x7ff} << 52);
  for (std::int64_t x = span.first; x < span.last; x += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto of_o = hn::PromoteTo(df, hn::LoadU(d, o + x));
    const auto of_t = hn::PromoteTo(df, hn::LoadU(d, t + x));
    const auto size = hn::Max(hn::Abs(of_o), one);  // of 0 all is 0
    // Fifteen leading bits, rounded: a size of 2^15 and more is shrunk by a power of two.
    const auto exponent = hn::And(hn::BitCast(d64, size), exponent_bits);
    const auto power = hn::Sub(hn::Set(d64, std::uint64_t{2 * 1023 + 14} << 52), exponent);
    const auto shrink = hn::Min(one, hn::BitCast(df, power));
    const auto divisor = hn::Floor(hn::Add(hn::Mul(size, shrink), half));
    const auto inverse = hn::Floor(hn::Div(hn::Set(df, 0x1p30), divisor));
    const auto along = hn::Xor(of_t, hn::And(of_o, sign));
    const auto scaled = hn::Mul(hn::Mul(inverse, along), hn::Mul(shrink, hn::Set(df, 0x1p-15)));
    const auto limited = hn::Min(hn::Floor(hn::Add(scaled, half)), hn::Set(df, 32768.0));
    const auto product = hn::Mul(hn::Max(limited, hn::Zero(df)), of_o);
    const auto result = hn::Floor(hn::Add(hn::Mul(product, hn::Set(df, 0x1p-15)), half));
    hn::StoreU(hn::DemoteTo(d, result), d, restored + x);
  }
}
#endif

// The detail that the distorted image adds to the reference's. That of samples wraps to 16 bits.
template <bool is_deep> HWY_INLINE N added_detail(N t, N detail) {
  const N added = hn::Sub(t, detail);
  return is_deep ? added : hn::ShiftRight<16>(hn::ShiftLeft<16>(added));
}

// Applies a gain limit that is a whole number, and finds the detail that the distorted image adds.
// The reference's part that is left has the sign of t, unless it is 0: sizes are limited.
template <bool is_deep>
void split(const Coefficient* HWY_RESTRICT restored, const Coefficient* HWY_RESTRICT t,
    const Coefficient* HWY_RESTRICT near, std::int32_t gain_limit, Span span,
    Coefficient* HWY_RESTRICT detail, Coefficient* HWY_RESTRICT added) {
  const I32 d;
  const N limit = hn::Set(d, gain_limit), zero = hn::Zero(d);
  // Products with larger numbers have more than 31 bits.
  const N most = hn::Set(d, std::numeric_limits<std::int32_t>::max() / gain_limit);
  for (std::int64_t x = span.first; x < span.last; x += lanes_of_32()) {
    const N r = hn::LoadU(d, restored + x), of_t = hn::LoadU(d, t + x);
    const N sign = hn::BroadcastSignBit(r);
    [[maybe_unused]] const N size = hn::Abs(r);
    const N size_of_t = hn::Max(hn::Sub(hn::Xor(of_t, sign), sign), zero);
    N limited = size_of_t;
    if constexpr (is_deep) {
      limited = hn::Min(hn::Mul(size, limit), size_of_t);
      limited = hn::IfThenElse(hn::Gt(size, most), size_of_t, limited);
    } else {
      limited = hn::Min(hn::Abs(lower_product(r, limit)), size_of_t);
    }
    const N gained = hn::Sub(hn::Xor(limited, sign), sign);
    const N whole = hn::IfThenElse(hn::MaskFromVec(hn::LoadU(d, near + x)), gained, r);
    hn::StoreU(whole, d, detail + x);
    hn::StoreU(added_detail<is_deep>(of_t, whole), d, added + x);
  }
}

// The same of a gain limit that is no whole number.
template <bool is_deep>
void split(const Coefficient* HWY_RESTRICT restored, const Coefficient* HWY_RESTRICT t,
    const Coefficient* HWY_RESTRICT near, double gain_limit, Span span,
    Coefficient* HWY_RESTRICT detail, Coefficient* HWY_RESTRICT added) {
  for (std::int64_t x = span.first; x < span.last; ++x) {
    const double r = restored[x], of_t = t[x], gained = r * gain_limit;
    const double limited = r > 0 ? std::min(gained, of_t) : std::max(gained, of_t);
    const double result = ((near[x] != 0) & (r != 0)) ? limited : r;
    const auto whole = static_cast<Coefficient>(result);
    detail[x] = whole;
    added[x] =
        is_deep ? t[x] - whole : static_cast<Coefficient>(static_cast<std::int16_t>(t[x] - whole));
  }
}

// A masker's weight at its neighbours, and the greater one at its place.
struct Weights {
  N neighbour, place;
};
HWY_INLINE Weights sample_weights(N m, N factor, std::size_t band) {
  const I32 d;
  const N product = hn::Add(hn::Mul(m, factor), hn::Set(d, band == 2 ? 65535 : 16384));
  const N c = band == 2 ? hn::ShiftRight<17>(product) : hn::ShiftRight<15>(product);
  const N weight = hn::Abs(lower_product(c, hn::Set(d, 4369)));
  // That at the place is of twice the weight.
  return {hn::ShiftRight<12>(hn::Add(weight, hn::Set(d, 2048))),
      hn::ShiftRight<11>(hn::Add(weight, hn::Set(d, 1024)))};
}

HWY_INLINE Weights deep_weights(N m, N factor) {
  const D32 d;
  const V32 c = weighted_size(m, factor);
  // Both are less by 1.
  const V32 f = rounded_high_product(d, c, hn::Set(d, 143165577u));
  const V32 e = rounded_high_product(d, c, hn::Set(d, 286331153u));
  const V32 one = hn::Set(d, 1);
  return {hn::BitCast(I32(), hn::Sub(f, one)), hn::BitCast(I32(), hn::Sub(e, one))};
}

// A row of one setting after the split, and its maskers' weights.
struct MaskedRow {
  MaskedRow(std::int64_t width, RowMemory& memory) {
    for (auto& row : values) {
      for (auto& band : row) band = PaddedRow<Coefficient>(width, memory);
    }
    for (auto* rows : {&three, &place}) {
      for (auto& row : *rows) row = PaddedRow<Coefficient>(width, memory);
    }
  }
  // First of the detail, then of what is added; its masker is the other. `three` has the sums of
  // three columns' weights at their neighbours.
  std::array<std::array<PaddedRow<Coefficient>, kAdmBands>, 2> values;
  std::array<PaddedRow<Coefficient>, 2> three, place;
};

template <bool is_deep, bool is_fused> class AdmStripe {
  using Wavelet = std::conditional_t<is_deep, DeepWavelet<is_fused>, SampleWavelet<is_fused>>;
  using Approximation = typename Wavelet::Approximation;

 public:
  /// wavelets: of the reference, then of each distorted image.
  AdmStripe(const AdmPlan& plan, std::vector<Wavelet> wavelets, RowMemory& memory)
      : plan_(plan),
        wavelets_(std::move(wavelets)),
        o_(plan.width, memory),
        t_(plan.width, memory),
        near_(plan.width, memory),
        restored_(plan.width, memory),
        neighbour_(plan.width, memory),
        thresholds_(plan.width, memory),
        unread_(plan.width, memory),
        counted_{plan.left, plan.width - plan.left},
        seen_{first_vector({std::max<std::int64_t>(0, counted_.first - 1), 0}),
            std::min(plan.width, counted_.last + 1)} {
    for (std::size_t i = 1; i < wavelets_.size(); ++i) {
      std::vector<Ring>& rings = rings_.emplace_back(plan.sensitivities.size());
      for (Ring& ring : rings) {
        for (int row = 0; row < 3; ++row) ring.emplace_back(plan.width, memory);
      }
    }
  }

  /// sums: of each distorted image.
  void run(std::int64_t stripe, std::span<AdmScaleSums> sums) {
    const std::int64_t begin = stripe * plan_.stripe_rows;
    const std::int64_t end = std::min(begin + plan_.stripe_rows, plan_.height);
    const std::int64_t first = std::max(begin, plan_.top);
    const std::int64_t last = plan_.is_measured ? std::min(end, plan_.height - plan_.top) : first;
    const bool is_counted = first < last;
    const std::int64_t seen_first = std::max<std::int64_t>(0, first - 1);
    const std::int64_t seen_last = std::min(plan_.height, last + 1);
    const std::int64_t from = is_counted ? std::min(begin, seen_first) : begin;
    const std::int64_t to = is_counted ? std::max(end, seen_last) : end;
    for (std::int64_t y = from; y < to; ++y) {
      const bool is_kept = y >= begin && y < end;
      const bool is_seen = is_counted && y >= seen_first && y < seen_last;
      wavelets_[0].transform(y, is_seen, o_, approximation_of(0, y, is_kept));
      if (y >= first && y < last) add_reference(sums[0]);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        wavelets_[i + 1].transform(y, is_seen, t_, approximation_of(i + 1, y, is_kept));
        if (!is_seen) continue;
        prepare(rings_[i], y);
        if (y > first) add_masked(rings_[i], y - 1, sums[i]);
        if (y == last - 1 && last == plan_.height) add_masked(rings_[i], y, sums[i]);
      }
    }
    for (AdmScaleSums& of_image : sums) of_image.reference = sums[0].reference;
  }

 private:
  using Ring = std::vector<MaskedRow>;  // three rows of one setting

  // The place of row y of an image's approximation: in the next scale's input, or in memory that
  // nobody reads.
  Approximation* approximation_of(std::size_t image, std::int64_t y, bool is_kept) {
    if (!is_kept || plan_.approximations.empty()) return unread_.get();
    return static_cast<Approximation*>(plan_.approximations[image]) + y * adm_stride(plan_.width);
  }

  void add_reference(AdmScaleSums& sums) const {
    for (std::size_t band = 0; band < kAdmBands; ++band) {
      const std::int64_t sum =
          reference_cubes<is_deep>(o_.bands[band].get(), plan_.reference_shifts, counted_);
      sums.reference[band] += rounded_shift(sum, plan_.reference_shifts.row);
    }
  }

  // Splits row y and weighs its maskers, for each setting.
  void prepare(std::vector<Ring>& rings, std::int64_t y) {
    find_near(o_, t_, seen_, near_.get());
    for (std::size_t band = 0; band < kAdmBands; ++band) {
      const Coefficient* t = t_.bands[band].get();
      const auto restore = is_deep ? restore_deep : restore_samples;
      restore(o_.bands[band].get(), t, seen_, restored_.get());
      for (std::size_t i = 0; i < rings.size(); ++i) {
        MaskedRow& row = row_of(rings[i], y);
        const auto split_by = [&](auto limit) {
          split<is_deep>(restored_.get(), t, near_.get(), limit, seen_, row.values[0][band].get(),
              row.values[1][band].get());
        };
        const double limit = plan_.settings[i].gain_limit;
        if (limit == std::floor(limit)) {
          split_by(static_cast<std::int32_t>(limit));
        } else {
          split_by(limit);
        }
      }
    }
    for (std::size_t i = 0; i < rings.size(); ++i) weigh(row_of(rings[i], y), factors_of(i));
  }

  void weigh(MaskedRow& row, const std::array<std::int64_t, kAdmBands>& factors) {
    const I32 d;
    Coefficient* HWY_RESTRICT neighbour = neighbour_.get();
    N factor_of[kAdmBands];
    for (std::size_t band = 0; band < kAdmBands; ++band) {
      factor_of[band] = loaded(hn::Set(d, static_cast<std::int32_t>(factors[band])));
    }
    for (std::size_t kind = 0; kind < 2; ++kind) {
      Coefficient* HWY_RESTRICT place = row.place[kind].get();
      for (std::int64_t x = seen_.first; x < seen_.last; x += lanes_of_32()) {
        Weights sum{hn::Zero(d), hn::Zero(d)};
        for (std::size_t band = 0; band < kAdmBands; ++band) {
          const N m = hn::LoadU(d, row.values[1 - kind][band].get() + x);
          const Weights weights =
              is_deep ? deep_weights(m, factor_of[band]) : sample_weights(m, factor_of[band], band);
          sum.neighbour = hn::Add(sum.neighbour, weights.neighbour);
          sum.place = hn::Add(sum.place, weights.place);
        }
        hn::StoreU(sum.neighbour, d, neighbour + x);
        hn::StoreU(hn::Sub(sum.place, sum.neighbour), d, place + x);
      }
      if (seen_.first == 0) neighbour[-1] = neighbour[1];
      if (seen_.last == plan_.width) neighbour[plan_.width] = neighbour[plan_.width - 1];
      Coefficient* HWY_RESTRICT three = row.three[kind].get();
      for (std::int64_t x = seen_.first; x < counted_.last; x += lanes_of_32()) {
        const N both = hn::Add(hn::LoadU(d, neighbour + x - 1), hn::LoadU(d, neighbour + x + 1));
        hn::StoreU(hn::Add(both, hn::LoadU(d, neighbour + x)), d, three + x);
      }
    }
  }

  void add_masked(std::vector<Ring>& rings, std::int64_t y, AdmScaleSums& sums) {
    for (std::size_t i = 0; i < rings.size(); ++i) {
      const MaskedRow& above = row_of(rings[i], adm_neighbour(y - 1, plan_.height));
      const MaskedRow& row = row_of(rings[i], y);
      const MaskedRow& below = row_of(rings[i], adm_neighbour(y + 1, plan_.height));
      for (std::size_t kind = 0; kind < 2; ++kind) {
        AdmBandSums& of_kind = kind == 0 ? sums.masked[i].detail : sums.masked[i].additive;
        add_masked(above.three[kind].get(), row.three[kind].get(), below.three[kind].get(),
            row.place[kind].get(), row.values[kind], factors_of(i), of_kind);
      }
    }
  }

  // Σ z³ of a row of each band, with its roundings.
  void add_masked(const Coefficient* HWY_RESTRICT above, const Coefficient* HWY_RESTRICT row,
      const Coefficient* HWY_RESTRICT below, const Coefficient* HWY_RESTRICT place,
      const std::array<PaddedRow<Coefficient>, kAdmBands>& values,
      const std::array<std::int64_t, kAdmBands>& factors, AdmBandSums& sums) {
    Coefficient* HWY_RESTRICT thresholds = thresholds_.get();
    const I32 d;
    for (std::int64_t x = seen_.first; x < counted_.last; x += lanes_of_32()) {
      const N here = hn::Add(hn::LoadU(d, place + x), hn::LoadU(d, row + x));
      const N others = hn::Add(hn::LoadU(d, above + x), hn::LoadU(d, below + x));
      hn::StoreU(hn::Add(here, others), d, thresholds + x);
    }
    for (std::size_t band = 0; band < kAdmBands; ++band) {
      const AdmShifts& shifts = plan_.shifts[band];
      const std::int64_t sum = masked_cubes<is_deep>(values[band].get(), thresholds,
          static_cast<std::int32_t>(factors[band]), band == 2 ? 12 : 10, shifts, counted_);
      sums[band] += rounded_shift(sum, shifts.row);
    }
  }

  static MaskedRow& row_of(Ring& ring, std::int64_t y) {
    return ring[static_cast<std::size_t>(y % 3)];
  }
  const std::array<std::int64_t, kAdmBands>& factors_of(std::size_t setting) const {
    return plan_.sensitivities[setting].fixed[static_cast<std::size_t>(plan_.scale)];
  }

  const AdmPlan& plan_;
  std::vector<Wavelet> wavelets_;
  WaveletRow o_, t_;
  PaddedRow<Coefficient> near_, restored_, neighbour_, thresholds_;
  PaddedRow<Approximation> unread_;
  Span counted_, seen_;
  std::vector<std::vector<Ring>> rings_;  // by distorted image, by setting
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_ADM_TILE_INL_H
