// SPDX-License-Identifier: Apache-2.0
// Smoothing on the CPU, in two passes over memory. Both compute weighted sums of rows in vectors.
//
//   first   rows of one y, all z:     along x, within a row ─> buffer ─> along z ─> work
//   second  rows of a plane, or parts: work ─> buffer ─> along y ─> output
//
// A row is x with the components of each voxel beside one another; along x the rows of a sum are
// one padded row, shifted. work is the output itself where that has the arithmetic's type. The
// buffers hold all inputs of a task before it writes, so x may be the output. They fit the
// second-level cache; sums across rows take some columns at a time, whose rows stay in the first.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/smooth/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "hwy/cache_control.h"
#include "src/core/parallel.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/smooth/smooth.h"

#ifndef SIMILIS_SMOOTH_COLUMNS
#define SIMILIS_SMOOTH_COLUMNS
namespace similis::smooth_internal {
// Voxels of a row that a task of the second pass takes: as many as the second-level cache holds, as
// long rows are read faster, but few where planes are fewer than threads may be.
inline std::int64_t column_voxels(const SmoothPass& pass) {
  constexpr std::int64_t kLeast = 128, kMost = std::int64_t{1} << 16, kFewPlanes = 16;
  const Extents& shape = pass.x.shape;
  const bool has_few = shape[kImage] * shape[kChannel] * shape[kZ] < kFewPlanes;
  const std::int64_t elements = has_few ? kLeast : std::max(kLeast, kMost / shape[kY]);
  return elements / shape[kComponent];
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

// Sums across as many rows as there are weights, by which two rows of outputs are found: the second
// begins a row later. The first row of all is `from`.
template <class T>
void weighted_sums(const T* HWY_RESTRICT from, std::int64_t pitch, const std::vector<T>& weights,
    std::int64_t count, T* HWY_RESTRICT out, T* HWY_RESTRICT next_out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::size_t taps = weights.size();
  for (std::int64_t i = 0; i < count; i += 4 * lanes) {
    const T* row = from + i;
    const auto first = hn::Set(d, weights[0]);
    auto a = hn::Mul(first, hn::LoadU(d, row)), b = hn::Mul(first, hn::LoadU(d, row + lanes)),
         c = hn::Mul(first, hn::LoadU(d, row + 2 * lanes)),
         e = hn::Mul(first, hn::LoadU(d, row + 3 * lanes));
    auto next_a = hn::Zero(d), next_b = next_a, next_c = next_a, next_e = next_a;
    for (std::size_t m = 1; m < taps; ++m) {
      row += pitch;
      const auto w = hn::Set(d, weights[m]), before = hn::Set(d, weights[m - 1]);
      const auto of_a = hn::LoadU(d, row), of_b = hn::LoadU(d, row + lanes),
                 of_c = hn::LoadU(d, row + 2 * lanes), of_e = hn::LoadU(d, row + 3 * lanes);
      a = hn::MulAdd(w, of_a, a);
      next_a = hn::MulAdd(before, of_a, next_a);
      b = hn::MulAdd(w, of_b, b);
      next_b = hn::MulAdd(before, of_b, next_b);
      c = hn::MulAdd(w, of_c, c);
      next_c = hn::MulAdd(before, of_c, next_c);
      e = hn::MulAdd(w, of_e, e);
      next_e = hn::MulAdd(before, of_e, next_e);
    }
    row += pitch;
    const auto last = hn::Set(d, weights[taps - 1]);
    next_a = hn::MulAdd(last, hn::LoadU(d, row), next_a);
    next_b = hn::MulAdd(last, hn::LoadU(d, row + lanes), next_b);
    next_c = hn::MulAdd(last, hn::LoadU(d, row + 2 * lanes), next_c);
    next_e = hn::MulAdd(last, hn::LoadU(d, row + 3 * lanes), next_e);
    hn::StoreU(a, d, out + i);
    hn::StoreU(b, d, out + i + lanes);
    hn::StoreU(c, d, out + i + 2 * lanes);
    hn::StoreU(e, d, out + i + 3 * lanes);
    hn::StoreU(next_a, d, next_out + i);
    hn::StoreU(next_b, d, next_out + i + lanes);
    hn::StoreU(next_c, d, next_out + i + 2 * lanes);
    hn::StoreU(next_e, d, next_out + i + 3 * lanes);
  }
}

// Returns true if the voxels of a row are numbers of type T side by side.
template <class T> bool has_dense_rows(const TensorView& view) {
  const std::int64_t components = view.shape[kComponent];
  return view.dtype == (sizeof(T) == 8 ? DType::f64 : DType::f32) &&
         view.strides[kX] == components && (components == 1 || view.strides[kComponent] == 1);
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

// Stores parts of rows, those of numbers side by side without a switch for the dtype.
template <class T> class Keeper {
 public:
  explicit Keeper(const TensorView& view) : view_(view), is_dense_(has_dense_rows<T>(view)) {}
  void store(const T* in, std::int64_t voxels, std::int64_t offset) const {
    if (!is_dense_) return store_voxels(in, voxels, view_, offset);
    std::copy_n(in, voxels * view_.shape[kComponent], static_cast<T*>(view_.data()) + offset);
  }

 private:
  const TensorView& view_;
  bool is_dense_;
};

// Fetches a row that is loaded next: rows of planes lie too far apart to be foreseen.
template <class T> void fetch(const T* row, std::int64_t count) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += kLine) hwy::Prefetch(row + i);
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

// Rows of a task, and numbers behind each that vectors may read and write. An odd number of cache
// lines lies between rows, so that those of a column fall on different places of the cache.
template <class T> class TaskRows {
 public:
  TaskRows(std::int64_t count, std::int64_t width)
      : pitch_(((width + kRowPadding - 1) / kRowPadding + 1) * kRowPadding + kLine),
        elements_(hwy::AllocateAligned<T>(static_cast<std::size_t>(count * pitch_ + kBehind))) {
    for (std::int64_t i = 0; i < count; ++i) std::fill_n(row(i) + width, pitch_ - width, T(0));
  }
  T* row(std::int64_t i) const { return elements_.get() + i * pitch_; }
  std::int64_t pitch() const { return pitch_; }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(T);
  static constexpr std::int64_t kBehind = 4 * kRowPadding;  // the longest vectors, four at once
  std::int64_t pitch_;
  hwy::AlignedFreeUniquePtr<T[]> elements_;
};

// Weighted sums across rows; store(at, first, count, sums) takes those of `count` voxels from
// `first` on of row `at`.
template <class T, class Store>
void smooth_across(const SmoothPass& pass, const std::vector<double>& taps, const TaskRows<T>& rows,
    std::int64_t extent, std::int64_t voxels, const Store& store) {
  constexpr std::int64_t kColumns = 768 / sizeof(T);  // whole voxels, and whole fours of vectors
  const std::int64_t components = pass.x.shape[kComponent], width = voxels * components,
                     radius = static_cast<std::int64_t>(taps.size()) - 1;
  const Terms<T> terms(taps, extent, pass);
  std::vector<const T*> inputs;
  std::vector<T> weights, inner;
  for (std::int64_t k = -radius; k <= radius; ++k) {
    inner.push_back(static_cast<T>(taps[static_cast<std::size_t>(k < 0 ? -k : k)]));
  }
  alignas(64) T sums[2][kColumns + kRowPadding];
  for (std::int64_t first = 0; first < width; first += kColumns) {
    const std::int64_t count = std::min(kColumns, width - first);
    const auto keep = [&](std::int64_t at, const T* from)
                          HWY_ATTR { store(at, first / components, count / components, from); };
    for (std::int64_t at = 0; at < extent; ++at) {
      if (at >= radius && at + 1 + radius < extent) {
        weighted_sums(rows.row(at - radius) + first, rows.pitch(), inner, count, sums[0], sums[1]);
        keep(at, sums[0]);
        keep(++at, sums[1]);
        continue;
      }
      terms.collect(
          at, [&](std::int64_t from) { return rows.row(from) + first; }, inputs, weights);
      weighted_sum(inputs, weights, count, sums[0]);
      keep(at, sums[0]);
    }
  }
}

// All rows of one y, along x and z.
template <class T>
void smooth_rows_as(const SmoothPass& pass, const TensorView& into, std::int64_t task) {
  const Extents& shape = pass.x.shape;
  const std::int64_t depth = shape[kZ], voxels = shape[kX], components = shape[kComponent],
                     width = voxels * components;
  const std::int64_t y = task % shape[kY], c = task / shape[kY] % shape[kChannel],
                     n = task / shape[kY] / shape[kChannel];
  RowSmoother<T> along_x(pass);
  const TaskRows<T> rows(depth, width);
  const bool is_dense = has_dense_rows<T>(pass.x);
  for (std::int64_t z = 0; z < depth; ++z) {
    const std::int64_t offset = offset_of(pass.x, n, c, z, y, 0);
    if (is_dense) {
      const T* const row = static_cast<const T*>(pass.x.data()) + offset;
      std::copy_n(row, width, along_x.input());
      if (z + 1 < depth) fetch(row + pass.x.strides[kZ], width);
    } else {
      load_voxels(pass.x, offset, voxels, along_x.input());
    }
    along_x.run(rows.row(z));
  }
  const Keeper<T> keeper(into);
  if (pass.taps[0].size() == 1) {
    for (std::int64_t z = 0; z < depth; ++z) {
      keeper.store(rows.row(z), voxels, offset_of(into, n, c, z, y, 0));
    }
    return;
  }
  smooth_across(pass, pass.taps[0], rows, depth, voxels,
      [&](std::int64_t z, std::int64_t x, std::int64_t count, const T* sums) {
        keeper.store(sums, count, offset_of(into, n, c, z, y, x));
      });
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
  const std::int64_t height = shape[kY], width = voxels * shape[kComponent];
  const TaskRows<T> rows(height, width);
  const bool is_dense = has_dense_rows<T>(from);
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t offset = offset_of(from, n, c, z, y, x);
    if (is_dense) {
      std::copy_n(static_cast<const T*>(from.data()) + offset, width, rows.row(y));
    } else {
      load_voxels(from, offset, voxels, rows.row(y));
    }
  }
  const Keeper<T> keeper(pass.output);
  smooth_across(pass, pass.taps[1], rows, height, voxels,
      [&](std::int64_t y, std::int64_t first, std::int64_t count, const T* sums) {
        keeper.store(sums, count, offset_of(pass.output, n, c, z, y, x + first));
      });
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
