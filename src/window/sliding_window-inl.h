// SPDX-License-Identifier: Apache-2.0
// A sliding window on the CPU: it moves through a tile of one plane, row by row, and gives an
// operation the window averages of its products at each centre; for a gradient, it takes the
// operation's derivatives by these averages through the transpose of the average, row by row again.
//
//   operation.products(row)  ─> ring of rows of K products           (3-D: of 2r+1 planes first)
//   ring, down               ─> a batch of rows of averages along y
//   batch, across            ─> averages ─> operation.outputs ─> sums, map, rows of J derivatives
//   ring of rows of derivatives, transposed the same way ─> operation.gradient of each row
//
// Only the sums of weighted rows are written in vectors; everything else is bookkeeping. Rows are
// as long as the tile plus its halo, rounded up to whole unrolled steps: there is no tail, and
// elements beyond a row's end are never read.
//
// Included once per SIMD target, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, hence the
// guard that flips.
#if defined(SIMILIS_WINDOW_SLIDING_WINDOW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WINDOW_SLIDING_WINDOW_INL_H
#undef SIMILIS_WINDOW_SLIDING_WINDOW_INL_H
#else
#define SIMILIS_WINDOW_SLIDING_WINDOW_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "hwy/highway.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/window/axis.h"
#include "src/window/tile.h"

HWY_BEFORE_NAMESPACE();
namespace similis::window_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors a step: enough independent sums to hide the latency of an addition.
inline constexpr std::size_t kUnroll = 4;

// out[i] = Σ taps[k]·rows[k][i]. Writes whole steps.
template <class T>
void weighted_sum(
    const std::vector<T>& taps, const T* const* rows, std::size_t count, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += kUnroll * lanes) {
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (std::size_t k = 0; k < taps.size(); ++k) {
      const auto tap = hn::Set(d, taps[k]);
      const T* HWY_RESTRICT row = rows[k] + i;
      sum0 = hn::MulAdd(tap, hn::LoadU(d, row), sum0);
      sum1 = hn::MulAdd(tap, hn::LoadU(d, row + lanes), sum1);
      sum2 = hn::MulAdd(tap, hn::LoadU(d, row + 2 * lanes), sum2);
      sum3 = hn::MulAdd(tap, hn::LoadU(d, row + 3 * lanes), sum3);
    }
    hn::StoreU(sum0, d, out + i);
    hn::StoreU(sum1, d, out + i + lanes);
    hn::StoreU(sum2, d, out + i + 2 * lanes);
    hn::StoreU(sum3, d, out + i + 3 * lanes);
  }
}

// Rows are averaged in batches. Down, each row read serves as many sums. Between down and across
// the rows of a batch lie interleaved, those of one column side by side: the next column is then
// kBatch elements further, so that the vectors which neighbouring sums take are the same and are
// read once. With separate rows each tap would be a load of its own, most often across two lines of
// the cache: 1.7 times as long.
inline constexpr std::size_t kBatch = 4;
inline constexpr std::int64_t kBatchRows = kBatch;

// sum_b = Σ taps[k]·at(b, k) over 2·radius + 1 taps, which are alike from both ends: pairs are
// added before they are weighted, since many processors add beside their multipliers. Radius: an
// integral_constant where the compiler is to unroll, else a number.
template <class T, class Radius, class At, class V>
HWY_INLINE void symmetric_sums(
    const T* taps, Radius radius, const At& at, V& sum0, V& sum1, V& sum2, V& sum3) {
  const hn::ScalableTag<T> d;
  const auto middle = hn::Set(d, taps[radius]);
  sum0 = hn::Mul(middle, at(0, radius));
  sum1 = hn::Mul(middle, at(1, radius));
  sum2 = hn::Mul(middle, at(2, radius));
  sum3 = hn::Mul(middle, at(3, radius));
  for (std::size_t k = 0; k < radius; ++k) {
    const auto tap = hn::Set(d, taps[k]);
    const std::size_t opposite = 2 * radius - k;
    sum0 = hn::MulAdd(tap, hn::Add(at(0, k), at(0, opposite)), sum0);
    sum1 = hn::MulAdd(tap, hn::Add(at(1, k), at(1, opposite)), sum1);
    sum2 = hn::MulAdd(tap, hn::Add(at(2, k), at(2, opposite)), sum2);
    sum3 = hn::MulAdd(tap, hn::Add(at(3, k), at(3, opposite)), sum3);
  }
}

// out[kBatch·i + b] = Σ taps[k]·rows[b + k][i]. Writes whole vectors.
template <class T, class Radius>
void average_batch_down(
    const T* taps, Radius radius, const T* const* rows, std::size_t count, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto at = [=](std::size_t b, std::size_t k)
                        HWY_ATTR { return hn::LoadU(d, rows[b + k] + i); };
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    symmetric_sums(taps, radius, at, sum0, sum1, sum2, sum3);
    hn::StoreInterleaved4(sum0, sum1, sum2, sum3, d, out + kBatch * i);
  }
}

// out[b][i] = Σ taps[k]·in[kBatch·(i + k) + b]. Writes whole vectors.
template <class T, class Radius>
void average_batch_across(const T* taps, Radius radius, const T* HWY_RESTRICT in, std::size_t count,
    T* const out[kBatch]) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN T block[kBatch * hn::MaxLanes(d)];
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto at = [=](std::size_t part, std::size_t k)
                        HWY_ATTR { return hn::LoadU(d, in + kBatch * (i + k) + part * lanes); };
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    symmetric_sums(taps, radius, at, sum0, sum1, sum2, sum3);
    hn::Store(sum0, d, block);
    hn::Store(sum1, d, block + lanes);
    hn::Store(sum2, d, block + 2 * lanes);
    hn::Store(sum3, d, block + 3 * lanes);
    hn::LoadInterleaved4(d, block, sum0, sum1, sum2, sum3);
    hn::StoreU(sum0, d, out[0] + i);
    hn::StoreU(sum1, d, out[1] + i);
    hn::StoreU(sum2, d, out[2] + i);
    hn::StoreU(sum3, d, out[3] + i);
  }
}

// Calls body with the radius of a window: as a constant for the one that nearly everybody takes (as
// a number it takes half as long again).
template <class Body> HWY_INLINE void with_radius(std::size_t radius, const Body& body) {
  if (radius == 5) return body(std::integral_constant<std::size_t, 5>());
  body(radius);
}

// A stack of rows, `rows` of them at each index; index i is in slot i mod size. All start as zeros
// and end in two unrolled steps of padding.
template <class T> class RowRing {
 public:
  RowRing(std::int64_t size, std::size_t rows, std::size_t length)
      : size_(size), rows_(rows), stride_(round_up(length)), data_(total(), T(0)) {}

  T* row(std::int64_t index, std::size_t number) {
    const std::int64_t slot = (index % size_ + size_) % size_;
    return data_.data() + (static_cast<std::size_t>(slot) * rows_ + number) * stride_;
  }

 private:
  static std::size_t round_up(std::size_t length) {
    const std::size_t step = kUnroll * hn::Lanes(hn::ScalableTag<T>());
    return (length + step - 1) / step * step + step;
  }
  // One step more than the rows: a shifted read of the last row ends in it.
  std::size_t total() const {
    return static_cast<std::size_t>(size_) * rows_ * stride_ + round_up(0);
  }
  std::int64_t size_;
  std::size_t rows_, stride_;
  AlignedVector<T> data_;
};

// Operation:
//   using Value = float or double;
//   products(): K;  derivatives(): J, 0 where no gradient is wanted
//   void products(z, y, x, count, T* const rows[K]): the products of pixels x … x+count-1 of a row;
//       any of z, y and x may lie beyond the image
//   void outputs(z, y, centres, owned, const T* const averages[K], T* const derivatives[J]): what
//       follows from the averages of a row's centres; sums and maps take only the owned ones
//   void gradient(z, y, pixels, const T* const transposed[J]): of a row's pixels
template <class Operation> class SlidingWindow {
 public:
  using T = typename Operation::Value;

  SlidingWindow(const Axis& z, const Axis& y, const Axis& x, const Tile& tile, Operation& operation)
      : axis_z_(z),
        axis_y_(y),
        axis_x_(x),
        tile_(tile),
        operation_(operation),
        centres_(centres_of(tile, operation.derivatives() > 0)),
        taps_z_(cast(z.taps())),
        taps_y_(cast(y.taps())),
        taps_x_(cast(x.taps())),
        product_first_(centres_.x.first - x.radius()),
        product_count_(size(centres_.x) + 2 * x.radius()),
        product_planes_(
            is_3d() ? window(z) * plane_rows() : 1, operation.products(), length(product_count_)),
        product_rows_(window(y) + kBatchRows - 1, operation.products(), length(product_count_)),
        down_(1, operation.products(), kBatch * length(product_count_)),
        averages_(kBatchRows, operation.products(), length(size(centres_.x))),
        derivative_planes_(
            is_3d() && operation.derivatives() > 0 ? window(z) * size(centres_.y) : 1,
            operation.derivatives(), length(size(centres_.x))),
        derivative_rows_(
            window(y) + 2 * kBatchRows, operation.derivatives(), length(size(centres_.x))),
        edge_rows_(kBatchRows, 1, length(size(centres_.x))),
        derivatives_down_(
            1, operation.derivatives(), kBatch * length(size(tile.x) + 2 * x.radius())),
        transposed_(kBatchRows, operation.derivatives(), length(size(tile.x))),
        inputs_(std::max(taps_z_.size(), taps_y_.size() + kBatch - 1)),
        products_(operation.products()),
        averages_of_row_(operation.products()),
        derivatives_(operation.derivatives()),
        transposed_of_row_(operation.derivatives()) {
    if (!axis_x_.folds() || operation.derivatives() == 0) return;
    for (std::int64_t pixel = tile.x.first; pixel < tile.x.last; ++pixel) {
      const bool is_inside = pixel > x.radius() && pixel < x.extent() - 1 - x.radius();
      if (!is_inside) folding_columns_.push_back({pixel, cast(x.transposed_taps(pixel))});
    }
  }

  void run() {
    if (size(centres_.z) == 0 || size(centres_.y) == 0 || size(centres_.x) == 0) return;
    std::int64_t next_gradient = tile_.z.first;
    for (std::int64_t z = centres_.z.first; z < centres_.z.last; ++z) {
      average_plane(z);
      if (operation_.derivatives() == 0 || !is_3d()) continue;
      const bool is_last = z + 1 == centres_.z.last;
      while (next_gradient < tile_.z.last && (next_gradient + axis_z_.radius() <= z || is_last)) {
        transpose_plane(next_gradient++);
      }
    }
  }

 private:
  static std::vector<T> cast(const std::vector<double>& taps) { return {taps.begin(), taps.end()}; }
  static std::int64_t window(const Axis& axis) { return 2 * axis.radius() + 1; }
  static std::int64_t size(const Interval& interval) { return interval.last - interval.first; }
  static std::size_t length(std::int64_t count) { return static_cast<std::size_t>(count); }
  bool is_3d() const { return axis_z_.radius() > 0; }
  std::int64_t plane_rows() const { return size(centres_.y) + 2 * axis_y_.radius(); }

  // The centres whose windows matter to the tile: its own, or all that reach one of its pixels.
  static Interval centres_along(const Axis& axis, const Interval& pixels, bool reaching) {
    const std::int64_t halo = reaching ? axis.radius() : 0;
    const std::int64_t first = std::max(axis.first_centre(), pixels.first - halo);
    return {first, std::max(first, std::min(axis.last_centre(), pixels.last + halo))};
  }
  Tile centres_of(const Tile& tile, bool reaching) const {
    return {centres_along(axis_z_, tile.z, reaching), centres_along(axis_y_, tile.y, reaching),
        centres_along(axis_x_, tile.x, reaching)};
  }

  // The products of one row of pixels of plane z, averaged along z where the window has depth.
  void fill_product_row(std::int64_t z, std::int64_t y) {
    if (!is_3d()) {
      for (std::size_t k = 0; k < products_.size(); ++k) products_[k] = product_rows_.row(y, k);
      operation_.products(z, y, product_first_, length(product_count_), products_.data());
      return;
    }
    for (std::size_t k = 0; k < products_.size(); ++k) {
      for (std::size_t j = 0; j < taps_z_.size(); ++j) {
        inputs_[j] = plane_row(z - axis_z_.radius() + static_cast<std::int64_t>(j), y, k);
      }
      weighted_sum(taps_z_, inputs_.data(), length(product_count_), product_rows_.row(y, k));
    }
  }

  // Row y of plane z in the ring of planes of products.
  T* plane_row(std::int64_t z, std::int64_t y, std::size_t product) {
    const std::int64_t slot = (z % window(axis_z_) + window(axis_z_)) % window(axis_z_);
    const std::int64_t row = y - (centres_.y.first - axis_y_.radius());
    return product_planes_.row(slot * plane_rows() + row, product);
  }

  void fill_product_plane(std::int64_t z) {
    const std::int64_t first = centres_.y.first - axis_y_.radius();
    for (std::int64_t y = first; y < first + plane_rows(); ++y) {
      for (std::size_t k = 0; k < products_.size(); ++k) products_[k] = plane_row(z, y, k);
      operation_.products(z, y, product_first_, length(product_count_), products_.data());
    }
  }

  // Everything at the centres of plane z. Planes come in order, so each adds one to the ring. In
  // 2-D the gradient follows as soon as the derivatives that it needs are there.
  void average_plane(std::int64_t z) {
    if (is_3d()) {
      const bool is_first = z == centres_.z.first;
      for (std::int64_t plane = is_first ? z - axis_z_.radius() : z + axis_z_.radius();
           plane <= z + axis_z_.radius(); ++plane) {
        fill_product_plane(plane);
      }
    }
    std::int64_t filled = centres_.y.first - axis_y_.radius();
    std::int64_t next_gradient = tile_.y.first;
    for (std::int64_t y = centres_.y.first; y < centres_.y.last; y += kBatchRows) {
      const std::int64_t rows = std::min(kBatchRows, centres_.y.last - y);
      for (; filled < y + rows + axis_y_.radius(); ++filled) fill_product_row(z, filled);
      for (std::size_t k = 0; k < operation_.products(); ++k) {
        const auto row = [&](std::int64_t index) { return product_rows_.row(index, k); };
        average_down(y - axis_y_.radius(), row, length(product_count_), down_.row(0, k));
      }
      average_rows(z, {y, y + rows});
      if (operation_.derivatives() > 0 && !is_3d()) transpose_rows(z, &next_gradient, y + rows);
    }
  }

  // A batch: out[kBatch·i + b] = Σ taps_y_[k]·row(first + b + k)[i]. Rows of the ring that are not
  // filled yet give sums that are never read.
  template <class Row>
  void average_down(std::int64_t first, const Row& row, std::size_t count, T* out) {
    for (std::int64_t k = 0; k < window(axis_y_) + kBatchRows - 1; ++k) {
      inputs_[length(k)] = row(first + k);
    }
    with_radius(length(axis_y_.radius()), [&](auto radius) HWY_ATTR {
      average_batch_down(taps_y_.data(), radius, inputs_.data(), count, out);
    });
  }

  // A batch: out.row(b, number)[i] = Σ taps_x_[k]·in[kBatch·(i + k) + b].
  void average_across(const T* in, std::size_t count, RowRing<T>& out, std::size_t number) {
    T* const rows[kBatch] = {
        out.row(0, number), out.row(1, number), out.row(2, number), out.row(3, number)};
    with_radius(length(axis_x_.radius()), [&](auto radius) HWY_ATTR {
      average_batch_across(taps_x_.data(), radius, in, count, rows);
    });
  }

  // A batch of rows whose averages along y are in down_.
  void average_rows(std::int64_t z, Interval y) {
    for (std::size_t k = 0; k < averages_of_row_.size(); ++k) {
      average_across(down_.row(0, k), length(size(centres_.x)), averages_, k);
    }
    const Interval owned = intersection(centres_.x, tile_.x);
    for (std::int64_t row = y.first; row < y.last; ++row) {
      for (std::size_t k = 0; k < averages_of_row_.size(); ++k) {
        averages_of_row_[k] = averages_.row(row - y.first, k);
      }
      for (std::size_t j = 0; j < derivatives_.size(); ++j) {
        derivatives_[j] = derivative_row(z, row, j);
      }
      const bool owns_row = contains(tile_.z, z) && contains(tile_.y, row);
      operation_.outputs(z, row, centres_.x, owns_row ? owned : Interval{owned.first, owned.first},
          averages_of_row_.data(), derivatives_.data());
    }
  }

  // The memory for the derivatives of row y of plane z: in the ring of planes if a sum along z
  // follows, else in the ring of rows.
  T* derivative_row(std::int64_t z, std::int64_t y, std::size_t number) {
    if (!is_3d()) return derivative_rows_.row(y, number);
    const std::int64_t slot = (z % window(axis_z_) + window(axis_z_)) % window(axis_z_);
    return derivative_planes_.row(slot * size(centres_.y) + y - centres_.y.first, number);
  }

  // The weights with which one pixel takes part in the windows around it, and the first of those
  // windows' centres; only centres that exist are counted.
  struct Transposed {
    std::int64_t first_centre;
    std::vector<T> taps;
  };
  static Transposed transposed(const Axis& axis, const Interval& centres, std::int64_t pixel) {
    const std::vector<double> all = axis.transposed_taps(pixel);
    const std::int64_t first = std::max(pixel - axis.radius(), centres.first);
    const std::int64_t last = std::min(pixel + axis.radius() + 1, centres.last);
    Transposed result{first, {}};
    result.taps.reserve(all.size());
    for (std::int64_t centre = first; centre < last; ++centre) {
      result.taps.push_back(
          static_cast<T>(all[static_cast<std::size_t>(centre - pixel + axis.radius())]));
    }
    return result;
  }

  void transpose_plane(std::int64_t z) {
    const Transposed along_z = transposed(axis_z_, centres_.z, z);
    std::int64_t next_gradient = tile_.y.first;
    for (std::int64_t y = centres_.y.first; y < centres_.y.last; ++y) {
      sum_derivatives_along_z(along_z, y);
      transpose_rows(z, &next_gradient, y + 1);
    }
  }

  void sum_derivatives_along_z(const Transposed& along_z, std::int64_t y) {
    for (std::size_t j = 0; j < operation_.derivatives(); ++j) {
      for (std::size_t k = 0; k < along_z.taps.size(); ++k) {
        inputs_[k] = derivative_row(along_z.first_centre + static_cast<std::int64_t>(k), y, j);
      }
      weighted_sum(
          along_z.taps, inputs_.data(), length(size(centres_.x)), derivative_rows_.row(y, j));
    }
  }

  // The gradient of all rows of plane z from *next on whose windows have their derivatives in
  // derivative_rows_, which ends before row `end`.
  void transpose_rows(std::int64_t z, std::int64_t* next, std::int64_t end) {
    while (*next < tile_.y.last) {
      const Interval y{*next, std::min(*next + kBatchRows, tile_.y.last)};
      if (end < std::min(y.last + axis_y_.radius(), centres_.y.last)) return;
      edge_.clear();
      const bool is_edge = !is_inside(y.first) || !is_inside(y.last - 1);
      for (std::int64_t row = y.first; is_edge && row < y.last; ++row) {
        edge_.push_back(transposed(axis_y_, centres_.y, row));
      }
      for (std::size_t j = 0; j < operation_.derivatives(); ++j) transpose_down(y, j);
      transpose_across(z, y);
      *next = y.last;
    }
  }

  // Derivative j of a batch of rows through the transpose along y, into derivatives_down_. Its
  // column 0 is the pixel radius to the left of the tile; columns without a centre hold zeros.
  void transpose_down(Interval y, std::size_t j) {
    const std::size_t count = length(size(centres_.x));
    const std::int64_t left = centres_.x.first - (tile_.x.first - axis_x_.radius());
    T* const out = derivatives_down_.row(0, j) + kBatch * length(left);
    if (edge_.empty()) {
      const auto row = [&](std::int64_t centre) { return derivative_rows_.row(centre, j); };
      average_down(y.first - axis_y_.radius(), row, count, out);
    } else {
      transpose_edge(j, out);
    }
    const std::int64_t right = size(tile_.x) + 2 * axis_x_.radius() - left - size(centres_.x);
    std::fill_n(out + kBatch * count, kBatch * length(right), T(0));
  }

  void transpose_edge(std::size_t j, T* out) {
    const std::size_t count = length(size(centres_.x));
    T* sums[kBatch] = {};
    for (std::size_t b = 0; b < edge_.size(); ++b) {
      const auto& [first, taps] = edge_[b];
      for (std::size_t k = 0; k < taps.size(); ++k) {
        inputs_[k] = derivative_rows_.row(first + static_cast<std::int64_t>(k), j);
      }
      sums[b] = edge_rows_.row(static_cast<std::int64_t>(b), 0);
      weighted_sum(taps, inputs_.data(), count, sums[b]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t b = 0; b < edge_.size(); ++b) out[kBatch * i + b] = sums[b][i];
    }
  }

  // True if every window along y that sees row y exists and sees it once: then the transpose is the
  // average.
  bool is_inside(std::int64_t y) const {
    const std::int64_t reach = axis_y_.folds() ? axis_y_.radius() + 1 : axis_y_.radius();
    return y - reach >= axis_y_.first_centre() && y + reach < axis_y_.last_centre();
  }

  // A batch of rows whose derivatives summed along y are in derivatives_down_.
  void transpose_across(std::int64_t z, Interval y) {
    for (std::size_t j = 0; j < transposed_of_row_.size(); ++j) {
      average_across(derivatives_down_.row(0, j), length(size(tile_.x)), transposed_, j);
      fold_columns(j);
    }
    for (std::int64_t row = y.first; row < y.last; ++row) {
      for (std::size_t j = 0; j < transposed_of_row_.size(); ++j) {
        transposed_of_row_[j] = transposed_.row(row - y.first, j);
      }
      operation_.gradient(z, row, tile_.x, transposed_of_row_.data());
    }
  }

  // The columns that windows see more than once, beyond the image's edge: one by one.
  void fold_columns(std::size_t j) {
    const T* const derivatives = derivatives_down_.row(0, j);
    for (const FoldingColumn& column : folding_columns_) {
      const std::size_t offset = length(column.pixel - tile_.x.first);
      for (std::size_t b = 0; b < kBatch; ++b) {
        T sum = 0;
        for (std::size_t k = 0; k < column.taps.size(); ++k) {
          sum += column.taps[k] * derivatives[kBatch * (offset + k) + b];
        }
        transposed_.row(static_cast<std::int64_t>(b), j)[offset] = sum;
      }
    }
  }

  struct FoldingColumn {
    std::int64_t pixel;
    std::vector<T> taps;
  };

  const Axis &axis_z_, &axis_y_, &axis_x_;
  const Tile tile_;
  Operation& operation_;
  const Tile centres_;
  const std::vector<T> taps_z_, taps_y_, taps_x_;
  const std::int64_t product_first_, product_count_;  // columns of products
  RowRing<T> product_planes_, product_rows_, down_, averages_;
  RowRing<T> derivative_planes_, derivative_rows_, edge_rows_, derivatives_down_, transposed_;
  std::vector<const T*> inputs_;  // the rows of a sum
  std::vector<T*> products_;      // rows of the current batch, as the operation takes them
  std::vector<const T*> averages_of_row_;
  std::vector<T*> derivatives_;
  std::vector<const T*> transposed_of_row_;
  std::vector<FoldingColumn> folding_columns_;
  // For each row of a batch along y, if some are seen by fewer windows or more than once, else
  // empty.
  std::vector<Transposed> edge_;
};

}  // namespace similis::window_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
