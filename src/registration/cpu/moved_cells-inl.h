// SPDX-License-Identifier: Apache-2.0
// The cells of the moving volume that the voxels of a row meet, and the values and slopes in them.
// Plain loops, included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_REGISTRATION_CPU_MOVED_CELLS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_REGISTRATION_CPU_MOVED_CELLS_INL_H
#undef SIMILIS_REGISTRATION_CPU_MOVED_CELLS_INL_H
#else
#define SIMILIS_REGISTRATION_CPU_MOVED_CELLS_INL_H
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "src/registration/cpu/fused.h"
#include "src/registration/levels.h"
#include "src/registration/passes.h"

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
constexpr std::int64_t kMovedAtOnce = 128;  // voxels whose cells lie on the stack

constexpr int kMomentSums = 6;
constexpr int kPartialLanes = 8;  // of sums, on every target

// The cells of some voxels of a row.
template <class T> struct MovedCells {
  alignas(64) T fraction[3][kMovedAtOnce];
  alignas(64) std::int32_t first[3][kMovedAtOnce];
  alignas(64) std::int32_t offset[kMovedAtOnce];
  alignas(64) std::int32_t is_whole[kMovedAtOnce];  // all corners exist
  alignas(64) T counts[kMovedAtOnce];               // 1 or 0
  alignas(64) T pairs[4][2 * kMovedAtOnce];         // neighbours along x at 4 places of y and z
  alignas(64) T value[kMovedAtOnce];
  alignas(64) T slope[3][kMovedAtOnce];
};

// u: null for 0.
template <class T>
HWY_INLINE void place_cells(const FusedVolumes<T>& v, const T* HWY_RESTRICT u, const T (&at)[3],
    std::int64_t count, MovedCells<T>& cells) {
  alignas(64) T place[3][kMovedAtOnce];
  for (int a = 0; a < 3; ++a) {
    const T b0 = v.by[a][0], b1 = v.by[a][1], b2 = v.by[a][2];
    const T start = v.start[a], x0 = at[0], y = at[1], z = at[2];
    T* HWY_RESTRICT out = place[a];
    if (u == nullptr) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T x = x0 + static_cast<T>(static_cast<std::int32_t>(i));
        out[i] = b0 * x + (b1 * y + (b2 * z + start));
      }
      continue;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const T x = x0 + static_cast<T>(static_cast<std::int32_t>(i));
      out[i] = b0 * (x + u[3 * i]) + (b1 * (y + u[3 * i + 1]) + (b2 * (z + u[3 * i + 2]) + start));
    }
  }
  const T last_x = static_cast<T>(v.moving_size[0] - 1),
          last_y = static_cast<T>(v.moving_size[1] - 1),
          last_z = static_cast<T>(v.moving_size[2] - 1);
  constexpr auto kBeyond = static_cast<T>(kSlack);
  for (std::int64_t i = 0; i < count; ++i) {
    const T x = place[0][i], y = place[1][i], z = place[2][i];
    const bool is_inside = (x >= -kBeyond) & (x <= last_x + kBeyond) & (y >= -kBeyond) &
                           (y <= last_y + kBeyond) & (z >= -kBeyond) & (z <= last_z + kBeyond);
    cells.counts[i] = is_inside ? T(1) : T(0);
  }
  for (int a = 0; a < 3; ++a) {
    for (std::int64_t i = 0; i < count; ++i) {
      // A place outside has corners that exist nowhere.
      const T own = cells.counts[i] != 0 ? place[a][i] : T(-2);
      const T whole = std::floor(own);
      cells.first[a][i] = static_cast<std::int32_t>(whole);
      cells.fraction[a][i] = own - whole;
    }
  }
  const auto by_y = static_cast<std::int32_t>(v.moving_size[0]),
             by_z = static_cast<std::int32_t>(v.moving_size[0] * v.moving_size[1]);
  const auto end_x = static_cast<std::int32_t>(v.moving_size[0] - 1),
             end_y = static_cast<std::int32_t>(v.moving_size[1] - 1),
             end_z = static_cast<std::int32_t>(v.moving_size[2] - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t x = cells.first[0][i], y = cells.first[1][i], z = cells.first[2][i];
    const bool is_whole = (x >= 0) & (x < end_x) & (y >= 0) & (y < end_y) & (z >= 0) & (z < end_z);
    cells.is_whole[i] = is_whole ? 1 : 0;
    cells.offset[i] = z * by_z + y * by_y + x;
  }
}

// Corners that do not exist are 0.
template <class T>
HWY_INLINE void load_border(
    const FusedVolumes<T>& v, const T* image, std::int64_t i, MovedCells<T>& cells) {
  for (int edge = 0; edge < 4; ++edge) {
    const std::int64_t y = cells.first[1][i] + (edge & 1), z = cells.first[2][i] + (edge >> 1);
    for (int k = 0; k < 2; ++k) {
      const std::int64_t x = cells.first[0][i] + k;
      const bool exists = x >= 0 && x < v.moving_size[0] && y >= 0 && y < v.moving_size[1] &&
                          z >= 0 && z < v.moving_size[2];
      cells.pairs[edge][2 * i + k] =
          exists ? image[(z * v.moving_size[1] + y) * v.moving_size[0] + x] : T(0);
    }
  }
}

template <class T>
HWY_INLINE void load_corners(
    const FusedVolumes<T>& v, const T* image, std::int64_t count, MovedCells<T>& cells) {
  const std::int64_t by_y = v.moving_size[0], by_z = by_y * v.moving_size[1];
  for (std::int64_t i = 0; i < count; ++i) {
    if (cells.is_whole[i] == 0) {
      load_border(v, image, i, cells);
      continue;
    }
    const T* const at = image + cells.offset[i];
    const T* const edges[4] = {at, at + by_y, at + by_z, at + by_z + by_y};
    for (int edge = 0; edge < 4; ++edge) {
      const T first = edges[edge][0], second = edges[edge][1];
      cells.pairs[edge][2 * i] = first;
      cells.pairs[edge][2 * i + 1] = second;
    }
  }
}

template <bool with_slopes, class T>
HWY_INLINE void mix_corners(std::int64_t count, MovedCells<T>& cells) {
  const T *HWY_RESTRICT p0 = cells.pairs[0], *HWY_RESTRICT p1 = cells.pairs[1],
                        *HWY_RESTRICT p2 = cells.pairs[2], *HWY_RESTRICT p3 = cells.pairs[3];
  const T *HWY_RESTRICT fraction_x = cells.fraction[0],
                        *HWY_RESTRICT fraction_y = cells.fraction[1],
                        *HWY_RESTRICT fraction_z = cells.fraction[2];
  T *HWY_RESTRICT value = cells.value, *HWY_RESTRICT slope_x = cells.slope[0],
                  *HWY_RESTRICT slope_y = cells.slope[1], *HWY_RESTRICT slope_z = cells.slope[2];
  for (std::int64_t i = 0; i < count; ++i) {
    const T fx = fraction_x[i], fy = fraction_y[i], fz = fraction_z[i];
    const T d0 = p0[2 * i + 1] - p0[2 * i], d1 = p1[2 * i + 1] - p1[2 * i],
            d2 = p2[2 * i + 1] - p2[2 * i], d3 = p3[2 * i + 1] - p3[2 * i];
    const T v0 = p0[2 * i] + fx * d0, v1 = p1[2 * i] + fx * d1, v2 = p2[2 * i] + fx * d2,
            v3 = p3[2 * i] + fx * d3;
    const T low = v0 + fy * (v1 - v0), high = v2 + fy * (v3 - v2);
    value[i] = low + fz * (high - low);
    if constexpr (with_slopes) {
      const T x_low = d0 + fy * (d1 - d0), x_high = d2 + fy * (d3 - d2);
      slope_x[i] = x_low + fz * (x_high - x_low);
      slope_y[i] = (v1 - v0) + fz * ((v3 - v2) - (v1 - v0));
      slope_z[i] = high - low;
    }
  }
}

// Voxels outside a mask do not count. Leaves values of the moving mask.
template <class T>
HWY_INLINE void apply_masks(
    const FusedVolumes<T>& v, std::int64_t voxel, std::int64_t count, MovedCells<T>& cells) {
  if (v.moving_mask != nullptr) {
    load_corners(v, v.moving_mask, count, cells);
    mix_corners<false>(count, cells);
    for (std::int64_t i = 0; i < count; ++i) {
      cells.counts[i] = cells.value[i] >= static_cast<T>(kInsideMask) ? cells.counts[i] : T(0);
    }
  }
  if (v.fixed_mask != nullptr) {
    const T* HWY_RESTRICT mask = v.fixed_mask + voxel;
    for (std::int64_t i = 0; i < count; ++i) {
      cells.counts[i] = mask[i] != 0 ? cells.counts[i] : T(0);
    }
  }
}

// Sums over the voxels that count, in T over a few hundred voxels and then in f64.
template <class T>
void add_moments(const T* f, const MovedCells<T>& cells, std::int64_t count, Moments& total) {
  const hn::CappedTag<T, kPartialLanes> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  constexpr int kParts = kPartialLanes / kLanes;
  hn::Vec<decltype(d)> parts[kParts][kMomentSums];
  for (auto& part : parts) {
    for (auto& sum : part) sum = hn::Zero(d);
  }
  std::int64_t i = 0;
  for (; i + kPartialLanes <= count; i += kPartialLanes) {
    for (int part = 0; part < kParts; ++part) {
      const std::int64_t at = i + part * kLanes;
      const auto w = hn::LoadU(d, cells.counts + at);
      const auto a = hn::Mul(w, hn::LoadU(d, f + at)),
                 b = hn::Mul(w, hn::LoadU(d, cells.value + at));
      auto& sum = parts[part];
      sum[0] = hn::Add(sum[0], w);
      sum[1] = hn::Add(sum[1], a);
      sum[2] = hn::Add(sum[2], b);
      sum[3] = hn::Add(sum[3], hn::Mul(a, a));
      sum[4] = hn::Add(sum[4], hn::Mul(b, b));
      sum[5] = hn::Add(sum[5], hn::Mul(a, b));
    }
  }
  T sums[kMomentSums][kPartialLanes];
  for (int part = 0; part < kParts; ++part) {
    for (int s = 0; s < kMomentSums; ++s) hn::StoreU(parts[part][s], d, sums[s] + part * kLanes);
  }
  for (; i < count; ++i) {
    const T w = cells.counts[i], a = w * f[i], b = w * cells.value[i];
    sums[0][0] += w;
    sums[1][0] += a;
    sums[2][0] += b;
    sums[3][0] += a * a;
    sums[4][0] += b * b;
    sums[5][0] += a * b;
  }
  double totals[kMomentSums] = {};
  for (int s = 0; s < kMomentSums; ++s) {
    for (const T lane : sums[s]) totals[s] += static_cast<double>(lane);
  }
  total.count += totals[0];
  total.f += totals[1];
  total.j += totals[2];
  total.ff += totals[3];
  total.jj += totals[4];
  total.fj += totals[5];
}

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
