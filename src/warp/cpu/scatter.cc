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
#include "src/warp/cpu/linear-inl.h"
#include "src/warp/cpu/scatter.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

template <class T> struct Slab {
  const Plan& plan;
  TensorView sums;  // [N or 1,C,Z,Y,X] of T
  std::int64_t image, first, end;

  T* plane(std::int64_t channel) const {
    return static_cast<T*>(sums.data()) + image * sums.strides[0] + channel * sums.strides[1];
  }

  void clear() const {
    std::int64_t extents[3], starts[3] = {0, 0, 0};
    for (int a = 0; a < 3; ++a) extents[a] = plan.pass.axes[a].extent;
    starts[plan.slab_axis] = first;
    extents[plan.slab_axis] = end;
    const Extents& s = sums.strides;
    for (std::int64_t c = 0; c < plan.pass.channels; ++c) {
      for (std::int64_t z = starts[2]; z < extents[2]; ++z) {
        for (std::int64_t y = starts[1]; y < extents[1]; ++y) {
          T* row = plane(c) + z * s[2] + y * s[3];
          for (std::int64_t x = 0; x < extents[0]; ++x) row[x * s[4]] = 0;
        }
      }
    }
  }

  template <int count> void add(const Chunk& chunk, const T* upstream, T* plane) const {
    const Extents& s = sums.strides;
    const int planes = plan.pass.rank == 2 ? 1 : count;
    const auto low = static_cast<int>(first), high = static_cast<int>(end);
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      Taps<T, count> axis[3];
      taps_of(plan.pass, chunk, i, axis);
      for (int& voxel : axis[plan.slab_axis].voxel) {
        voxel = voxel >= low && voxel < high ? voxel : kNoVoxel;
      }
      for (int kz = 0; kz < planes; ++kz) {
        const int z = axis[2].voxel[kz];
        const T of_plane = upstream[i] * axis[2].weight[kz];
        for (int ky = 0; ky < count && z != kNoVoxel; ++ky) {
          const int y = axis[1].voxel[ky];
          if (y == kNoVoxel) continue;
          const T of_row = of_plane * axis[1].weight[ky];
          T* row = plane + z * s[2] + y * s[3];
          for (int kx = 0; kx < count; ++kx) {
            const int x = axis[0].voxel[kx];
            if (x != kNoVoxel) row[x * s[4]] += of_row * axis[0].weight[kx];
          }
        }
      }
    }
  }

  // The axes in the order of a corner's bits: x, the other one, that of slabs.
  int axis_of_bit(int bit) const {
    return bit == 0 ? 0 : bit == plan.pass.rank - 1 ? plan.slab_axis : 3 - plan.slab_axis;
  }

  // The numbers that the cells of a chunk add to their corners, and the offset of the first corner.
  struct Corners {
    alignas(64) T weight[8][kChunk];
    std::int64_t offset[kChunk];
    std::int32_t outside[kChunk];  // below 0 where a corner is not in the image
  };

  template <int rank>
  void find_corners(
      const Cells<T>& cells, const T* upstream, std::int64_t count, Corners* corners) const {
    for (int corner = 0; corner < 1 << rank; ++corner) {
      T* HWY_RESTRICT weight = corners->weight[corner];
      const auto along = [&](int bit, std::int64_t i) HWY_ATTR {
        const T f = cells.fraction[axis_of_bit(bit)][i];
        return (corner >> bit & 1) != 0 ? f : 1 - f;
      };
      for (std::int64_t i = 0; i < count; ++i) {
        const T of_slab = upstream[i] * along(rank - 1, i);
        weight[i] = (rank == 3 ? of_slab * along(1, i) : of_slab) * along(0, i);
      }
    }
    std::fill_n(corners->offset, count, 0);
    std::fill_n(corners->outside, count, 0);
    for (int a = 0; a < rank; ++a) {
      const std::int64_t stride = sums.strides[4 - a];
      const auto last = static_cast<std::int32_t>(plan.pass.axes[a].extent - 2);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t voxel = cells.voxel[a][i];
        corners->offset[i] += voxel * stride;
        corners->outside[i] |= voxel | (last - voxel);
      }
    }
  }

  // add() for linear weights, which are computed in vectors.
  template <int rank>
  void add_cells(const Cells<T>& cells, const T* upstream, std::int64_t count, T* plane) const {
    Corners corners;
    find_corners<rank>(cells, upstream, count, &corners);
    const std::int64_t along_x = sums.strides[4], along_slab = sums.strides[4 - plan.slab_axis];
    const std::int64_t along_other = sums.strides[4 - axis_of_bit(1)];
    const std::int32_t* at = cells.voxel[plan.slab_axis];
    // Adds to the corners in one plane of the slab (one row in 2D).
    const auto add_to = [=](T* row, const T* weight) {
      row[0] += weight[0];
      row[along_x] += weight[kChunk];
      if constexpr (rank == 3) {
        row[along_other] += weight[2 * kChunk];
        row[along_other + along_x] += weight[3 * kChunk];
      }
    };
    for (std::int64_t i = 0; i < count; ++i) {
      if (corners.outside[i] < 0) {
        add_corners<rank>(cells, corners, i, plane);
        continue;
      }
      T* row = plane + corners.offset[i];
      if (at[i] >= first && at[i] < end) add_to(row, &corners.weight[0][i]);
      if (at[i] + 1 >= first && at[i] + 1 < end) {
        add_to(row + along_slab, &corners.weight[1 << (rank - 1)][i]);
      }
    }
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
      if (is_there) plane[offset] += corners.weight[corner][i];
    }
  }

#if HWY_TARGET != HWY_SCALAR
  // add_cells() for all components of a field's vectors. Numbers are added to memory one by one:
  // the next voxel often takes what this one wrote, and a vector that lies half over two others
  // would wait for both.
  template <int rank>
  void add_vectors(const Cells<T>& cells, const T* upstream, std::int64_t count, T* vectors) const {
    const hn::FixedTag<T, 4> d;
    using V = hn::Vec<decltype(d)>;
    const int slab = plan.slab_axis, other = axis_of_bit(rank - 2);
    const Extents& s = sums.strides;
    const std::int64_t along_slab = s[4 - slab], along_other = s[4 - other];
    std::int32_t last[3] = {0, 0, 0};
    for (int a = 0; a < rank; ++a)
      last[a] = static_cast<std::int32_t>(plan.pass.axes[a].extent - 2);
    for (std::int64_t i = 0; i < count; ++i) {
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
      if (outside < 0) {
        add_corners_of_vectors<rank>(cells, upstream + rank * i, i, vectors);
        continue;
      }
      const V given = hn::LoadU(d, upstream + rank * i);
      const std::int32_t at = cells.voxel[slab][i];
      for (int ks = 0; ks < 2; ++ks) {
        if (at + ks < first || at + ks >= end) continue;
        const V of_slab = hn::Mul(given, weight[slab][ks]);
        T* const row = vectors + offset + ks * along_slab;
        const auto add_pair = [&](V of_row, T* to) HWY_ATTR {
          alignas(16) T added[2][4];
          hn::Store(hn::Mul(of_row, weight[0][0]), d, added[0]);
          hn::Store(hn::Mul(of_row, weight[0][1]), d, added[1]);
          for (int c = 0; c < rank; ++c) to[c] += added[0][c];
          for (int c = 0; c < rank; ++c) to[rank + c] += added[1][c];
        };
        if constexpr (rank == 3) {
          add_pair(hn::Mul(of_slab, weight[other][0]), row);
          add_pair(hn::Mul(of_slab, weight[other][1]), row + along_other);
        } else {
          add_pair(of_slab, row);
        }
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
  bool add_chunk_of_vectors(const Chunk& chunk, const Cells<T>& cells) const {
    if constexpr (sizeof(T) == 4) {
      const Pass& pass = plan.pass;
      if (pass.mode != Interpolation::linear || pass.channels != pass.rank ||
          !has_vectors(pass.upstream, pass.rank) || !has_vectors(sums, pass.rank)) {
        return false;
      }
      const Extents& s = pass.upstream.strides;
      alignas(64) T given[3 * kChunk + 1];  // vectors are read as four numbers
      std::copy_n(static_cast<const T*>(pass.upstream.data()) + chunk.image * s[0] +
                      chunk.z * s[2] + chunk.y * s[3] + chunk.x * s[4],
          chunk.count * pass.rank, given);
      given[chunk.count * pass.rank] = 0;
      pass.rank == 3 ? add_vectors<3>(cells, given, chunk.count, plane(0))
                     : add_vectors<2>(cells, given, chunk.count, plane(0));
      return true;
    }
    return false;
  }
#else
  bool add_chunk_of_vectors(const Chunk&, const Cells<T>&) const { return false; }
#endif

  void add_row(std::int64_t n, std::int64_t row, Chunk* chunk, Cells<T>* cells) const {
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
      const bool is_linear = pass.mode == Interpolation::linear;
      is_linear ? place_cells(plan, chunk, cells) : place_chunk(plan, chunk);
      if (is_linear && add_chunk_of_vectors(*chunk, *cells)) continue;
      for (std::int64_t c = 0; c < pass.channels; ++c) {
        core_internal::HWY_NAMESPACE::load_row(upstream,
            n * s[0] + c * s[1] + chunk->z * s[2] + chunk->y * s[3] + x * s[4], s[4], chunk->count,
            values);
        switch (pass.mode) {
          case Interpolation::linear:
            pass.rank == 3 ? add_cells<3>(*cells, values, chunk->count, plane(c))
                           : add_cells<2>(*cells, values, chunk->count, plane(c));
            break;
          case Interpolation::nearest: add<1>(*chunk, values, plane(c)); break;
          case Interpolation::cubic: add<4>(*chunk, values, plane(c)); break;
        }
      }
    }
  }

  void run() const {
    clear();
    Chunk chunk;
    Cells<T> cells;
    const std::int64_t batch = plan.pass.batch;
    const std::int64_t shared = sums.shape[0] < batch ? batch : 1;
    for (std::int64_t n = image * shared; n < (image + 1) * shared; ++n) {
      for (std::int64_t row = 0; row < plan.rows; ++row) {
        const Touched& touched = plan.touched[static_cast<std::size_t>(n * plan.rows + row)];
        if (touched.last >= first && touched.first < end) add_row(n, row, &chunk, &cells);
      }
    }
  }
};

void scatter_slab(const Plan& plan, const TensorView& sums, std::int64_t image, std::int64_t first,
    std::int64_t end) {
  if (sums.dtype == DType::f64) {
    Slab<double>{plan, sums, image, first, end}.run();
  } else {
    Slab<float>{plan, sums, image, first, end}.run();
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::warp_internal {
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
  if (is_summed_elsewhere) copy_cpu(workspace, gradient, exec);
}

}  // namespace similis::warp_internal
#endif
