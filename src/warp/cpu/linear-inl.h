// SPDX-License-Identifier: Apache-2.0
// Linear interpolation of a chunk in whole vectors, where the image is of the arithmetic's own
// type, or f16 or bf16: eight voxels a cell from one offset where all of a vector is inside, else
// eight that are masked. Both compute interpolate()'s operations in its order. Included once per
// SIMD target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_LINEAR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_LINEAR_INL_H
#undef SIMILIS_WARP_CPU_LINEAR_INL_H
#else
#define SIMILIS_WARP_CPU_LINEAR_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/warp/cpu/cells-inl.h"
#if HWY_ARCH_X86
#include <cpuid.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One vector of Samples.
template <class D> struct SampledBy { hn::Vec<D> value, slope[3]; };
template <class T> using SampledVector = SampledBy<hn::ScalableTag<T>>;

/// True if a view's offsets, in bytes too for halves, and those of cells beside it, fit 32 bits.
inline bool has_short_offsets(const TensorView& view) {
  std::int64_t reach = 0;
  for (int axis = 2; axis < 5; ++axis) {
    reach += (view.shape[axis] - 1) * std::abs(view.strides[axis]);
  }
  const bool is_half = view.dtype == DType::f16 || view.dtype == DType::bf16;
  return reach < std::numeric_limits<std::int32_t>::max() / (is_half ? 2 : 1);
}

// Interpolates one vector; load(kz, v) gives the voxels [ky][kx] on a face of its cells.
template <class D, int rank, bool with_slopes, class V, class Load>
HWY_INLINE SampledBy<D> mix_faces(const V (&fraction)[3], const Load& load) {
  const V one = hn::Set(D(), hn::TFromD<D>{1});
  const V fx = fraction[0], fy = fraction[1], gx = hn::Sub(one, fx), gy = hn::Sub(one, fy);
  const auto mix = [](V g, V first, V f, V second)
                       HWY_ATTR { return hn::MulAdd(f, second, hn::Mul(g, first)); };
  const auto face = [&](int kz) HWY_ATTR {
    V v[2][2] = {{one, one}, {one, one}};
    load(kz, v);
    const V low = mix(gx, v[0][0], fx, v[0][1]), high = mix(gx, v[1][0], fx, v[1][1]);
    SampledBy<D> of_face{mix(gy, low, fy, high), {one, one, one}};
    if (with_slopes) {
      of_face.slope[0] = mix(gy, hn::Sub(v[0][1], v[0][0]), fy, hn::Sub(v[1][1], v[1][0]));
      of_face.slope[1] = hn::Sub(high, low);
    }
    return of_face;
  };
  SampledBy<D> result = face(0);
  if constexpr (rank == 3) {
    const V fz = fraction[2], gz = hn::Sub(one, fz);
    const SampledBy<D> second = face(1);
    if (with_slopes) {
      result.slope[2] = hn::Sub(second.value, result.value);
      for (int a = 0; a < 2; ++a) {
        result.slope[a] = mix(gz, result.slope[a], fz, second.slope[a]);
      }
    }
    result.value = mix(gz, result.value, fz, second.value);
  }
  return result;
}

// The same; load(ky, kz, first, second) gives the voxels on an edge.
template <class D, int rank, bool with_slopes, class V, class Load>
HWY_INLINE SampledBy<D> mix_corners(const V (&fraction)[3], const Load& load) {
  return mix_faces<D, rank, with_slopes>(fraction, [&](int kz, V(&v)[2][2]) HWY_ATTR {
    for (int ky = 0; ky < 2; ++ky) load(ky, kz, &v[ky][0], &v[ky][1]);
  });
}

// 32-bit integers as the offsets of a vector of T.
template <class D, class V32> HWY_INLINE auto as_offsets(D di, V32 v) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return v;
  } else {
    return hn::PromoteTo(di, v);
  }
}

// True if gathers take longer than the loads that they stand for: on AMD's processors, and on
// Intel's before Sapphire Rapids, which brought arithmetic in f16. See docs/notes.
inline bool has_slow_gathers() {
#if HWY_TARGET < HWY_AVX2
  static const bool is_slow = [] {
    constexpr unsigned kHasF16 = 1u << 23;  // of edx, leaf 7
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
    return __builtin_cpu_is("amd") != 0 || (edx & kHasF16) == 0;
  }();
  return is_slow;
#else
  return false;  // AVX2 has none here, and SSE4 has no pairs
#endif
}

// f16 or bf16, as the pass says at run time: the general path has one code for both.
struct Half {
  std::uint16_t bits;
};

// Voxels of halves one by one. Not inlined: they are converted in many instructions here.
HWY_NOINLINE inline void load_halves(
    const void* at, bool is_bf16, const std::int32_t* offsets, float* voxels) {
  const auto* f16 = static_cast<const F16*>(at);
  const auto* bf16 = static_cast<const BF16*>(at);
  for (std::size_t i = 0; i < hn::Lanes(hn::ScalableTag<float>()); ++i) {
    voxels[i] = is_bf16 ? load(bf16[offsets[i]]) : load(f16[offsets[i]]);
  }
}

// One vector of cells in one channel of an image whose elements are E. is_dense: rows of two voxels
// at least lie side by side. loads_pairs: voxels of f32 are loaded where AVX-512 would gather them;
// asked within the loop, gathers take a twentieth longer.
template <class T, int rank, bool with_slopes, class E = T, bool is_dense = false,
    bool loads_pairs = false>
class Sampler {
 public:
  Sampler(const Pass& pass, const E* plane)
      : axes_(pass.axes), plane_(plane), is_bf16_(pass.image.dtype == DType::bf16) {
    for (int a = 0; a < rank; ++a) step_[a] = pass.image.strides[4 - a];
    constexpr std::int64_t kAhead = 3 * HWY_MAX_BYTES / sizeof(T), kRowsAhead = 6;
    ahead_ = edge(1, 1) + kAhead * step_[0] + kRowsAhead * step_[1];
  }

  using V = hn::Vec<hn::ScalableTag<T>>;
  using D32 = hn::Rebind<std::int32_t, hn::ScalableTag<T>>;
  using V32 = hn::Vec<D32>;

  // The last voxels along each axis: cells that begin before them have all their corners.
  struct LastVoxels {
    V32 of[rank];
  };
  HWY_INLINE LastVoxels last_voxels() const {
    LastVoxels last;
    for (int a = 0; a < rank; ++a) last.of[a] = set(axes_[a].extent - 1);
    return last;
  }
  HWY_INLINE bool has_all_corners(const V32 (&voxel)[3], const LastVoxels& last) const {
    const D32 d32;
#if HWY_TARGET < HWY_AVX2  // compares integers without a sign in one instruction
    const hn::RebindToUnsigned<D32> unsigned32;
    const auto is_inside = [&](int a) HWY_ATTR {
      return hn::Lt(hn::BitCast(unsigned32, voxel[a]), hn::BitCast(unsigned32, last.of[a]));
    };
    auto are_inside = hn::And(is_inside(0), is_inside(1));
    if constexpr (rank == 3) are_inside = hn::And(are_inside, is_inside(2));
    return hn::AllTrue(unsigned32, are_inside);
#else
    // Below 0 where all corners are there.
    V32 inside = hn::AndNot(voxel[0], hn::Sub(voxel[0], last.of[0]));
    for (int a = 1; a < rank; ++a) {
      inside = hn::And(inside, hn::AndNot(voxel[a], hn::Sub(voxel[a], last.of[a])));
    }
    return hn::AllTrue(d32, hn::Lt(inside, hn::Zero(d32)));
#endif
  }

  // The offsets of cells' first voxels; is_step_one: along x.
  HWY_INLINE V32 offsets_of(const V32 (&voxel)[3], bool is_step_one = false) const {
    V32 offset = is_step_one ? voxel[0] : hn::Mul(voxel[0], set(step_[0]));
    for (int a = 1; a < rank; ++a) offset = hn::Add(offset, hn::Mul(voxel[a], set(step_[a])));
    return offset;
  }

  // Samples cells that have all their corners, by their offsets.
  HWY_INLINE SampledVector<T> sample_inside(
      const V (&fraction)[3], const std::int32_t* offsets) const {
    // Voxels that no row before has touched, and that the next rows lie in. Two cells of 16 choose
    // the lines, as one leaves too many out where the field is rough: 12 MB take a third more time.
    // Four gain a tenth there, and lose a fortieth where the image fits the second-level cache.
    constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(T);
    for (std::size_t k = 0; k < kLanes; k += 8) hwy::Prefetch(ahead_ + offsets[k]);
#if HWY_TARGET <= HWY_AVX2  // two neighbours in one: a fifth of the time, where gathers are native
    if constexpr (sizeof(T) == 4) {
      if (is_dense || step_[0] == 1) {
        if constexpr (sizeof(E) == 4 && (loads_pairs || HWY_TARGET == HWY_AVX2)) {
          return mix_faces<hn::ScalableTag<T>, rank, with_slopes>(
              fraction, [&](int kz, V(&v)[2][2]) HWY_ATTR {
                load_pairs<2>({edge(0, kz), edge(1, kz)}, offsets, v);
              });
        }
        const auto load = [&](int ky, int kz, V* v0, V* v1)
                              HWY_ATTR { load_neighbours(edge(ky, kz), offsets, v0, v1); };
        return mix_corners<hn::ScalableTag<T>, rank, with_slopes>(fraction, load);
      }
    }
#endif
    const V32 offset = hn::Load(D32(), offsets);
    const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      *v0 = load_voxels(edge(ky, kz), offset);
      *v1 = load_voxels(edge(ky, kz) + step_[0], offset);
    };
    return mix_corners<hn::ScalableTag<T>, rank, with_slopes>(fraction, load);
  }

  // Corners that are not there take the nearest voxel's place and become 0.
  HWY_INLINE SampledVector<T> sample_border(const V (&fraction)[3], const V32 (&voxel)[3]) const {
    SampledVector<T> result = sample_corners(fraction, voxel);
    if constexpr (with_slopes) {  // the slope along an axis does not see its own fraction
      V nothing = hn::Zero(d);    // or NaN
      for (int a = 0; a < rank; ++a) nothing = hn::MulAdd(hn::Zero(d), fraction[a], nothing);
      for (int a = 0; a < rank; ++a) result.slope[a] = hn::Add(result.slope[a], nothing);
    }
    return result;
  }

 private:
  HWY_INLINE SampledVector<T> sample_corners(const V (&fraction)[3], const V32 (&voxel)[3]) const {
    V32 offsets[3][2], exists[3][2];  // for the two voxels along each axis; all bits set, or none
    for (int a = 0; a < rank; ++a) {
      const V32 last = set(axes_[a].extent - 1);
      for (int k = 0; k < 2; ++k) {
        const V32 corner = hn::Add(voxel[a], set(k));
        const V32 outside = hn::BroadcastSignBit(hn::Or(corner, hn::Sub(last, corner)));
        exists[a][k] = hn::AndNot(outside, set(-1));
        offsets[a][k] = hn::Mul(hn::Min(hn::Max(corner, set(0)), last), set(step_[a]));
      }
    }
    const auto row = [&](const V32(&of)[3][2], int ky, int kz, auto join)
                         HWY_ATTR { return rank == 3 ? join(of[1][ky], of[2][kz]) : of[1][ky]; };
    const auto add = [](V32 a, V32 b) HWY_ATTR { return hn::Add(a, b); };
    const auto both = [](V32 a, V32 b) HWY_ATTR { return hn::And(a, b); };
#if HWY_TARGET <= HWY_AVX2
    if constexpr (sizeof(T) == 4) {
      if (is_dense || (step_[0] == 1 && axes_[0].extent > 1)) {
        // The nearest pair, whose one voxel changes places where the other is not there.
        const V32 last = set(axes_[0].extent - 2), x = hn::Min(hn::Max(voxel[0], set(0)), last);
        const auto has_first = hn::MaskFromVec(hn::BitCast(d, exists[0][0]));
        const auto has_second = hn::MaskFromVec(hn::BitCast(d, exists[0][1]));
        const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
          alignas(64) std::int32_t offset[HWY_MAX_BYTES / sizeof(T)];
          hn::Store(hn::Add(x, row(offsets, ky, kz, add)), D32(), offset);
          V first = hn::Zero(d), second = first;
          load_neighbours(plane_, offset, &first, &second);
          const V32 exists_row = row(exists, ky, kz, both);
          const auto keep = [&](V value, V32 of_corner) HWY_ATTR {
            return hn::And(value, hn::BitCast(d, hn::And(exists_row, of_corner)));
          };
          *v0 = keep(hn::IfThenElse(has_second, first, second), exists[0][0]);
          *v1 = keep(hn::IfThenElse(has_first, second, first), exists[0][1]);
        };
        return mix_corners<hn::ScalableTag<T>, rank, with_slopes>(fraction, load);
      }
    }
#endif
    const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const V32 of_row = row(offsets, ky, kz, add), exists_row = row(exists, ky, kz, both);
      const auto corner = [&](int kx) HWY_ATTR {
        const V value = load_voxels(plane_, hn::Add(of_row, offsets[0][kx]));
        const auto mask = as_offsets(di, hn::And(exists_row, exists[0][kx]));
        return hn::BitCast(d, hn::And(hn::BitCast(di, value), mask));
      };
      *v0 = corner(0);
      *v1 = corner(1);
    };
    return mix_corners<hn::ScalableTag<T>, rank, with_slopes>(fraction, load);
  }

  static constexpr hn::ScalableTag<T> d{};
  static constexpr hn::RebindToSigned<hn::ScalableTag<T>> di{};
  static HWY_INLINE V32 set(std::int64_t value) {
    return hn::Set(D32(), static_cast<std::int32_t>(value));
  }
  HWY_INLINE const E* edge(int ky, int kz) const {
    return plane_ + ky * step_[1] + (rank == 3 ? kz * step_[2] : 0);
  }
  HWY_INLINE V load_voxels(const E* at, V32 offset) const {
    if constexpr (std::is_same_v<E, T>) {
      return hn::GatherIndex(d, at, as_offsets(di, offset));
    } else {
      alignas(64) std::int32_t of[HWY_MAX_BYTES / sizeof(T)];
      alignas(64) T voxels[HWY_MAX_BYTES / sizeof(T)];
      hn::Store(offset, D32(), of);
      load_halves(at, is_bf16_, of, voxels);
      return hn::Load(d, voxels);
    }
  }

#if HWY_TARGET <= HWY_AVX2
  // Pairs of neighbours in f32 are 64 bits, in two vectors; those in f16 and bf16 are the halves of
  // 32-bit integers, in one. If gathers are slow, pairs are loaded one by one.
  static constexpr hn::Repartition<std::int64_t, hn::ScalableTag<T>> d64{};

  // Four pairs of f32 in two vectors of 128 bits become four first voxels and four second ones, in
  // order, by one instruction each, in every 128 bits of longer vectors: Highway has no such
  // shuffle, and what it has takes twice as many. A second pair is loaded by the instruction that
  // joins it to the first.
  static HWY_INLINE __m128 two_pairs(const float* at, const std::int32_t* offsets) {
    const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + offsets[0]));
    return _mm_loadh_pi(_mm_castsi128_ps(first), reinterpret_cast<const __m64*>(at + offsets[1]));
  }
#if HWY_TARGET == HWY_AVX2
  static HWY_INLINE __m256 join(__m128 low, __m128 high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
  }
#else
  static HWY_INLINE __m512 join(__m256 low, __m256 high) {
    return _mm512_castpd_ps(_mm512_insertf64x4(
        _mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high), 1));
  }
  // Pairs of two rows of offsets. On Intel one unit makes all shuffles of a vector, vmovhps among
  // them, so that half of the pairs are blended.
  static HWY_INLINE __m256 four_pairs(
      const float* at, const std::int64_t (&low)[2], const std::int64_t (&high)[2]) {
    const auto pair = [&](std::int64_t offset) HWY_ATTR {
      double bits;
      std::memcpy(&bits, at + offset, sizeof(bits));
      return _mm256_set1_pd(bits);
    };
    const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + low[0]));
    const __m128 both =
        _mm_loadh_pi(_mm_castsi128_ps(first), reinterpret_cast<const __m64*>(at + low[1]));
    const __m256d upper = _mm256_blend_pd(pair(high[0]), pair(high[1]), 8);
    return _mm256_castpd_ps(
        _mm256_blend_pd(_mm256_castps_pd(_mm256_castps128_ps256(both)), upper, 12));
  }
#endif
  // v[row] = the first and the second voxels of the pairs of rows at these offsets. An offset loads
  // pairs of all rows at once, so that it need not be kept.
  template <int rows>
  static HWY_INLINE void load_pairs(
      const float* const (&at)[rows], const std::int32_t* offsets, V (&v)[rows][2]) {
#if HWY_TARGET == HWY_AVX2
    __m128 p[rows][4];
    for (int k = 0; k < 4; ++k) {
      for (int row = 0; row < rows; ++row) p[row][k] = two_pairs(at[row], offsets + 2 * k);
    }
    for (int row = 0; row < rows; ++row) {
      const __m256 first = join(p[row][0], p[row][2]), second = join(p[row][1], p[row][3]);
      v[row][0] = V{_mm256_shuffle_ps(first, second, 0x88)};
      v[row][1] = V{_mm256_shuffle_ps(first, second, 0xdd)};
    }
#else
    __m256 fours[rows][4];  // first and second ones of the lower half, then of the upper one
    for (int k = 0; k < 4; ++k) {
      std::int64_t two[4], of_pair[4][2];  // offsets, loaded two at once: loads bind, too
      std::memcpy(two, offsets + 8 * (k / 2), sizeof(two));
      for (int i = 0; i < 4; ++i) {
        of_pair[i][0] = static_cast<std::int32_t>(two[i]);
        of_pair[i][1] = two[i] >> 32;
      }
      for (int row = 0; row < rows; ++row) {
        fours[row][k] = four_pairs(at[row], of_pair[k % 2], of_pair[k % 2 + 2]);
      }
    }
    for (int row = 0; row < rows; ++row) {
      const __m512 first = join(fours[row][0], fours[row][2]);
      const __m512 second = join(fours[row][1], fours[row][3]);
      v[row][0] = V{_mm512_shuffle_ps(first, second, 0x88)};
      v[row][1] = V{_mm512_shuffle_ps(first, second, 0xdd)};
    }
#endif
  }
  static HWY_INLINE void load_pairs(const float* at, const std::int32_t* offsets, V* v0, V* v1) {
    V v[1][2];
    load_pairs<1>({at}, offsets, v);
    *v0 = v[0][0];
    *v1 = v[0][1];
  }
  // Loads 128 bits of pairs: those of voxels first, first + step, …
  template <int first, int step, class Int>
  static HWY_INLINE auto load_half(const E* at, const std::int32_t* offsets) {
    // Lanes inserted from memory take an instruction less than vectors that are combined.
    const auto pair = [&](int k) HWY_ATTR {
      Int bits;
      std::memcpy(&bits, at + offsets[first + k * step], sizeof(bits));
      return bits;
    };
    const hn::FixedTag<Int, 16 / sizeof(Int)> d128;
    auto half = hn::InsertLane(hn::Set(d128, pair(0)), 1, pair(1));
    if constexpr (sizeof(Int) == 4) {
      half = hn::InsertLane(hn::InsertLane(half, 2, pair(2)), 3, pair(3));
    }
    return half;
  }
#if HWY_TARGET == HWY_AVX2
  // *v0 = the voxels at these offsets, *v1 = the next ones. The pairs of even voxels are in one
  // vector and those of odd ones in the other: nothing crosses the halves of a vector then.
  HWY_INLINE void load_neighbours(const E* at, const std::int32_t* offsets, V* v0, V* v1) const {
    const auto merge = [&](V even, V odd) HWY_ATTR {
      *v0 = hn::OddEven(hn::DupEven(odd), even);
      *v1 = hn::OddEven(odd, hn::DupOdd(even));
    };
    if constexpr (sizeof(E) == 4) {
      load_pairs(at, offsets, v0, v1);
    } else {
      using I = std::int32_t;
      if constexpr (!std::is_same_v<E, F16>) {
        const V32 pairs =
            hn::Combine(D32(), load_half<4, 1, I>(at, offsets), load_half<0, 1, I>(at, offsets));
        split(pairs, v0, v1);
      } else {
        const hn::Rebind<hwy::float16_t, hn::ScalableTag<T>> d16;
        const auto promoted = [&](auto half)
                                  HWY_ATTR { return hn::PromoteTo(d, hn::BitCast(d16, half)); };
        merge(promoted(load_half<0, 2, I>(at, offsets)), promoted(load_half<1, 2, I>(at, offsets)));
      }
    }
  }
#else
  HWY_INLINE void load_neighbours(const E* at, const std::int32_t* offsets, V* v0, V* v1) const {
    const V32 offset = hn::Load(D32(), offsets);
    if constexpr (sizeof(E) == 2 && loads_pairs) {
      using I = std::int32_t;
      const hn::Half<D32> half;
      const auto low =
          hn::Combine(half, load_half<4, 1, I>(at, offsets), load_half<0, 1, I>(at, offsets));
      const auto high =
          hn::Combine(half, load_half<12, 1, I>(at, offsets), load_half<8, 1, I>(at, offsets));
      split(hn::Combine(D32(), high, low), v0, v1);
    } else if constexpr (sizeof(E) == 2) {
      const auto* pairs = reinterpret_cast<const std::int32_t*>(at);
      split(hn::GatherOffset(D32(), pairs, hn::ShiftLeft<1>(offset)), v0, v1);
    } else {
      if constexpr (loads_pairs) return load_pairs(at, offsets, v0, v1);
      const auto* pairs = reinterpret_cast<const std::int64_t*>(at);
      const hn::Half<D32> half;
      const auto gather = [&](auto of) HWY_ATTR {
        const auto bytes = hn::ShiftLeft<2>(hn::PromoteTo(d64, of));
        return hn::BitCast(d, hn::GatherOffset(d64, pairs, bytes));
      };
      const V low = gather(hn::LowerHalf(half, offset)), high = gather(hn::UpperHalf(half, offset));
      *v0 = hn::ConcatEven(d, high, low);
      *v1 = hn::ConcatOdd(d, high, low);
    }
  }
#endif

  HWY_INLINE void split(V32 pairs, V* v0, V* v1) const {
    if (std::is_same_v<E, BF16> || (std::is_same_v<E, Half> && is_bf16_)) {
      *v0 = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
      *v1 = hn::BitCast(d, hn::And(pairs, set(-65536)));
    } else {
      const hn::Repartition<hwy::float16_t, D32> d16;
      const hn::Half<decltype(d16)> half;
      const auto halves = hn::BitCast(d16, pairs);
      const V low = hn::PromoteTo(d, hn::LowerHalf(half, halves));
      const V high = hn::PromoteTo(d, hn::UpperHalf(half, halves));
      *v0 = hn::ConcatEven(d, high, low);
      *v1 = hn::ConcatOdd(d, high, low);
    }
  }
#endif

  const Axis (&axes_)[3];
  const E* const plane_;
  const E* ahead_;  // beyond the last voxel at times: nothing is read there
  const bool is_bf16_;
  std::int64_t step_[rank];
};

template <class T, int rank, bool with_slopes, class E, bool loads_pairs>
void sample_cells(
    const Pass& pass, const Cells<T>& cells, const E* plane, std::int64_t count, Samples<T>* out) {
  using S = Sampler<T, rank, with_slopes, E, false, loads_pairs>;
  const S sampler(pass, plane);
  const hn::ScalableTag<T> d;
  const typename S::D32 d32;
  const auto last = sampler.last_voxels();
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    typename S::V fraction[3];
    typename S::V32 voxel[3];
    for (int a = 0; a < rank; ++a) {
      fraction[a] = hn::Load(d, cells.fraction[a] + i);
      voxel[a] = hn::Load(d32, cells.voxel[a] + i);
    }
    alignas(64) std::int32_t offsets[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(sampler.offsets_of(voxel), d32, offsets);
    const SampledVector<T> sampled = sampler.has_all_corners(voxel, last)
                                         ? sampler.sample_inside(fraction, offsets)
                                         : sampler.sample_border(fraction, voxel);
    hn::Store(sampled.value, d, out->value + i);
    for (int a = 0; with_slopes && a < rank; ++a) hn::Store(sampled.slope[a], d, out->slope[a] + i);
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
