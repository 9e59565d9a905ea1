// SPDX-License-Identifier: Apache-2.0
// Smoothing on the CPU, in two passes over memory. Both compute weighted sums of rows in vectors.
//
//   first   rows of one y, all z:  along x, within a row ─> buffer ─> along z ─> work
//   second  columns of some x:     work ─> buffer ─> along y ─> output
//
// A row is x with the components of each voxel beside one another; along x the rows of a sum are
// one padded row, shifted. work is the output itself where that has the arithmetic's type. The
// buffers hold all inputs of a task before it writes, so x may be the output.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/smooth/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/smooth/smooth.h"

#ifndef SIMILIS_SMOOTH_COLUMNS
#define SIMILIS_SMOOTH_COLUMNS
namespace similis::smooth_internal {
// Voxels of a row that a task of the second pass takes: its buffer fits the second-level cache.
inline std::int64_t column_voxels(const SmoothPass& pass) {
  constexpr std::int64_t kElements = 128;
  return kElements / pass.x.shape[kComponent];
}
}  // namespace similis::smooth_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::smooth_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kRowPadding = 64;  // elements: no vector is longer

// out[i] = Σ weights[m]·rows[m][i] for i < count, and for the rest of the last vector.
template <class T>
void weighted_sum(const std::vector<const T*>& rows, const std::vector<T>& weights,
    std::int64_t count, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
    for (std::size_t m = 0; m < rows.size(); ++m) {
      const auto w = hn::Set(d, weights[m]);
      const T* const row = rows[m] + i;
      a = hn::MulAdd(w, hn::LoadU(d, row), a);
      b = hn::MulAdd(w, hn::LoadU(d, row + lanes), b);
      c = hn::MulAdd(w, hn::LoadU(d, row + 2 * lanes), c);
      e = hn::MulAdd(w, hn::LoadU(d, row + 3 * lanes), e);
    }
    hn::StoreU(a, d, out + i);
    hn::StoreU(b, d, out + i + lanes);
    hn::StoreU(c, d, out + i + 2 * lanes);
    hn::StoreU(e, d, out + i + 3 * lanes);
  }
  for (; i < count; i += lanes) {
    auto sum = hn::Zero(d);
    for (std::size_t m = 0; m < rows.size(); ++m) {
      sum = hn::MulAdd(hn::Set(d, weights[m]), hn::LoadU(d, rows[m] + i), sum);
    }
    hn::StoreU(sum, d, out + i);
  }
}

// Part of a row, `voxels` from (n, c, z, y, x) on, as neighbours in memory.
template <class T>
void load_voxels(const TensorView& view, std::int64_t offset, std::int64_t voxels, T* out) {
  const std::int64_t components = view.shape[kComponent], by_x = view.strides[kX],
                     by_component = view.strides[kComponent];
  using core_internal::HWY_NAMESPACE::load_row;
  if (components == 1) return load_row(view, offset, by_x, voxels, out);
  if (by_x == components * by_component) {
    return load_row(view, offset, by_component, voxels * components, out);
  }
  for (std::int64_t x = 0; x < voxels; ++x) {
    load_row(view, offset + x * by_x, by_component, components, out + x * components);
  }
}

template <class T>
void store_voxels(const T* in, std::int64_t voxels, const TensorView& view, std::int64_t offset) {
  const std::int64_t components = view.shape[kComponent], by_x = view.strides[kX],
                     by_component = view.strides[kComponent];
  using core_internal::HWY_NAMESPACE::store_row;
  if (components == 1) return store_row(in, voxels, view, offset, by_x);
  if (by_x == components * by_component) {
    return store_row(in, voxels * components, view, offset, by_component);
  }
  for (std::int64_t x = 0; x < voxels; ++x) {
    store_row(in + x * components, components, view, offset + x * by_x, by_component);
  }
}

// The terms of one output along an axis: numbers of inputs, and their weights.
template <class T> class Terms {
 public:
  Terms(const std::vector<double>& taps, std::int64_t extent, const SmoothPass& pass)
      : taps_(taps),
        last_(extent - 1),
        folds_(pass.is_adjoint && !pass.is_zero_padded),
        clamps_(!pass.is_adjoint && !pass.is_zero_padded) {}

  // Sets rows, by row(number of the input), and weights.
  template <class Row>
  void collect(
      std::int64_t at, const Row& row, std::vector<const T*>& rows, std::vector<T>& weights) const {
    rows.clear();
    weights.clear();
    const std::int64_t radius = static_cast<std::int64_t>(taps_.size()) - 1;
    const bool folds = folds_ && (at == 0 || at == last_);
    for (std::int64_t k = -radius; k <= radius; ++k) {
      std::int64_t from = at + k;
      if (from < 0 || from > last_) {
        if (!clamps_) continue;
        from = from < 0 ? 0 : last_;
      }
      rows.push_back(row(from));
      weights.push_back(folds ? folded(at, from) : tap(k));
    }
  }

 private:
  T tap(std::int64_t k) const {
    return static_cast<T>(taps_[static_cast<std::size_t>(k < 0 ? -k : k)]);
  }
  // The sum of all weights by which output `from` takes the outermost input `at`, replicated.
  T folded(std::int64_t at, std::int64_t from) const {
    const std::int64_t radius = static_cast<std::int64_t>(taps_.size()) - 1;
    double sum = 0;
    for (std::int64_t k = -radius; k <= radius; ++k) {
      if (std::clamp<std::int64_t>(from + k, 0, last_) != at) continue;
      sum += taps_[static_cast<std::size_t>(k < 0 ? -k : k)];
    }
    return static_cast<T>(sum);
  }

  const std::vector<double>& taps_;
  std::int64_t last_;
  bool folds_, clamps_;
};

// A row smoothed along x.
template <class T> class RowSmoother {
 public:
  explicit RowSmoother(const SmoothPass& pass)
      : components_(pass.x.shape[kComponent]),
        width_(pass.x.shape[kX] * components_),
        margin_((static_cast<std::int64_t>(pass.taps[2].size()) - 1) * components_),
        replicates_(!pass.is_zero_padded),
        adjoint_(pass.is_adjoint) {
    // The adjoint computes the outputs in the margins too, which then fold to the ends.
    outer_ = replicates_ && adjoint_ ? 2 * margin_ : margin_;
    padded_.assign(static_cast<std::size_t>(width_ + 2 * outer_ + kRowPadding), T(0));
    summed_.resize(static_cast<std::size_t>(width_ + 2 * margin_ + kRowPadding));
    const auto& taps = pass.taps[2];
    const std::int64_t radius = static_cast<std::int64_t>(taps.size()) - 1;
    for (std::int64_t k = -radius; k <= radius; ++k) {
      rows_.push_back(padded_.data() + (k + radius) * components_);
      weights_.push_back(static_cast<T>(taps[static_cast<std::size_t>(k < 0 ? -k : k)]));
    }
  }

  T* input() { return padded_.data() + outer_; }

  // Writes up to a vector more than the row.
  void run(T* out) {
    if (margin_ == 0) {
      std::copy_n(input(), width_, out);
      return;
    }
    if (!(replicates_ && adjoint_)) {
      if (replicates_) fill_margins();
      weighted_sum(rows_, weights_, width_, out);
      return;
    }
    weighted_sum(rows_, weights_, width_ + 2 * margin_, summed_.data());
    T* const inside = summed_.data() + margin_;
    for (std::int64_t i = components_; i <= margin_; i += components_) {
      for (std::int64_t c = 0; c < components_; ++c) {
        inside[c] += inside[c - i];
        inside[width_ - components_ + c] += inside[width_ - components_ + c + i];
      }
    }
    std::copy_n(inside, width_, out);
  }

 private:
  void fill_margins() {
    T* const row = input();
    for (std::int64_t i = components_; i <= margin_; i += components_) {
      for (std::int64_t c = 0; c < components_; ++c) {
        row[c - i] = row[c];
        row[width_ - components_ + c + i] = row[width_ - components_ + c];
      }
    }
  }

  std::int64_t components_, width_, margin_, outer_ = 0;
  bool replicates_, adjoint_;
  AlignedVector<T> padded_, summed_;
  std::vector<const T*> rows_;
  std::vector<T> weights_;
};

std::int64_t offset_of(const TensorView& view, std::int64_t n, std::int64_t c, std::int64_t z,
    std::int64_t y, std::int64_t x) {
  const Extents& s = view.strides;
  return n * s[kImage] + c * s[kChannel] + z * s[kZ] + y * s[kY] + x * s[kX];
}

std::int64_t padded_width(std::int64_t elements) {
  return (elements + kRowPadding - 1) / kRowPadding * kRowPadding + kRowPadding;
}

// All rows of one y, along x and z.
template <class T>
void smooth_rows_as(const SmoothPass& pass, const TensorView& into, std::int64_t task) {
  const Extents& shape = pass.x.shape;
  const std::int64_t depth = shape[kZ], voxels = shape[kX];
  const std::int64_t width = voxels * shape[kComponent], pitch = padded_width(width);
  const std::int64_t y = task % shape[kY], c = task / shape[kY] % shape[kChannel],
                     n = task / shape[kY] / shape[kChannel];
  RowSmoother<T> along_x(pass);
  AlignedVector<T> rows(static_cast<std::size_t>((depth + 1) * pitch));
  for (std::int64_t z = 0; z < depth; ++z) {
    load_voxels(pass.x, offset_of(pass.x, n, c, z, y, 0), voxels, along_x.input());
    along_x.run(rows.data() + z * pitch);
  }
  const bool is_flat = pass.taps[0].size() == 1;
  const Terms<T> along_z(pass.taps[0], depth, pass);
  std::vector<const T*> inputs;
  std::vector<T> weights;
  T* const sum = rows.data() + depth * pitch;
  for (std::int64_t z = 0; z < depth; ++z) {
    const T* result = rows.data() + z * pitch;
    if (!is_flat) {
      along_z.collect(
          z, [&](std::int64_t at) { return rows.data() + at * pitch; }, inputs, weights);
      weighted_sum(inputs, weights, width, sum);
      result = sum;
    }
    store_voxels(result, voxels, into, offset_of(into, n, c, z, y, 0));
  }
}

// Some columns of one plane, along y.
template <class T>
void smooth_columns_as(const SmoothPass& pass, const TensorView& from, std::int64_t task) {
  const Extents& shape = pass.x.shape;
  const std::int64_t step = column_voxels(pass), parts = (shape[kX] + step - 1) / step;
  const std::int64_t x = task % parts * step, voxels = std::min(step, shape[kX] - x);
  task /= parts;
  const std::int64_t z = task % shape[kZ], c = task / shape[kZ] % shape[kChannel],
                     n = task / shape[kZ] / shape[kChannel];
  const std::int64_t height = shape[kY], width = voxels * shape[kComponent],
                     pitch = padded_width(width);
  AlignedVector<T> rows(static_cast<std::size_t>((height + 1) * pitch));
  for (std::int64_t y = 0; y < height; ++y) {
    load_voxels(from, offset_of(from, n, c, z, y, x), voxels, rows.data() + y * pitch);
  }
  const Terms<T> along_y(pass.taps[1], height, pass);
  std::vector<const T*> inputs;
  std::vector<T> weights;
  T* const sum = rows.data() + height * pitch;
  for (std::int64_t y = 0; y < height; ++y) {
    along_y.collect(
        y, [&](std::int64_t at) { return rows.data() + at * pitch; }, inputs, weights);
    weighted_sum(inputs, weights, width, sum);
    store_voxels(sum, voxels, pass.output, offset_of(pass.output, n, c, z, y, x));
  }
}

void smooth_rows(const SmoothPass* pass, const TensorView* into, std::int64_t task) {
  pass->x.dtype == DType::f64 ? smooth_rows_as<double>(*pass, *into, task)
                              : smooth_rows_as<float>(*pass, *into, task);
}
void smooth_columns(const SmoothPass* pass, const TensorView* from, std::int64_t task) {
  pass->x.dtype == DType::f64 ? smooth_columns_as<double>(*pass, *from, task)
                              : smooth_columns_as<float>(*pass, *from, task);
}

}  // namespace similis::smooth_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::smooth_internal {
HWY_EXPORT(smooth_rows);
HWY_EXPORT(smooth_columns);

void smooth_cpu(const SmoothPass& pass, const Execution& exec) {
  const Extents& shape = pass.x.shape;
  const std::int64_t planes = shape[kImage] * shape[kChannel];
  const DType arithmetic = result_dtype(pass.x.dtype);
  const bool has_second_pass = pass.taps[1].size() > 1;
  Tensor wide;
  TensorView work = pass.output;
  if (has_second_pass && work.dtype != arithmetic) {
    work = wide = allocate(shape, arithmetic, {}, exec);
  }
  parallel_for(exec, planes * shape[kY], [&](std::int64_t task) {
    HWY_DYNAMIC_DISPATCH(smooth_rows)(&pass, &work, task);
  });
  if (!has_second_pass) return;
  const std::int64_t step = column_voxels(pass), parts = (shape[kX] + step - 1) / step;
  parallel_for(exec, planes * shape[kZ] * parts, [&](std::int64_t task) {
    HWY_DYNAMIC_DISPATCH(smooth_columns)(&pass, &work, task);
  });
}

}  // namespace similis::smooth_internal
#endif
