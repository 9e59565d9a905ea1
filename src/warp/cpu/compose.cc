// SPDX-License-Identifier: Apache-2.0
// Linear interpolation of fields whose vectors lie side by side: see compose-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/compose.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "src/warp/cpu/compose-inl.h"
#include "src/warp/cpu/linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
template <int rank, bool with_slopes> class VectorSampler {
 public:
  VectorSampler(const Pass& pass, const Cells<float>& cells, const float* image, std::int64_t count,
      ChunkVectors* out, float (&gradient)[3][kChunk])
      : cells_(cells), image_(image), out_(*out), gradient_(gradient) {
    for (int a = 0; a < rank; ++a) {
      step_[a] = pass.image.strides[4 - a];
      last_[a] = static_cast<std::int32_t>(pass.axes[a].extent - 1);
    }
    std::int32_t step[3] = {0, 0, 0}, last[3] = {0, 0, 0};
    for (int a = 0; a < rank; ++a) {
      step[a] = static_cast<std::int32_t>(step_[a]);
      last[a] = last_[a] - 1;
    }
    constexpr int z = rank - 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t at[3] = {cells.voxel[0][i], cells.voxel[1][i], cells.voxel[z][i]};
      offset_[i] = at[0] * step[0] + at[1] * step[1] + (rank == 3 ? at[2] * step[2] : 0);
      const std::int32_t outside =
          at[0] | (last[0] - at[0]) | at[1] | (last[1] - at[1]) | at[2] | (last[z] - at[2]);
      place_[i] = outside < 0 ? kOutside : at[0] == last[0] ? kEnd : kInside;
    }
    ahead_ = step_[1] + (rank == 3 ? step_[2] : 0) + kAhead * rank;
  }

  void run(std::int64_t count) {
    std::int64_t i = 0;
    if constexpr (kVoxels == 2) {
      for (; i + 2 <= count; i += 2) {
        if (HWY_LIKELY((place_[i] | place_[i + 1]) == kInside)) {
          sample_inside<Wide, kInside>(i);
        } else {
          sample_one(i);
          sample_one(i + 1);
        }
      }
    }
    for (; i < count; ++i) sample_one(i);
  }

 private:
  // The place of a cell: it has all corners, or these end with a row, or not all are there.
  enum Place : std::int32_t { kInside = 0, kEnd = 1, kOutside = 2 };
  static constexpr std::int64_t kAhead = 24;  // vectors that no row before has touched are fetched

  // As many voxels at once as a vector has fours of lanes; two are enough: what they share is
  // their arithmetic, and each has its own loads.
  static constexpr int kVoxels = HWY_TARGET <= HWY_AVX2 ? 2 : 1;
  using One = hn::FixedTag<float, 4>;
  using Wide = hn::FixedTag<float, 4 * kVoxels>;

  // Four numbers at `first`, and those at `second` behind them if D has eight lanes.
  template <class D> static HWY_INLINE hn::Vec<D> load(const float* first, const float* second) {
    if constexpr (hn::MaxLanes(D()) == 8) {
      return hn::Combine(D(), hn::LoadU(One(), second), hn::LoadU(One(), first));
    } else {
      return hn::LoadU(D(), first);
    }
  }
  template <class D>
  HWY_INLINE void load_fractions(std::int64_t i, hn::Vec<D> (&fraction)[3]) const {
    for (int a = 0; a < rank; ++a) {
      const float* const from = cells_.fraction[a] + i;
      if constexpr (hn::MaxLanes(D()) == 8) {  // the first in the lower four lanes
        alignas(32) static constexpr std::uint8_t kBytes[32] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
            0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7};
        const hn::Repartition<std::uint64_t, D> d64;
        const hn::Repartition<std::uint8_t, D> d8;
        std::uint64_t two;
        std::memcpy(&two, from, sizeof(two));
        const auto twos = hn::BitCast(d8, hn::Set(d64, two));
        fraction[a] = hn::BitCast(D(), hn::TableLookupBytes(twos, hn::Load(d8, kBytes)));
      } else {
        fraction[a] = hn::Set(D(), from[0]);
      }
    }
  }

  // The voxels from i on, which have all their corners. A load at the second vector takes a number
  // more than there is, and could end beyond the last one: at a row's end it begins before.
  template <class D, Place place> HWY_INLINE void sample_inside(std::int64_t i) {
    const D d;
    using V = hn::Vec<D>;
    V fraction[3];
    load_fractions<D>(i, fraction);
    const float* const first = image_ + offset_[i];
    const float* const second = image_ + offset_[hn::MaxLanes(d) == 8 ? i + 1 : i];
    hwy::Prefetch(first + ahead_);
    const auto edge = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const std::int64_t at = ky * step_[1] + (rank == 3 ? kz * step_[2] : 0);
      *v0 = load<D>(first + at, second + at);
      if constexpr (rank == 3 && place == kInside) {
        *v1 = load<D>(first + at + 3, second + at + 3);
      } else if constexpr (rank == 3) {
        *v1 = hn::ShiftRightLanes<1>(d, load<D>(first + at + 2, second + at + 2));
      } else {
        *v1 = hn::ShiftRightLanes<2>(d, *v0);
      }
    };
    keep<D>(i, mix_corners<D, rank, with_slopes>(fraction, edge));
  }

  void sample_one(std::int64_t i) {
    if (place_[i] != kOutside) return sample_inside<One, kEnd>(i);
    const One d;
    using V = hn::Vec<One>;
    V fraction[3];
    load_fractions<One>(i, fraction);
    const auto border = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const std::int64_t y = cells_.voxel[1][i] + ky;
      const std::int64_t z = rank == 3 ? cells_.voxel[2][i] + kz : 0;
      V* const of_x[2] = {v0, v1};
      for (int kx = 0; kx < 2; ++kx) {
        const std::int64_t x = cells_.voxel[0][i] + kx;
        alignas(16) float vector[4] = {};
        if (x >= 0 && x <= last_[0] && y >= 0 && y <= last_[1] && z >= 0 && z <= last_[2]) {
          std::copy_n(image_ + (x * step_[0] + y * step_[1] + z * step_[2]), rank, vector);
        }
        *of_x[kx] = hn::Load(d, vector);
      }
    };
    SampledBy<One> sampled = mix_corners<One, rank, with_slopes>(fraction, border);
    if constexpr (with_slopes) {
      V nothing = hn::Zero(d);  // or NaN, as in sample_border()
      for (int a = 0; a < rank; ++a) nothing = hn::MulAdd(hn::Zero(d), fraction[a], nothing);
      for (int a = 0; a < rank; ++a) sampled.slope[a] = hn::Add(sampled.slope[a], nothing);
    }
    keep<One>(i, sampled);
  }

  // Writes the values, whose last element the next voxel overwrites, and Σ upstream·slope.
  template <class D> HWY_INLINE void keep(std::int64_t i, const SampledBy<D>& sampled) {
    const D d;
    using V = hn::Vec<D>;
    float* const value = out_.value + rank * i;
    if constexpr (hn::MaxLanes(d) == 8) {
      hn::StoreU(hn::LowerHalf(One(), sampled.value), One(), value);
      hn::StoreU(hn::UpperHalf(One(), sampled.value), One(), value + rank);
    } else {
      hn::StoreU(sampled.value, d, value);
    }
    if constexpr (with_slopes) {
      const float* const upstream = out_.upstream + rank * i;
      const V given = load<D>(upstream, upstream + rank);
      // Each voxel's four lanes are summed: those of x and y together, then those of z.
      const V by_x = hn::Mul(given, sampled.slope[0]), by_y = hn::Mul(given, sampled.slope[1]);
      const V low = hn::InterleaveLower(d, by_x, by_y);
      V sums = hn::Add(low, hn::ShiftRightLanes<2>(d, low));
      if constexpr (rank == 3) sums = hn::Add(sums, hn::InterleaveUpper(d, by_x, by_y));
      constexpr int kCount = hn::MaxLanes(D()) / 4;
      alignas(32) float sum[8], sum_of_z[8];
      hn::Store(sums, d, sum);
      if constexpr (rank == 3) {
        const V by_z = hn::Mul(given, sampled.slope[2]);
        hn::Store(hn::Add(hn::Add(by_z, hn::ShiftRightLanes<1>(d, by_z)),
                      hn::ShiftRightLanes<2>(d, by_z)),
            d, sum_of_z);
      }
      for (int k = 0; k < kCount; ++k) {
        gradient_[0][i + k] = sum[4 * k];
        gradient_[1][i + k] = sum[4 * k + 1];
        if constexpr (rank == 3) gradient_[2][i + k] = sum_of_z[4 * k];
      }
    }
  }

  const Cells<float>& cells_;
  const float* const image_;
  ChunkVectors& out_;
  float (&gradient_)[3][kChunk];
  std::int64_t step_[3] = {0, 0, 0};
  std::int32_t last_[3] = {0, 0, 0};
  std::int64_t ahead_ = 0;
  alignas(64) std::int32_t offset_[kChunk];
  alignas(64) std::int32_t place_[kChunk];  // one of Place
};

template <int rank, bool with_slopes>
void sample_vectors(const Pass& pass, const Cells<float>& cells, const float* image,
    std::int64_t count, ChunkVectors* out, float (&gradient)[3][kChunk]) {
  VectorSampler<rank, with_slopes>(pass, cells, image, count, out, gradient).run(count);
}

#define SIMILIS_SAMPLE_VECTORS(rank, with_slopes)                                                 \
  template void sample_vectors<rank, with_slopes>(const Pass&, const Cells<float>&, const float*, \
      std::int64_t, ChunkVectors*, float(&)[3][kChunk]);
SIMILIS_SAMPLE_VECTORS(2, false)
SIMILIS_SAMPLE_VECTORS(2, true)
SIMILIS_SAMPLE_VECTORS(3, false)
SIMILIS_SAMPLE_VECTORS(3, true)
#undef SIMILIS_SAMPLE_VECTORS
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
