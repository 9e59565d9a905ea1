// SPDX-License-Identifier: Apache-2.0
// The second sliding window kernel: window sums of the derivatives are the gradient. It is the
// first kernel with x and y exchanged, since the derivatives of a column lie side by side in
// memory: a thread has a row of the stage and kOutputs windows across, and writes the gradient of
// kOutputs pixels of a column. All sums are f64, as y·Σ and x·Σ cancel against the third.
#pragma once

#include <type_traits>

#include "src/gpu/cuda/bulk_copy.h"
#include "src/lncc/cuda/fast_path.h"
#include "src/lncc/cuda/outputs_per_thread.cuh"
#include "src/lncc/cuda/values.cuh"

namespace similis::lncc_internal {
namespace {

using Sums = DerivativeSums;

struct SharedTile {
  double2* pairs;
  double* rests;
  int column_length;

  SIMILIS_HOST_DEVICE static int bytes(const Tiles& tiles) {
    return 3 * tiles.shared_sums() * static_cast<int>(sizeof(double));
  }
  __device__ SharedTile(unsigned char* shared, const Tiles& tiles)
      : column_length(tiles.threads_across + 1) {
    pairs = reinterpret_cast<double2*>(shared);
    rests = reinterpret_cast<double*>(pairs + tiles.shared_sums());
  }
  __device__ __forceinline__ void store(int at, const Sums& s) const {
    pairs[at] = {s.by_covariance, s.by_variance};
    rests[at] = s.rest;
  }
  __device__ __forceinline__ Sums load(int at) const {
    const double2 pair = pairs[at];
    return {pair.x, pair.y, rests[at]};
  }
};

SIMILIS_HOST_DEVICE int stage_columns(const Tiles& tiles, int radius) {
  return tiles.threads_along * kOutputs + 2 * radius;
}

// The derivatives that a step of the sliding window sees: those of a plane that enters, and of one
// that leaves or, while sums begin, enters too. They are 0 where no window is centred.
template <class Value> class Stage {
 public:
  // A barrier must come before the first fill().
  __device__ Stage(unsigned char* shared, unsigned char* shared_tile, const GradientArguments& m,
      int volume, int image, int x_first, int y_first)
      : m_(m),
        derivatives_(reinterpret_cast<CentreDerivatives<Value>*>(shared)),
        in_shared_tile_(reinterpret_cast<CentreDerivatives<Value>*>(shared_tile)),
        rows_(m.tiles.threads_across),
        columns_(stage_columns(m.tiles, m.problem.geometry.radius[2])),
        copies_(derivatives_ + 2 * columns_ * rows_),
        volume_(volume),
        image_(image) {
    const Geometry& g = m.problem.geometry;
    const Box& kept = m.derivatives.kept;
    x_begin_ = x_first - g.radius[2];
    y_begin_ = y_first - g.radius[1];
    const int x_end = x_begin_ + columns_, y_end = y_begin_ + rows_;
    kept_columns_ = {x_begin_ < kept.columns.first ? kept.columns.first : x_begin_,
        x_end < kept.columns.last ? x_end : kept.columns.last};
    kept_rows_ = {y_begin_ < kept.rows.first ? kept.rows.first : y_begin_,
        y_end < kept.rows.last ? y_end : kept.rows.last};
    if (kept_rows_.last < kept_rows_.first) kept_rows_.last = kept_rows_.first;
    if (kept_columns_.last < kept_columns_.first) kept_columns_.last = kept_columns_.first;
    for (int place = 0; place < (has_two_places() ? 2 : 1); ++place) {
      clear(place, 0);
      clear(place, 1);
    }
  }

  // There are two places while no sums are in the shared tile, if it is large enough.
  __device__ bool has_two_places() const {
    return 2 * plane_size() * static_cast<int>(sizeof(CentreDerivatives<Value>)) <=
           SharedTile::bytes(m_.tiles);
  }
  // Fills a place with two planes, the second of which may be missing.
  __device__ __forceinline__ void fill(int place, int one, int two, bool has_two) {
    const Range& planes = m_.derivatives.kept.planes;
    const bool is_first = planes.holds(one), is_second = has_two && planes.holds(two);
    if (kCopies && threadIdx.x == 0) {
      copies_.expect(place,
          column_bytes() * kept_columns_.length() * ((is_first ? 1 : 0) + (is_second ? 1 : 0)));
    }
    if (is_first) copy(place, 0, one);
    if (is_second) copy(place, 1, two);
    if (!is_first) clear(place, 0);
    if (has_two && !is_second) clear(place, 1);
  }
  // Waits for this thread's copies; a barrier must follow.
  __device__ __forceinline__ void wait(int place) {
    if (kCopies) copies_.wait(place);
  }

  // The derivatives under a thread's windows.
  struct Row {
    const CentreDerivatives<Value>* first;
    int rows, plane_size;

    __device__ __forceinline__ Sums one(int line) const { return load_centre(first + line * rows); }
    __device__ __forceinline__ Sums two(int line) const {
      return load_centre(first + line * rows + plane_size);
    }
  };
  __device__ __forceinline__ Row row(int place, int column, int row) const {
    return {derivatives(place) + column * rows_ + row, rows_, plane_size()};
  }

 private:
  static constexpr bool kCopies = sizeof(CentreDerivatives<Value>) == 16;

  __device__ int plane_size() const { return columns_ * rows_; }
  __device__ CentreDerivatives<Value>* derivatives(int place) const {
    return place == 0 ? derivatives_ : in_shared_tile_;
  }
  __device__ int column_bytes() const {
    return kept_rows_.length() * static_cast<int>(sizeof(CentreDerivatives<Value>));
  }
  // Warps share the columns, and in each warp one thread after the other asks the engine for a
  // column.
  __device__ __forceinline__ void copy(int place, int part, int z) const {
    const int warps = static_cast<int>(blockDim.x) / gpu::kSubgroup;
    const int warp = static_cast<int>(threadIdx.x) / gpu::kSubgroup;
    const int lane = static_cast<int>(threadIdx.x) % gpu::kSubgroup;
    const Box& kept = m_.derivatives.kept;
    const int kept_rows = kept.rows.length();
    const auto* const plane =
        reinterpret_cast<const CentreDerivatives<Value>*>(m_.derivatives.plane(volume_, image_, z));
    for (int x = kept_columns_.first + lane * warps + warp; x < kept_columns_.last;
         x += warps * gpu::kSubgroup) {
      const CentreDerivatives<Value>* const from =
          plane + ((x - kept.columns.first) * kept_rows + (kept_rows_.first - kept.rows.first));
      CentreDerivatives<Value>* const to = derivatives_ + part * plane_size() +
                                           (x - x_begin_) * rows_ + (kept_rows_.first - y_begin_);
      if constexpr (kCopies) {
        if (kept_rows_.length() > 0) copies_.copy(place, to, from, column_bytes());
      } else {
        for (int i = 0; i < kept_rows_.length(); ++i) to[i] = from[i];
      }
    }
  }
  __device__ void clear(int place, int part) const {
    CentreDerivatives<Value>* const to = derivatives(place) + part * plane_size();
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < plane_size();
         i += static_cast<int>(blockDim.x)) {
      to[i] = {};
    }
    gpu::BulkCopies::publish();
  }

  const GradientArguments& m_;
  CentreDerivatives<Value>*const derivatives_, *const in_shared_tile_;
  const int rows_, columns_;
  gpu::BulkCopies copies_;
  const int volume_, image_;
  int x_begin_, y_begin_;  // the place in the image where the stage begins
  Range kept_columns_, kept_rows_;
};

// The same straight from memory, for windows that no stage has room for.
class Far {
 public:
  __device__ Far(unsigned char*, unsigned char*, const GradientArguments& m, int volume, int image,
      int x_first, int y_first)
      : m_(m),
        volume_(volume),
        image_(image),
        x_begin_(x_first - m.problem.geometry.radius[2]),
        y_begin_(y_first - m.problem.geometry.radius[1]) {}
  struct Row {
    const Far& far;
    int x, y;

    __device__ Sums one(int line) const { return far.sums(far.one_, y, x + line); }
    __device__ Sums two(int line) const { return far.sums(far.two_, y, x + line); }
  };
  __device__ static bool has_two_places() { return false; }
  __device__ void fill(int, int one, int two, bool) { one_ = one, two_ = two; }
  __device__ static void wait(int) {}
  __device__ Row row(int, int column, int row) const {
    return {*this, x_begin_ + column, y_begin_ + row};
  }

 private:
  __device__ Sums sums(int z, int y, int x) const {
    const Box& kept = m_.derivatives.kept;
    if (!kept.planes.holds(z) || !kept.rows.holds(y) || !kept.columns.holds(x)) return {};
    const auto* const plane = reinterpret_cast<const CentreDerivatives<double>*>(
        m_.derivatives.plane(volume_, image_, z));
    return load_centre(
        plane + ((x - kept.columns.first) * kept.rows.length() + (y - kept.rows.first)));
  }

  const GradientArguments& m_;
  const int volume_, image_, x_begin_, y_begin_;
  int one_ = 0, two_ = 0;
};

// Adds two planes at a time to the windows.
template <class Row>
__device__ __forceinline__ void add(
    Sums (&windows)[kOutputs], int window, bool has_two, const Row& row) {
  add_to_windows(windows, window, [&](Sums& sums, int line) {
    sums += row.one(line);
    if (has_two) sums += row.two(line);
  });
}
// Moves the windows on by a plane.
template <int kWindow, class Row>
__device__ __forceinline__ void advance(Sums (&windows)[kOutputs], int window, const Row& row) {
  add_to<kWindow>(windows, window, [&](Sums& sums, int line) {
    sums += row.one(line);
    sums -= row.two(line);
  });
}

// The pixels of a thread in an image, one below the other; Stored is their type in memory, f64 for
// any.
template <class Value, class Stored> class PixelColumn {
 public:
  __device__ PixelColumn(
      const gpu::View& view, std::int64_t image, std::int64_t channel, int y, int x)
      : view_(view),
        volume_(view.plane(image, channel)),
        first_(static_cast<Offset<Value>>(y * view.strides[3] + x * view.strides[4])),
        stride_(static_cast<Offset<Value>>(view.strides[3])) {}

  // Loads a pixel as it is in memory, so that nothing waits for it before value().
  __device__ __forceinline__ Stored load(int z, int i) const {
    const Offset<Value> at = first_ + i * stride_;
    if constexpr (std::is_same_v<Stored, double>) {
      return view_.load(plane(z) + at);
    } else {
      return (static_cast<const Stored*>(view_.data) + plane(z))[at];
    }
  }
  __device__ __forceinline__ static Value value(Stored pixel) {
    if constexpr (std::is_same_v<Stored, double>) {
      return pixel;
    } else {
      return gpu::to_float(pixel);
    }
  }
  __device__ __forceinline__ void store(int z, int i, double value) const {
    const Offset<Value> at = first_ + i * stride_;
    if constexpr (std::is_same_v<Stored, double>) {
      view_.store(plane(z) + at, value);
    } else {
      (static_cast<Stored*>(view_.data) + plane(z))[at] =
          gpu::rounded<Stored>(static_cast<float>(value));
    }
  }

 private:
  __device__ __forceinline__ std::int64_t plane(int z) const {
    return volume_ + z * view_.strides[2];
  }

  const gpu::View& view_;
  const std::int64_t volume_;
  const Offset<Value> first_, stride_;
};

// In place of the type of weights: all pixels weigh alike.
struct NoWeights {};

// kWindow is the number of columns of a window that the kernel is made for, or 0; Weight the type
// of the weights in valid_mask.
template <class Value, class KeptDerivatives, int kWindow = 0, class Stored = Value,
    class Weight = NoWeights>
__global__ __launch_bounds__(kGradientThreads, 1) void gradient_kernel(
    const SIMILIS_GRID_CONSTANT GradientArguments m) {
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 128);
  const Geometry& g = m.problem.geometry;
  const BlockTile tile(m.tiles);
  const int volume = tile.volume / m.derivatives.images, image = tile.volume % m.derivatives.images;
  const SharedTile shared_tile(shared, m.tiles);
  const int threads_across = m.tiles.threads_across, columns = m.tiles.threads_along * kOutputs;
  const int window_x = 2 * g.radius[2] + 1, window_y = 2 * g.radius[1] + 1;
  const int owned = whole_runs(threads_across, window_y - 1);
  const int x_first = m.pixels.columns.first + tile.x * columns;
  const int y_first = m.pixels.rows.first + tile.y * owned;
  const Range planes = m.tiles.chunks.planes(tile.chunk);
  const int z_first = planes.first, z_last = planes.last;
  KeptDerivatives stage(
      shared + SharedTile::bytes(m.tiles), shared, m, volume, image, x_first, y_first);
  // The thread stores sums in its own column of the shared tile and then loads those of another.
  const int thread = static_cast<int>(threadIdx.x);
  const int own_row = thread % threads_across, first_column = thread / threads_across * kOutputs;
  const int down = first_column * shared_tile.column_length + own_row;
  const int column = thread % columns, first = thread / columns * kOutputs;
  const int up = column * shared_tile.column_length + first;
  const int x = x_first + column, y = y_first + first;
  const int in_tile = owned - first, in_image = m.pixels.rows.last - y;
  const int left = in_tile < in_image ? in_tile : in_image;
  const int mine = x >= m.pixels.columns.last ? 0
                   : left < kOutputs          ? left
                                              : kOutputs;  // none if <= 0
  const std::int64_t index = m.tiles.first_volume + volume;
  const std::int64_t of = index / g.channels, channel = index % g.channels;
  const Problem& problem = m.problem;
  const Shift shift = shift_of(problem, index);
  const bool of_x = image == 0;
  const PixelColumn<Value, Stored> own(of_x ? problem.x : problem.y, of, channel, y, x);
  const PixelColumn<Value, Stored> other(of_x ? problem.y : problem.x, of, channel, y, x);
  const PixelColumn<Value, Stored> gradient(
      of_x ? problem.x_gradient : problem.y_gradient, of, channel, y, x);
  const double own_shift = of_x ? shift.x : shift.y, other_shift = of_x ? shift.y : shift.x;
  constexpr bool kWeighted = !std::is_same_v<Weight, NoWeights>;
  using StoredWeight = std::conditional_t<kWeighted, Weight, float>;
  const PixelColumn<Value, StoredWeight> valid(problem.valid_mask, of, channel, y, x);
  Sums windows[kOutputs] = {};
  begin(stage, z_first, g.radius[0], [&](int place, bool has_two) {
    add(windows, window_x, has_two, stage.row(place, first_column, own_row));
  });
  Stored own_pixel[kOutputs] = {}, other_pixel[kOutputs] = {};
  StoredWeight weight[kOutputs] = {};
  const auto ask = [&](int z) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      if (i >= mine) break;
      own_pixel[i] = own.load(z, i);
      other_pixel[i] = other.load(z, i);
      if constexpr (kWeighted) weight[i] = valid.load(z, i);
    }
  };
  ask(z_first);
  for (int z = z_first;;) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i)
      shared_tile.store(down + i * shared_tile.column_length, windows[i]);
    __syncthreads();
    const bool has_next = z + 1 < z_last;
    if (has_next) stage.fill(0, z + 1 + g.radius[0], z - g.radius[0], true);
    if (mine > 0) {
      Sums sums = shared_tile.load(up);
      for (int k = 1; k < window_y; ++k) sums += shared_tile.load(up + k);
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
        if (i < mine) {
          double result = fma(other.value(other_pixel[i]) - other_shift, sums.by_covariance,
              fma(own.value(own_pixel[i]) - own_shift, sums.by_variance, -sums.rest));
          if constexpr (kWeighted) {
            const auto share = static_cast<double>(valid.value(weight[i]));
            result = share == 0 ? 0 : share * result;
          }
          gradient.store(z, i, result);
        }
        Sums change = shared_tile.load(up + i + window_y);
        change -= shared_tile.load(up + i);
        sums += change;
      }
    }
    if (!has_next) break;
    ++z;
    ask(z);
    stage.wait(0);
    __syncthreads();
    advance<kWindow>(windows, window_x, stage.row(0, first_column, own_row));
  }
  if (m.values.value == nullptr) return;
  write_values(m.values, gridDim.x - 1 - blockIdx.x, reinterpret_cast<double*>(shared));
}

}  // namespace
}  // namespace similis::lncc_internal
