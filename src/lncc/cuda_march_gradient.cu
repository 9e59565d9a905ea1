// SPDX-License-Identifier: Apache-2.0
// The march, second half: window sums of the fields are the gradient. The same as the first half
// with x and y exchanged, since the fields of a column stand side by side in memory: a thread has a
// row of the tile and eight columns, and writes the gradient of eight pixels of a column. All sums
// are f64, as y·Σ and x·Σ cancel against the third.
#include "src/lncc/cuda_eights.cuh"
#include "src/lncc/cuda_march.h"

namespace similis::lncc_internal {
namespace {

struct Sums {
  double by_covariance, by_variance, rest;

  __device__ __forceinline__ void operator+=(const Sums& s) {
    by_covariance += s.by_covariance, by_variance += s.by_variance, rest += s.rest;
  }
  __device__ __forceinline__ void operator-=(const Sums& s) {
    by_covariance -= s.by_covariance, by_variance -= s.by_variance, rest -= s.rest;
  }
};

struct Board {
  double2* pairs;
  double* rests;
  int column_length;

  __device__ Board(unsigned char* shared, const Tiles& tiles) : column_length(tiles.lanes + 1) {
    const int count = tiles.eights * kEight * column_length + kEight;
    pairs = reinterpret_cast<double2*>(shared);
    rests = reinterpret_cast<double*>(pairs + count);
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

// As they stand in memory.
template <class Value> struct Stored {
  FieldPair<Value> pair;
  double rest;

  __device__ __forceinline__ Sums widened() const {
    return {static_cast<double>(pair.by_covariance), static_cast<double>(pair.by_variance), rest};
  }
};

// One plane of fields.
template <class Value> struct FieldPlane {
  const FieldPair<Value>* pairs;
  const double* rests;
  bool exists;  // or its fields are 0

  __device__ __forceinline__ Stored<Value> load(int at) const { return {pairs[at], rests[at]}; }
};

// What a thread knows of the fields under its eight windows.
template <class Value> class Row {
 public:
  __device__ Row(const GradientMarch& m, int volume, int image, int x_first, int y_first)
      : m_(m), volume_(volume), image_(image) {
    const Geometry& g = m.measure.geometry;
    const int lane = static_cast<int>(threadIdx.x) % m.tiles.lanes;
    const int eight = static_cast<int>(threadIdx.x) / m.tiles.lanes;
    const int row_first = static_cast<int>(m.fields.row_first);
    const int row = y_first - g.radius[1] + lane - row_first;
    has_row_ = row >= 0 && row < m.fields.rows;
    row_ = has_row_ ? row : 0;
    column_ = x_first - g.radius[2] + eight * kEight;
    columns_ = {static_cast<int>(g.first_centre[2]), static_cast<int>(g.last_centre[2])};
    const int y_begin = y_first - g.radius[1] - row_first, x_begin = x_first - g.radius[2];
    is_inner_tile_ = y_begin >= 0 && y_begin + m.tiles.lanes <= m.fields.rows &&
                     x_begin >= columns_.first &&
                     x_begin + m.tiles.eights * kEight + 2 * g.radius[2] <= columns_.last;
  }

  // The windows centred on plane z, anew: from two planes at a time.
  __device__ __forceinline__ void begin(Sums (&windows)[kEight], int z) {
    const Geometry& g = m_.measure.geometry;
    const int last = z + g.radius[0];
    for (int plane = z - g.radius[0]; plane <= last; plane += 2) {
      const FieldPlane<Value> one = fields(plane), two = fields(plane < last ? plane + 1 : kNone);
      const auto fetch = [&](int line) { return fetch_any(one, two, line); };
      ask(lines_, fetch);
      add_to_windows(windows, 2 * g.radius[2] + 1, lines_, fetch, [](Sums& sums, const Fetched& f) {
        sums += f.in.widened();
        sums += f.out.widened();
      });
    }
  }

  // Asks for the first fields that advance() needs.
  __device__ __forceinline__ void prepare(int z) {
    const FieldPlane<Value> in = fields(z + m_.measure.geometry.radius[0]);
    const FieldPlane<Value> out = fields(z - 1 - m_.measure.geometry.radius[0]);
    if (is_inner_tile_ && in.exists && out.exists) {
      ask(lines_, [&](int line) { return fetch_inside(in, out, line); });
    } else {
      ask(lines_, [&](int line) { return fetch_any(in, out, line); });
    }
  }

  // The windows centred on the plane before z move on.
  __device__ __forceinline__ void advance(Sums (&windows)[kEight], int z) {
    const int window = 2 * m_.measure.geometry.radius[2] + 1;
    const FieldPlane<Value> in = fields(z + m_.measure.geometry.radius[0]);
    const FieldPlane<Value> out = fields(z - 1 - m_.measure.geometry.radius[0]);
    const auto exchange = [](Sums& sums, const Fetched& f) {
      sums += f.in.widened();
      sums -= f.out.widened();
    };
    if (is_inner_tile_ && in.exists && out.exists) {
      add_to_windows(
          windows, window, lines_, [&](int line) { return fetch_inside(in, out, line); }, exchange);
    } else {
      add_to_windows(
          windows, window, lines_, [&](int line) { return fetch_any(in, out, line); }, exchange);
    }
  }

 private:
  struct Fetched {
    Stored<Value> in, out;
  };
  static constexpr int kNone = -1;
  __device__ __forceinline__ FieldPlane<Value> fields(int z) const {
    const Geometry& g = m_.measure.geometry;
    const bool exists = z >= g.first_centre[0] && z < g.last_centre[0];
    const std::int64_t plane = m_.fields.plane(volume_, image_, exists ? z : 0);
    return {static_cast<const FieldPair<Value>*>(m_.fields.pairs) + plane, m_.fields.rests + plane,
        exists};
  }
  __device__ __forceinline__ Fetched fetch_inside(
      const FieldPlane<Value>& in, const FieldPlane<Value>& out, int line) const {
    const int at = (column_ + line) * m_.fields.rows + row_;
    return {in.load(at), out.load(at)};
  }
  __device__ __forceinline__ Fetched fetch_any(
      const FieldPlane<Value>& in, const FieldPlane<Value>& out, int line) const {
    Fetched fetched = {};
    const bool is_inside = has_row_ && columns_.holds(column_ + line);
    const int at = (column_ + line) * m_.fields.rows + row_;
    if (is_inside && in.exists) fetched.in = in.load(at);
    if (is_inside && out.exists) fetched.out = out.load(at);
    return fetched;
  }

  static constexpr int kAhead = sizeof(Value) == sizeof(float) ? 3 : 1;
  const GradientMarch& m_;
  int volume_, image_;
  int column_, row_;  // the first column; the row among those that are kept
  Range columns_;     // of centres
  bool has_row_, is_inner_tile_;
  Fetched lines_[kAhead];
};

// An image as the pixels of a thread, one below the other, know it.
template <class Value> class PixelColumn {
 public:
  __device__ PixelColumn(
      const gpu::View& view, std::int64_t image, std::int64_t channel, int y, int x)
      : view_(view),
        volume_(view.plane(image, channel)),
        first_(static_cast<Offset<Value>>(y * view.strides[3] + x * view.strides[4])),
        stride_(static_cast<Offset<Value>>(view.strides[3])) {}

  __device__ __forceinline__ Value load(int z, int i) const {
    return PixelPlane<Value>(view_, plane(z)).load(first_ + i * stride_);
  }
  __device__ __forceinline__ void store(int z, int i, double value) const {
    const Offset<Value> at = first_ + i * stride_;
    if constexpr (sizeof(Value) == sizeof(float)) {
      (static_cast<float*>(view_.data) + plane(z))[at] = static_cast<float>(value);
    } else {
      view_.store(plane(z) + at, value);
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

template <class Value>
__global__ __launch_bounds__(kGradientThreads, 2) void gradient_kernel(
    const SIMILIS_GRID_CONSTANT GradientMarch m) {
  extern __shared__ __align__(128) unsigned char shared[];
  const Geometry& g = m.measure.geometry;
  const Tile tile(m.tiles);
  const int volume = tile.volume / m.fields.images, image = tile.volume % m.fields.images;
  const Board board(shared, m.tiles);
  const int lanes = m.tiles.lanes, columns = m.tiles.eights * kEight;
  const int window = 2 * g.radius[1] + 1, owned = lanes - (window - 1);
  const int x_first = tile.across * columns;
  const int y_first = m.rows.first + tile.down * owned;
  const int z_first = m.planes.first + tile.chunk * m.tiles.chunk_planes;
  const int z_end = z_first + m.tiles.chunk_planes;
  const int z_last = z_end < m.planes.last ? z_end : m.planes.last;
  Row<Value> row(m, volume, image, x_first, y_first);
  const int thread = static_cast<int>(threadIdx.x);
  const int down = thread / lanes * kEight * board.column_length + thread % lanes;
  const int column = thread % columns, first = thread / columns * kEight;
  const int up = column * board.column_length + first;
  const int x = x_first + column, y = y_first + first;
  const int in_tile = owned - first, in_image = m.rows.last - y;
  const int left = in_tile < in_image ? in_tile : in_image;
  const int mine = x >= g.extent[2] ? 0 : left < kEight ? left : kEight;  // <= 0: none
  const std::int64_t index = m.tiles.first_volume + volume;
  const std::int64_t of = index / g.channels, channel = index % g.channels;
  const Measure& measure = m.measure;
  const Shift shift = shift_of(measure, index);
  const bool of_x = image == 0 && measure.x_gradient.data != nullptr;
  const PixelColumn<Value> own(of_x ? measure.x : measure.y, of, channel, y, x);
  const PixelColumn<Value> other(of_x ? measure.y : measure.x, of, channel, y, x);
  const PixelColumn<Value> gradient(
      of_x ? measure.x_gradient : measure.y_gradient, of, channel, y, x);
  const double own_shift = of_x ? shift.x : shift.y, other_shift = of_x ? shift.y : shift.x;
  Sums windows[kEight] = {};
  for (int z = z_first; z < z_last; ++z) {
    if (z == z_first) {
      row.begin(windows, z);
    } else {
#pragma unroll
      for (int i = 0; i < kEight; ++i) windows[i] = board.load(down + i * board.column_length);
      row.advance(windows, z);
    }
#pragma unroll
    for (int i = 0; i < kEight; ++i) board.store(down + i * board.column_length, windows[i]);
    if (z + 1 < z_last) row.prepare(z + 1);
    __syncthreads();
    if (mine > 0) {
      Value own_pixel[kEight], other_pixel[kEight];
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        const int existing = i < mine ? i : mine - 1;
        own_pixel[i] = own.load(z, existing);
        other_pixel[i] = other.load(z, existing);
      }
      Sums sums = board.load(up);
      for (int k = 1; k < window; ++k) sums += board.load(up + k);
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        if (i < mine) {
          gradient.store(z, i,
              fma(other_pixel[i] - other_shift, sums.by_covariance,
                  fma(own_pixel[i] - own_shift, sums.by_variance, -sums.rest)));
        }
        sums += board.load(up + i + window);
        sums -= board.load(up + i);
      }
    }
    __syncthreads();
  }
}

}  // namespace

std::int64_t gradient_bytes(const Tiles& tiles) {
  const int count = tiles.eights * kEight * (tiles.lanes + 1) + kEight;
  return std::int64_t{3} * count * static_cast<int>(sizeof(double));
}

void launch_gradient(const CudaPlan& plan, const GradientMarch& march, bool is_f32) {
  const auto kernel = is_f32 ? gradient_kernel<float> : gradient_kernel<double>;
  const auto bytes = static_cast<std::size_t>(gradient_bytes(march.tiles));
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.stream, static_cast<unsigned>(march.tiles.blocks()),
      march.tiles.threads(), bytes, kernel, march);
}

}  // namespace similis::lncc_internal
