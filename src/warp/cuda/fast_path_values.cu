// SPDX-License-Identifier: Apache-2.0
// Values of the fast path.
//
//   u of 4 voxels ─> indices in f64 ─> cells ─> 8 loads each ─> values ─> output
//
// If the components of a voxel lie beside each other, cells pass through shared memory, and a warp
// takes its row of voxels element by element; a lane takes elements 32 apart. The loads of 32 lanes
// at a corner are then 128 bytes side by side, not 384, and so are their stores.
#include "src/warp/cuda/fast_path_border.cuh"

namespace similis::warp_internal {
namespace {

template <class L>
__device__ __forceinline__ float value_of(const float (&fraction)[L::rank], const Corners<L>& k) {
  const float fx = fraction[0], fy = fraction[1];
  const float near = mix(fy, mix(fx, k.v[0], k.v[1]), mix(fx, k.v[2], k.v[3]));
  if constexpr (L::rank == 3) {
    const float far = mix(fy, mix(fx, k.v[4], k.v[5]), mix(fx, k.v[6], k.v[7]));
    return mix(fraction[2], near, far);
  } else {
    return near;
  }
}

// Columns are placed again for each batch where that leaves registers for loads.
template <class L> constexpr bool kPlacesAgain = L::rank == 3 && L::reloads;

template <class E> __device__ __forceinline__ const E* image_of(const FastPass& p, int n, int c) {
  return static_cast<const E*>(p.image) + n * p.image_strides.image + c * p.image_channel;
}

// Loads what this kernel writes.
__device__ __forceinline__ float load_plain(const float* at) { return *at; }
template <class E> __device__ __forceinline__ float load_plain(const E* at) {
  return gpu::to_float(*at);
}

// Adds the contributions of corners inside at the border, for the voxels of the column in `which`,
// a bit each.
template <class L, class E>
__device__ __forceinline__ void add_at_border(
    const FastPass& p, const FastColumn<L>& of_lane, unsigned which) {
  const auto add = [&](const FastColumn<L>& column, int z, const BorderCell<L>& cell) {
    for (int c = first_channel(column, p); c < end_channel(column, p); ++c) {
      const std::int64_t at = column.offset(p.output_strides, z) + c * p.output_channel;
      E* output = static_cast<E*>(p.output) + at;
      for (int k = 0; k < L::step; ++k) {
        const Corners<L> corners =
            load_corners_inside<L, E>(p, cell, image_of<E>(p, column.n, c) + k);
        float value = value_of<L>(cell.fraction, corners) * p.factor;
        value += load_plain(output + k);
        store_float(value, output + k);
      }
    }
  };
  for_each_at_border<L, kPlacesAgain<L>>(p, of_lane, which, add);
}

// Takes `count` channels from c on, whose loads are in flight together.
template <int count, bool is_masked, class L, class E>
__device__ __forceinline__ void store_some_channels(const FastPass& p, const FastColumn<L>& column,
    int z, const FastCell<L> (&cells)[kBatch], unsigned inside, const Rim<L>& rim, unsigned mine,
    int c) {
  constexpr int kTogether = L::is_half ? kBatch : 1;  // voxels that are loaded before any is used
  float values[count][kBatch];
#pragma unroll
  for (int k = 0; k < count; ++k) {
    const Lines<L, E> lines(image_of<E>(p, column.n, c + k), p.image_strides);
#pragma unroll
    for (int first = 0; first < kBatch; first += kTogether) {
      Corners<L, E> corners[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int d = first + i;
        corners[i] = is_masked ? load_corners<L, E>(lines, cells[d].offset, rim.corners_of(d))
                               : load_corners<L, E>(lines, cells[d].offset);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int d = first + i;
        const float value = value_of<L>(cells[d].fraction, in_f32(corners[i])) * p.factor;
        values[k][d] = inside >> d & 1u ? value : 0.0f;
      }
    }
  }
#pragma unroll
  for (int k = 0; k < count; ++k) {
    const std::int64_t at = opaque(column.offset(p.output_strides, z) + (c + k) * p.output_channel);
    if (p.addend != nullptr) {
      const E* addend = static_cast<const E*>(p.addend) + at;
#pragma unroll
      for (int d = 0; d < kBatch; ++d, addend += p.output_strides.z) {
        if (mine >> d & 1u) values[k][d] = fmaf(p.field_factor, load_plain(addend), values[k][d]);
      }
    }
    E* output = static_cast<E*>(p.output) + at;
#pragma unroll
    for (int d = 0; d < kBatch; ++d, output += p.output_strides.z) {
      if (mine >> d & 1u) store_float(values[k][d], output);
    }
  }
}

// Channels taken at once: in 2D two have as many loads in flight as one in 3D.
template <class L> constexpr int kChannels = L::rank == 2 && !L::is_half && !L::is_part ? 2 : 1;

template <bool is_masked, class L, class E>
__device__ __forceinline__ void store_channels(const FastPass& p, const FastColumn<L>& column,
    int z, const FastCell<L> (&cells)[kBatch], unsigned inside, const Rim<L>& rim) {
  unsigned mine = column.mine(z, kBatch);
  if (L::is_part && p.keeps) mine &= inside;
  if (L::is_part && p.keeps && mine == 0) return;
  const int end = end_channel(column, p);
  int c = first_channel(column, p);
  if constexpr (!is_masked && kChannels < L >> 1) {
    for (; c + kChannels<L> <= end; c += kChannels<L>) {
      store_some_channels<kChannels<L>, is_masked, L, E>(p, column, z, cells, inside, rim, mine, c);
    }
  }
  for (; c < end; ++c) {
    store_some_channels<1, is_masked, L, E>(p, column, z, cells, inside, rim, mine, c);
  }
}

// The voxels, among 32, whose elements a lane takes.
struct Elements {
  int voxel[3], component[3];

  __device__ __forceinline__ Elements() {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      voxel[k] = opaque((lane() + k * kTileX) / 3);
      component[k] = opaque((lane() + k * kTileX) % 3);
    }
  }
};

// The cells of a warp's voxels, for the lanes that take their elements.
struct StagedCells {
  float4 of[kBatch][kTileX];  // the fractions, and the offset or kNone

  // Every lane of the warp calls it.
  __device__ __forceinline__ void put(const FastCell<Vectors> (&cells)[kBatch], unsigned inside) {
    gpu::sync_warp();  // all lanes have read the cells before
#pragma unroll
    for (int d = 0; d < kBatch; ++d) {
      const float* f = cells[d].fraction;
      const int offset = inside >> d & 1u ? cells[d].offset : kNone;
      of[d][lane()] = make_float4(f[0], f[1], f[2], __int_as_float(offset));
    }
    gpu::sync_warp();
  }

 private:
  static constexpr int kNone = -1;
};

// Works on bits: the compiler would jump around values that are left out, and loads would wait for
// each other.
__device__ __forceinline__ float zero_unless(bool is_kept, float value) {
  return __int_as_float(__float_as_int(value) & -static_cast<int>(is_kept));
}

__device__ __forceinline__ void store_elements(const FastPass& p, const FastColumn<Vectors>& column,
    int z, const StagedCells& staged, const Elements& e, const Lines<Vectors, float>& lines) {
  const int floats = floats_of_row(p) - lane();
  std::int64_t at = opaque(column.row_offset(p.output_strides, z) + lane());
#pragma unroll
  for (int d = 0; d < kBatch; ++d, at += p.output_strides.z) {
    if (z + d >= column.end) break;
    float4 cells[3];
    Corners<Vectors> corners[3];
    float values[3], addends[3] = {0, 0, 0};
    if (p.addend != nullptr) {  // before the corners, to be in flight with them
      const float* addend = static_cast<const float*>(p.addend) + at;
#pragma unroll
      for (int k = 0; k < 3; ++k) {
        if (k * kTileX < floats) addends[k] = addend[k * kTileX];
      }
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) cells[k] = staged.of[d][e.voxel[k]];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      corners[k] =
          load_corners<Vectors, float>(lines, max(__float_as_int(cells[k].w), 0) + e.component[k]);
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const float fraction[3] = {cells[k].x, cells[k].y, cells[k].z};
      const bool is_inside = __float_as_int(cells[k].w) >= 0;
      values[k] = zero_unless(is_inside, value_of<Vectors>(fraction, corners[k]) * p.factor);
      values[k] = fmaf(p.field_factor, addends[k], values[k]);
    }
    float* output = static_cast<float*>(p.output) + at;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      if (k * kTileX < floats) output[k * kTileX] = values[k];
    }
  }
}

template <class L>
__global__ __launch_bounds__(kThreads, 4) void fast_values_kernel(
    const SIMILIS_GRID_CONSTANT FastPass p) {
  if constexpr (L::is_part) {
    if (is_left_out<L>(p)) return;
  }
  const FastColumn<L> column(p);
  if constexpr (L::is_part) {
    if (p.elsewhere != nullptr && blockIdx.x + blockIdx.y + blockIdx.z == 0 && threadIdx.x < 2) {
      raise(p.elsewhere + 2 * static_cast<std::int64_t>(p.out[2]) + threadIdx.x, 1);
    }
  }
  if constexpr (L::step == 3) {
    __shared__ StagedCells staged[kTileY];
    const Elements elements;
    const Lines<L, float> lines(image_of<float>(p, column.n, 0), p.image_strides);
    const unsigned at_border = for_each_batch<L>(
        p, column, [&](int z, const FastCell<L>(&cells)[kBatch], unsigned inside, const auto&) {
          staged[warp()].put(cells, inside);
          store_elements(p, column, z, staged[warp()], elements, lines);
        });
    add_at_border<L, float>(p, column, at_border);
  } else {
    with_element_type<L>(p, [&]<class E>(E) {
      const unsigned at_border = for_each_batch<L, kPlacesAgain<L>>(p, column,
          [&](int z, const FastCell<L>(&cells)[kBatch], unsigned inside, const Rim<L>& rim) {
            if constexpr (L::masks) {
              if (gpu::first_lane(rim.corners != Rim<L>::all) != gpu::kSubgroup) {
                return store_channels<true, L, E>(p, column, z, cells, inside, rim);
              }
            }
            store_channels<false, L, E>(p, column, z, cells, inside, rim);
          });
      add_at_border<L, E>(p, column, at_border);
    });
  }
}

// Padded volumes and pictures of f32 have kernels of their own: with them others took 2 % longer.
// So do those of several channels, which gain by masks where one channel loses 2 %.
template <class L> FastKernel kernel_of(bool is_padded, bool is_part, bool has_channels) {
  using Padding = std::conditional_t<L::is_half, Reloading<L>, Folding<L>>;
  using Channels = Masking<std::conditional_t<L::is_half, Reloading<L>, L>>;
  using One = std::conditional_t<L::is_half, Channels, L>;
  const auto plain = has_channels ? fast_values_kernel<Channels> : fast_values_kernel<One>;
  const auto whole = is_padded ? fast_values_kernel<Padding> : plain;
  return {is_part ? fast_values_kernel<Part<L>> : whole, 8, 0};
}

}  // namespace

FastKernel fast_values(
    FastLayout layout, bool is_half, bool is_padded, bool is_part, bool has_channels) {
  switch (layout) {
    case FastLayout::volume:
      return is_half ? kernel_of<Half<Volume>>(is_padded, is_part, has_channels)
                     : kernel_of<Volume>(is_padded, is_part, has_channels);
    case FastLayout::vectors: return {fast_values_kernel<Vectors>, 8, 0};
    case FastLayout::picture: break;
  }
  return is_half ? kernel_of<Half<Picture>>(is_padded, is_part, has_channels)
                 : kernel_of<Picture>(is_padded, is_part, has_channels);
}

}  // namespace similis::warp_internal
