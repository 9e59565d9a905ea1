// SPDX-License-Identifier: Apache-2.0
// The gradient to the image on the CPU. A task owns a slab of the image and adds to it the part of
// every row of the output that touches it, row after row: no two tasks write one voxel, and each
// voxel's sum has one order, whatever the threads. Rows between two slabs are computed for both.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/scatter.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>

#include "src/core/parallel.h"
#include "src/warp/cpu/compose-inl.h"
#include "src/warp/cpu/ready_cells-inl.h"
#include "src/warp/cpu/scatter.h"
#include "src/warp/cpu/slab-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

constexpr std::int64_t kAhead = 32;  // voxels: rows that are added to are fetched so far ahead

template <class T> struct Slab : SlabOfImage<T> {
  using Base = SlabOfImage<T>;
  using Base::axis_of_bit, Base::owns, Base::in_chains, Base::rounds_cells;
  using Base::plan, Base::sums, Base::image, Base::first, Base::end, Base::takes_cubic_vectors;

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
    alignas(64) T weight[4][2 * kChunk];
    alignas(64) std::int32_t offset[kChunk];
    alignas(64) std::int32_t outside[kChunk];  // below 0 where a corner is not in the image
  };

  // Reads and writes whole vectors.
  template <int rank>
  void find_corners(
      const Cells<T>& cells, const T* upstream, std::int64_t count, Corners* corners) const {
    const hn::ScalableTag<T> d;
    const hn::Rebind<std::int32_t, decltype(d)> d32;
    using V = hn::Vec<decltype(d)>;
    const V one = hn::Set(d, T{1});
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      V along[3][2];  // [bit of a corner]
      auto offset = hn::Zero(d32), outside = hn::Zero(d32);
      for (int bit = 0; bit < rank; ++bit) {
        const int a = axis_of_bit(bit);
        along[bit][1] = hn::Load(d, cells.fraction[a] + i);
        along[bit][0] = hn::Sub(one, along[bit][1]);
        const auto voxel = hn::Load(d32, cells.voxel[a] + i);
        const auto last = hn::Set(d32, static_cast<std::int32_t>(plan.pass.axes[a].extent - 2));
        const auto stride = hn::Set(d32, static_cast<std::int32_t>(sums.strides[4 - a]));
        outside = hn::Or(outside, hn::Or(voxel, hn::Sub(last, voxel)));
        offset = hn::Add(offset, hn::Mul(voxel, stride));
      }
      hn::Store(offset, d32, corners->offset + i);
      hn::Store(outside, d32, corners->outside + i);
      const V given = hn::Load(d, upstream + i);
      for (int row = 0; row < 1 << (rank - 1); ++row) {
        V of_row = hn::Mul(given, along[rank - 1][row >> (rank - 2)]);
        if constexpr (rank == 3) of_row = hn::Mul(of_row, along[1][row & 1]);
        hn::StoreInterleaved2(hn::Mul(of_row, along[0][0]), hn::Mul(of_row, along[0][1]), d,
            corners->weight[row] + 2 * i);
      }
    }
  }

  // add() for linear weights, which are computed in vectors.
  template <int rank, bool is_dense>
  void add_cells(const Cells<T>& cells, const T* upstream, std::int64_t count, T* plane) const {
    Corners corners;
    find_corners<rank>(cells, upstream, count, &corners);
    const std::int64_t along_x = sums.strides[4], along_slab = sums.strides[4 - plan.slab_axis];
    const std::int64_t along_other = sums.strides[4 - axis_of_bit(1)];
    const std::int32_t* at = cells.voxel[plan.slab_axis];
    const auto add_pair = [=](T* to, const T* weight) HWY_ATTR {
      if constexpr (is_dense) {
        const hn::CappedTag<T, 2> d;
        if constexpr (hn::MaxLanes(d) == 2) {
          hn::StoreU(hn::Add(hn::LoadU(d, to), hn::LoadU(d, weight)), d, to);
          return;
        }
      }
      to[0] += weight[0];
      to[is_dense ? 1 : along_x] += weight[1];
    };
    // Adds to the corners in one plane of the slab (one row in 2D).
    const auto add_to = [=, &corners](T* row, int first_row, std::int64_t i) HWY_ATTR {
      add_pair(row, corners.weight[first_row] + 2 * i);
      if constexpr (rank == 3) add_pair(row + along_other, corners.weight[first_row + 1] + 2 * i);
    };
    std::int32_t least = at[0], most = at[0];  // std::minmax_element() is no vector code
    for (std::int64_t i = 1; i < count; ++i) {
      least = std::min(least, at[i]);
      most = std::max(most, at[i]);
    }
    const bool is_within = least >= first && most + 1 < end;
    const bool has_offsets = has_short_offsets(sums);
    in_chains(count, [&](std::int64_t i) HWY_ATTR {
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
  // add_cells() for all components of a field's vectors. The two vectors along x, side by side in
  // memory, are added as four numbers and the two behind them, or in 2D as four.
  template <int rank>
  void add_vectors(const Cells<T>& cells, const T* upstream, std::int64_t count, T* vectors) const {
    const hn::FixedTag<T, 4> d;
    const hn::FixedTag<T, 2> d2;
    using V = hn::Vec<decltype(d)>;
    const int slab = plan.slab_axis, other = axis_of_bit(rank - 2);
    const Extents& s = sums.strides;
    const std::int64_t along_slab = s[4 - slab], along_other = s[4 - other];
    const auto is_first = hn::FirstN(d, rank);  // a lane of the first vector
    std::int32_t last[3] = {0, 0, 0};
    for (int a = 0; a < rank; ++a) {
      last[a] = static_cast<std::int32_t>(plan.pass.axes[a].extent - 2);
    }
    in_chains(count, [&](std::int64_t i) HWY_ATTR {
      std::int32_t outside = 0;  // below 0 where a corner is not in the image
      std::int64_t offset = 0;
      V weight[3][2];
      for (int a = 0; a < rank; ++a) {
        const std::int32_t voxel = cells.voxel[a][i];
        outside |= voxel | (last[a] - voxel);
        offset += voxel * s[4 - a];
        weight[a][1] = hn::Set(d, cells.fraction[a][i]);
        weight[a][0] = hn::Sub(hn::Set(d, T{1}), weight[a][1]);
      }
      if (HWY_UNLIKELY(outside < 0)) {
        add_corners_of_vectors<rank>(cells, upstream + rank * i, i, vectors);
        return;
      }
      const V given = hn::LoadU(d, upstream + rank * i);
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
      const std::int32_t at = cells.voxel[slab][i];
      for (int ks = 0; ks < 2; ++ks) {
        if (!owns(at + ks)) continue;
        const V four_of_slab = hn::Mul(four, weight[slab][ks]);
        const V two_of_slab = hn::Mul(two, weight[slab][ks]);
        T* const row = vectors + offset + ks * along_slab;
        if constexpr (rank == 3) {
          for (int ko = 0; ko < 2; ++ko) {
            add_pair(hn::Mul(four_of_slab, weight[other][ko]),
                hn::Mul(two_of_slab, weight[other][ko]), row + ko * along_other);
          }
        } else {
          add_pair(four_of_slab, two_of_slab, row);
        }
      }
    });
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
  bool add_chunk_of_vectors(const Chunk& chunk, const Cells<T>& cells) const {
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
      pass.rank == 3 ? add_vectors<3>(cells, given, chunk.count, this->plane(0))
                     : add_vectors<2>(cells, given, chunk.count, this->plane(0));
      return true;
    }
    return false;
  }
#else
  bool add_chunk_of_vectors(const Chunk&, const Cells<T>&) const { return false; }
#endif

  void add_channel(const Cells<T>& cells, const T* upstream, std::int64_t count, T* plane) const {
    const bool is_dense = sums.strides[4] == 1;
    if (plan.pass.rank == 3) {
      is_dense ? add_cells<3, true>(cells, upstream, count, plane)
               : add_cells<3, false>(cells, upstream, count, plane);
    } else {
      is_dense ? add_cells<2, true>(cells, upstream, count, plane)
               : add_cells<2, false>(cells, upstream, count, plane);
    }
  }

  // The cells of a chunk: in the one loop, or as place_cells() finds them.
  const Cells<T>& find_cells(Chunk* chunk, Found* found) const {
#if HWY_NATIVE_FMA
    if constexpr (sizeof(T) == 4) {
      if (found->is_fast) {
        visit_padding(plan.pass.padding, [&]<Outside padding>() HWY_ATTR {
          const auto find = [&]<int rank>() HWY_ATTR {
            place_in_slots<rank, padding, false>(
                plan, *chunk, {true, false}, nullptr, &found->ready);
            leave_slots<rank>(chunk->count, false, &found->ready.cells);
          };
          plan.pass.rank == 3 ? find.template operator()<3>() : find.template operator()<2>();
        });
        return found->ready.cells;
      }
    }
#endif
    place_cells(plan, chunk, &found->cells);
    return found->cells;
  }

  void add_row(std::int64_t n, std::int64_t row, Chunk* chunk, Found* found) const {
    const Pass& pass = plan.pass;
    const TensorView& upstream = pass.upstream;
    const Extents& s = upstream.strides;
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
        found->cubic.find(pass, *chunk);
      }
      if (pass.mode == Interpolation::linear && add_chunk_of_vectors(*chunk, *cells)) continue;
      for (std::int64_t c = 0; c < pass.channels; ++c) {
        core_internal::HWY_NAMESPACE::load_row(upstream,
            n * s[0] + c * s[1] + chunk->z * s[2] + chunk->y * s[3] + x * s[4], s[4], chunk->count,
            values);
        if (pass.mode == Interpolation::linear) {
          add_channel(*cells, values, chunk->count, this->plane(c));
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
        pass.mode == Interpolation::nearest ? this->template add<1>(*chunk, values, this->plane(c))
                                            : this->template add<4>(*chunk, values, this->plane(c));
      }
    }
  }

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

void scatter_slab(const Plan& plan, const TensorView& sums, std::int64_t image, std::int64_t first,
    std::int64_t end) {
  if (sums.dtype == DType::f64) {
    Slab<double>{{plan, sums, image, first, end}}.run();
  } else {
    Slab<float>{{plan, sums, image, first, end}}.run();
  }
}

// Rounds a row of sums in f32 to the gradient's dtype.
void round_row(const TensorView& sums, const TensorView& gradient, std::int64_t row) {
  const auto offset_in = [row](const TensorView& view) {
    std::int64_t offset = 0, rest = row;
    for (int axis = 3; axis >= 0; --axis) {
      offset += rest % view.shape[axis] * view.strides[axis];
      rest /= view.shape[axis];
    }
    return offset;
  };
  const std::int64_t from = offset_in(sums), to = offset_in(gradient);
  const std::int64_t width = sums.shape[4], stride = sums.strides[4];
  alignas(64) float chunk[kChunk];
  for (std::int64_t x = 0; x < width; x += kChunk) {
    const std::int64_t count = std::min(kChunk, width - x);
    core_internal::HWY_NAMESPACE::load_row(sums, from + x * stride, stride, count, chunk);
    core_internal::HWY_NAMESPACE::store_row(
        chunk, count, gradient, to + x * gradient.strides[4], gradient.strides[4]);
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::warp_internal {
HWY_EXPORT(round_row);
HWY_EXPORT(scatter_slab);

// Slabs of an image for each thread, for these to end together, and voxels of the thinnest: thick
// ones have fewer rows computed twice. No bit depends on where slabs end.
constexpr std::int64_t kSlabsOfThread = 4, kThinnest = 8;

void scatter_cpu(const Plan& plan, const Execution& exec) {
  const Pass& pass = plan.pass;
  const TensorView& gradient = pass.image_gradient;
  const bool is_summed_elsewhere = !(gradient.dtype == DType::f32 || gradient.dtype == DType::f64);
  Tensor workspace;  // halves are rounded once, from sums in f32
  if (is_summed_elsewhere) workspace = allocate(gradient.shape, DType::f32, gradient.device, exec);
  const TensorView sums = is_summed_elsewhere ? TensorView(workspace) : gradient;
  const std::int64_t extent = pass.axes[plan.slab_axis].extent;
  const std::int64_t wanted = kSlabsOfThread * default_threads();
  const std::int64_t thickness = std::max(kThinnest, (extent + wanted - 1) / wanted);
  const std::int64_t slabs = (extent + thickness - 1) / thickness;
  parallel_for(exec, gradient.shape[0] * slabs, [&](std::int64_t task) {
    const std::int64_t first = task % slabs * thickness;
    HWY_DYNAMIC_DISPATCH(scatter_slab)
    (plan, sums, task / slabs, first, std::min(first + thickness, extent));
  });
  if (!is_summed_elsewhere) return;
  parallel_for(exec, gradient.shape.count() / gradient.shape[4], [&](std::int64_t row) {
    HWY_DYNAMIC_DISPATCH(round_row)(sums, gradient, row);
  });
}

}  // namespace similis::warp_internal
#endif
