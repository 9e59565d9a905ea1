// SPDX-License-Identifier: Apache-2.0
// The information of VIF's windows in vectors: variances of a row of windows, and their logarithms.
// Included once per SIMD target, hence the guard that flips.
//
// Flat windows need a count and a sum, which are kept in lanes. They leave zeros among the
// variances of the others, which add nothing to the information; a vector of flat windows alone is
// left out.
#if defined(SIMILIS_VMAF_VIF_INFORMATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_VIF_INFORMATION_INL_H
#undef SIMILIS_VMAF_VIF_INFORMATION_INL_H
#else
#define SIMILIS_VMAF_VIF_INFORMATION_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/vif/plan.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// The float from 1 to 2 with the 15 leading bits of the mantissa of doubles, of their upper words:
// these have the exponent and 20 bits of the mantissa.
template <class D> HWY_INLINE hn::Vec<D> mantissa_of(D d, hn::Vec<D> upper_words) {
  return hn::OrAnd(hn::Set(d, 0x3f800000u), hn::ShiftLeft<3>(upper_words), hn::Set(d, 0x7fff00u));
}

// 2048·log2 of numbers m, 1 ≤ m < 2 with 15 bits behind the point, as libvmaf's table has it: of a
// logarithm rounded to a float. More by kLogExcess. With these coefficients the polynomials are
// right for all 32768 numbers; a test tries them all.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// Eighths of the range: 2048·log2 m is a whole number, that of the eighth, and a small logarithm of
// m times an inverse. The inverses are floats whose logarithms are whole numbers and 2^-10, to six
// decimals; as the table rounds twice, it rounds numbers up from 2^-10 below the half on.
constexpr std::uint32_t kLogExcess = 0x4b400000;  // the float 1.5·2^23
template <class D> HWY_INLINE hn::Vec<D> log_of_mantissa(D d, hn::Vec<D> upper_words) {
  const hn::RebindToFloat<D> df;
  constexpr float kWhole = 0x1.8p23f;
  // Twice, as vectors may have 16 lanes.
  alignas(64) static constexpr float kInverses[16] = {0x1.e1939ep-1f, 0x1.b0e07cp-1f,
      0x1.88028ep-1f, 0x1.639a3cp-1f, 0x1.45de46p-1f, 0x1.2eff7ep-1f, 0x1.1d170ep-1f, 0x1.0818cp-1f,
      0x1.e1939ep-1f, 0x1.b0e07cp-1f, 0x1.88028ep-1f, 0x1.639a3cp-1f, 0x1.45de46p-1f,
      0x1.2eff7ep-1f, 0x1.1d170ep-1f, 0x1.0818cp-1f};
  alignas(64) static constexpr float kLogs[16] = {kWhole + 181, kWhole + 496, kWhole + 789,
      kWhole + 1077, kWhole + 1335, kWhole + 1550, kWhole + 1730, kWhole + 1956, kWhole + 181,
      kWhole + 496, kWhole + 789, kWhole + 1077, kWhole + 1335, kWhole + 1550, kWhole + 1730,
      kWhole + 1956};
  const auto m = hn::BitCast(df, mantissa_of(d, upper_words));
  // The instruction takes the three or four lowest bits of the index.
  const auto eighth = hn::ShiftRight<17>(upper_words);
  using F = hn::Vec<decltype(df)>;
#if HWY_TARGET == HWY_AVX2
  const F inverse{_mm256_permutevar8x32_ps(hn::Load(df, kInverses).raw, eighth.raw)};
  const F log{_mm256_permutevar8x32_ps(hn::Load(df, kLogs).raw, eighth.raw)};
#else
  const F inverse{_mm512_permutexvar_ps(eighth.raw, hn::Load(df, kInverses).raw)};
  const F log{_mm512_permutexvar_ps(eighth.raw, hn::Load(df, kLogs).raw)};
#endif
  const auto t = hn::MulSub(m, inverse, hn::Set(df, 1.0f));
  auto slope = hn::MulAdd(hn::Set(df, -0x1.7392aep+9f), t, hn::Set(df, 0x1.edb61cp+9f));
  slope = hn::MulAdd(slope, t, hn::Set(df, -0x1.7153fap+10f));
  slope = hn::MulAdd(slope, t, hn::Set(df, 0x1.715464p+11f));
  return hn::BitCast(d, hn::MulAdd(slope, t, log));  // rounds to a whole number
}
#else
// One polynomial in m - 1.5, with fused multiply-adds and without.
constexpr std::uint32_t kLogExcess = 0;
template <class D> HWY_INLINE hn::Vec<D> log_of_mantissa(D d, hn::Vec<D> upper_words) {
  const hn::RebindToFloat<D> df;
  constexpr int kDegree = 9;
  constexpr float kLog2[kDegree + 1] = {0x1.2b8034p-1f, 0x1.ec709ep-1f, -0x1.484ac2p-2f,
      0x1.23d092p-3f, -0x1.23f93cp-4f, 0x1.37764ap-5f, -0x1.52f57cp-6f, 0x1.82e084p-7f,
      -0x1.22a358p-7f, 0x1.5a4266p-8f};
  const auto m = hn::BitCast(df, mantissa_of(d, upper_words));
  const auto t = hn::Sub(m, hn::Set(df, 1.5f));
  auto log = hn::Set(df, kLog2[kDegree]);
  for (int k = kDegree - 1; k >= 0; --k) log = hn::MulAdd(log, t, hn::Set(df, kLog2[k]));
  log = hn::Add(log, hn::Set(df, 15.0f));
  // Rounds half up without a conversion: of a float from 2^12 to 2^13 all but the last 11 bits are
  // those of a whole number. All steps are exact.
  log = hn::MulAdd(hn::Sub(log, hn::Set(df, 15.0f)), hn::Set(df, 2048.0f), hn::Set(df, 4096.5f));
  return hn::Sub(hn::ShiftRight<11>(hn::BitCast(d, log)), hn::Set(d, 139u << 12));
}
#endif

// The same of numbers from 2^17 on, to 16 leading bits, of the upper words of their doubles. More
// by kLogOffset.
constexpr std::uint32_t kLogOffset = kLogExcess + 2048 * 1023;
template <class D> HWY_INLINE hn::Vec<D> log_of(D d, hn::Vec<D> upper_words) {
  const hn::Vec<D> exponent = hn::And(hn::ShiftRight<9>(upper_words), hn::Set(d, 0xfffff800u));
  return hn::Add(log_of_mantissa(d, upper_words), exponent);
}

// The upper words of a vector of 32-bit lanes of doubles, in some order: double_at(i) has those
// from lane i on.
template <class D, class DoubleAt>
HWY_INLINE hn::Vec<D> upper_words(D d, const DoubleAt& double_at) {
  const hn::ScalableTag<double> df;
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint64_t, D> d64;
  const auto even = hn::BitCast(d64, double_at(0));
  return hn::OddEven(
      hn::BitCast(d, double_at(hn::Lanes(df))), hn::BitCast(d, hn::ShiftRight<32>(even)));
#else
  const hn::RebindToUnsigned<decltype(df)> d64;
  return hn::Set(d, static_cast<std::uint32_t>(hn::GetLane(hn::BitCast(d64, double_at(0))) >> 32));
#endif
}

#if HWY_TARGET == HWY_AVX3
// a + b, rounded toward zero.
template <class R> HWY_INLINE R add_cut(R a, R b) {
  return R{_mm512_add_round_pd(a.raw, b.raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

// log_of() two vectors of doubles.
template <class D, class R> HWY_INLINE hn::Vec<D> log_of_doubles(D d, R lower, R upper) {
  return log_of(d, hn::ConcatOdd(d, hn::BitCast(d, upper), hn::BitCast(d, lower)));
}
#endif

// Rows of up to kColumns windows, one after the other: begin(), add() vector by vector, finish().
// Their information is summed in lanes, which end_tile() adds up.
template <std::size_t kColumns> class VifInformation {
  using D = hn::ScalableTag<std::uint32_t>;
  using DI = hn::RebindToSigned<D>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kMostLanes = HWY_MAX_BYTES / sizeof(std::int32_t);
  static constexpr std::size_t kRoom = kColumns + 2 * kMostLanes;

 public:
  explicit VifInformation(std::span<const double> gain_limits)
      : gain_limits_(gain_limits), sums_(1 + gain_limits.size()) {
#if HWY_TARGET != HWY_AVX3
    totals_.resize(gain_limits.size());
#endif
  }

  void begin() { count_ = 0; }

  // The first `valid` lanes of windows' moments: means x and y, squares xx, yy and xy.
  HWY_INLINE void add(const V* moments, std::size_t valid) {
    const D d;
    const DI di;
    const auto variance = [&](V squares, V a, V b) HWY_ATTR {
      return hn::BitCast(di, hn::Sub(squares, rounded_high_product(d, a, b)));
    };
    const auto zero = hn::Zero(di);
    const auto s1 = variance(moments[2], moments[0], moments[0]);
    const auto s2 = hn::Max(zero, variance(moments[3], moments[1], moments[1]));
    const auto s12 = hn::Max(zero, variance(moments[4], moments[0], moments[1]));
    auto is_flat = hn::Lt(s1, hn::Set(di, kVifNoise));
    auto is_kept = hn::Not(is_flat);
    if (valid < hn::Lanes(di)) {
      const auto is_valid = hn::FirstN(di, valid);
      is_flat = hn::And(is_flat, is_valid);
      is_kept = hn::And(is_kept, is_valid);
    }
    if (!hn::AllFalse(di, is_flat)) {
      const V rest = hn::BitCast(d, hn::IfThenElseZero(is_flat, s2));
      flat_count_ = hn::Sub(flat_count_, hn::BitCast(d, hn::VecFromMask(di, is_flat)));
      flat_lower_ = hn::Add(flat_lower_, hn::And(rest, hn::Set(d, 0xffffu)));
      flat_upper_ = hn::Add(flat_upper_, hn::ShiftRight<16>(rest));
      if (hn::AllFalse(di, is_kept)) return;
    }
    // A reference's variance of 0 makes the information 0, whatever the others are; so does a
    // covariance of 0, as where the distorted image has no variance.
    hn::StoreU(hn::IfThenElseZero(is_kept, s1), di, reference_ + count_);
    hn::StoreU(s2, di, distorted_ + count_);
    hn::StoreU(hn::IfThenElseZero(hn::Gt(s2, zero), s12), di, covariance_ + count_);
    count_ += std::min(valid, hn::Lanes(di));
  }

  // Adds the information of the row's windows, of the reference unless it is known already. A sum
  // has room for 128 rows in one lane.
  void finish(bool has_reference) {
    if (count_ == 0) return;
    hn::StoreU(hn::Zero(DI()), DI(), reference_ + count_);  // behind the row's last windows
#if HWY_TARGET == HWY_AVX3
    add_information(has_reference);
#else
    find_totals();
    const D d;
    if (has_reference) {
      const V offset = hn::Set(d, kLogOffset + 2048 * 17);
      add_to(0, [&](std::size_t i) HWY_ATTR {
        return hn::Sub(log_of(d, hn::Load(d, reference_words_ + i)), offset);
      });
    }
    for (std::size_t i = 0; i < count_; i += hn::Lanes(d)) {
      hn::Store(log_of(d, hn::Load(d, noise_words_ + i)), d, noise_words_ + i);
    }
    for (std::size_t k = 0; k < gain_limits_.size(); ++k) {
      const std::uint32_t* HWY_RESTRICT totals = totals_[k].words.data();
      add_to(1 + k, [&](std::size_t i) HWY_ATTR {
        return hn::Sub(log_of(d, hn::Load(d, totals + i)), hn::Load(d, noise_words_ + i));
      });
    }
#endif
  }

  void end_tile(VifScaleSums& sums) {
    const D d;
    sums.flat_count += sum_of_lanes(d, flat_count_);
    sums.flat_rest += sum_of_lanes(d, flat_lower_) + 65536 * sum_of_lanes(d, flat_upper_);
    flat_count_ = flat_lower_ = flat_upper_ = hn::Zero(d);
    sums.reference_information += take_sum(0);
    for (std::size_t k = 0; k < gain_limits_.size(); ++k) {
      sums.information[k] += take_sum(1 + k);
    }
  }

 private:
#if HWY_TARGET == HWY_AVX3
  // Everything of 16 windows at once, so that the divider works beside the logarithms.
  void add_information(bool has_reference) {
    const D d;
    const hn::ScalableTag<double> df;
    using R = hn::Vec<decltype(df)>;
    const hn::Rebind<std::int32_t, decltype(df)> di;
    const R epsilon = hn::Set(df, 65536 * 1.0e-10), least = hn::Set(df, kVifNoise);
    const R digits = hn::Set(df, 0x1p52), least_digits = hn::Set(df, 0x1p52 + kVifNoise);
    const V offset = hn::Set(d, kLogOffset + 2048 * 17);
    // The channel of 8 windows, whole numbers in 52 bits: they are cut off by the sum with 2^52,
    // rounded toward zero.
    struct Channel {
      R s1, gain, noise;
    };
    const auto channel_at = [&](std::size_t i) HWY_ATTR {
      const auto load = [&](const std::int32_t* from)
                            HWY_ATTR { return hn::PromoteTo(df, hn::LoadU(di, from + i)); };
      const R s1 = load(reference_), s2 = load(distorted_), s12 = load(covariance_);
      const R gain = hn::Div(s12, hn::Add(s1, epsilon));
      const R rest = hn::Max(hn::Zero(df), hn::Sub(s2, hn::Mul(gain, s12)));
      return Channel{s1, gain, hn::Sub(add_cut(rest, least_digits), digits)};
    };
    // Channels are a step ahead of their logarithms: from loads to logarithms it takes 80 cycles,
    // more than the processor's schedulers see at once.
    Channel next_lower = channel_at(0), next_upper = channel_at(hn::Lanes(df));
    for (std::size_t i = 0; i < count_; i += hn::Lanes(d)) {
      const Channel lower = next_lower, upper = next_upper;
      next_lower = channel_at(i + hn::Lanes(d));  // of the last one nothing is used
      next_upper = channel_at(i + hn::Lanes(d) + hn::Lanes(df));
      const V log_of_noise = log_of_doubles(d, lower.noise, upper.noise);
      if (has_reference) {
        const V logs = log_of_doubles(d, hn::Add(lower.s1, least), hn::Add(upper.s1, least));
        add_to(0, hn::Sub(logs, offset));
      }
      for (std::size_t k = 0; k < gain_limits_.size(); ++k) {
        const R limit = hn::Set(df, gain_limits_[k]);
        // The logarithm reads 16 bits of the sum, so the product needs no rounding first.
        const auto total = [&](const Channel& channel) HWY_ATTR {
          const R g = hn::Min(channel.gain, limit);
          return add_cut(hn::Mul(hn::Mul(g, g), channel.s1), channel.noise);
        };
        add_to(1 + k, hn::Sub(log_of_doubles(d, total(lower), total(upper)), log_of_noise));
      }
    }
  }

  void add_to(std::size_t sum, V logs) {
    std::uint32_t* const lanes = sums_[sum].lanes.data();
    hn::Store(hn::Add(hn::Load(D(), lanes), logs), D(), lanes);
  }
#else
  // Upper words of what logarithms are taken of, as doubles: variances of the reference, of what is
  // noise of a channel, and for each limit of noise and signal. Each and the noise of the eye.
  void find_totals() {
    const D d32;
    const hn::ScalableTag<double> d;
    const hn::Rebind<std::int32_t, decltype(d)> di;
    using R = hn::Vec<decltype(d)>;
    const auto epsilon = hn::Set(d, 65536 * 1.0e-10), least = hn::Set(d, kVifNoise);
    constexpr std::size_t most = HWY_TARGET == HWY_SCALAR ? 1 : 2;  // vectors of doubles
    for (std::size_t i = 0; i < count_; i += hn::Lanes(d32)) {
      R s1[most], gain[most], noise[most];
      for (std::size_t v = 0; v < most; ++v) {
        const std::size_t at = i + v * hn::Lanes(d);
        s1[v] = hn::PromoteTo(d, hn::LoadU(di, reference_ + at));
        const auto s2 = hn::PromoteTo(d, hn::LoadU(di, distorted_ + at));
        const auto s12 = hn::PromoteTo(d, hn::LoadU(di, covariance_ + at));
        const auto divisor = hn::Add(s1[v], epsilon);
        gain[v] = hn::Div(s12, divisor);
        const auto rest = hn::Max(hn::Zero(d), hn::Sub(s2, hn::Mul(gain[v], s12)));
        noise[v] = hn::Add(hn::Trunc(rest), least);
      }
      const auto vector_of = [&](std::size_t lane) HWY_ATTR { return lane / hn::Lanes(d); };
      hn::Store(upper_words(d32,
                    [&](std::size_t lane) HWY_ATTR { return hn::Add(s1[vector_of(lane)], least); }),
          d32, reference_words_ + i);
      hn::Store(upper_words(d32, [&](std::size_t lane) HWY_ATTR { return noise[vector_of(lane)]; }),
          d32, noise_words_ + i);
      for (std::size_t k = 0; k < gain_limits_.size(); ++k) {
        const auto limit = hn::Set(d, gain_limits_[k]);
        hn::Store(upper_words(d32,
                      [&](std::size_t lane) HWY_ATTR {
                        const std::size_t v = vector_of(lane);
                        const auto g = hn::Min(gain[v], limit);
                        return hn::Add(hn::Trunc(hn::Mul(hn::Mul(g, g), s1[v])), noise[v]);
                      }),
            d32, &totals_[k].words[i]);
      }
    }
  }

  // Adds log_at(i) of the row's vectors to lanes of a sum.
  template <class LogAt> HWY_INLINE void add_to(std::size_t sum, const LogAt& log_at) {
    const D d;
    std::uint32_t* const lanes = sums_[sum].lanes.data();
    V total = hn::Load(d, lanes);
    for (std::size_t i = 0; i < count_; i += hn::Lanes(d)) total = hn::Add(total, log_at(i));
    hn::Store(total, d, lanes);
  }
#endif

  std::int64_t take_sum(std::size_t sum) {
    auto& lanes = sums_[sum].lanes;
    const std::int64_t total = std::accumulate(lanes.begin(), lanes.end(), std::int64_t{0});
    lanes.fill(0);
    return total;
  }

  std::span<const double> gain_limits_;
  std::size_t count_ = 0;
  // The number of flat windows, and halves of the distorted image's variances in them.
  V flat_count_ = hn::Zero(D()), flat_lower_ = hn::Zero(D()), flat_upper_ = hn::Zero(D());
  alignas(64) std::int32_t reference_[kRoom], distorted_[kRoom], covariance_[kRoom];
#if HWY_TARGET != HWY_AVX3
  alignas(64) std::uint32_t reference_words_[kRoom], noise_words_[kRoom];
  struct Totals {
    alignas(64) std::array<std::uint32_t, kRoom> words;
  };
  std::vector<Totals> totals_;  // by limit
#endif
  struct Sum {
    alignas(64) std::array<std::uint32_t, kMostLanes> lanes{};
  };
  std::vector<Sum> sums_;  // of the reference, then by limit
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_VIF_INFORMATION_INL_H
