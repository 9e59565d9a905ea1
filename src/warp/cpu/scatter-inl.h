// SPDX-License-Identifier: Apache-2.0
// Adds rows of the output, chunk by chunk, to a slab of the gradient to the image, and the
// components of a field's vectors together. Included once per SIMD target, hence the
// guard that flips.
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

template <class T> struct Slab : SlabOfImage<T> {
  using Base = SlabOfImage<T>;
  using Base::axis_of_bit, Base::owns, Base::in_chains_of_any_length, Base::add_channels;
  using Base::plan, Base::sums, Base::image, Base::first, Base::end, Base::takes_cubic_vectors;
  using Base::rounds_cells, Base::upstream_of, Base::load_upstream;

  // Room for a chunk's cells.
  struct Found {
    Cells<T> cells;
    ReadyCells ready;
    CubicTaps cubic;
    bool is_fast = false;
  };

#if HWY_TARGET != HWY_SCALAR
  // add_cells() for all components of a field's vectors. Constants hold what the loop reads of the
  // plan: read again for each voxel, it took a third of the instructions.
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
    in_chains_of_any_length(begin, count, 8, [&](std::int64_t i, std::int64_t) HWY_ATTR {
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

#if HWY_NATIVE_FMA
  // Adds what the voxels [begin, chunk.count) bring, whose cells are ready and have left their
  // slots, to an image that is one slab and lies in memory as the pass's does.
  void add_ready(const Chunk& chunk, const ReadyCells& ready, std::int64_t begin) const {
    if (plan.pass.mode == Interpolation::nearest) {
      alignas(64) T copied[kChunk];
      for (std::int64_t c = 0; c < plan.pass.channels; ++c) {
        T* const plane = this->plane(c);
        const T* const values = upstream_of(chunk, c, copied);
        const T* const ahead = plane + Base::kAhead + Base::kRowsAhead * this->along_slab();
        for (std::int64_t i = 0; i < chunk.count; i += 8) hwy::Prefetch(ahead + ready.offset[i]);
        for (std::int64_t i = begin; i < chunk.count; ++i) {
          if (ready.offset[i] != ReadyCells::kNone) plane[ready.offset[i]] += values[i];
        }
      }
    } else if constexpr (sizeof(T) == 4) {  // images in f64 have no ready cells
      if (add_chunk_of_vectors(chunk, ready.cells, begin)) return;
      add_channels(chunk, ready.cells, &ready, begin);
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
      if (pass.mode == Interpolation::linear) {
        if (!add_chunk_of_vectors(*chunk, *cells, 0)) add_channels(*chunk, *cells, nullptr, 0);
        continue;
      }
      for (std::int64_t c = 0; c < pass.channels; ++c) {
        load_upstream(*chunk, c, values);
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
