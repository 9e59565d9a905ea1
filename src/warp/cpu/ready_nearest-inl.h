// SPDX-License-Identifier: Apache-2.0
// The nearest voxels of part of a row in one loop over the field, in the slots of ReadyCells: those
// of indices in f64, from indices in f32 wherever these tell. Paddings map whole voxels to whole
// voxels, so they are folded after rounding, in integers. Included once per SIMD target, hence the
// guard that flips.
#if defined(SIMILIS_WARP_CPU_READY_NEAREST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_READY_NEAREST_INL_H
#undef SIMILIS_WARP_CPU_READY_NEAREST_INL_H
#else
#define SIMILIS_WARP_CPU_READY_NEAREST_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "src/warp/cpu/ready_place-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA
/// Finds the offsets of a chunk's nearest voxels, of at least one vector, and widens `touched` by
/// the least and the largest along the slabs' axis, if it is given.
template <int rank> class NearestInSlots {
 public:
  NearestInSlots(const Plan& plan, const Chunk& chunk, ReadyCells* ready)
      : pass_(plan.pass), slab_axis_(plan.slab_axis), axes_(plan, chunk), ready_(*ready) {
    for (int a = 0; a < rank; ++a) {
      last_[a] = hn::Set(di, static_cast<std::int32_t>(pass_.axes[a].extent - 1));
      stride_[a] = hn::Set(di, static_cast<std::int32_t>(pass_.image.strides[4 - a]));
    }
    if (pass_.field.empty()) return;
    const Extents& s = pass_.field.strides;
    field_ = static_cast<const float*>(pass_.field.data()) + chunk.image * s[0] + chunk.z * s[1] +
             chunk.y * s[2] + chunk.x * s[3];
  }

  void run(std::int64_t count, Touched* touched) {
    axes_.is_plain ? run_along<true>(count, touched) : run_along<false>(count, touched);
  }

 private:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using VI = hn::Vec<hn::RebindToSigned<D>>;
  static constexpr D d{};
  static constexpr hn::RebindToSigned<D> di{};

  template <bool is_plain> void run_along(std::int64_t count, Touched* touched) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const bool is_dense = pass_.image.strides[4] == 1;
    // Copies that no call can change, so that the loop need not load them again.
    using Row = RowOfCells<false, false>;
    typename Row::Indices indices[rank];
    for (int a = 0; a < rank; ++a) axes_.of[a].get_indices(&indices[a]);
    const VI last[3] = {last_[0], last_[1], last_[rank - 1]};
    const VI stride[3] = {stride_[0], stride_[1], stride_[rank - 1]};
    const float* const field = field_;
    auto least = hn::Set(di, 1 << 30), most = hn::Set(di, -(1 << 30));
    for (std::int64_t slot = 0; slot < count; slot += lanes) {
      const std::int64_t i = std::min(slot, count - lanes);
      V w[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
      if (HWY_LIKELY(field != nullptr)) load_field<rank>(field + rank * i, w);
      VI voxel[3], doubt = hn::Zero(di), outside = hn::Zero(di);
      for (int a = 0; a < rank; ++a) {
        voxel[a] = Row::nearest<is_plain>(indices[a], i, a, rank, w, &doubt);
        outside = hn::Or(outside, hn::Or(voxel[a], hn::Sub(last[a], voxel[a])));
      }
      if (HWY_LIKELY(hn::AllFalse(di, hn::Lt(hn::Or(outside, doubt), hn::Zero(di))))) {
        VI offset = is_dense ? voxel[0] : hn::Mul(voxel[0], stride[0]);
        for (int a = 1; a < rank; ++a) offset = hn::Add(offset, hn::Mul(voxel[a], stride[a]));
        hn::Store(offset, di, ready_.offset + slot);
        ready_.is_inside[slot] = true;
      } else {
        const V copied[3] = {w[0], w[1], w[2]};  // w itself can stay in registers
        VI at[3] = {voxel[0], voxel[1], voxel[rank - 1]};
        place_rim(i, slot, copied, doubt, at);
        for (int a = 0; a < rank; ++a) voxel[a] = at[a];
      }
      if (touched != nullptr) {
        const VI along_slabs = rank == 2 || slab_axis_ == 1 ? voxel[1] : voxel[rank - 1];
        least = hn::Min(least, along_slabs);
        most = hn::Max(most, along_slabs);
      }
    }
    if (touched == nullptr) return;
    touched->first = std::min(touched->first, hn::GetLane(hn::MinOfLanes(di, least)));
    touched->last = std::max(touched->last, hn::GetLane(hn::MaxOfLanes(di, most)));
  }

  // A vector with voxels that are outside, or that f32 leaves in doubt; these follow from f64.
  // Leaves voxels in `at` that are inside.
  HWY_NOINLINE void place_rim(
      std::int64_t i, std::int64_t slot, const V (&w)[3], VI doubt, VI (&at)[3]) {
    constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);
    VI outside = hn::Zero(di), offset = hn::Zero(di);
    for (int a = 0; a < rank; ++a) {
      at[a] = axes_.of[a].fold_nearest(at[a], &doubt);
      outside = hn::Or(outside, hn::Or(at[a], hn::Sub(last_[a], at[a])));
      at[a] = hn::Min(hn::Max(at[a], hn::Zero(di)), last_[a]);
      offset = hn::Add(offset, hn::Mul(at[a], stride_[a]));
    }
    const auto is_outside = hn::Lt(outside, hn::Zero(di));
    offset = hn::IfThenElse(is_outside, hn::Set(di, ReadyCells::kNone), offset);
    hn::Store(offset, di, ready_.offset + slot);
    hn::Store(hn::Zero(d), d, ready_.none + slot);
    ready_.is_inside[slot] = hn::AllFalse(di, is_outside);
    if (hn::AllFalse(di, hn::Lt(doubt, hn::Zero(di)))) return;
    alignas(64) std::int32_t in_doubt[kMost], voxel[3][kMost];
    alignas(64) float field[3][kMost] = {};
    hn::Store(doubt, di, in_doubt);
    for (int a = 0; a < rank; ++a) {
      hn::Store(at[a], di, voxel[a]);
      hn::Store(w[a], d, field[a]);
    }
    bool are_all_there = true;
    for (std::size_t k = 0; k < hn::Lanes(d); ++k) {
      std::int32_t& found = ready_.offset[slot + static_cast<std::int64_t>(k)];
      if (in_doubt[k] < 0) {
        found = 0;
        for (int a = 0; a < rank; ++a) {
          const Place exact = axes_.of[a].place_in_f64(
              i + static_cast<std::int64_t>(k), {field[0][k], field[1][k], field[2][k]});
          const auto extent = static_cast<int>(pass_.axes[a].extent);
          const int nearest = voxel_or_none(static_cast<int>(std::rint(exact.index)), extent);
          const bool is_there = nearest != kNoVoxel && found != ReadyCells::kNone;
          const auto stride = static_cast<std::int32_t>(pass_.image.strides[4 - a]);
          found = is_there ? found + nearest * stride : ReadyCells::kNone;
          voxel[a][k] = std::max(nearest, 0);
          if (exact.index == kNotAnIndex) {
            ready_.none[slot + static_cast<std::int64_t>(k)] =
                std::numeric_limits<float>::quiet_NaN();
          }
        }
      }
      are_all_there = are_all_there && found != ReadyCells::kNone;
    }
    ready_.is_inside[slot] = are_all_there;
    for (int a = 0; a < rank; ++a) at[a] = hn::Load(di, voxel[a]);
  }

  const Pass& pass_;
  const int slab_axis_;
  const AxesOfCells<rank, false> axes_;
  ReadyCells& ready_;
  VI last_[3], stride_[3];
  const float* field_ = nullptr;
};
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
