// SPDX-License-Identifier: Apache-2.0
// The fast path of registration's usual call, in one loop from the field to the result: one channel
// in f32, linear, values and the gradient to a field whose vectors lie side by side. Nothing is
// kept between the steps, so that one vector's arithmetic hides another's wait for memory; the bits
// are those of the general path (sample.cc). Included once per SIMD target, hence the guard that
// flips.
#if defined(SIMILIS_WARP_CPU_FAST_PATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_FAST_PATH_INL_H
#undef SIMILIS_WARP_CPU_FAST_PATH_INL_H
#else
#define SIMILIS_WARP_CPU_FAST_PATH_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/warp/cpu/linear-inl.h"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

// Pointers to a row of the output, its field and its upstream gradient. Null: not wanted.
struct FastPathRow {
  const float *plane, *field, *upstream;
  float *value, *gradient;
  Touched* touched;
};

inline bool is_f32_row(const TensorView& view) {
  return view.empty() || (view.dtype == DType::f32 && view.strides[4] == 1);
}

/// True if sample_row_fast() computes the plan's results for all images.
inline bool has_fast_path(const Plan& plan) {
  const Pass& pass = plan.pass;
  bool result = !(pass.output.empty() && pass.field_gradient.empty()) && !plan.columns.empty() &&
                plan.sums.empty() && plan.images_of_task == 1 && pass.channels == 1 &&
                pass.image.dtype == DType::f32 && pass.weight.empty() && pass.addend.empty() &&
                pass.factor == 1 && has_short_offsets(pass.image) && !pass.field.empty() &&
                is_interleaved(pass.field) && is_f32_row(pass.output) &&
                is_f32_row(pass.upstream) &&
                (pass.field_gradient.empty() || is_interleaved(pass.field_gradient));
  for (const Axis& axis : pass.axes) {
    result = result && static_cast<float>(axis.extent) <= 2 * kReach && !axis.is_part();
  }
  for (std::int64_t n = 0; n < pass.batch; ++n) result = result && !plan.mixes_components(n);
  return result;
}

template <int rank, Outside padding, bool with_gradient> class FastPath {
 public:
  FastPath(const Plan& plan, const Chunk& chunk, const FastPathRow& row)
      : row_(row),
        slab_axis_(plan.slab_axis),
        axes_{{plan, chunk, 0}, {plan, chunk, 1}, {plan, chunk, rank - 1}},
        sampler_(plan.pass, row.plane) {
    const Transform& t = plan.transforms[static_cast<std::size_t>(chunk.image)];
    for (int a = 0; a < rank; ++a) factor_[a] = static_cast<float>(t.s[a][a]);
  }

  void run(std::int64_t count) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      constexpr std::int64_t kAhead = 256;  // voxels
      for (int line = 0; line < rank; ++line) {
        hwy::Prefetch(row_.field + rank * (i + kAhead) + line * lanes);
      }
      sample(i, row_.field + rank * i, with_gradient ? row_.upstream + i : nullptr,
          row_.value != nullptr ? row_.value + i : nullptr,
          with_gradient ? row_.gradient + rank * i : nullptr);
    }
    if (i < count) sample_rest(i, count - i);
    if (row_.touched != nullptr) note_touched();
  }

 private:
  static constexpr CellsInF32::D d{};
  static constexpr hn::RebindToSigned<CellsInF32::D> di{};
  static constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);
  using S = Sampler<float, rank, with_gradient>;

  // One vector of the voxels from i on.
  HWY_INLINE void sample(
      std::int64_t i, const float* field, const float* upstream, float* value, float* gradient) {
    typename S::V w[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)}, fraction[3];
    typename S::V32 voxel[3];
    if constexpr (rank == 3) {
      hn::LoadInterleaved3(d, field, w[0], w[1], w[2]);
    } else {
      hn::LoadInterleaved2(d, field, w[0], w[1]);
    }
    typename S::V slope[3];
    for (int a = 0; a < rank; ++a) {
      const CellsInF32 cells = axes_[a].place(i, a, w);
      fraction[a] = cells.fraction;
      voxel[a] = cells.voxel;
      slope[a] = cells.slope;
    }
    const bool is_inside = sampler_.has_all_corners(voxel);  // and so nothing is far
    for (int a = 0; a < rank && HWY_UNLIKELY(!is_inside); ++a) {
      CellsInF32 cells{fraction[a], slope[a], voxel[a]};
      axes_[a].correct(i, w, &cells);
      fraction[a] = cells.fraction;
      voxel[a] = cells.voxel;
      slope[a] = cells.slope;
    }
    if (row_.touched != nullptr) {
      const auto along_slabs = rank == 2 || slab_axis_ == 1 ? voxel[1] : voxel[rank - 1];
      least_ = hn::Min(least_, along_slabs);
      most_ = hn::Max(most_, along_slabs);
    }
    const SampledVector<float> sampled = HWY_LIKELY(is_inside)
                                             ? sampler_.sample_inside(fraction, voxel)
                                             : sampler_.sample_border(fraction, voxel);
    if (value != nullptr) hn::StoreU(sampled.value, d, value);
    if constexpr (with_gradient) {
      const auto given = hn::LoadU(d, upstream);
      for (int a = 0; a < rank; ++a) {
        auto by_index = hn::Mul(given, sampled.slope[a]);
        if (padding != Outside::zeros) by_index = hn::Mul(by_index, slope[a]);
        w[a] = hn::Mul(hn::Set(d, factor_[a]), by_index);
      }
      if constexpr (rank == 3) {
        hn::StoreInterleaved3(w[0], w[1], w[2], d, gradient);
      } else {
        hn::StoreInterleaved2(w[0], w[1], d, gradient);
      }
    }
  }

  // Samples fewer voxels than a vector has, as one vector.
  void sample_rest(std::int64_t i, std::int64_t count) {
    float field[rank * kMost] = {}, upstream[kMost] = {}, value[kMost], gradient[rank * kMost];
    std::copy_n(row_.field + rank * i, rank * count, field);
    if (with_gradient) std::copy_n(row_.upstream + i, count, upstream);
    sample(i, field, upstream, value, gradient);
    if (row_.value != nullptr) std::copy_n(value, count, row_.value + i);
    if (with_gradient) std::copy_n(gradient, rank * count, row_.gradient + rank * i);
  }

  void note_touched() const {
    std::int32_t least = hn::GetLane(hn::MinOfLanes(di, least_));
    std::int32_t most = hn::GetLane(hn::MaxOfLanes(di, most_));
    row_.touched->first = std::max(least, 0);
    row_.touched->last = most + 1;
  }

  const FastPathRow row_;
  const int slab_axis_;
  const RowOfCells<padding, false> axes_[3];
  const S sampler_;
  float factor_[3];
  hn::Vec<decltype(di)> least_ = hn::Set(di, 1 << 30), most_ = hn::Set(di, -(1 << 30));
};

inline void sample_row_fast(const Plan& plan, const Chunk& chunk, const FastPathRow& row) {
  visit_padding(plan.pass.padding, [&]<Outside padding>() HWY_ATTR {
    const auto run = [&]<int rank, bool with_gradient>() HWY_ATTR {
      FastPath<rank, padding, with_gradient>(plan, chunk, row).run(plan.pass.axes[0].out_extent);
    };
    const bool with_gradient = row.gradient != nullptr;
    if (plan.pass.rank == 3) {
      with_gradient ? run.template operator()<3, true>() : run.template operator()<3, false>();
    } else {
      with_gradient ? run.template operator()<2, true>() : run.template operator()<2, false>();
    }
  });
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
