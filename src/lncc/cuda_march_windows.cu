// SPDX-License-Identifier: Apache-2.0
// The march, first half: windows to values, and to the fields of the gradient. A block owns a tile
// of a plane and marches along z; of each plane of centres
//   a thread has a column of the tile and eight windows down; the pixels of the plane that enters
//   less those of the one that leaves ─> sums of x, y, x², y², 2xy along z and y       registers
//   the board ─> sums along x, eight centres of a row a thread ─> moments ─ formula.h
//   ─> value, fields                                                                  shared
// Every sum is f64 about the volume's middle pixel. Sums along z begin anew with every chunk of at
// most a slab. A NaN stays in the sums of the windows below it and beside it, of a thread each, to
// the end of the chunk.
//
// Of window 7, a centre: 7 pixels loaded; 5 sums read from the board and stored there, 13 read for
// those along x; 80 f64 operations, which an H200 issues at half the rate of others, 11
// conversions; about 220 instructions. A window of 21 loads 14 pixels and reads 22 sums.
#include "src/lncc/cuda_eights.cuh"
#include "src/lncc/cuda_march.h"

namespace similis::lncc_internal {
namespace {

// Window sums of x, y, x², y² and 2xy.
struct Sums {
  double x, y, xx, yy, xy;

  __device__ __forceinline__ void operator+=(const Sums& s) {
    x += s.x, y += s.y, xx += s.xx, yy += s.yy, xy += s.xy;
  }
  __device__ __forceinline__ void operator-=(const Sums& s) {
    x -= s.x, y -= s.y, xx -= s.xx, yy -= s.yy, xy -= s.xy;
  }
  __device__ __forceinline__ void add(double pixel_x, double pixel_y) {
    x += pixel_x;
    y += pixel_y;
    xx = fma(pixel_x, pixel_x, xx);
    yy = fma(pixel_y, pixel_y, yy);
    xy = fma(pixel_x + pixel_x, pixel_y, xy);
  }
  // A pixel comes for another: a² - b² = (a - b)(a + b), and with 2 the same of products.
  __device__ __forceinline__ void exchange(
      double x_in, double y_in, double x_out, double y_out, const Shift& twice) {
    const double dx = x_in - x_out, dy = y_in - y_out;
    const double sx = x_in + x_out - twice.x, sy = y_in + y_out - twice.y;
    x += dx;
    y += dy;
    xx = fma(dx, sx, xx);
    yy = fma(dy, sy, yy);
    xy = fma(dx, sy, fma(dy, sx, xy));
  }
};

// Where the threads of a block lay down their sums along z and y for those along x. Rows of odd
// length: threads of neighbouring rows then use different banks.
struct Board {
  double2 *means, *squares;
  double* products;
  int row_length;

  __device__ Board(unsigned char* shared, const Tiles& tiles) : row_length(tiles.lanes + 1) {
    const int count = tiles.eights * kEight * row_length + kEight;
    means = reinterpret_cast<double2*>(shared);
    squares = means + count;
    products = reinterpret_cast<double*>(squares + count);
  }
  __device__ __forceinline__ void store(int at, const Sums& s) const {
    means[at] = {s.x, s.y};
    squares[at] = {s.xx, s.yy};
    products[at] = s.xy;
  }
  __device__ __forceinline__ Sums load(int at) const {
    const double2 mean = means[at], square = squares[at];
    return {mean.x, mean.y, square.x, square.y, products[at]};
  }
};

// What a thread knows of the pixels under its eight windows.
template <class Value> class Column {
 public:
  __device__ Column(
      const WindowMarch& m, const Tile& tile, const Shift& shift, int x_first, int y_first)
      : m_(m), shift_(shift) {
    const Geometry& g = m.measure.geometry;
    const int width = static_cast<int>(g.extent[2]), height = static_cast<int>(g.extent[1]);
    const int radius_x = g.radius[2], radius_y = g.radius[1];
    const int lane = static_cast<int>(threadIdx.x) % m.tiles.lanes;
    const int eight = static_cast<int>(threadIdx.x) / m.tiles.lanes;
    const int x = x_first - radius_x + lane;
    has_column_ = x >= 0 && x < width;
    const int inside = x < 0 ? 0 : x < width ? x : width - 1;
    row_ = y_first - radius_y + eight * kEight;
    x_column_ = static_cast<Offset<Value>>(inside * m.measure.x.strides[4]);
    y_column_ = static_cast<Offset<Value>>(inside * m.measure.y.strides[4]);
    x_stride_ = static_cast<Offset<Value>>(m.measure.x.strides[3]);
    y_stride_ = static_cast<Offset<Value>>(m.measure.y.strides[3]);
    const bool is_black = g.padding == Padding::same;
    outside_ = {
        static_cast<Value>(is_black ? 0 : shift.x), static_cast<Value>(is_black ? 0 : shift.y)};
    const std::int64_t volume = m.tiles.first_volume + tile.volume;
    x_volume_ = m.measure.x.plane(volume / g.channels, volume % g.channels);
    y_volume_ = m.measure.y.plane(volume / g.channels, volume % g.channels);
    const int y_begin = y_first - radius_y;
    is_inner_tile_ = x_first >= radius_x && x_first - radius_x + m.tiles.lanes <= width &&
                     y_begin >= 0 && y_begin + m.tiles.eights * kEight + 2 * radius_y <= height;
  }

  // The windows centred on plane z, anew: from two planes at a time.
  __device__ __forceinline__ void begin(Sums (&windows)[kEight], int z) {
    const Geometry& g = m_.measure.geometry;
    const int last = z + g.radius[0];
    for (int plane = z - g.radius[0]; plane <= last; plane += 2) {
      const Planes one(*this, plane, true), two(*this, plane + 1, plane < last);
      const auto fetch = [&](int line) { return fetch_any(one, two, line); };
      ask(lines_, fetch);
      add_to_windows(
          windows, 2 * g.radius[1] + 1, lines_, fetch, [&](Sums& sums, const Fetched& f) {
            sums.add(f.in.x - shift_.x, f.in.y - shift_.y);
            sums.add(f.out.x - shift_.x, f.out.y - shift_.y);
          });
    }
  }

  // Asks for the first pixels that advance() needs.
  __device__ __forceinline__ void prepare(int z) {
    const Planes in(*this, z + m_.measure.geometry.radius[0], true);
    const Planes out(*this, z - 1 - m_.measure.geometry.radius[0], true);
    if (is_inner_tile_ && in.is_inside && out.is_inside) {
      ask(lines_, [&](int line) { return fetch_inside(in, out, line); });
    } else {
      ask(lines_, [&](int line) { return fetch_any(in, out, line); });
    }
  }

  // The windows centred on the plane before z move on.
  __device__ __forceinline__ void advance(Sums (&windows)[kEight], int z) {
    const int window = 2 * m_.measure.geometry.radius[1] + 1;
    const Planes in(*this, z + m_.measure.geometry.radius[0], true);
    const Planes out(*this, z - 1 - m_.measure.geometry.radius[0], true);
    const Shift twice = {2 * shift_.x, 2 * shift_.y};
    const auto exchange = [&](Sums& sums, const Fetched& f) {
      sums.exchange(f.in.x, f.in.y, f.out.x, f.out.y, twice);
    };
    if (is_inner_tile_ && in.is_inside && out.is_inside) {
      add_to_windows(
          windows, window, lines_, [&](int line) { return fetch_inside(in, out, line); }, exchange);
    } else {
      add_to_windows(
          windows, window, lines_, [&](int line) { return fetch_any(in, out, line); }, exchange);
    }
  }

 private:
  struct Pixel {
    Value x, y;
  };
  struct Fetched {
    Pixel in, out;
  };
  struct Row {
    Offset<Value> x, y;  // of the pixel, or of another where there is none
    bool is_inside;
  };
  // One plane of both images. Where it has no pixels it is black or, if `counts` is false, what
  // adds nothing to sums.
  struct Planes {
    bool is_inside;
    PixelPlane<Value> x, y;
    Pixel outside;

    __device__ Planes(const Column& c, int z, bool counts)
        : is_inside(counts && z >= 0 && z < c.m_.measure.geometry.extent[0]),
          x(c.m_.measure.x, c.x_volume_ + (is_inside ? z : 0) * c.m_.measure.x.strides[2]),
          y(c.m_.measure.y, c.y_volume_ + (is_inside ? z : 0) * c.m_.measure.y.strides[2]),
          outside{counts ? c.outside_.x : static_cast<Value>(c.shift_.x),
              counts ? c.outside_.y : static_cast<Value>(c.shift_.y)} {}
    __device__ __forceinline__ Pixel load_inside(const Row& row) const {
      return {x.load(row.x), y.load(row.y)};
    }
    __device__ __forceinline__ Pixel load(const Row& row) const {
      Pixel pixel = outside;
      if (is_inside && row.is_inside) pixel = load_inside(row);
      return pixel;
    }
  };
  __device__ __forceinline__ Fetched fetch_inside(
      const Planes& in, const Planes& out, int line) const {
    const Row row = {
        (row_ + line) * x_stride_ + x_column_, (row_ + line) * y_stride_ + y_column_, true};
    return {in.load_inside(row), out.load_inside(row)};
  }
  __device__ __forceinline__ Fetched fetch_any(
      const Planes& one, const Planes& two, int line) const {
    const Row row = row_at(line);
    return {one.load(row), two.load(row)};
  }
  __device__ __forceinline__ Row row_at(int line) const {
    const int height = static_cast<int>(m_.measure.geometry.extent[1]), row = row_ + line;
    const int inside = row < 0 ? 0 : row < height ? row : height - 1;
    return {inside * x_stride_ + x_column_, inside * y_stride_ + y_column_,
        has_column_ && row == inside};
  }
  static constexpr int kAhead = sizeof(Value) == sizeof(float) ? 3 : 2;
  const WindowMarch& m_;
  const Shift shift_;
  std::int64_t x_volume_, y_volume_;
  Offset<Value> x_column_, y_column_, x_stride_, y_stride_;
  Pixel outside_;
  int row_;  // the first
  bool has_column_, is_inner_tile_;
  Fetched lines_[kAhead];
};

// How many pixels of the image a window sees along an axis.
__device__ __forceinline__ std::int64_t seen(const Geometry& g, int axis, std::int64_t centre) {
  const std::int64_t first = centre - g.radius[axis], last = centre + g.radius[axis];
  return (last < g.extent[axis] ? last + 1 : g.extent[axis]) - (first > 0 ? first : 0);
}

// The centres of a thread, which lie side by side in a row. Plain ones all weigh and average alike,
// measure squares and make a number of them, with the exact gradient if any.
template <class Value, bool kPlain> class Centres {
 public:
  __device__ Centres(const WindowMarch& m, const Tile& tile, const Shift& shift, int y, int x)
      : m_(m),
        shift_(shift),
        volume_(tile.volume),
        y_(y),
        x_(x),
        in_plane_(x * m.fields.rows + static_cast<int>(y - m.fields.row_first)),
        slope_(m.measure.reduces && m.measure.slopes != nullptr
                   ? m.measure.slopes[m.tiles.first_volume + tile.volume]
                   : 0),
        is_owned_(m.owned_rows.holds(y)) {}

  // Of the plane in which they are.
  __device__ __forceinline__ void enter(int z) {
    z_ = z;
    plane_ = m_.fields.images > 0 ? m_.fields.plane(volume_, 0, z) : 0;
  }

  // The weighted value of the i-th, if there is one.
  __device__ __forceinline__ double run(const Sums& sums, int i, bool exists) const {
    const Measure& measure = m_.measure;
    if constexpr (kPlain) {
      const double mean_x = sums.x * m_.scale, mean_y = sums.y * m_.scale;
      const Moments<double> moments = {fma(-sums.x, mean_y, 0.5 * sums.xy),
          fma(-sums.x, mean_x, sums.xx), fma(-sums.y, mean_y, sums.yy)};
      const Correlation<double> v = squared_correlation(moments, measure.constants);
      if (m_.fields.images > 0 && exists) store_fields(v, slope_, mean_x, mean_y, i);
      return is_owned_ && exists ? v.value : 0;
    } else {
      return exists ? run_any(sums, i) : 0;
    }
  }

 private:
  __device__ double run_any(const Sums& sums, int i) const {
    const Measure& measure = m_.measure;
    const std::int64_t volume = m_.tiles.first_volume + volume_;
    const std::int64_t channels = measure.geometry.channels;
    const Place at{volume / channels, volume % channels, z_, y_, x_ + i};
    const double scale = scale_at(at);
    const double share = measure.taps * scale;
    const double mean_x = sums.x * scale, mean_y = sums.y * scale;
    const Moments<double> moments = {share * fma(-sums.x, mean_y, 0.5 * sums.xy),
        share * fma(-sums.x, mean_x, sums.xx), share * fma(-sums.y, mean_y, sums.yy)};
    const Correlation<double> v = measure.correlation(moments);
    const double own_weight = measure.pixel_weight(at);
    const double slope = measure.slope(at, own_weight);
    if (m_.fields.images > 0) {
      store_fields(v, slope * share, mean_x, mean_y, i);
    } else if (measure.x_gradient.data != nullptr || measure.y_gradient.data != nullptr) {
      measure.store_centre_gradients(at, moments, slope,
          Measure::load(measure.x, at) - shift_.x - mean_x,
          Measure::load(measure.y, at) - shift_.y - mean_y);
    }
    if (!is_owned_) return 0;
    if (measure.map.data != nullptr) measure.store_map(at, own_weight, v.value);
    return own_weight == 0 ? 0 : own_weight * v.value;
  }

  __device__ double scale_at(const Place& at) const {
    const Geometry& g = m_.measure.geometry;
    if (g.padding != Padding::renormalize) return m_.scale;
    return 1 / static_cast<double>(seen(g, 0, at.z) * seen(g, 1, at.y) * seen(g, 2, at.x));
  }

  __device__ __forceinline__ void store_fields(
      const Correlation<double>& v, double weight, double mean_x, double mean_y, int i) const {
    const Fields& f = m_.fields;
    const bool has_x = m_.measure.x_gradient.data != nullptr;
    const auto by_a = static_cast<Value>(weight * v.gradient.a);
    const int at = in_plane_ + i * f.rows;
    store_image(plane_, at, by_a, 2 * weight * (has_x ? v.gradient.b : v.gradient.c),
        has_x ? mean_y : mean_x, has_x ? mean_x : mean_y);
    if (f.images < 2) return;
    store_image(
        plane_ + f.slots * f.plane_size(), at, by_a, 2 * weight * v.gradient.c, mean_x, mean_y);
  }
  __device__ __forceinline__ void store_image(std::int64_t plane, int at, Value by_a,
      double by_variance, double other_mean, double own_mean) const {
    const auto own = static_cast<Value>(by_variance);
    (static_cast<FieldPair<Value>*>(m_.fields.pairs) + plane)[at] = {by_a, own};
    (m_.fields.rests + plane)[at] =
        fma(static_cast<double>(by_a), other_mean, static_cast<double>(own) * own_mean);
  }

  const WindowMarch& m_;
  const Shift shift_;
  const int volume_, y_, x_, in_plane_;
  const double slope_;
  const bool is_owned_;
  int z_ = 0;
  std::int64_t plane_ = 0;
};

template <class Value, bool kPlain>
__global__ __launch_bounds__(kWindowThreads, 1) void window_kernel(
    const SIMILIS_GRID_CONSTANT WindowMarch m) {
  constexpr int kUnroll = kPlain ? 4 : 1;
  extern __shared__ __align__(128) unsigned char shared[];
  const Geometry& g = m.measure.geometry;
  const Tile tile(m.tiles);
  const Board board(shared, m.tiles);
  const int lanes = m.tiles.lanes, rows = m.tiles.eights * kEight;
  const int window = 2 * g.radius[2] + 1, owned = lanes - (window - 1);
  const int x_first = static_cast<int>(g.first_centre[2]) + tile.across * owned;
  const int y_first = m.rows.first + tile.down * rows;
  const int z_first = m.planes.first + tile.chunk * m.tiles.chunk_planes;
  const int z_end = z_first + m.tiles.chunk_planes;
  const int z_last = z_end < m.planes.last ? z_end : m.planes.last;
  const Shift shift = shift_of(m.measure, m.tiles.first_volume + tile.volume);
  Column<Value> column(m, tile, shift, x_first, y_first);
  // As one that lays down sums, and as one that takes them up.
  const int thread = static_cast<int>(threadIdx.x);
  const int down = thread / lanes * kEight * board.row_length + thread % lanes;
  const int row = thread % rows, first = thread / rows * kEight;
  const int up = row * board.row_length + first;
  const int y = y_first + row, x = x_first + first;
  Centres<Value, kPlain> centres(m, tile, shift, y, x);
  const int x_end = static_cast<int>(g.last_centre[2]);
  const int in_tile = owned - first, in_image = x_end - x;
  const int left = in_tile < in_image ? in_tile : in_image;
  const int mine = y >= m.rows.last ? 0 : left < kEight ? left : kEight;  // <= 0: none
  Sums windows[kEight] = {};  // which stand on the board while centres are at work
  double total = 0;
  for (int z = z_first; z < z_last; ++z) {
    if (z == z_first) {
      column.begin(windows, z);
    } else {
#pragma unroll
      for (int i = 0; i < kEight; ++i) windows[i] = board.load(down + i * board.row_length);
      column.advance(windows, z);
    }
#pragma unroll
    for (int i = 0; i < kEight; ++i) board.store(down + i * board.row_length, windows[i]);
    if (z + 1 < z_last) column.prepare(z + 1);
    __syncthreads();
    if (mine > 0) {
      centres.enter(z);
      Sums sums = board.load(up);
      for (int k = 1; k < window; ++k) sums += board.load(up + k);
#pragma unroll kUnroll
      for (int i = 0; i < kEight; ++i) {
        total += centres.run(sums, i, i < mine);
        sums += board.load(up + i + window);
        sums -= board.load(up + i);
      }
    }
    __syncthreads();
  }
  if (m.partials == nullptr) return;
  total = sum_of_block(total, reinterpret_cast<double*>(shared));
  if (threadIdx.x != 0) return;
  const int slot = (tile.chunk * m.tiles.down + tile.down) * m.tiles.across + tile.across;
  m.partials[(m.tiles.first_volume + tile.volume) * m.slots + m.first_slot + slot] = total;
}

}  // namespace

std::int64_t window_bytes(const Tiles& tiles) {
  const int count = tiles.eights * kEight * (tiles.lanes + 1) + kEight;
  return std::int64_t{5} * count * static_cast<int>(sizeof(double));
}

void launch_windows(const CudaPlan& plan, const WindowMarch& march, bool is_f32) {
  const Pass& pass = plan.pass;
  const bool is_plain = pass.mask.empty() && plan.measure.reduces && !pass.is_signed &&
                        pass.padding != Padding::renormalize &&
                        (!pass.has_gradient() || pass.gradient == LnccGradient::exact);
  const auto kernel = !is_f32    ? window_kernel<double, false>
                      : is_plain ? window_kernel<float, true>
                                 : window_kernel<float, false>;
  const auto bytes = static_cast<std::size_t>(window_bytes(march.tiles));
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.stream, static_cast<unsigned>(march.tiles.blocks()),
      march.tiles.threads(), bytes, kernel, march);
}

}  // namespace similis::lncc_internal
