// SPDX-License-Identifier: Apache-2.0
// The information of VIF's windows in vectors: variances of a row of windows, and their logarithms.
// Included once per SIMD target, hence the guard that flips.
//
// Flat windows need a count and a sum. They leave zeros among the variances of the others, which
// add nothing to the information; a vector of flat windows alone is left out.
#if defined(SIMILIS_VMAF_VIF_INFORMATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_VMAF_VIF_INFORMATION_INL_H
#undef SIMILIS_VMAF_VIF_INFORMATION_INL_H
#else
#define SIMILIS_VMAF_VIF_INFORMATION_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hwy/highway.h"
#include "src/vmaf/vif/plan.h"
#include "src/vmaf/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// 2048·log2 of numbers m, 1 ≤ m < 2 with 15 bits behind the point, as libvmaf's table has it: of a
// logarithm rounded to a float. More by kLogExcess. With these coefficients the polynomials are
// right for all 32768 numbers; a test tries them all.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// Eighths of the range: 2048·log2 m is a whole number, that of the eighth, and a small logarithm of
// m times an inverse. The inverses are floats whose logarithms are whole numbers and 2^-10, to six
// decimals; as the table rounds twice, it rounds numbers up from 2^-10 below the half on.
constexpr std::uint32_t kLogExcess = 0x4b400000;  // the float 1.5·2^23
template <class D> HWY_INLINE hn::Vec<D> log_of_mantissa(D d, hn::Vec<D> mantissa) {
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
  const auto m = hn::BitCast(df, hn::Or(mantissa, hn::Set(d, 0x3f800000u)));
  const auto eighth = hn::IndicesFromVec(df, hn::ShiftRight<20>(mantissa));
  const auto inverse = hn::TableLookupLanes(hn::Load(df, kInverses), eighth);
  const auto log = hn::TableLookupLanes(hn::Load(df, kLogs), eighth);
  const auto t = hn::MulSub(m, inverse, hn::Set(df, 1.0f));
  auto slope = hn::MulAdd(hn::Set(df, -0x1.7392aep+9f), t, hn::Set(df, 0x1.edb61cp+9f));
  slope = hn::MulAdd(slope, t, hn::Set(df, -0x1.7153fap+10f));
  slope = hn::MulAdd(slope, t, hn::Set(df, 0x1.715464p+11f));
  return hn::BitCast(d, hn::MulAdd(slope, t, log));  // rounds to a whole number
}
#else
// One polynomial in m - 1.5, with fused multiply-adds and without.
constexpr std::uint32_t kLogExcess = 0;
template <class D> HWY_INLINE hn::Vec<D> log_of_mantissa(D d, hn::Vec<D> mantissa) {
  const hn::RebindToFloat<D> df;
  constexpr int kDegree = 9;
  constexpr float kLog2[kDegree + 1] = {0x1.2b8034p-1f, 0x1.ec709ep-1f, -0x1.484ac2p-2f,
      0x1.23d092p-3f, -0x1.23f93cp-4f, 0x1.37764ap-5f, -0x1.52f57cp-6f, 0x1.82e084p-7f,
      -0x1.22a358p-7f, 0x1.5a4266p-8f};
  const auto m = hn::BitCast(df, hn::Or(mantissa, hn::Set(d, 0x3f800000u)));
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

// The same of numbers from 2^17 to 2^32 - 1, to 16 leading bits. More by kLogOffset.
constexpr std::uint32_t kLogOffset = kLogExcess + 2048 * 126;
template <class D> HWY_INLINE hn::Vec<D> log_of(D d, hn::Vec<D> numbers) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToFloat<D> df;
  // The conversion rounds to 24 bits. One of the eight bits behind the 16 leading ones is 0, so
  // that no carry reaches those.
  const hn::Vec<D> half = hn::ShiftRight<1>(numbers);
  const hn::Vec<D> leading = hn::AndNot(hn::ShiftRight<16>(half), half);
  const hn::Vec<D> bits = hn::BitCast(d, hn::ConvertTo(df, hn::BitCast(di, leading)));
  const hn::Vec<D> mantissa = hn::And(bits, hn::Set(d, 0x7fff00u));
  return hn::Add(
      log_of_mantissa(d, mantissa), hn::And(hn::ShiftRight<12>(bits), hn::Set(d, 0xfffff800u)));
}

// Rows of up to kColumns windows, one after the other: begin(), add() vector by vector, finish().
template <std::size_t kColumns> class VifInformation {
  using D = hn::ScalableTag<std::uint32_t>;
  using DI = hn::RebindToSigned<D>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kRoom = kColumns + 2 * HWY_MAX_BYTES / sizeof(std::int32_t);

 public:
  explicit VifInformation(std::span<const double> gain_limits)
      : gain_limits_(gain_limits), signals_(gain_limits.size() * kRoom) {}

  void begin() { count_ = 0; }

  // The first `valid` lanes of windows' moments: means x and y, squares xx, yy and xy.
  HWY_INLINE void add(const V* moments, std::size_t valid, VifScaleSums& sums) {
    const D d;
    const DI di;
    const auto variance = [&](V squares, V a, V b) HWY_ATTR {
      return hn::BitCast(di, hn::Sub(squares, rounded_high_product(d, a, b)));
    };
    const auto zero = hn::Zero(di);
    const auto s1 = variance(moments[2], moments[0], moments[0]);
    const auto s2 = hn::Max(zero, variance(moments[3], moments[1], moments[1]));
    const auto s12 = hn::Max(zero, variance(moments[4], moments[0], moments[1]));
    auto is_kept = hn::Gt(s1, hn::Set(di, kVifNoise - 1));
    if (valid < hn::Lanes(di)) is_kept = hn::And(is_kept, hn::FirstN(di, valid));
    const std::size_t kept = hn::CountTrue(di, is_kept);
    if (kept < std::min(valid, hn::Lanes(di))) {
      auto is_flat = hn::Lt(s1, hn::Set(di, kVifNoise));
      if (valid < hn::Lanes(di)) is_flat = hn::And(is_flat, hn::FirstN(di, valid));
      sums.flat_count += static_cast<std::int64_t>(hn::CountTrue(di, is_flat));
      const V rest = hn::BitCast(d, hn::IfThenElseZero(is_flat, s2));
      sums.flat_rest += sum_of_lanes(d, hn::And(rest, hn::Set(d, 0xffffu))) +
                        65536 * sum_of_lanes(d, hn::ShiftRight<16>(rest));
      if (kept == 0) return;
    }
    // A covariance that carries no information is 0.
    const auto carries = hn::And(is_kept, hn::Gt(s2, zero));
    hn::StoreU(hn::IfThenElseZero(is_kept, s1), di, reference_ + count_);
    hn::StoreU(hn::IfThenElseZero(is_kept, s2), di, distorted_ + count_);
    hn::StoreU(hn::IfThenElseZero(carries, s12), di, covariance_ + count_);
    count_ += hn::Lanes(di);
  }

  // Adds the information of the row's windows, of the reference unless it is known already.
  void finish(bool has_reference, VifScaleSums& sums) {
    if (count_ == 0) return;
    find_signals();
    const D d;
    const DI di;
    const auto least = hn::Set(di, kVifNoise);
    const std::size_t lanes = hn::Lanes(d);
    V reference = hn::Zero(d);
    const V offset = hn::Set(d, kLogOffset + 2048 * 17);
    for (std::size_t i = 0; i < count_; i += lanes) {
      if (has_reference) {
        const auto total = hn::Add(hn::Load(di, reference_ + i), least);
        reference = hn::Add(reference, hn::Sub(log_of(d, hn::BitCast(d, total)), offset));
      }
      const auto noise = hn::Add(hn::Max(hn::Zero(di), hn::Load(di, noise_ + i)), least);
      hn::Store(noise, di, noise_ + i);
      hn::Store(log_of(d, hn::BitCast(d, noise)), d, noise_log_ + i);
    }
    sums.reference_information += sum_of_lanes(di, hn::BitCast(di, reference));
    for (std::size_t k = 0; k < gain_limits_.size(); ++k) {
      V information = hn::Zero(d);
      for (std::size_t i = 0; i < count_; i += lanes) {
        const auto total =
            hn::Add(hn::LoadU(di, &signals_[k * kRoom + i]), hn::Load(di, noise_ + i));
        const V log = log_of(d, hn::BitCast(d, total));
        information = hn::Add(information, hn::Sub(log, hn::Load(d, noise_log_ + i)));
      }
      sums.information[k] += sum_of_lanes(di, hn::BitCast(di, information));
    }
  }

 private:
  // The variance that is noise of a channel, which may be below 0, and for each limit the signal's.
  void find_signals() {
    const hn::ScalableTag<double> d;
    const hn::Rebind<std::int32_t, decltype(d)> di;
    const auto epsilon = hn::Set(d, 65536 * 1.0e-10);
    for (std::size_t i = 0; i < count_; i += hn::Lanes(d)) {
      const auto s1 = hn::PromoteTo(d, hn::LoadU(di, reference_ + i));
      const auto s2 = hn::PromoteTo(d, hn::LoadU(di, distorted_ + i));
      const auto s12 = hn::PromoteTo(d, hn::LoadU(di, covariance_ + i));
      const auto gain = hn::Div(s12, hn::Add(s1, epsilon));
      // Conversions cut off.
      hn::StoreU(hn::DemoteTo(di, hn::Sub(s2, hn::Mul(gain, s12))), di, noise_ + i);
      for (std::size_t k = 0; k < gain_limits_.size(); ++k) {
        const auto g = hn::Min(gain, hn::Set(d, gain_limits_[k]));
        hn::StoreU(hn::DemoteTo(di, hn::Mul(hn::Mul(g, g), s1)), di, &signals_[k * kRoom + i]);
      }
    }
  }

  std::span<const double> gain_limits_;
  std::size_t count_ = 0;
  alignas(64) std::int32_t reference_[kRoom], distorted_[kRoom], covariance_[kRoom];
  alignas(64) std::int32_t noise_[kRoom];
  alignas(64) std::uint32_t noise_log_[kRoom];
  std::vector<std::int32_t> signals_;  // by limit
};

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SIMILIS_VMAF_VIF_INFORMATION_INL_H
