// SPDX-License-Identifier: Apache-2.0
// The march, first half: windows to values, and to the fields of the gradient. A block owns a tile
// of a plane and marches along z; of each plane of centres
//   the plane of pixels that enters and the one that leaves ─> stage                  shared
//   a thread has a column of the stage and eight windows down; what enters less what leaves
//   ─> sums of x, y, x², y², 2xy along z and y                                        registers
//   the board ─> sums along x, eight centres of a row a thread ─> moments ─ formula.h
//   ─> value, fields                                                                  shared
// The stage is filled for the next plane while centres are at work. Every sum is f64 about the
// volume's middle pixel. Sums along z begin anew with every chunk. A NaN stays in the sums of the
// windows below it and beside it, of a thread each, to the end of the chunk.
#include "src/lncc/cuda/eights.cuh"
#include "src/lncc/cuda/pixel_stage.cuh"
#include "src/lncc/cuda/sliding_window.h"

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

  SIMILIS_HOST_DEVICE static int sums(const Tiles& tiles) {
    return tiles.eights * kEight * (tiles.lanes + 1) + kEight;
  }
  SIMILIS_HOST_DEVICE static int bytes(const Tiles& tiles) {
    return 5 * sums(tiles) * static_cast<int>(sizeof(double));
  }
  __device__ Board(unsigned char* shared, const Tiles& tiles) : row_length(tiles.lanes + 1) {
    means = reinterpret_cast<double2*>(shared);
    squares = means + sums(tiles);
    products = reinterpret_cast<double*>(squares + sums(tiles));
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

// The windows centred on a plane anew, from two planes at a time.
template <class Column>
__device__ __forceinline__ void add(
    Sums (&windows)[kEight], int window, const Shift& shift, bool has_two, const Column& column) {
  add_to_windows(windows, window, [&](Sums& sums, int line) {
    const auto one = column.one(line);
    sums.add(one.x - shift.x, one.y - shift.y);
    if (!has_two) return;
    const auto two = column.two(line);
    sums.add(two.x - shift.x, two.y - shift.y);
  });
}
// The windows move on by a plane.
template <int kWindow, class Column>
__device__ __forceinline__ void advance(
    Sums (&windows)[kEight], int window, const Shift& shift, const Column& column) {
  const Shift twice = {2 * shift.x, 2 * shift.y};
  add_to<kWindow>(windows, window, [&](Sums& sums, int line) {
    const auto in = column.one(line), out = column.two(line);
    sums.exchange(in.x, in.y, out.x, out.y, twice);
  });
}

// How many pixels of the image a window sees along an axis.
__device__ __forceinline__ std::int64_t seen(const Geometry& g, int axis, std::int64_t centre) {
  const std::int64_t first = centre - g.radius[axis], last = centre + g.radius[axis];
  return (last < g.extent[axis] ? last + 1 : g.extent[axis]) - (first > 0 ? first : 0);
}

__device__ __forceinline__ void store(
    Field<float>* to, float by_covariance, float by_variance, double rest) {
  *reinterpret_cast<double2*>(to) = {
      __hiloint2double(__float_as_int(by_variance), __float_as_int(by_covariance)), rest};
}
__device__ __forceinline__ void store(
    Field<double>* to, double by_covariance, double by_variance, double rest) {
  *to = {by_covariance, by_variance, rest};
}

// The centres of a thread, which lie side by side in a row. Plain ones all weigh and average alike,
// measure squares and make a number of them, with the exact gradient if any.
template <class Value, bool kPlain> class Centres {
 public:
  using Sum = std::conditional_t<kPlain, float, double>;  // of a few values

  // `count`: how many there are.
  __device__ Centres(
      const WindowMarch& m, const Tile& tile, const Shift& shift, int y, int x, int count)
      : m_(m),
        shift_(shift),
        volume_(tile.volume),
        y_(y),
        x_(x),
        rows_(m.fields.kept.rows.length()),
        in_plane_((x - m.fields.kept.columns.first) * rows_ + y - m.fields.kept.rows.first),
        slope_(m.measure.reduces && m.measure.slopes != nullptr
                   ? m.measure.slopes[m.tiles.first_volume + tile.volume]
                   : 0),
        slope_f32_(static_cast<float>(slope_)),
        constants_{
            static_cast<float>(m.measure.constants.nr), static_cast<float>(m.measure.constants.dr)},
        has_owned_row_(m.owned.rows.holds(y)) {
    const int first = m.owned.columns.first - x, last = m.owned.columns.last - x;
    owned_columns_ = {first < 0 ? 0 : first, last < count ? last : count};
  }

  // Of the plane in which they are.
  __device__ __forceinline__ void enter(int z) {
    z_ = z;
    is_owned_ = has_owned_row_ && m_.owned.planes.holds(z);
    for (int image = 0; image < 2; ++image) {
      if (image < m_.fields.images) {
        fields_[image] =
            reinterpret_cast<Field<Value>*>(m_.fields.plane(volume_, image, z)) + in_plane_;
      }
    }
  }

  // The weighted value of the i-th, if there is one.
  __device__ __forceinline__ Sum run(const Sums& sums, int i, bool exists) const {
    const bool adds = is_owned_ && owned_columns_.holds(i);
    if constexpr (kPlain) {
      const double mean_x = sums.x * m_.scale, mean_y = sums.y * m_.scale;
      const Moments<float> moments = {static_cast<float>(fma(-sums.x, mean_y, 0.5 * sums.xy)),
          static_cast<float>(fma(-sums.x, mean_x, sums.xx)),
          static_cast<float>(fma(-sums.y, mean_y, sums.yy))};
      const Correlation<float> v = squared_correlation_f32(moments, constants_);
      if (m_.fields.images > 0 && exists) {
        store_fields(v, slope_f32_, mean_x, mean_y, i);
      }
      return adds ? v.value : 0.0f;
    } else {
      return exists ? run_any(sums, i, adds) : 0;
    }
  }

 private:
  __device__ double run_any(const Sums& sums, int i, bool adds) const {
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
    if (!adds) return 0;
    if (measure.map.data != nullptr) measure.store_map(at, own_weight, v.value);
    return own_weight == 0 ? 0 : own_weight * v.value;
  }

  __device__ double scale_at(const Place& at) const {
    const Geometry& g = m_.measure.geometry;
    if (g.padding != Padding::renormalize) return m_.scale;
    return 1 / static_cast<double>(seen(g, 0, at.z) * seen(g, 1, at.y) * seen(g, 2, at.x));
  }

  // T: f32 where centres are plain.
  template <class T>
  __device__ __forceinline__ void store_fields(
      const Correlation<T>& v, T weight, double mean_x, double mean_y, int i) const {
    const auto by_a = static_cast<Value>(weight * v.gradient.a);
    store_image(0, i, by_a, static_cast<Value>(2 * weight * v.gradient.b), mean_y, mean_x);
    if (m_.fields.images < 2) return;
    store_image(1, i, by_a, static_cast<Value>(2 * weight * v.gradient.c), mean_x, mean_y);
  }
  __device__ __forceinline__ void store_image(
      int image, int i, Value by_a, Value own, double other_mean, double own_mean) const {
    store(fields_[image] + i * rows_, by_a, own,
        fma(static_cast<double>(by_a), other_mean, static_cast<double>(own) * own_mean));
  }

  const WindowMarch& m_;
  const Shift shift_;
  const int volume_, y_, x_, rows_, in_plane_;
  const double slope_;
  const float slope_f32_;
  const Constants<float> constants_;
  const bool has_owned_row_;
  Range owned_columns_;  // counted from the first
  bool is_owned_ = false;
  int z_ = 0;
  Field<Value>* fields_[2] = {};
};

// kWindow: how many rows a window has, where the kernel is made for that; else 0.
template <class Value, bool kPlain, class Pixels, int kWindow = 0>
__global__ __launch_bounds__(kWindowThreads, 1) void window_kernel(
    const SIMILIS_GRID_CONSTANT WindowMarch m) {
  constexpr int kUnroll = kPlain ? 4 : 1;
  extern __shared__ __align__(128) unsigned char shared[];
  const Geometry& g = m.measure.geometry;
  const Tile tile(m.tiles);
  const Board board(shared, m.tiles);
  const int lanes = m.tiles.lanes, rows = m.tiles.eights * kEight;
  const int window_x = 2 * g.radius[2] + 1, window_y = 2 * g.radius[1] + 1;
  const int owned = lanes - (window_x - 1);
  const int x_first = m.centres.columns.first + tile.across * owned;
  const int y_first = m.centres.rows.first + tile.down * rows;
  const int z_first = m.centres.planes.first + tile.chunk * m.tiles.chunk_planes;
  const int z_end = z_first + m.tiles.chunk_planes;
  const int z_last = z_end < m.centres.planes.last ? z_end : m.centres.planes.last;
  const Shift shift = shift_of(m.measure, m.tiles.first_volume + tile.volume);
  const int board_bytes = Board::bytes(m.tiles);
  Pixels stage(shared + board_bytes, shared, board_bytes, m, tile, shift, x_first, y_first);
  // As one that lays down sums, and as one that takes them up.
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % lanes, first_row = thread / lanes * kEight;
  const int down = first_row * board.row_length + lane;
  const int row = thread % rows, first = thread / rows * kEight;
  const int up = row * board.row_length + first;
  const int y = y_first + row, x = x_first + first;
  const int in_tile = owned - first, in_image = m.centres.columns.last - x;
  const int left = in_tile < in_image ? in_tile : in_image;
  const int mine = y >= m.centres.rows.last ? 0 : left < kEight ? left : kEight;  // <= 0: none
  Centres<Value, kPlain> centres(m, tile, shift, y, x, mine);
  Sums windows[kEight] = {};
  begin(stage, z_first, g.radius[0], [&](int place, bool has_two) {
    add(windows, window_y, shift, has_two, stage.column(place, first_row, lane));
  });
  double total = 0;
  for (int z = z_first;;) {
#pragma unroll
    for (int i = 0; i < kEight; ++i) board.store(down + i * board.row_length, windows[i]);
    __syncthreads();
    const bool has_next = z + 1 < z_last;
    if (has_next) stage.fill(0, z + 1 + g.radius[0], z - g.radius[0], true);
    if (mine > 0) {
      centres.enter(z);
      Sums sums = board.load(up);
      for (int k = 1; k < window_x; ++k) sums += board.load(up + k);
      typename Centres<Value, kPlain>::Sum values = 0;
#pragma unroll kUnroll
      for (int i = 0; i < kEight; ++i) {
        values += centres.run(sums, i, i < mine);
        Sums change = board.load(up + i + window_x);
        change -= board.load(up + i);
        sums += change;
      }
      total += values;
    }
    if (!has_next) break;
    stage.wait(0);
    __syncthreads();
    advance<kWindow>(windows, window_y, shift, stage.column(0, first_row, lane));
    ++z;
  }
  if (m.partials == nullptr) return;
  __syncthreads();
  total = sum_of_block(total, reinterpret_cast<double*>(shared));
  if (threadIdx.x != 0) return;
  const int slot = (tile.chunk * m.tiles.down + tile.down) * m.tiles.across + tile.across;
  m.partials[(m.tiles.first_volume + tile.volume) * m.slots + m.first_slot + slot] = total;
}

}  // namespace

std::int64_t window_bytes(const Tiles& tiles, const int (&radius)[3], Form form) {
  if (form == Form::far) return Board::bytes(tiles);
  const std::int64_t value = form == Form::f32 ? sizeof(float) : sizeof(double);
  return Board::bytes(tiles) + 4 * value * stage_columns(tiles) * stage_rows(tiles, radius[1]) +
         gpu::BulkCopies::kBytes;
}

void launch_windows(const CudaPlan& plan, const WindowMarch& march, Form form) {
  const Pass& pass = plan.pass;
  // So small a bound of variances leaves f32's range.
  constexpr double kLeastBound = 1e-15;
  const Constants<double>& constants = pass.constants;
  const bool is_plain = pass.mask.empty() && plan.measure.reduces && !pass.is_signed &&
                        pass.padding != Padding::renormalize && constants.dr >= kLeastBound &&
                        constants.nr <= constants.dr &&
                        (!pass.has_gradient() || pass.gradient == LnccGradient::exact);
  const int rows = 2 * plan.measure.geometry.radius[1] + 1;
  const auto kernel = form == Form::far   ? window_kernel<double, false, FarPixels>
                      : form == Form::f64 ? window_kernel<double, false, PixelStage<double>>
                      : !is_plain         ? window_kernel<float, false, PixelStage<float>>
                      : rows == 3         ? window_kernel<float, true, PixelStage<float>, 3>
                      : rows == 5         ? window_kernel<float, true, PixelStage<float>, 5>
                                          : window_kernel<float, true, PixelStage<float>>;
  const auto bytes =
      static_cast<std::size_t>(window_bytes(march.tiles, plan.measure.geometry.radius, form));
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(march.tiles.blocks()),
      march.tiles.threads(), bytes, kernel, march);
}

}  // namespace similis::lncc_internal
