// SPDX-License-Identifier: Apache-2.0
// Inverses and Jacobian determinants of vector fields on the CPU. An inverse is found voxel by
// voxel. Determinants are computed row by row: from vectors of f32 that lie side by side, whose
// differences are taken before they are parted into components, and from any others component by
// component, in plain loops. Both compute the same operations in the same order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/fields/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "src/core/parallel.h"
#include "src/fields/fields.h"
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

// Differences of vectors that lie side by side, along each axis.
template <class T, int rank> struct SideBySide {
  alignas(64) T change[3][rank * kChunk];

  // Along an axis of rows: between voxels of the row before and of the row behind.
  void between(int axis, const T* before, const T* behind, std::int64_t count, T by) {
    T* HWY_RESTRICT to = change[axis];
    for (std::int64_t k = 0; k < rank * count; ++k) to[k] = (behind[k] - before[k]) * by;
  }

  // Along the row of `width` voxels, for its part from x on.
  void along(const T* row, std::int64_t x, std::int64_t count, std::int64_t width,
      const Differences<T>& by) {
    T* HWY_RESTRICT to = change[0];
    const T* const own = row + rank * x;
    const std::int64_t first = x == 0 ? rank : 0,
                       last = rank * (x + count == width ? count - 1 : count);
    for (std::int64_t k = first; k < last; ++k) to[k] = (own[k + rank] - own[k - rank]) * by.inside;
    const auto at_end = [&](std::int64_t i, std::int64_t before, std::int64_t behind) {
      for (int c = 0; c < rank; ++c) {
        to[rank * i + c] = (row[rank * behind + c] - row[rank * before + c]) * by.at_border;
      }
    };
    if (x == 0) at_end(0, 0, std::min<std::int64_t>(1, width - 1));
    if (x + count == width) at_end(count - 1, std::max<std::int64_t>(width - 2, 0), width - 1);
  }

  // Writes the determinants, and up to a vector more behind the last; returns how many fold.
  std::int64_t determinants(std::int64_t count, T* result) const {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    const auto load = [&](int axis, std::int64_t i, V& x, V& y, V& z) HWY_ATTR {
      if constexpr (rank == 3) {
        hn::LoadInterleaved3(d, change[axis] + 3 * i, x, y, z);
      } else {
        hn::LoadInterleaved2(d, change[axis] + 2 * i, x, y);
      }
    };
    const V one = hn::Set(d, T{1}), zero = hn::Zero(d);
    std::int64_t folds = 0;
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      V c00 = zero, c10 = zero, c20 = zero, c01 = zero, c11 = zero, c21 = zero, c02 = zero,
        c12 = zero, c22 = zero;
      load(0, i, c00, c10, c20);
      load(1, i, c01, c11, c21);
      if constexpr (rank == 3) load(2, i, c02, c12, c22);
      const V j00 = hn::Add(one, c00), j11 = hn::Add(one, c11), j22 = hn::Add(one, c22);
      const V minor0 = hn::Sub(hn::Mul(j11, j22), hn::Mul(c12, c21));
      const V minor1 = hn::Sub(hn::Mul(c10, j22), hn::Mul(c12, c20));
      const V minor2 = hn::Sub(hn::Mul(c10, c21), hn::Mul(j11, c20));
      const V first = hn::Sub(hn::Mul(j00, minor0), hn::Mul(c01, minor1));
      const V found = hn::Add(first, hn::Mul(c02, minor2));
      hn::Store(found, d, result + i);
      const auto is_given = hn::FirstN(d, static_cast<std::size_t>(count - i));
      const auto is_regular = hn::Gt(found, zero);  // not a NaN: is_fold() of each
      folds += static_cast<std::int64_t>(hn::CountTrue(d, hn::AndNot(is_regular, is_given)));
    }
    return folds;
  }
};

// Determinants of the voxels of row (z, y) of u; returns how many fold.
template <class T> class Row {
 public:
  Row(const JacobianPass& pass)
      : pass_(pass),
        u_(pass.u),
        is_side_by_side_(std::is_same_v<T, float> && is_interleaved(pass.u)) {
    for (int a = 0; a < pass.rank; ++a) along_[a] = Differences<T>(pass.axes[a]);
  }

  std::int64_t run(std::int64_t n, std::int64_t z, std::int64_t y) {
    const std::int64_t width = pass_.axes[0].out_extent;
    std::int64_t folds = 0;
    for (std::int64_t x = 0; x < width; x += kChunk) {
      const std::int64_t count = std::min(kChunk, width - x);
      if (is_side_by_side_) {
        folds += pass_.rank == 3 ? compute_side_by_side(three_, n, z, y, x, count)
                                 : compute_side_by_side(two_, n, z, y, x, count);
      } else {
        load(n, z, y, x, count);
        compute(x, count, z, y);
        for (std::int64_t i = 0; i < count; ++i) folds += is_fold(result_[i]) ? 1 : 0;
      }
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
  std::int64_t compute_side_by_side(SideBySide<T, rank>& of, std::int64_t n, std::int64_t z,
      std::int64_t y, std::int64_t x, std::int64_t count) {
    const auto* const field = static_cast<const T*>(u_.data());
    const auto at = [&](std::int64_t other_z, std::int64_t other_y, std::int64_t voxel) {
      return field + voxel_offset(u_, n, other_z, other_y, voxel);
    };
    const auto before = [](std::int64_t i) { return std::max<std::int64_t>(i - 1, 0); };
    const auto behind = [&](int a, std::int64_t i) {
      return std::min(i + 1, pass_.axes[a].out_extent - 1);
    };
    of.along(at(z, y, 0), x, count, pass_.axes[0].out_extent, along_[0]);
    of.between(1, at(z, before(y), x), at(z, behind(1, y), x), count, factor(1, y));
    if constexpr (rank == 3) {
      of.between(2, at(before(z), y, x), at(behind(2, z), y, x), count, factor(2, z));
    }
    return of.determinants(count, result_);
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
  SideBySide<T, 3> three_;
  SideBySide<T, 2> two_;
  alignas(64) T result_[kChunk];
};

std::int64_t determinants_of_row(
    const JacobianPass* pass, std::int64_t n, std::int64_t z, std::int64_t y) {
  return pass->u.dtype == DType::f64 ? Row<double>(*pass).run(n, z, y)
                                     : Row<float>(*pass).run(n, z, y);
}

}  // namespace similis::fields_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::fields_internal {
HWY_EXPORT(determinants_of_row);

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
  const auto invert = pass.is_part()
                          ? pass.rank == 3 ? invert_row<T, 3, true> : invert_row<T, 2, true>
                      : pass.rank == 3 ? invert_row<T, 3, false>
                                       : invert_row<T, 2, false>;
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
