// SPDX-License-Identifier: Apache-2.0
// Inverses and Jacobian determinants of vector fields on the CPU. Inverses of f32 whose components
// lie side by side are found in vectors, a voxel in each lane, others voxel by voxel. Determinants
// are computed row by row: from vectors of f32 that lie side by side, whose differences are taken
// before they are parted into components, and from any others component by component, in plain
// loops. Both compute the same operations in the same order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/fields/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "hwy/cache_control.h"
#include "src/core/parallel.h"
#include "src/fields/fields.h"
#include "src/fields/inverse_row-inl.h"
#include "src/fields/jacobian.h"
#include "src/warp/cpu/elements.h"
#include "src/warp/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::fields_internal::HWY_NAMESPACE {
using warp_internal::kChunk;
using warp_internal::voxel_offset;
using warp_internal::HWY_NAMESPACE::is_interleaved;
using warp_internal::HWY_NAMESPACE::load_vectors;
namespace hn = hwy::HWY_NAMESPACE;

// Components of part of a row, with a voxel before it and one behind it.
template <class T> struct Components {
  alignas(64) T of[3][kChunk + 2];

  void load(const TensorView& u, std::int64_t offset, int rank, std::int64_t count, int margin) {
    T* const rows[3] = {of[0] + 1 - margin, of[1] + 1 - margin, of[2] + 1 - margin};
    load_vectors(u, offset, rank, count, rows);
  }
};

// Two rows of vectors that lie side by side, and the factor of their differences.
template <class T> struct RowPair {
  const T *before, *behind;
  T by;
};

// Determinants from differences of such vectors.
template <class T, int rank> struct SideBySide {
  // Those of `count` voxels, at least a vector's, from pairs along x, y and z; returns how many
  // fold.
  static std::int64_t determinants(
      const RowPair<T> (&pairs)[3], std::int64_t count, T* HWY_RESTRICT result) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    std::int64_t folds = 0, i = 0;
    for (; i + lanes <= count; i += lanes) folds += one_vector(pairs, i, 0, result + i);
    // The last vector ends with the row, and does not count again what the one before it did.
    if (i < count)
      folds += one_vector(pairs, count - lanes, lanes - (count - i), result + count - lanes);
    return folds;
  }

 private:
  static HWY_INLINE std::int64_t one_vector(
      const RowPair<T> (&pairs)[3], std::int64_t i, std::int64_t counted, T* result) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(T);
    alignas(64) T differences[rank * kMost];
    const auto change = [&](int axis, V& x, V& y, V& z) HWY_ATTR {
      const RowPair<T>& pair = pairs[axis];
      const V by = hn::Set(d, pair.by);
      for (std::size_t k = 0; k < rank; ++k) {
        const std::size_t at = static_cast<std::size_t>(rank * i) + k * hn::Lanes(d);
        const V difference =
            hn::Sub(hn::LoadU(d, pair.behind + at), hn::LoadU(d, pair.before + at));
        hn::Store(hn::Mul(difference, by), d, differences + k * hn::Lanes(d));
      }
      if constexpr (rank == 3) {
        hn::LoadInterleaved3(d, differences, x, y, z);
      } else {
        hn::LoadInterleaved2(d, differences, x, y);
      }
    };
    // Rows behind along the last axis are new to the cache, as are the results.
    constexpr std::size_t kAhead = 512;
    const T* const ahead = pairs[rank - 1].behind + rank * static_cast<std::size_t>(i) + kAhead;
    for (std::size_t k = 0; k < rank * hn::Lanes(d); k += 64 / sizeof(T)) {
      hwy::Prefetch(ahead + k);
    }
    hwy::Prefetch(result + kAhead / rank);
    const V one = hn::Set(d, T{1}), zero = hn::Zero(d);
    V c00 = zero, c10 = zero, c20 = zero, c01 = zero, c11 = zero, c21 = zero, c02 = zero,
      c12 = zero, c22 = zero;
    change(0, c00, c10, c20);
    change(1, c01, c11, c21);
    if constexpr (rank == 3) change(2, c02, c12, c22);
    const V j00 = hn::Add(one, c00), j11 = hn::Add(one, c11), j22 = hn::Add(one, c22);
    const V minor0 = hn::Sub(hn::Mul(j11, j22), hn::Mul(c12, c21));
    const V minor1 = hn::Sub(hn::Mul(c10, j22), hn::Mul(c12, c20));
    const V minor2 = hn::Sub(hn::Mul(c10, c21), hn::Mul(j11, c20));
    const V first = hn::Sub(hn::Mul(j00, minor0), hn::Mul(c01, minor1));
    const V found = hn::Add(first, hn::Mul(c02, minor2));
    hn::StoreU(found, d, result);
    const auto is_regular = hn::Gt(found, zero);  // not a NaN: is_fold() of each
    if (HWY_LIKELY(hn::AllTrue(d, is_regular))) return 0;
    const auto is_counted = hn::Not(hn::FirstN(d, static_cast<std::size_t>(counted)));
    return static_cast<std::int64_t>(hn::CountTrue(d, hn::AndNot(is_regular, is_counted)));
  }
};

// Determinants of the voxels of row (z, y) of u; returns how many fold.
template <class T> class Row {
 public:
  Row(const JacobianPass& pass)
      : pass_(pass),
        u_(pass.u),
        is_side_by_side_(std::is_same_v<T, float> && is_interleaved(pass.u) &&
                         pass.determinant.dtype == DType::f32 && pass.determinant.strides[3] == 1 &&
                         pass.axes[0].out_extent - 2 >=
                             static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()))) {
    for (int a = 0; a < pass.rank; ++a) along_[a] = Differences<T>(pass.axes[a]);
  }

  std::int64_t run(std::int64_t n, std::int64_t z, std::int64_t y) {
    if constexpr (std::is_same_v<T, float>) {
      if (is_side_by_side_) {
        T* const result = static_cast<T*>(pass_.determinant.data()) + offset_of_result(n, z, y, 0);
        return pass_.rank == 3 ? compute_side_by_side<3>(n, z, y, result)
                               : compute_side_by_side<2>(n, z, y, result);
      }
    }
    const std::int64_t width = pass_.axes[0].out_extent;
    std::int64_t folds = 0;
    for (std::int64_t x = 0; x < width; x += kChunk) {
      const std::int64_t count = std::min(kChunk, width - x);
      load(n, z, y, x, count);
      compute(x, count, z, y);
      for (std::int64_t i = 0; i < count; ++i) folds += is_fold(result_[i]) ? 1 : 0;
      const Extents& s = pass_.determinant.strides;
      core_internal::HWY_NAMESPACE::store_row(
          result_, count, pass_.determinant, offset_of_result(n, z, y, x), s[3]);
    }
    return folds;
  }

 private:
  std::int64_t offset_of_result(
      std::int64_t n, std::int64_t z, std::int64_t y, std::int64_t x) const {
    const bool along_z = pass_.rank == 3;
    return voxel_offset(
        pass_.determinant, n, z - (along_z ? pass_.first : 0), y - (along_z ? 0 : pass_.first), x);
  }

  void load(std::int64_t n, std::int64_t z, std::int64_t y, std::int64_t x, std::int64_t count) {
    const int rank = pass_.rank;
    const std::int64_t width = pass_.axes[0].out_extent;
    const std::int64_t before = x > 0 ? 1 : 0, behind = x + count < width ? 1 : 0;
    own_.load(u_, voxel_offset(u_, n, z, y, x - before), rank, count + before + behind,
        static_cast<int>(before));
    for (int i = 0; i < rank; ++i) {
      if (before == 0) own_.of[i][0] = own_.of[i][1];
      if (behind == 0) own_.of[i][count + 1] = own_.of[i][count];
    }
    for (int a = 1; a < rank; ++a) {
      const std::int64_t at = a == 1 ? y : z, last = pass_.axes[a].out_extent - 1;
      for (int side = 0; side < 2; ++side) {
        const std::int64_t other =
            side == 0 ? std::max<std::int64_t>(at - 1, 0) : std::min(at + 1, last);
        beside_[a - 1][side].load(
            u_, voxel_offset(u_, n, a == 2 ? other : z, a == 1 ? other : y, x), rank, count, 0);
      }
    }
  }

  // The factor of differences along an axis of rows.
  T factor(int a, std::int64_t at) const {
    const bool is_border = at == 0 || at == pass_.axes[a].out_extent - 1;
    return is_border ? along_[a].at_border : along_[a].inside;
  }

  // Computes the determinants of vectors of f32 that lie side by side; returns how many fold.
  template <int rank>
  std::int64_t compute_side_by_side(std::int64_t n, std::int64_t z, std::int64_t y, T* result) {
    const auto* const field = static_cast<const T*>(u_.data());
    const auto row = [&](std::int64_t other_z, std::int64_t other_y) {
      return field + voxel_offset(u_, n, other_z, other_y, 0);
    };
    const auto before = [](std::int64_t i) { return std::max<std::int64_t>(i - 1, 0); };
    const auto behind = [&](int a, std::int64_t i) {
      return std::min(i + 1, pass_.axes[a].out_extent - 1);
    };
    const std::int64_t last = pass_.axes[0].out_extent - 1;
    const T* const own = row(z, y);
    RowPair<T> rows[3] = {
        {own, own, 0}, {row(z, before(y)), row(z, behind(1, y)), factor(1, y)}, {own, own, 0}};
    if constexpr (rank == 3) rows[2] = {row(before(z), y), row(behind(2, z), y), factor(2, z)};
    const RowPair<T> inside[3] = {{own, own + 2 * rank, along_[0].inside},
        {rows[1].before + rank, rows[1].behind + rank, rows[1].by},
        {rows[2].before + rank, rows[2].behind + rank, rows[2].by}};
    std::int64_t folds = SideBySide<T, rank>::determinants(inside, last - 1, result + 1);
    for (const std::int64_t x : {std::int64_t{0}, last}) {
      T change[3][3] = {};
      const T *const next = own + rank * std::min(x + 1, last), *const previous =
                                                                    own + rank * before(x);
      for (int c = 0; c < rank; ++c) {
        change[c][0] = (next[c] - previous[c]) * along_[0].at_border;
        for (int a = 1; a < rank; ++a) {
          const std::int64_t at = rank * x + c;
          change[c][a] = (rows[a].behind[at] - rows[a].before[at]) * rows[a].by;
        }
      }
      result[x] = determinant(change);
      folds += is_fold(result[x]) ? 1 : 0;
    }
    return folds;
  }

  void compute(std::int64_t x, std::int64_t count, std::int64_t z, std::int64_t y) {
    const std::int64_t width = pass_.axes[0].out_extent;
    const T inside = along_[0].inside, by_y = factor(1, y),
            by_z = pass_.rank == 3 ? factor(2, z) : 0;
    pass_.rank == 3 ? compute_range<3>(0, count, inside, by_y, by_z)
                    : compute_range<2>(0, count, inside, by_y, by_z);
    // Those at the ends of the row again, by one-sided differences.
    const auto end = [&](std::int64_t i) {
      pass_.rank == 3 ? compute_range<3>(i, i + 1, along_[0].at_border, by_y, by_z)
                      : compute_range<2>(i, i + 1, along_[0].at_border, by_y, by_z);
    };
    if (x == 0) end(0);
    if (x + count == width) end(count - 1);
  }

  template <int rank>
  void compute_range(std::int64_t first, std::int64_t end, T by_x, T by_y, T by_z) {
    T* HWY_RESTRICT result = result_;
    const T by[3] = {by_x, by_y, by_z};
    for (std::int64_t i = first; i < end; ++i) {
      T change[3][3] = {};
      for (int c = 0; c < rank; ++c) {
        change[c][0] = (own_.of[c][i + 2] - own_.of[c][i]) * by[0];
        for (int a = 1; a < rank; ++a) {
          change[c][a] = (beside_[a - 1][1].of[c][i + 1] - beside_[a - 1][0].of[c][i + 1]) * by[a];
        }
      }
      result[i] = determinant(change);
    }
  }

  const JacobianPass& pass_;
  const TensorView& u_;
  const bool is_side_by_side_;
  Differences<T> along_[3];
  Components<T> own_, beside_[2][2];
  alignas(64) T result_[kChunk];
};

std::int64_t determinants_of_row(
    const JacobianPass* pass, std::int64_t n, std::int64_t z, std::int64_t y) {
  return pass->u.dtype == DType::f64 ? Row<double>(*pass).run(n, z, y)
                                     : Row<float>(*pass).run(n, z, y);
}

// The larger of two squares, or NaN if one is.
inline double larger(double most, double square) {
  return !(square <= most) && !std::isnan(most) ? square : most;
}

#if HWY_TARGET != HWY_SCALAR
// Inverts a row of a whole field in f32; returns the largest |r|², or NaN if there is one.
template <int rank>
double invert_vectors(const InversePass& pass, std::int64_t elements, std::int64_t n,
    std::int64_t z, std::int64_t y) {
  using Row = InverseOfRow<rank>;
  constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);
  const typename Row::D d;
  const TensorView &u = pass.u, &out = pass.output;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const InverseOptions<float> options = inverse_options<float>(pass);
  Row row(options, static_cast<const float*>(u.data()) + n * u.strides[0], elements,
      y + (rank == 2 ? pass.first : 0), z + (rank == 3 ? pass.first : 0));
  const bool is_stored_whole = is_interleaved(out);
  double most = 0;
  const std::int64_t width = u.shape[3];
  for (std::int64_t x = 0; x < width; x += lanes) {
    const std::int64_t first = std::min(x, width - lanes);  // the last vector ends with the row
    const typename Row::Inverse found = row.invert(first);
    const std::int64_t at = voxel_offset(out, n, z, y, first);
    alignas(64) float w[rank][kMost], r[rank][kMost];
    for (int i = 0; i < rank; ++i) {
      hn::Store(found.w[i], d, w[i]);
      hn::Store(found.r[i], d, r[i]);
    }
    if (is_stored_whole) {
      float* const to = static_cast<float*>(out.data()) + at;
      if constexpr (rank == 3) {
        hn::StoreInterleaved3(found.w[0], found.w[1], found.w[2], d, to);
      } else {
        hn::StoreInterleaved2(found.w[0], found.w[1], d, to);
      }
    }
    for (std::int64_t k = 0; k < lanes; ++k) {
      double square = 0;
      for (int i = 0; i < rank; ++i) {
        square += static_cast<double>(r[i][k]) * static_cast<double>(r[i][k]);
        if (is_stored_whole) continue;
        warp_internal::store_element(
            out, at + k * out.strides[3] + i * out.strides[4], static_cast<double>(w[i][k]));
      }
      most = larger(most, square);
    }
  }
  return most;
}
#endif

// Does so where vectors can, and returns whether they can.
bool invert_row_in_vectors(
    const InversePass* pass, std::int64_t n, std::int64_t z, std::int64_t y, double* most) {
#if HWY_TARGET != HWY_SCALAR
  const TensorView& u = pass->u;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  bool can = u.dtype == DType::f32 && u.strides[4] == 1 && u.shape[3] >= lanes && !pass->is_part();
  std::int64_t elements = pass->rank;
  for (int axis = 1; axis < 4; ++axis) {
    can = can && u.strides[axis] >= 0;
    elements += (u.shape[axis] - 1) * u.strides[axis];
  }
  if (!can || elements > std::numeric_limits<std::int32_t>::max() / 2) return false;
  *most = pass->rank == 3 ? invert_vectors<3>(*pass, elements, n, z, y)
                          : invert_vectors<2>(*pass, elements, n, z, y);
  return true;
#else
  (void)pass, (void)n, (void)z, (void)y, (void)most;
  return false;
#endif
}

}  // namespace similis::fields_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::fields_internal {
HWY_EXPORT(determinants_of_row);
HWY_EXPORT(invert_row_in_vectors);

using warp_internal::store_element;
using warp_internal::voxel_offset;

namespace {

// Inverts one row; returns the largest |r|², or NaN if there is one.
template <class T, int rank, bool is_cut>
double invert_row(const InversePass& pass, const InverseOptions<T>& options, std::int64_t n,
    std::int64_t z, std::int64_t y) {
  const TensorView &u = pass.u, &out = pass.output;
  const T* const field = static_cast<const T*>(u.data()) + n * u.strides[0];
  double most = 0;
  for (std::int64_t x = 0; x < u.shape[3]; ++x) {
    int voxel[3] = {static_cast<int>(x), static_cast<int>(y), static_cast<int>(z)};
    voxel[rank - 1] += static_cast<int>(pass.first);
    T w[rank];
    const double square = invert_voxel<T, rank, is_cut>(
        options, voxel, [field](std::int64_t at) { return field[at]; }, w);
    const std::int64_t at = voxel_offset(out, n, z, y, x);
    for (int i = 0; i < rank; ++i) {
      store_element(out, at + i * out.strides[4], static_cast<double>(w[i]));
    }
    if (!(square <= most) && !std::isnan(most)) most = square;
  }
  return most;
}

template <class T>
double invert_row(const InversePass& pass, std::int64_t n, std::int64_t z, std::int64_t y) {
  const InverseOptions<T> options = inverse_options<T>(pass);
  if constexpr (std::is_same_v<T, float>) {  // f64 is rare: its whole fields are parts too
    double most = 0;
    if (HWY_DYNAMIC_DISPATCH(invert_row_in_vectors)(&pass, n, z, y, &most)) return most;
    if (!pass.is_part()) {
      const auto invert = pass.rank == 3 ? invert_row<T, 3, false> : invert_row<T, 2, false>;
      return invert(pass, options, n, z, y);
    }
  }
  const auto invert = pass.rank == 3 ? invert_row<T, 3, true> : invert_row<T, 2, true>;
  return invert(pass, options, n, z, y);
}

}  // namespace

void invert_cpu(const InversePass& pass, const Execution& exec) {
  const TensorView& u = pass.u;
  const std::int64_t height = pass.output.shape[2], rows = pass.output.shape[1] * height;
  std::vector<double> largest(static_cast<std::size_t>(u.shape[0] * rows));
  parallel_for(exec, u.shape[0] * rows, [&](std::int64_t task) {
    const std::int64_t n = task / rows, z = task % rows / height, y = task % height;
    largest[static_cast<std::size_t>(task)] = u.dtype == DType::f64
                                                  ? invert_row<double>(pass, n, z, y)
                                                  : invert_row<float>(pass, n, z, y);
  });
  if (pass.residual.empty()) return;
  for (std::int64_t n = 0; n < u.shape[0]; ++n) {
    double most = 0;
    for (std::int64_t row = n * rows; row < (n + 1) * rows && !std::isnan(most); ++row) {
      const double other = largest[static_cast<std::size_t>(row)];
      if (!(other <= most)) most = other;
    }
    store_element(pass.residual, n * pass.residual.strides[0], std::sqrt(most));
  }
}

void jacobian_cpu(const JacobianPass& pass, const Execution& exec) {
  const std::int64_t height = pass.determinant.shape[2], rows = pass.determinant.shape[1] * height;
  const std::int64_t from_z = pass.rank == 3 ? pass.first : 0, from_y = pass.first - from_z;
  const std::int64_t images = pass.u.shape[0];
  std::vector<std::int64_t> folds(static_cast<std::size_t>(images * rows));
  parallel_for(exec, images * rows, [&](std::int64_t task) {
    const std::int64_t n = task / rows, z = task % rows / height, y = task % height;
    folds[static_cast<std::size_t>(task)] =
        HWY_DYNAMIC_DISPATCH(determinants_of_row)(&pass, n, from_z + z, from_y + y);
  });
  for (std::int64_t n = 0; n < images; ++n) {
    std::int64_t total = 0;
    for (std::int64_t row = n * rows; row < (n + 1) * rows; ++row) {
      total += folds[static_cast<std::size_t>(row)];
    }
    store_element(pass.folds, n * pass.folds.strides[0], static_cast<double>(total));
  }
}

}  // namespace similis::fields_internal
#endif
