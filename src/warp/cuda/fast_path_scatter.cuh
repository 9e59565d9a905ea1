// SPDX-License-Identifier: Apache-2.0
// Parts that the kernels of the gradient to the image share: the box of the image that a block's
// cells touch, sums in it as integers, and additions to the image.
#pragma once

#include <climits>
#include <cstddef>

#include "src/warp/cuda/fast_path_border.cuh"

namespace similis::warp_internal {

constexpr int kDepth = 8;
template <class L> constexpr int kLeastBlocks = L::step == 3 ? 3 : 4;  // blocks of a multiprocessor
template <class L> constexpr std::size_t kBoxBytes = (L::step == 3 ? 75 : 55) * 1024 - 256;
constexpr int kBanks = 32;

// The voxels of the image that a block's cells touch. Along x the box begins and ends at multiples
// of 4.
template <class L> struct Box {
  int first[L::rank], extent[L::rank];
  int line, plane;  // number of words from one line, and plane, to the next
  int words;        // number of all
  bool is_kept;     // the box exists and fits shared memory

  __device__ __forceinline__ bool has(const FastCell<L>& cell) const {
    bool is_in = true;
#pragma unroll
    for (int a = 0; a < L::rank; ++a) {
      is_in &=
          static_cast<unsigned>(cell.voxel[a] - first[a]) < static_cast<unsigned>(extent[a] - 1);
    }
    return is_in;
  }
};

// The unit of the box's words. Let 2^e be above all |g| that are added and m the largest number of
// voxels in a cell, so that at most 8m are added to one voxel of the image, with weights of no more
// than 1: then sums stay below 2³⁰ words of 2^(e + headroom - 30), where 2^headroom ≥ 8m. An
// addition is off by half a word at most. kGroup voxels behind each other are added if that is
// below 2⁻¹⁸ of their largest |g|; otherwise they wait for another round, with smaller words.
struct Words {
  int exponent, headroom;  // exponent is a float's: e + 126

  __device__ bool suit(int largest) const {
    return largest < kInfinity && headroom + exponent - (largest >> 23) <= kMostBits;
  }
  __device__ float of_1() const { return power_of_two(156 - headroom - exponent); }
  __device__ float inverse() const { return power_of_two(headroom + exponent - 156); }

 private:
  static constexpr int kMostBits = 12;
  static constexpr int kInfinity = 0x7f800000;
  __device__ static float power_of_two(int exponent) {
    return __int_as_float((127 + exponent) << 23);
  }
};
constexpr int kRounds = 3;
constexpr int kGroup = 4, kGroups = kDepth / kGroup;
constexpr int kLeastExponent = 36;  // with it words are normal numbers
constexpr int kMostFinite = 0x7f7fffff;

// Numbers that the threads of a block agree on: minima; maxima are kept as minima of the negative.
struct Agreed {
  int low[3], high[3];
  int most_in_cell;
  int largest[kRounds + 1];  // largest |g| of each round, as bits
};

// Sets what nothing was added to yet; a barrier follows.
__device__ __forceinline__ void start(Agreed* agreed) {
  if (threadIdx.x >= sizeof(Agreed) / sizeof(int)) return;
  const bool is_largest = threadIdx.x >= offsetof(Agreed, largest) / sizeof(int);
  reinterpret_cast<int*>(agreed)[threadIdx.x] = is_largest ? 0 : INT_MAX;
}

// Finds the range of the block's indices from the range of u in each column: an index grows, or
// shrinks, with u and with z, rounded too. The box is hardly wider for it. Cells that are not
// inside widen it, to the border at most.
template <class L>
__device__ __forceinline__ void find_range(const FastPass& p, const FastColumn<L>& column,
    const float (&u)[kDepth][L::rank], Agreed* agreed) {
  const double first = column.position(p, column.z), last = column.position(p, column.end - 1);
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    float least = u[0][a], most = u[0][a];
#pragma unroll
    for (int d = 1; d < kDepth; ++d) {
      least = fminf(least, u[d][a]);
      most = fmaxf(most, u[d][a]);
    }
    const bool z_grows = column.by_z[a] >= 0, u_grows = column.by_u[a] >= 0;
    float fraction;
    const int low = split(column.index(p, a, z_grows ? first : last, u_grows ? least : most),
        &fraction, counter_of<L>(p, a));
    const int high = split(column.index(p, a, z_grows ? last : first, u_grows ? most : least),
        &fraction, counter_of<L>(p, a));
    atomicMin(&agreed->low[a], low);
    atomicMin(&agreed->high[a], -max(high, -INT_MAX));
  }
}

// Finds the largest |g| of each group. Bits of numbers that are not negative order as the numbers
// do, and infinity and NaN stand above all.
template <class L, class E>
__device__ __forceinline__ void find_largest(
    const FastPass& p, const FastColumn<L>& column, const E* upstream, int (&largest)[kGroups]) {
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    if (d % kGroup == 0) largest[d / kGroup] = 0;
#pragma unroll
    for (int k = 0; k < L::step; ++k) {
      const int bits = __float_as_int(load_float(upstream + k * p.upstream_component)) & INT_MAX;
      largest[d / kGroup] = max(largest[d / kGroup], bits);
    }
    if (column.z + d + 1 < column.end) upstream += p.upstream_strides.z;
  }
}

// Agrees on the largest |g| of the voxels in `left`, a bit each.
__device__ __forceinline__ void agree_on_largest(
    const int (&largest)[kGroups], unsigned left, int* agreed) {
  int most = 0;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const bool counts = (left >> i * kGroup & ((1u << kGroup) - 1)) != 0;
    if (counts && largest[i] <= kMostFinite) most = max(most, largest[i]);
  }
  atomicMin(agreed, -most);
}

// Widens a range of cells by those that the padding moves to the image's ends.
template <class L>
__device__ __forceinline__ void fold_range(const FastPass& p, int axis, int* low, int* high) {
  constexpr int kFar = kMostFastVoxels;
  if (p.padding == Outside::zeros || *low < -kFar || *high > kFar) return;
  const int first = -first_voxel<L>(p, axis), end = first + last_voxel<L>(p, axis);
  int least = min(*low, end - 1), most = max(*high, first);
  if (p.padding == Outside::reflection) {
    if (*low < first) most = max(most, 2 * first - *low);
    if (*high >= end) least = min(least, 2 * end - *high - 2);
  }
  *low = least, *high = most;
}

template <class L>
__device__ __forceinline__ Box<L> make_box(const FastPass& p, const Agreed& agreed) {
  constexpr int step = L::step;
  Box<L> box;
  box.is_kept = true;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    int low = agreed.low[a], high = -agreed.high[a];
    if constexpr (L::folds) fold_range<L>(p, a, &low, &high);
    const int rim = L::masks ? 1 : 0;  // of voxels that the image lacks
    box.first[a] = max(low, -rim);
    box.extent[a] = min(high, p.last[a] - 1 + rim) + 2 - box.first[a];  // with the far corner
    box.is_kept &= box.extent[a] >= 2;
  }
  if (!box.is_kept) return box;
  const int skipped = box.first[0] & 3;
  box.extent[0] = (box.extent[0] + skipped + 3) / 4 * 4;
  box.first[0] -= skipped;
  // Lines begin at one bank: then lanes hardly meet at a bank, as neighbours along x are at others.
  // 2.2 of 32 instead of 2.6 meet.
  const auto banks = [](std::int64_t words) { return (words + kBanks - 1) / kBanks * kBanks; };
  const int planes = L::rank == 3 ? box.extent[L::rank - 1] : 1;
  std::int64_t line = banks(step * box.extent[0]);
  if (line * box.extent[1] * planes > p.box_floats) line = step * box.extent[0];
  const std::int64_t plane = banks(line * box.extent[1]);
  box.line = static_cast<int>(line);
  box.plane = static_cast<int>(plane);
  box.is_kept = plane * planes <= p.box_floats;  // extents are below 2²⁰
  box.words = static_cast<int>(plane * planes);
  return box;
}

__device__ __forceinline__ void clear(int4* kept, int words) {
  const int end = words / 4;
  for (int i = static_cast<int>(threadIdx.x); i < end; i += kThreads) kept[i] = {0, 0, 0, 0};
}

// Finds the cells of the column by their places in the box. Returns which voxels have one, a bit
// each.
template <class L>
__device__ __forceinline__ unsigned find_cells_in_box(const FastPass& p,
    const FastColumn<L>& column, const Box<L>& box, const float (&u)[kDepth][L::rank],
    FastCell<L> (&cells)[kDepth], unsigned* outside) {
  const double gz = column.position(p, column.z);
  unsigned inside = 0;
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    FastCell<L>& cell = cells[d];
    bool is_inside = find_cell<L>(p, column, gz + d, u[d], &cell);
    if constexpr (L::folds) {
      if (!is_inside) {
        Rim<L> rim;
        is_inside = fold_cell<L>(p, d, &cell, &rim) && box.has(cell);
      }
    }
    if constexpr (L::masks) {
      if (!is_inside) {
        Rim<L> rim;
        is_inside = mask_cell<L>(p, d, cell, &rim) && box.has(cell);
        if (rim.outside >> d & 1u) *outside |= 1u << d;
      }
    }
    cell.offset =
        (cell.voxel[1] - box.first[1]) * box.line + (cell.voxel[0] - box.first[0]) * L::step;
    if constexpr (L::rank == 3) cell.offset += (cell.voxel[2] - box.first[2]) * box.plane;
    inside |= is_inside ? 1u << d : 0;
  }
  return inside;
}

// Counts the cells that share a place. Leaves the box cleared.
template <class L>
__device__ __forceinline__ void count_cells(
    const FastCell<L> (&cells)[kDepth], unsigned inside, int* words, Agreed* agreed) {
  int most = 0;
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    if (inside >> d & 1u) most = max(most, atomicAdd(words + cells[d].offset, 1) + 1);
  }
  atomicMin(&agreed->most_in_cell, -most);
  __syncthreads();
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    if (inside >> d & 1u) words[cells[d].offset] = 0;
  }
  __syncthreads();
}

// The lines of a cell, and the weight of each.
template <class L> constexpr int kLines = L::rank == 3 ? 4 : 2;
template <class L>
__device__ __forceinline__ float weight_of_line(const float (&f)[L::rank], int line) {
  const float along_y = line % 2 ? f[1] : 1 - f[1];
  if constexpr (L::rank == 2) return along_y;
  return along_y * (line / 2 ? f[L::rank - 1] : 1 - f[L::rank - 1]);
}

// Adds to the corners of a cell.
template <class L>
__device__ __forceinline__ void add_to_box(
    const Box<L>& box, const float (&fraction)[L::rank], const float (&g)[L::step], int* first) {
  constexpr int step = L::step;
  float f[L::rank];
#pragma unroll
  for (int a = 0; a < L::rank; ++a) f[a] = recomputed(fraction[a]);
  const float fx = f[0];
#pragma unroll
  for (int k = 0; k < kLines<L>; ++k) {
    const float weight = weight_of_line<L>(f, k);
    const float right = weight * fx, left = weight - right;
    int* to = first + (k % 2 ? box.line : 0) + (k / 2 ? box.plane : 0);
#pragma unroll
    for (int c = 0; c < step; ++c) {
      atomicAdd(to + c, __float2int_rn(left * g[c]));
      atomicAdd(to + step + c, __float2int_rn(right * g[c]));
    }
  }
}

// Adds the voxels of the column in `which`, a bit each. For others a lane adds zeros somewhere: a
// jump around that would keep loads from being in flight together.
template <class L, class E>
__device__ __forceinline__ void scatter_to_box(const FastPass& p, const FastColumn<L>& column,
    const Box<L>& box, const FastCell<L> (&cells)[kDepth], unsigned which, float words_of_1,
    const E* upstream, int* words) {
  constexpr int step = L::step;
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    const bool is_one = which >> d & 1u;
    float g[step];
#pragma unroll
    for (int k = 0; k < step; ++k) {
      g[k] = is_one ? load_float(upstream + k * p.upstream_component) * words_of_1 : 0.0f;
    }
    add_to_box<L>(box, cells[d].fraction, g, words + (is_one ? cells[d].offset : lane()));
    if (column.z + d + 1 < column.end) upstream += p.upstream_strides.z;
  }
}

// Adds to neighbours in memory, to both in one addition if the device has that.
__device__ __forceinline__ void add_pair(float* to, float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float2*>(to), make_float2(first, second));
#else
  atomicAdd(to, first);
  atomicAdd(to + 1, second);
#endif
}

// Adds to the corners of one cell in the image: neighbours of a line go in pairs from an even
// address on.
template <class L, class E>
__device__ __forceinline__ void add_to_image(
    const FastPass& p, const BorderCell<L>& cell, const E* upstream, float* sums) {
  constexpr int step = L::step;
  const FastStrides& s = p.sums_strides;
  float* first = sums + cell.place(s);
  const float fx = cell.fraction[0];
#pragma unroll
  for (int k = 0; k < kLines<L>; ++k) {
    const float weight = weight_of_line<L>(cell.fraction, k);
    float* line = first + (L::rank == 2 ? (k ? s.z : 0) : (k % 2 ? s.y : 0) + (k / 2 ? s.z : 0));
    float v[2 * step];
#pragma unroll
    for (int c = 0; c < step; ++c) {
      const float g = load_float(upstream + c * p.upstream_component);
      v[step + c] = g * weight * fx;
      v[c] = g * weight - v[step + c];
    }
    const unsigned sides = cell.corners >> 2 * k & 3u;
    if (sides != 3) {
#pragma unroll
      for (int i = 0; i < 2 * step; ++i) {
        if (sides >> i / step & 1u) atomicAdd(line + i, v[i]);
      }
    } else if (reinterpret_cast<std::uintptr_t>(line) % 8 == 0) {
#pragma unroll
      for (int i = 0; i < 2 * step; i += 2) add_pair(line + i, v[i], v[i + 1]);
    } else {
      atomicAdd(line, v[0]);
#pragma unroll
      for (int i = 1; i + 1 < 2 * step; i += 2) add_pair(line + i, v[i], v[i + 1]);
      atomicAdd(line + 2 * step - 1, v[2 * step - 1]);
    }
  }
}

// Divides numbers below 2¹⁶ by one divisor.
struct Divisor {
  unsigned factor;
  __device__ explicit Divisor(int divisor)
      : factor(0xffffffffu / static_cast<unsigned>(divisor) + 1) {}
  __device__ int quotient(int i) const {
    return factor == 0 ? i : static_cast<int>(__umulhi(static_cast<unsigned>(i), factor));
  }
};

__device__ __forceinline__ void add_words(float* to, const int4& words, float inverse) {
  if ((words.x | words.y | words.z | words.w) == 0) return;
  const float4 v = {static_cast<float>(words.x) * inverse, static_cast<float>(words.y) * inverse,
      static_cast<float>(words.z) * inverse, static_cast<float>(words.w) * inverse};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(to), v);
#else
  for (int i = 0; i < 4; ++i) atomicAdd(to + i, (&v.x)[i]);
#endif
}
__device__ __forceinline__ void add_words(float* to, int words, float inverse) {
  if (words != 0) atomicAdd(to, static_cast<float>(words) * inverse);
}

__device__ __forceinline__ void clear(int4* words) { *words = {0, 0, 0, 0}; }
__device__ __forceinline__ void clear(int* words) { *words = 0; }

// Adds the box to the image, and `clears` it. Words of 0 are left out; all that lie beyond the
// image are 0.
template <class L, bool clears, class Vector>
__device__ __forceinline__ void flush_vectors(
    const FastPass& p, const Box<L>& box, Vector* kept, float inverse, float* sums) {
  constexpr int step = L::step;
  constexpr int width = sizeof(Vector) / sizeof(int);
  const int of_line = box.extent[0] * step / width, line = box.line / width,
            plane = box.plane / width;
  const Divisor by_line(of_line), by_plane(box.extent[1]);
  const FastStrides& s = p.sums_strides;
  const int y_stride = L::rank == 3 ? s.y : s.z;
  float* first = sums + (box.first[1] * y_stride + box.first[0] * step);
  int end = of_line * box.extent[1];
  if constexpr (L::rank == 3) {
    first += box.first[2] * s.z;
    end *= box.extent[2];
  }
  for (int i = static_cast<int>(threadIdx.x); i < end; i += kThreads) {
    const int zy = by_line.quotient(i), z = L::rank == 3 ? by_plane.quotient(zy) : 0;
    const int x = i - zy * of_line, y = zy - z * box.extent[1];
    Vector* const words = kept + (z * plane + y * line + x);
    bool is_in = true;
    if constexpr (L::masks) {
      is_in = static_cast<unsigned>(box.first[0] + x * width) <= static_cast<unsigned>(p.last[0]) &&
              static_cast<unsigned>(box.first[1] + y) <= static_cast<unsigned>(p.last[1]);
      if constexpr (L::rank == 3) {
        is_in &= static_cast<unsigned>(box.first[2] + z) <= static_cast<unsigned>(p.last[2]);
      }
    }
    if (is_in) add_words(first + (z * s.z + y * y_stride + x * width), *words, inverse);
    if constexpr (clears) clear(words);
  }
}

// Returns whether four voxels from a multiple of 4 on lie in the image and take whole vectors.
__device__ __forceinline__ bool takes_vectors(const FastPass& p, const float* sums) {
  const FastStrides& s = p.sums_strides;
  return (p.last[0] + 1) % 4 == 0 && s.y % 4 == 0 && s.z % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(sums) % sizeof(float4) == 0;
}

template <class L, bool clears = false>
__device__ __forceinline__ void flush(
    const FastPass& p, const Box<L>& box, int4* kept, float inverse, float* sums) {
  if (takes_vectors(p, sums)) {
    flush_vectors<L, clears>(p, box, kept, inverse, sums);
  } else {
    flush_vectors<L, clears>(p, box, reinterpret_cast<int*>(kept), inverse, sums);
  }
}

}  // namespace similis::warp_internal
