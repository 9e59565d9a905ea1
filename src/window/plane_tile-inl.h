// SPDX-License-Identifier: Apache-2.0
// The common part of the operations that SlidingWindow runs on a tile: rows with one value per
// column, read from tensors as large as the images or as the map, masked, and added up. Plain loops
// over f64, which become the vectors of each SIMD target: included once per target, hence the guard
// that flips.
#if defined(SIMILIS_WINDOW_PLANE_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WINDOW_PLANE_TILE_INL_H
#undef SIMILIS_WINDOW_PLANE_TILE_INL_H
#else
#define SIMILIS_WINDOW_PLANE_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "hwy/highway.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/window/axis.h"
#include "src/window/piece.h"

HWY_BEFORE_NAMESPACE();
namespace similis::window_internal::HWY_NAMESPACE {
using core_internal::HWY_NAMESPACE::load_row;
using core_internal::HWY_NAMESPACE::store_row;

// Σ a·b in eight interleaved sums: vectors for any target.
inline double dot(const double* a, const double* b, std::size_t count) {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) sums[lane] += a[i] * b[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// body(i) for each column of a row. Tells the compiler a fact that it cannot see: the rows that a
// body writes are none of those it reads at other columns.
template <class Body> HWY_INLINE void for_columns(std::size_t count, const Body& body) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) body(i);
}

inline std::size_t length(Interval interval) {
  return static_cast<std::size_t>(interval.last - interval.first);
}

template <class Visit> void for_each_row(const Tile& tile, const Visit& visit) {
  if (length(tile.x) == 0) return;
  for (std::int64_t z = tile.z.first; z < tile.z.last; ++z) {
    for (std::int64_t y = tile.y.first; y < tile.y.last; ++y) visit(z, y);
  }
}

// Plan: pass (with x, valid_mask and padding), the axes z, y and x, and
// window_weight_z, _y, _x. row_count: rows that the operation works with; all start as ones.
template <class Plan, std::size_t row_count> class PlaneTile {
 protected:
  PlaneTile(const Plan& plan, const Piece& piece)
      : plan_(plan),
        pass_(plan.pass),
        piece_(piece),
        plane_(static_cast<std::size_t>(piece.image * plan.pass.x.shape[1] + piece.channel)) {
    const std::size_t halo = 2 * static_cast<std::size_t>(plan.x.radius());
    for (AlignedVector<double>& row : rows_) row.resize(length(piece.tile.x) + 2 * halo, 1.0);
  }

  double* row(std::size_t which) { return rows_[which].data(); }

  bool is_masked() const { return !pass_.valid_mask.empty(); }

  // Zeros beyond the image count as pixels with padding same, and do not exist with renormalize.
  double mask_outside() const { return pass_.padding == Padding::same ? 1 : 0; }

  // The tile's pixels that windows are centred on.
  Tile centres() const {
    return {intersection(plan_.z.centres(), piece_.tile.z),
        intersection(plan_.y.centres(), piece_.tile.y),
        intersection(plan_.x.centres(), piece_.tile.x)};
  }

  // The offset of pixel (z, y, x) of this piece's plane in a tensor as large as the images.
  std::int64_t offset(
      const TensorView& image, std::int64_t z, std::int64_t y, std::int64_t x) const {
    const Extents& strides = image.strides;
    return piece_.image * strides[0] + piece_.channel * strides[1] + z * strides[2] +
           y * strides[3] + x * strides[4];
  }
  // The offset of the value centred on pixel (z, y, x) in a map.
  std::int64_t map_offset(
      const TensorView& map, std::int64_t z, std::int64_t y, std::int64_t x) const {
    return offset(
        map, z - plan_.z.first_centre(), y - plan_.y.first_centre(), x - plan_.x.first_centre());
  }
  void load_pixels(
      const TensorView& image, std::int64_t z, std::int64_t y, Interval x, double* out) const {
    load_row(image, offset(image, z, y, x.first), image.strides[4], x.last - x.first, out);
  }
  void store_pixels(
      const double* in, std::int64_t z, std::int64_t y, Interval x, const TensorView& image) const {
    store_row(in, x.last - x.first, image, offset(image, z, y, x.first), image.strides[4]);
  }
  void load_map(
      const TensorView& map, std::int64_t z, std::int64_t y, Interval x, double* out) const {
    load_row(map, map_offset(map, z, y, x.first), map.strides[4], x.last - x.first, out);
  }
  void store_map(
      const double* in, std::int64_t z, std::int64_t y, Interval x, const TensorView& map) const {
    store_row(in, x.last - x.first, map, map_offset(map, z, y, x.first), map.strides[4]);
  }

  // Sets the pixels of two rows, and their weights m, to 0 where m is not above 0, whatever they
  // hold.
  static void drop_masked(std::size_t count, double* first, double* second, double* m) {
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      const bool exists = m[i] > 0;
      m[i] = exists ? m[i] : 0;
      first[i] = exists ? first[i] : 0;
      second[i] = exists ? second[i] : 0;
    });
  }

  // scale = 1 / the weights that each window sees: the sums of m, or without a mask what the axes
  // say.
  void load_scale(
      std::int64_t z, std::int64_t y, Interval centres, const double* m, double* scale) const {
    const std::size_t count = length(centres);
    if (m != nullptr) {
      for_columns(count, [=](std::size_t i) HWY_ATTR { scale[i] = m[i] > 0 ? 1 / m[i] : 0; });
      return;
    }
    const double along_zy = plan_.window_weight_z[static_cast<std::size_t>(z)] *
                            plan_.window_weight_y[static_cast<std::size_t>(y)];
    const double* along_x = plan_.window_weight_x.data() + centres.first;
    for_columns(count, [=](std::size_t i) HWY_ATTR { scale[i] = 1 / (along_zy * along_x[i]); });
  }

  // 1 where a pixel is one at all, else 0; without a valid mask the row stays as it is.
  void load_exists(std::int64_t z, std::int64_t y, Interval x, double* exists) const {
    if (!is_masked()) return;
    load_pixels(pass_.valid_mask, z, y, x, exists);
    for_columns(length(x), [=](std::size_t i) HWY_ATTR { exists[i] = exists[i] > 0 ? 1 : 0; });
  }

  const Plan& plan_;
  const std::remove_reference_t<decltype(Plan::pass)>& pass_;
  const Piece& piece_;
  const std::size_t plane_;
  std::array<AlignedVector<double>, row_count> rows_;
};

}  // namespace similis::window_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
