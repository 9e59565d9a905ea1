// SPDX-License-Identifier: Apache-2.0
// Inverses and Jacobian determinants of vector fields on the CPU. An inverse is found voxel by
// voxel; determinants are computed in plain loops over rows of components, which vectorise.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/fields/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
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
using warp_internal::HWY_NAMESPACE::load_vectors;

// Components of part of a row, with a voxel before it and one behind it.
template <class T> struct Components {
  alignas(64) T of[3][kChunk + 2];

  void load(const TensorView& u, std::int64_t offset, int rank, std::int64_t count, int margin) {
    T* const rows[3] = {of[0] + 1 - margin, of[1] + 1 - margin, of[2] + 1 - margin};
    load_vectors(u, offset, rank, count, rows);
  }
};

// Determinants of the voxels of row (z, y) of u; returns how many fold.
template <class T> class Row {
 public:
  Row(const JacobianPass& pass) : pass_(pass), u_(pass.u) {
    for (int a = 0; a < pass.rank; ++a) along_[a] = Differences<T>(pass.axes[a]);
  }

  std::int64_t run(std::int64_t n, std::int64_t z, std::int64_t y) {
    const std::int64_t width = pass_.axes[0].out_extent;
    std::int64_t folds = 0;
    for (std::int64_t x = 0; x < width; x += kChunk) {
      const std::int64_t count = std::min(kChunk, width - x);
      load(n, z, y, x, count);
      folds += compute(x, count, z, y);
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

  std::int64_t compute(std::int64_t x, std::int64_t count, std::int64_t z, std::int64_t y) {
    const std::int64_t width = pass_.axes[0].out_extent;
    const auto factor = [&](int a, std::int64_t at) {
      const bool is_border = at == 0 || at == pass_.axes[a].out_extent - 1;
      return is_border ? along_[a].at_border : along_[a].inside;
    };
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
    std::int64_t folds = 0;
    for (std::int64_t i = 0; i < count; ++i) folds += is_fold(result_[i]) ? 1 : 0;
    return folds;
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
  Differences<T> along_[3];
  Components<T> own_, beside_[2][2];
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
