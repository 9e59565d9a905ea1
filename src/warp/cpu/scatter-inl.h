// SPDX-License-Identifier: Apache-2.0
// How the cells of a chunk add to a slab of the gradient to the image: corners of linear weights,
// of one channel or of all components of a field's vectors. Included once per SIMD target, hence
// the guard that flips.
#if defined(SIMILIS_WARP_CPU_SCATTER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_SCATTER_INL_H
#undef SIMILIS_WARP_CPU_SCATTER_INL_H
#else
#define SIMILIS_WARP_CPU_SCATTER_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/warp/cpu/compose-inl.h"
#include "src/warp/cpu/ready_cells-inl.h"
#include "src/warp/cpu/slab-inl.h"
#include "src/warp/cpu/voxels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kAhead = 32;  // voxels: rows that are added to are fetched so far ahead

template <class T> struct Slab : SlabOfImage<T> {
  using Base = SlabOfImage<T>;
  using Base::axis_of_bit, Base::owns, Base::in_chains, Base::in_chains_of_any_length;
  using Base::plan, Base::sums, Base::image, Base::first, Base::end, Base::takes_cubic_vectors;
  using Base::rounds_cells;

  // Room for a chunk's cells.
  struct Found {
    Cells<T> cells;
    ReadyCells ready;
    CubicTaps cubic;
    bool is_fast = false;
  };

  // The numbers that the cells of a chunk add to their corners, and the offset of the first corner.
  struct Corners {
    // [bits of the other axes]: of voxel i the two corners along x, at 2·i.
    alignas(64) T weight[4][2 * kChunk + 2];
    alignas(64) std::int32_t offset[kChunk];
    alignas(64) std::int32_t outside[kChunk];  // below 0 where a corner is not in the image
    bool are_inside;                           // all corners of all cells are in the image
    std::int32_t least, most;                  // voxels along the slabs' axis
  };

  // Reads and writes whole vectors. Inlined, so that what is added cannot alias the corners: a
  // fifth of the instructions of a gradient to both.
  template <int rank>
  HWY_INLINE void find_corners(
      const Cells<T>& cells, const T* upstream, std::int64_t count, Corners* corners) const {
    const hn::ScalableTag<T> d;
    const hn::Rebind<std::int32_t, decltype(d)> d32;
    using V = hn::Vec<decltype(d)>;
    const V one = hn::Set(d, T{1});
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    auto least = hn::Set(d32, 1 << 30), most = hn::Set(d32, -(1 << 30)), any = hn::Zero(d32);
    for (std::int64_t i = 0; i < count; i += lanes) {
      V along[3][2];  // [bit of a corner]
      auto offset = hn::Zero(d32), outside = hn::Zero(d32), at = hn::Zero(d32);
      for (int bit = 0; bit < rank; ++bit) {
        const int a = axis_of_bit(bit);
        along[bit][1] = hn::Load(d, cells.fraction[a] + i);
        along[bit][0] = hn::Sub(one, along[bit][1]);
        at = hn::Load(d32, cells.voxel[a] + i);
        const auto last = hn::Set(d32, static_cast<std::int32_t>(plan.pass.axes[a].extent - 2));
        const auto stride = hn::Set(d32, static_cast<std::int32_t>(sums.strides[4 - a]));
        outside = hn::Or(outside, hn::Or(at, hn::Sub(last, at)));
        offset = hn::Add(offset, hn::Mul(at, stride));
      }
      hn::Store(offset, d32, corners->offset + i);
      hn::Store(outside, d32, corners->outside + i);
      if (i + lanes <= count) {
        any = hn::Or(any, outside);
        least = hn::Min(least, at);
        most = hn::Max(most, at);
      } else {
        const auto exists = hn::FirstN(d32, static_cast<std::size_t>(count - i));
        any = hn::Or(any, hn::IfThenElseZero(exists, outside));
        least = hn::IfThenElse(exists, hn::Min(least, at), least);
        most = hn::IfThenElse(exists, hn::Max(most, at), most);
      }
      const V given = hn::LoadU(d, upstream + i);
      for (int row = 0; row < 1 << (rank - 1); ++row) {
        V of_row = hn::Mul(given, along[rank - 1][row >> (rank - 2)]);
        if constexpr (rank == 3) of_row = hn::Mul(of_row, along[1][row & 1]);
        hn::StoreInterleaved2(hn::Mul(of_row, along[0][0]), hn::Mul(of_row, along[0][1]), d,
            corners->weight[row] + 2 * i);
      }
    }
    corners->are_inside = hn::AllFalse(d32, hn::Lt(any, hn::Zero(d32)));
    corners->least = hn::GetLane(hn::MinOfLanes(d32, least));
    corners->most = hn::GetLane(hn::MaxOfLanes(d32, most));
  }

  // Adds two weights to neighbours along x.
  template <bool is_dense>
  static HWY_INLINE void add_pair(T* to, const T* weight, std::int64_t along_x) {
    const hn::CappedTag<T, 2> d;
    const hn::CappedTag<T, 4> d4;
    if constexpr (is_dense && hn::MaxLanes(d4) == 4) {  // a load of four is part of an addition
      const auto added = hn::LowerHalf(d, hn::LoadU(d4, weight));
      hn::StoreU(hn::Add(hn::LoadU(d, to), added), d, to);
    } else if constexpr (is_dense && hn::MaxLanes(d) == 2) {
      hn::StoreU(hn::Add(hn::LoadU(d, to), hn::LoadU(d, weight)), d, to);
    } else {
      to[0] += weight[0];
      to[is_dense ? 1 : along_x] += weight[1];
    }
  }

  // Adds linear weights of the voxels [begin, count), which are computed in vectors.
  template <int rank, bool is_dense>
  void add_cells(const Cells<T>& cells, const T* upstream, std::int64_t begin, std::int64_t count,
      T* plane) const {
    Corners corners;
    find_corners<rank>(cells, upstream, count, &corners);
    const std::int64_t along_x = sums.strides[4], along_slab = sums.strides[4 - plan.slab_axis];
    const std::int64_t along_other = sums.strides[4 - axis_of_bit(1)];
    const std::int32_t* at = cells.voxel[plan.slab_axis];
    // Adds to the corners in one plane of the slab (one row in 2D).
    const auto add_to = [=, &corners](T* row, int first_row, std::int64_t i) HWY_ATTR {
      add_pair<is_dense>(row, corners.weight[first_row] + 2 * i, along_x);
      if constexpr (rank == 3) {
        add_pair<is_dense>(row + along_other, corners.weight[first_row + 1] + 2 * i, along_x);
      }
    };
    const bool is_within = corners.least >= first && corners.most + 1 < end;
    const bool has_offsets = has_short_offsets(sums);
    if (HWY_LIKELY(is_within && corners.are_inside && has_offsets)) {
      in_chains(begin, count, [&](std::int64_t i) HWY_ATTR {
        T* row = plane + corners.offset[i];
        hwy::Prefetch(row + along_slab + kAhead);
        add_to(row, 0, i);
        add_to(row + along_slab, 1 << (rank - 2), i);
      });
      return;
    }
    in_chains(begin, count, [&](std::int64_t i) HWY_ATTR {
      if (HWY_UNLIKELY(corners.outside[i] < 0 || !has_offsets)) {
        add_corners<rank>(cells, corners, i, plane);
        return;
      }
      T* row = plane + corners.offset[i];
      hwy::Prefetch(row + along_slab + kAhead);
      if (is_within || owns(at[i])) add_to(row, 0, i);
      if (is_within || owns(at[i] + 1)) {
        add_to(row + along_slab, 1 << (rank - 2), i);
      }
    });
  }

  // One cell of which a part may be outside of the image.
  template <int rank>
  void add_corners(const Cells<T>& cells, const Corners& corners, std::int64_t i, T* plane) const {
    for (int corner = 0; corner < 1 << rank; ++corner) {
      std::int64_t offset = 0;
      bool is_there = true;
      for (int bit = 0; bit < rank; ++bit) {
        const int a = axis_of_bit(bit);
        const std::int64_t voxel = cells.voxel[a][i] + (corner >> bit & 1);
        const std::int64_t low = a == plan.slab_axis ? first : 0;
        const std::int64_t high = a == plan.slab_axis ? end : plan.pass.axes[a].extent;
        is_there = is_there && voxel >= low && voxel < high;
        offset += voxel * sums.strides[4 - a];
      }
      if (is_there) plane[offset] += corners.weight[corner >> 1][2 * i + (corner & 1)];
    }
  }

#if HWY_TARGET != HWY_SCALAR
  // add_cells() for all components of a field's vectors. What the loop needs of the plan lies in
  // constants: read again for each voxel, it took a third of the instructions.
  template <int rank, int slab>
  void add_vectors(const Cells<T>& cells, const T* upstream, std::int64_t begin, std::int64_t count,
      T* vectors) const {
    std::int64_t stride[3] = {0, 0, 0};
    std::int32_t last[3] = {0, 0, 0};
    for (int a = 0; a < rank; ++a) {
      stride[a] = sums.strides[4 - a];
      last[a] = static_cast<std::int32_t>(plan.pass.axes[a].extent - 2);
    }
    const std::int64_t first_of_slab = first, end_of_slab = end;
    in_chains_of_any_length(begin, count, [&](std::int64_t i) HWY_ATTR {
      std::int32_t outside = 0;  // below 0 where a corner is not in the image
      std::int64_t offset = 0;
      for (int a = 0; a < rank; ++a) {
        const std::int32_t voxel = cells.voxel[a][i];
        outside |= voxel | (last[a] - voxel);
        offset += voxel * stride[a];
      }
      if (HWY_UNLIKELY(outside < 0)) {
        add_corners_of_vectors<rank>(cells, upstream + rank * i, i, vectors);
        return;
      }
      const std::int64_t at = cells.voxel[slab][i];
      const bool owned[2] = {
          at >= first_of_slab && at < end_of_slab, at + 1 >= first_of_slab && at + 1 < end_of_slab};
      add_fours<rank, slab>(cells, upstream + rank * i, i, owned, stride, vectors + offset);
    });
  }

  // Adds to a cell, which has all its corners. The two vectors along x, side by side in memory, are
  // added as four numbers and the two behind them, or in 2D as four. Eight numbers at once, two of
  // them 0, wait for the stores of neighbours: 36 ns a voxel in place of 24.
  template <int rank, int slab>
  static HWY_INLINE void add_fours(const Cells<T>& cells, const T* upstream, std::int64_t i,
      const bool (&owned)[2], const std::int64_t (&stride)[3], T* first_vector) {
    const hn::FixedTag<T, 4> d;
    const hn::FixedTag<T, 2> d2;
    using V = hn::Vec<decltype(d)>;
    constexpr int other = rank - slab;          // y or z; x in 2D, where it is not used
    const auto is_first = hn::FirstN(d, rank);  // a lane of the first vector
    V weight[3][2];
    for (int a = 0; a < rank; ++a) {
      weight[a][1] = hn::Set(d, cells.fraction[a][i]);
      weight[a][0] = hn::Sub(hn::Set(d, T{1}), weight[a][1]);
    }
    const V given = hn::LoadU(d, upstream);
    const V four = hn::IfThenElse(is_first, given, hn::ShiftLeftLanes<rank>(d, given));
    const V two = hn::ShiftRightLanes<1>(d, given);  // y and z of the second vector
    const V along_x = hn::IfThenElse(is_first, weight[0][0], weight[0][1]);
    const auto add_pair = [&](V four_of_row, V two_of_row, T* to) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Mul(four_of_row, along_x)), d, to);
      if constexpr (rank == 3) {
        const auto added = hn::LowerHalf(d2, hn::Mul(two_of_row, weight[0][1]));
        hn::StoreU(hn::Add(hn::LoadU(d2, to + 4), added), d2, to + 4);
      }
    };
    for (int ks = 0; ks < 2; ++ks) {
      if (!owned[ks]) continue;
      const V four_of_slab = hn::Mul(four, weight[slab][ks]);
      const V two_of_slab = hn::Mul(two, weight[slab][ks]);
      T* const row = first_vector + ks * stride[slab];
      if constexpr (rank == 3) {
        for (int ko = 0; ko < 2; ++ko) {
          add_pair(hn::Mul(four_of_slab, weight[other][ko]),
              hn::Mul(two_of_slab, weight[other][ko]), row + ko * stride[other]);
        }
      } else {
        add_pair(four_of_slab, two_of_slab, row);
      }
    }
  }

  // One cell of which a part may be outside of the image.
  template <int rank>
  void add_corners_of_vectors(
      const Cells<T>& cells, const T* given, std::int64_t i, T* vectors) const {
    for (int corner = 0; corner < 1 << rank; ++corner) {
      std::int64_t offset = 0;
      bool is_there = true;
      T added[rank];
      std::copy_n(given, rank, added);
      for (int bit = rank - 1; bit >= 0; --bit) {
        const int a = axis_of_bit(bit), k = corner >> bit & 1;
        const std::int64_t voxel = cells.voxel[a][i] + k;
        const std::int64_t low = a == plan.slab_axis ? first : 0;
        const std::int64_t high = a == plan.slab_axis ? end : plan.pass.axes[a].extent;
        is_there = is_there && voxel >= low && voxel < high;
        offset += voxel * sums.strides[4 - a];
        const T fraction = cells.fraction[a][i];
        for (T& each : added) each *= k != 0 ? fraction : 1 - fraction;
      }
      for (int c = 0; c < rank && is_there; ++c) vectors[offset + c] += added[c];
    }
  }

  // Adds all channels of a chunk at once if they are the components of vectors that lie side by
  // side, and returns whether they are.
  bool add_chunk_of_vectors(const Chunk& chunk, const Cells<T>& cells, std::int64_t begin) const {
    if constexpr (sizeof(T) == 4) {
      const Pass& pass = plan.pass;
      if (pass.mode != Interpolation::linear || pass.channels != pass.rank ||
          !has_vectors(pass.upstream, pass.rank) || !has_vectors(sums, pass.rank)) {
        return false;
      }
      const Extents& s = pass.upstream.strides;
      alignas(64) T given[3 * kChunk + 2];  // vectors are read as four numbers
      std::copy_n(static_cast<const T*>(pass.upstream.data()) + chunk.image * s[0] +
                      chunk.z * s[2] + chunk.y * s[3] + chunk.x * s[4],
          chunk.count * pass.rank, given);
      std::fill_n(given + chunk.count * pass.rank, 4 - pass.rank, T{0});
      T* const vectors = this->plane(0);
      if (pass.rank == 2) {
        add_vectors<2, 1>(cells, given, begin, chunk.count, vectors);
      } else if (plan.slab_axis == 1) {
        add_vectors<3, 1>(cells, given, begin, chunk.count, vectors);
      } else {
        add_vectors<3, 2>(cells, given, begin, chunk.count, vectors);
      }
      return true;
    }
    return false;
  }
#else
  bool add_chunk_of_vectors(const Chunk&, const Cells<T>&, std::int64_t) const { return false; }
#endif

  void add_channel(const Cells<T>& cells, const T* upstream, std::int64_t begin, std::int64_t count,
      T* plane) const {
    const bool is_dense = sums.strides[4] == 1;
    if (plan.pass.rank == 3) {
      is_dense ? add_cells<3, true>(cells, upstream, begin, count, plane)
               : add_cells<3, false>(cells, upstream, begin, count, plane);
    } else {
      is_dense ? add_cells<2, true>(cells, upstream, begin, count, plane)
               : add_cells<2, false>(cells, upstream, begin, count, plane);
    }
  }

  std::int64_t start_of_upstream(const Chunk& chunk, std::int64_t channel) const {
    const Extents& s = plan.pass.upstream.strides;
    return chunk.image * s[0] + channel * s[1] + chunk.z * s[2] + chunk.y * s[3] + chunk.x * s[4];
  }
  void load_upstream(const Chunk& chunk, std::int64_t channel, T* values) const {
    const TensorView& upstream = plan.pass.upstream;
    core_internal::HWY_NAMESPACE::load_row(
        upstream, start_of_upstream(chunk, channel), upstream.strides[4], chunk.count, values);
  }

#if HWY_NATIVE_FMA
  // Adds what the voxels [begin, chunk.count) bring, whose cells are ready and have left their
  // slots, to an image that is one slab.
  void add_ready(const Chunk& chunk, const ReadyCells& ready, std::int64_t begin) const {
    const Pass& pass = plan.pass;
    if constexpr (sizeof(T) == 4) {
      if (add_chunk_of_vectors(chunk, ready.cells, begin)) return;
    }
    alignas(64) T copied[kChunk];
    // Whole vectors are read where they are.
    const bool is_read_in_place =
        pass.upstream.dtype == sums.dtype && pass.upstream.strides[4] == 1 &&
        chunk.count % static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())) == 0;
    for (std::int64_t c = 0; c < pass.channels; ++c) {
      T* const plane = this->plane(c);
      const T* values = copied;
      if (is_read_in_place) {
        values = static_cast<const T*>(pass.upstream.data()) + start_of_upstream(chunk, c);
      } else {
        load_upstream(chunk, c, copied);
      }
      if (pass.mode == Interpolation::nearest) {
        for (std::int64_t i = begin; i < chunk.count; ++i) {
          if (ready.offset[i] != ReadyCells::kNone) plane[ready.offset[i]] += values[i];
        }
      } else if constexpr (sizeof(T) == 4) {  // images in f64 have no ready cells
        add_channel(ready.cells, values, begin, chunk.count, plane);
      }
    }
  }
#endif

  // The cells of a chunk: in the one loop, or as place_cells() finds them.
  const Cells<T>& find_cells(Chunk* chunk, Found* found) const {
#if HWY_NATIVE_FMA
    if constexpr (sizeof(T) == 4) {
      if (found->is_fast) {
        const auto place = plan.pass.rank == 3 ? place_in_slots<3> : place_in_slots<2>;
        place(plan, *chunk, false, nullptr, &found->ready);
        leave_slots(plan.pass.rank, chunk->count, false, &found->ready.cells);
        return found->ready.cells;
      }
    }
#endif
    place_cells(plan, chunk, &found->cells);
    return found->cells;
  }

  void add_row(std::int64_t n, std::int64_t row, Chunk* chunk, Found* found) const {
    const Pass& pass = plan.pass;
    alignas(64) T values[kChunk];
    for (std::int64_t x = 0; x < pass.axes[0].out_extent; x += kChunk) {
      chunk->image = n;
      chunk->z = row / pass.axes[1].out_extent;
      chunk->y = row % pass.axes[1].out_extent;
      chunk->x = x;
      chunk->count = std::min(kChunk, pass.axes[0].out_extent - x);
      const Cells<T>* cells = nullptr;
      if (pass.mode == Interpolation::linear || rounds_cells()) cells = &find_cells(chunk, found);
      bool is_placed = false;  // voxel by voxel
      const auto place_voxels = [&]() HWY_ATTR {
        if (!is_placed) place_chunk(plan, chunk);
        is_placed = true;
      };
      if (takes_cubic_vectors()) {
        place_voxels();
        found->cubic.find(pass, *chunk, false);
      }
      if (pass.mode == Interpolation::linear && add_chunk_of_vectors(*chunk, *cells, 0)) {
        continue;
      }
      for (std::int64_t c = 0; c < pass.channels; ++c) {
        load_upstream(*chunk, c, values);
        if (pass.mode == Interpolation::linear) {
          add_channel(*cells, values, 0, chunk->count, this->plane(c));
          continue;
        }
        if constexpr (sizeof(T) == 4) {
          if (cells != nullptr && this->add_nearest(*cells, values, chunk->count, this->plane(c)))
            continue;
          if constexpr (kHasCubicVectors) {
            if (takes_cubic_vectors()) {
              this->add_cubic(*chunk, found->cubic, values, this->plane(c));
              continue;
            }
          }
        }
        place_voxels();
        add_voxels(plan, sums, first, end, *chunk, values, this->plane(c));
      }
    }
  }

  // Adds what all rows bring that touch the slab.
  void run() const {
    this->clear();
    Chunk chunk;
    Found found;
#if HWY_NATIVE_FMA
    // Chunks of less than a vector would repeat voxels of the one before.
    const std::int64_t rest = plan.pass.axes[0].out_extent % kChunk;
    found.is_fast =
        has_ready_cells(plan) &&
        (rest == 0 || rest >= static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>())));
#endif
    const std::int64_t batch = plan.pass.batch;
    const std::int64_t shared = sums.shape[0] < batch ? batch : 1;
    for (std::int64_t n = image * shared; n < (image + 1) * shared; ++n) {
      for (std::int64_t row = 0; row < plan.rows; ++row) {
        const Touched& touched = plan.touched[static_cast<std::size_t>(n * plan.rows + row)];
        if (touched.last >= first && touched.first < end) add_row(n, row, &chunk, &found);
      }
    }
  }
};

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
