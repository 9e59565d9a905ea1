// SPDX-License-Identifier: Apache-2.0
// A slab of the gradient to an image, and how linear and cubic weights and the nearest voxels are
// added to it.
// Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_SLAB_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_SLAB_INL_H
#undef SIMILIS_WARP_CPU_SLAB_INL_H
#else
#define SIMILIS_WARP_CPU_SLAB_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/warp/cpu/cubic-inl.h"
#include "src/warp/cpu/nearest-inl.h"
#include "src/warp/cpu/ready_cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct SlabOfImage {
  using V = hn::Vec<hn::ScalableTag<T>>;
  using D32 = hn::Rebind<std::int32_t, hn::ScalableTag<T>>;
  using V32 = hn::Vec<D32>;
  static constexpr hn::ScalableTag<T> d{};
  static constexpr hn::RebindToSigned<hn::ScalableTag<T>> di{};
  static constexpr D32 d32{};
  static HWY_INLINE V32 set(std::int64_t value) {
    return hn::Set(d32, static_cast<std::int32_t>(value));
  }
  std::int64_t along_slab() const { return sums.strides[4 - plan.slab_axis]; }

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
          if (s[4] == 1) {
            std::fill_n(row, extents[0], T{0});
          } else {
            for (std::int64_t x = 0; x < extents[0]; ++x) row[x * s[4]] = 0;
          }
        }
      }
    }
  }

  // The axes in the order of a corner's bits: x, the other one, that of slabs.
  int axis_of_bit(int bit) const {
    return bit == 0 ? 0 : bit == plan.pass.rank - 1 ? plan.slab_axis : 3 - plan.slab_axis;
  }

  // True if the nearest voxels are found by cells in f32.
  bool rounds_cells() const {
    const Pass& pass = plan.pass;
    return sizeof(T) == 4 && pass.mode == Interpolation::nearest && !plan.columns.empty() &&
           !pass.axes[pass.rank - 1].is_part() && has_short_offsets(sums);
  }
  bool takes_cubic_vectors() const {
    const Pass& pass = plan.pass;
    return kHasCubicVectors && sizeof(T) == 4 && pass.mode == Interpolation::cubic &&
           sums.strides[4] == 1 && has_short_offsets(sums) && !pass.axes[pass.rank - 1].is_part();
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

  // A channel's upstream gradient: whole vectors are read where they are, others from `copied`.
  const T* upstream_of(const Chunk& chunk, std::int64_t channel, T* copied) const {
    const TensorView& upstream = plan.pass.upstream;
    if (upstream.dtype == sums.dtype && upstream.strides[4] == 1 &&
        chunk.count % static_cast<std::int64_t>(hn::Lanes(d)) == 0) {
      return static_cast<const T*>(upstream.data()) + start_of_upstream(chunk, channel);
    }
    load_upstream(chunk, channel, copied);
    return copied;
  }

  // The places of the four weights of voxel i. In long vectors they stay in the 128 bits that they
  // are made in: half of the shuffles.
  static constexpr bool kHasBlocks = sizeof(T) == 4 && HWY_TARGET <= HWY_AVX2;
  static constexpr auto kFours = [] {
    constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(T);
    std::array<std::uint16_t, kChunk> result{};
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::size_t lane = i % kLanes;
      const std::size_t of_block = kHasBlocks ? lane % 4 * kLanes + lane / 4 * 4 : 4 * lane;
      result[i] = static_cast<std::uint16_t>(4 * (i - lane) + of_block);
    }
    return result;
  }();
  static HWY_INLINE std::int64_t fours_of(std::int64_t i) {
    return kHasBlocks ? kFours[static_cast<std::size_t>(i)] : 4 * i;
  }

  // Calls add(i, fours_of(i)) as in_chains() does, in steps that the compiler knows.
  template <std::int64_t chains, std::int64_t count, class Add>
  static HWY_INLINE void in_known_chains(const Add& add) {
    constexpr std::int64_t kStep = count / chains;
    for (std::int64_t i = 0; i < kStep; ++i) {
      const std::int64_t fours = fours_of(i);
      for (std::int64_t k = 0; k < chains; ++k) add(i + k * kStep, fours + fours_of(k * kStep));
    }
  }

  // Calls add(i, fours_of(i)) for i in [begin, end), from 8 or 16 places in turn: neighbours add to
  // the same voxels, and each would wait for the numbers that the one before it stores. Those of 16
  // places are too near to each other in short rows.
  template <std::int64_t chains, class Add>
  static HWY_INLINE void in_chains(std::int64_t begin, std::int64_t end, const Add& add) {
    if (begin == 0 && end == kChunk) return in_known_chains<chains, kChunk>(add);
    if constexpr (chains == 16) {
      if (begin == 0 && end == kChunk / 2) return in_known_chains<chains, kChunk / 2>(add);
    }
    in_chains_of_any_length(begin, end, end - begin < 64 ? 8 : chains, add);
  }
  // The same with one call, which the compiler inlines however long add() is.
  template <class Add>
  static HWY_INLINE void in_chains_of_any_length(
      std::int64_t begin, std::int64_t end, std::int64_t chains, const Add& add) {
    const std::int64_t length = (end - begin + chains - 1) / chains;
    for (std::int64_t i = begin; i < begin + length; ++i) {
      for (std::int64_t at = i; at < end; at += length) add(at, fours_of(at));
    }
  }

  // The cells of a chunk as they add to the slab: two of its voxels along each axis.
  struct Corners {
    // [3D: bit of the slab's axis]: of voxel i what is added to a four of voxels, at fours_of(i):
    // two along x, and the two behind them along the axis of bit 1.
    alignas(64) T weight[2][4 * kChunk];
    alignas(64) std::int32_t offset[kChunk];  // of the first voxel
    bool are_whole[kChunk];  // at a vector's first element: all corners are the slab's
    // [bit][which], of vectors that are not whole: the weights of the two voxels along an axis, and
    // all bits of T, or none, if they are corners of the cell.
    alignas(64) T along[3][2][kChunk];
    alignas(64) T is_corner[3][2][kChunk];
  };

  // The slab's voxels along an axis.
  std::int64_t low(int axis) const { return axis == plan.slab_axis ? first : 0; }
  std::int64_t high(int axis) const {
    return axis == plan.slab_axis ? end : plan.pass.axes[axis].extent;
  }

  // True if the slab has two voxels along each axis, for each cell.
  bool has_pairs() const {
    bool result = has_short_offsets(sums);
    for (int a = 0; a < plan.pass.rank; ++a) result = result && high(a) - low(a) > 1;
    return result;
  }

  // Finds where cells add to the slab. A cell with corners outside of it is moved inside, and its
  // weights with its corners, so that nothing is tested where they are added. `ready`, if given,
  // has the offsets of cells that are inside. Reads and writes whole vectors, as weigh() does, and
  // inlined as it is: what is added cannot alias the corners then, a fifth of the instructions of
  // a gradient to both.
  template <int rank>
  HWY_INLINE void place_corners(
      const Cells<T>& cells, const ReadyCells* ready, std::int64_t count, Corners* corners) const {
    V32 least[3], most[3], stride[3];  // of first voxels
    for (int bit = 0; bit < rank; ++bit) {
      const int a = axis_of_bit(bit);
      least[bit] = set(low(a));
      most[bit] = set(high(a) - 2);
      stride[bit] = set(sums.strides[4 - a]);
    }
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      if (ready != nullptr && ready->is_inside[i]) {
        corners->are_whole[i] = true;
        hn::Store(hn::Load(d32, ready->offset + i), d32, corners->offset + i);
        continue;
      }
      V32 at[3], offset = set(0), outside = set(0);  // below 0 where a corner is not the slab's
      for (int bit = 0; bit < rank; ++bit) {
        at[bit] = hn::Load(d32, cells.voxel[axis_of_bit(bit)] + i);
        outside =
            hn::Or(outside, hn::Or(hn::Sub(at[bit], least[bit]), hn::Sub(most[bit], at[bit])));
        offset = hn::Add(offset, hn::Mul(at[bit], stride[bit]));
      }
      const bool are_whole = hn::AllFalse(d32, hn::Lt(outside, set(0)));
      corners->are_whole[i] = are_whole;
      if (HWY_UNLIKELY(!are_whole)) {
        offset = set(0);
        for (int bit = 0; bit < rank; ++bit) {
          const V32 moved = hn::Min(hn::Max(at[bit], least[bit]), most[bit]);
          const V fraction = hn::Load(d, cells.fraction[axis_of_bit(bit)] + i);
          move_weights(hn::Sub(at[bit], moved), fraction, bit, i, corners);
          offset = hn::Add(offset, hn::Mul(moved, stride[bit]));
        }
      }
      hn::Store(offset, d32, corners->offset + i);
    }
  }

  // The weights along an axis of cells that begin `steps` voxels after the first one that they are
  // added to.
  static HWY_INLINE void move_weights(
      V32 steps, V fraction, int bit, std::int64_t i, Corners* corners) {
    const auto bits_of = [&](auto mask) HWY_ATTR {
      return hn::BitCast(d, as_offsets(di, hn::VecFromMask(d32, mask)));
    };
    const V is_same = bits_of(hn::Eq(steps, set(0)));
    const V is_before = bits_of(hn::Eq(steps, set(-1))), is_behind = bits_of(hn::Eq(steps, set(1)));
    const V of_first = hn::Sub(hn::Set(d, T{1}), fraction);
    const auto store = [&](int which, V is_own, V is_other, V own, V other) HWY_ATTR {
      const V weight = hn::Or(hn::And(is_own, own), hn::And(is_other, other));
      hn::Store(weight, d, corners->along[bit][which] + i);
      hn::Store(hn::Or(is_own, is_other), d, corners->is_corner[bit][which] + i);
    };
    store(0, is_same, is_before, of_first, fraction);
    store(1, is_same, is_behind, fraction, of_first);
  }

  // Voxels, and in 2D rows, by which what is added to is fetched ahead.
  static constexpr std::int64_t kAhead = 48, kRowsAhead = 7;

  // Finds the addends of the cells from an upstream gradient. Fetches voxels of the plane that the
  // next rows add to.
  template <int rank>
  HWY_INLINE void weigh(const Cells<T>& cells, const T* upstream, std::int64_t count,
      const T* plane, Corners* corners) const {
    const T* const ahead = plane + kAhead + (rank == 2 ? kRowsAhead : 1) * along_slab();
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const bool are_whole = corners->are_whole[i];
      for (std::size_t k = 0; k < hn::Lanes(d); k += 8) {  // as Sampler fetches voxels
        hwy::Prefetch(ahead + corners->offset[static_cast<std::size_t>(i) + k]);
      }
      V along[3][2];  // [bit of a corner]
      for (int bit = 0; bit < rank; ++bit) {
        along[bit][1] = hn::Load(d, cells.fraction[axis_of_bit(bit)] + i);
        along[bit][0] = hn::Sub(hn::Set(d, T{1}), along[bit][1]);
        for (int k = 0; k < 2 && HWY_UNLIKELY(!are_whole); ++k) {
          along[bit][k] = hn::Load(d, corners->along[bit][k] + i);
        }
      }
      const V given = hn::LoadU(d, upstream + i);
      V four[4] = {given, given, given, given};
      for (int row = 0; row < 1 << (rank - 1); ++row) {
        const int of_slab = row >> (rank - 2), of_other = row & 1;
        V of_row = hn::Mul(given, along[rank - 1][of_slab]);
        if constexpr (rank == 3) of_row = hn::Mul(of_row, along[1][of_other]);
        V first_of_pair = hn::Mul(of_row, along[0][0]), second = hn::Mul(of_row, along[0][1]);
        if (HWY_UNLIKELY(!are_whole)) {  // 0 even where the upstream gradient is not finite
          V is_corner = hn::Load(d, corners->is_corner[rank - 1][of_slab] + i);
          if constexpr (rank == 3) {
            is_corner = hn::And(is_corner, hn::Load(d, corners->is_corner[1][of_other] + i));
          }
          const auto keep = [&](int k, V weight) HWY_ATTR {
            return hn::And(weight, hn::And(is_corner, hn::Load(d, corners->is_corner[0][k] + i)));
          };
          first_of_pair = keep(0, first_of_pair);
          second = keep(1, second);
        }
        four[2 * (row & 1)] = first_of_pair;
        four[2 * (row & 1) + 1] = second;
        if (row % 2 == 1) store_fours(four, corners->weight[row / 2] + 4 * i);
      }
    }
  }

  static HWY_INLINE void store_fours(const V (&v)[4], T* to) {
#if HWY_TARGET <= HWY_AVX2
    if constexpr (kHasBlocks) {
      const hn::Repartition<double, hn::ScalableTag<T>> pairs;
      const auto store = [&](auto low, auto high) HWY_ATTR {
        const auto a = hn::BitCast(pairs, low), b = hn::BitCast(pairs, high);
        hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), d, to);
        hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)), d, to + hn::Lanes(d));
        to += 2 * hn::Lanes(d);
      };
      store(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveLower(d, v[2], v[3]));
      store(hn::InterleaveUpper(d, v[0], v[1]), hn::InterleaveUpper(d, v[2], v[3]));
      return;
    }
#endif
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, to);
  }

  // Adds four weights to two neighbours along x, and to the two that lie `next` behind them.
  template <bool is_dense>
  static HWY_INLINE void add_four(T* to, std::int64_t next, const T* weight, std::int64_t along_x) {
#if HWY_TARGET <= HWY_SSE4
    if constexpr (is_dense && sizeof(T) == 4) {  // Highway has no such loads and stores
      auto* const second = reinterpret_cast<__m64*>(to + next);
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(to));
      const __m128 given = _mm_loadh_pi(_mm_castsi128_ps(low), second);
      const __m128 sum = _mm_add_ps(given, _mm_load_ps(weight));
      _mm_storel_pi(reinterpret_cast<__m64*>(to), sum);
      _mm_storeh_pi(second, sum);
      return;
    }
#endif
    const hn::CappedTag<T, 2> d2;
    for (int row = 0; row < 2; ++row, to += next, weight += 2) {
      if constexpr (is_dense && hn::MaxLanes(d2) == 2) {
        hn::StoreU(hn::Add(hn::LoadU(d2, to), hn::LoadU(d2, weight)), d2, to);
      } else {
        to[0] += weight[0];
        to[is_dense ? 1 : along_x] += weight[1];
      }
    }
  }

  // Adds linear weights of a chunk's voxels from `begin` on in all channels. ready: see
  // place_corners().
  template <int rank, bool is_dense>
  void add_cells(const Chunk& chunk, const Cells<T>& cells, const ReadyCells* ready,
      std::int64_t begin) const {
    Corners corners;
    alignas(64) T copied[kChunk];
    const bool is_moved_inside = has_pairs();
    if (is_moved_inside) {
      place_corners<rank>(cells, ready, chunk.count, &corners);
    } else {
      std::fill_n(corners.are_whole, kChunk, true);
      std::fill_n(corners.offset, kChunk, 0);
    }
    const std::int64_t along_x = sums.strides[4], next_of_slab = along_slab();
    const std::int64_t next = sums.strides[4 - axis_of_bit(1)];
    for (std::int64_t c = 0; c < plan.pass.channels; ++c) {
      T* const plane = this->plane(c);
      weigh<rank>(cells, upstream_of(chunk, c, copied), chunk.count, plane, &corners);
      if (HWY_UNLIKELY(!is_moved_inside)) {
        in_chains<16>(begin, chunk.count, [&](std::int64_t i, std::int64_t) HWY_ATTR {
          add_corners<rank>(cells, corners, i, plane);
        });
        continue;
      }
      in_chains<16>(begin, chunk.count, [=, &corners](std::int64_t i, std::int64_t at) HWY_ATTR {
        T* const row = plane + corners.offset[i];
        add_four<is_dense>(row, next, corners.weight[0] + at, along_x);
        if constexpr (rank == 3) {
          add_four<is_dense>(row + next_of_slab, next, corners.weight[1] + at, along_x);
        }
      });
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
      if (is_there) plane[offset] += corners.weight[corner >> 2][fours_of(i) + (corner & 3)];
    }
  }

  // Adds all channels of linear cells.
  void add_channels(const Chunk& chunk, const Cells<T>& cells, const ReadyCells* ready,
      std::int64_t begin) const {
    const bool is_dense = sums.strides[4] == 1;
    if (plan.pass.rank == 3) {
      is_dense ? add_cells<3, true>(chunk, cells, ready, begin)
               : add_cells<3, false>(chunk, cells, ready, begin);
    } else {
      is_dense ? add_cells<2, true>(chunk, cells, ready, begin)
               : add_cells<2, false>(chunk, cells, ready, begin);
    }
  }

  bool owns(std::int64_t along_slabs) const { return along_slabs >= first && along_slabs < end; }

  // Adds the nearest voxels of cells in f32, all of which it must be certain of: if not, it adds
  // none and returns false.
  bool add_nearest(
      const Cells<float>& cells, const T* upstream, std::int64_t count, T* plane) const {
    alignas(64) std::int32_t offset[kChunk], along_slabs[kChunk];
    Extents steps{0, 0, 0, 0, 0};
    steps[4 - plan.slab_axis] = 1;
    if (!round_cells(plan.pass, sums.strides, cells, count, offset, nullptr) ||
        !round_cells(plan.pass, steps, cells, count, along_slabs, nullptr)) {
      return false;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (owns(along_slabs[i])) plane[offset[i]] += upstream[i];
    }
    return true;
  }

#if HWY_TARGET != HWY_SCALAR
  // A voxel some of whose cubic taps are mirrored.
  HWY_NOINLINE void add_rim(
      const Chunk& chunk, const CubicTaps& taps, std::int64_t i, T upstream, float* plane) const {
    const Pass& pass = plan.pass;
    if (CubicTaps::is_missing(pass, chunk, i)) return;
    const int rank = pass.rank, planes = rank == 2 ? 1 : 4;
    std::int32_t voxel[3][4];
    for (int a = 0; a < rank; ++a) {
      const auto last = static_cast<std::int32_t>(pass.axes[a].extent - 1);
      for (int k = 0; k < 4; ++k) voxel[a][k] = mirrored_tap(taps.first[a][i] + k, last);
    }
    const Extents& s = sums.strides;
    for (int kz = 0; kz < planes; ++kz) {
      if (plan.slab_axis == 2 && !owns(voxel[2][kz])) continue;
      const float of_plane = rank == 2 ? upstream : upstream * taps.weight[2][kz][i];
      float* const first_row = rank == 2 ? plane : plane + voxel[2][kz] * s[2];
      for (int ky = 0; ky < 4; ++ky) {
        if (plan.slab_axis == 1 && !owns(voxel[1][ky])) continue;
        const float of_row = of_plane * taps.weight[1][ky][i];
        float* const row = first_row + voxel[1][ky] * s[3];
        for (int kx = 0; kx < 4; ++kx) row[voxel[0][kx]] += of_row * taps.weight[0][kx][i];
      }
    }
  }

  // Adds cubic weights to dense rows of f32, four neighbours along x at once.
  void add_cubic(const Chunk& chunk, const CubicTaps& taps, const T* upstream, float* plane) const {
    const hn::FixedTag<float, 4> d4;
    const hn::CappedTag<float, 16> wide;
    const Extents& s = sums.strides;
    const int rank = plan.pass.rank, planes = rank == 2 ? 1 : 4;
    alignas(64) float along_x[4 * kChunk];
    for (std::int64_t i = 0; i < chunk.count; i += static_cast<std::int64_t>(hn::Lanes(wide))) {
      const auto weight = [&](int k) HWY_ATTR { return hn::Load(wide, taps.weight[0][k] + i); };
      hn::StoreInterleaved4(weight(0), weight(1), weight(2), weight(3), wide, along_x + 4 * i);
    }
    in_chains<8>(0, chunk.count, [&](std::int64_t i, std::int64_t) HWY_ATTR {
      if (HWY_UNLIKELY(taps.outside[i] < 0)) return add_rim(chunk, taps, i, upstream[i], plane);
      const auto weights = hn::Load(d4, along_x + 4 * i);
      float* const corner = plane + taps.offset(s, rank, i);
      const std::int32_t at = taps.first[plan.slab_axis][i];
      for (int kz = 0; kz < planes; ++kz) {
        if (plan.slab_axis == 2 && !owns(at + kz)) continue;
        const float of_plane = rank == 2 ? upstream[i] : upstream[i] * taps.weight[2][kz][i];
        for (int ky = 0; ky < 4; ++ky) {
          if (plan.slab_axis == 1 && !owns(at + ky)) continue;
          const auto of_row = hn::Set(d4, of_plane * taps.weight[1][ky][i]);
          float* const row = corner + kz * s[2] + ky * s[3];
          hn::StoreU(hn::Add(hn::LoadU(d4, row), hn::Mul(of_row, weights)), d4, row);
        }
      }
    });
  }
#endif
};

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
