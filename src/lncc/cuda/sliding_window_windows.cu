// SPDX-License-Identifier: Apache-2.0
// The first sliding window kernel: windows to values, and to the derivatives of the gradient. A
// block owns a tile of a plane and moves along z; for each plane of centres
//   the plane of pixels that enters and the one that leaves ─> stage                  shared
//   a thread has a column of the stage and kOutputs windows down; it adds the pixels
//   that enter and subtracts those that leave
//   ─> sums of x, y, x², y², 2xy along z and y                                        registers
//   shared tile ─> sums along x, kOutputs centres of a row a thread ─> moments ─ formula.h
//   ─> value, derivatives                                                             shared
// The stage is filled for the next plane while centres are at work. Every sum is f64 about the
// volume's middle pixel. Sums along z begin anew with every chunk. A NaN stays in the sums of the
// windows below it and beside it, of a thread each, to the end of the chunk.
#include "src/lncc/cuda/centre_runs.cuh"
#include "src/lncc/cuda/fast_path.h"
#include "src/lncc/cuda/outputs_per_thread.cuh"
#include "src/lncc/cuda/pixel_stage.cuh"

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
  // Replaces a pixel by another: a² - b² = (a - b)(a + b), and with 2 the same for products.
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

// The shared tile: threads store their sums along z and y here, and load them for the sums along x.
// Rows have odd length, so that threads of neighbouring rows use different banks.
struct SharedTile {
  double2 *means, *squares;
  double* products;
  int row_length;

  SIMILIS_HOST_DEVICE static int bytes(const Tiles& tiles) {
    return 5 * tiles.shared_sums() * static_cast<int>(sizeof(double));
  }
  __device__ SharedTile(unsigned char* shared, const Tiles& tiles)
      : row_length(tiles.threads_across + 1) {
    means = reinterpret_cast<double2*>(shared);
    squares = means + tiles.shared_sums();
    products = reinterpret_cast<double*>(squares + tiles.shared_sums());
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

// Adds two planes at a time to the windows.
template <class Column>
__device__ __forceinline__ void add(
    Sums (&windows)[kOutputs], int window, const Shift& shift, bool has_two, const Column& column) {
  add_to_windows(windows, window, [&](Sums& sums, int line) {
    const auto one = column.one(line);
    sums.add(one.x - shift.x, one.y - shift.y);
    if (!has_two) return;
    const auto two = column.two(line);
    sums.add(two.x - shift.x, two.y - shift.y);
  });
}
// Moves the windows on by a plane.
template <int kWindow, class Column>
__device__ __forceinline__ void advance(
    Sums (&windows)[kOutputs], int window, const Shift& shift, const Column& column) {
  const Shift twice = {2 * shift.x, 2 * shift.y};
  add_to<kWindow>(windows, window, [&](Sums& sums, int line) {
    const auto in = column.one(line), out = column.two(line);
    sums.exchange(in.x, in.y, out.x, out.y, twice);
  });
}

// Returns the number of pixels of the image that a window sees along an axis.
__device__ __forceinline__ std::int64_t seen(const Geometry& g, int axis, std::int64_t centre) {
  const std::int64_t first = centre - g.radius[axis], last = centre + g.radius[axis];
  return (last < g.extent[axis] ? last + 1 : g.extent[axis]) - (first > 0 ? first : 0);
}

// The centres of a thread, which lie side by side in a row.
template <class Value, Kind kKind> class Centres {
 public:
  using Sum = std::conditional_t<kKind == Kind::any, double, float>;  // the sum of a few values

  // `count` is the number of centres.
  __device__ Centres(
      const WindowArguments& m, const BlockTile& tile, const Shift& shift, int y, int x, int count)
      : m_(m),
        shift_(shift),
        volume_(tile.volume),
        count_(count),
        image_((m.tiles.first_volume + tile.volume) / m.problem.geometry.channels),
        channel_((m.tiles.first_volume + tile.volume) % m.problem.geometry.channels),
        y_(y),
        x_(x),
        rows_(m.derivatives.kept.rows.length()),
        in_plane_(
            (x - m.derivatives.kept.columns.first) * rows_ + y - m.derivatives.kept.rows.first),
        plane_(m.problem, m.tiles.first_volume + tile.volume),
        slope_f32_(static_cast<float>(plane_.slope)),
        has_owned_row_(m.owned.rows.holds(y)) {
    const int first = m.owned.columns.first - x, last = m.owned.columns.last - x;
    owned_columns_ = {first < 0 ? 0 : first, last < count ? last : count};
  }

  // Moves to a plane.
  __device__ __forceinline__ void enter(int z) {
    z_ = z;
    is_owned_ = has_owned_row_ && m_.owned.planes.holds(z);
    if constexpr (kKind == Kind::ants) {
      load_pixels();
    } else {
      enter_derivatives();
    }
    if constexpr (kKind == Kind::weighted || kKind == Kind::any) {
      const Geometry& g = m_.problem.geometry;
      load_weights();
      scale_inside_ = m_.scale;
      if (g.padding == Padding::renormalize) {
        seen_ = static_cast<double>(seen(g, 0, z) * seen(g, 1, y_));
        scale_inside_ = reciprocal(seen_ * (2 * g.radius[2] + 1));
      }
    }
  }

  // Returns the weighted value of the i-th centre, if it exists.
  __device__ __forceinline__ Sum run(const Sums& sums, int i, bool exists) {
    const bool adds = is_owned_ && owned_columns_.holds(i);
    if constexpr (kKind == Kind::any) {
      return exists ? run_any(sums, i, adds) : 0;
    } else if constexpr (kKind == Kind::weighted) {
      const double scale = scale_at(x_ + i), mean_x = sums.x * scale, mean_y = sums.y * scale;
      const auto share = static_cast<float>(m_.problem.taps * scale);
      const Correlation<float> v =
          squared_correlation_f32(moments_of(sums, mean_x, mean_y, share), plane_.constants);
      const float weight = weights_[i];
      // A centre without weight has no slope, but for weights that are NaN and make all of it so.
      const float slope =
          weight == 0 && slope_f32_ == slope_f32_ ? 0.0f : weight * slope_f32_ * share;
      if (m_.derivatives.images > 0 && exists) store_derivatives(v, slope, mean_x, mean_y, i);
      return adds && weight != 0 ? weight * v.value : 0.0f;
    } else {
      const double mean_x = sums.x * m_.scale, mean_y = sums.y * m_.scale;
      const Moments<float> moments = moments_of(sums, mean_x, mean_y, 1.0f);
      const Correlation<float> v = kKind == Kind::is_signed
                                       ? signed_correlation_f32(moments, plane_.constants)
                                       : squared_correlation_f32(moments, plane_.constants);
      if constexpr (kKind == Kind::ants) {
        replace_pixel(moments, v, mean_x, mean_y, i);
      } else if (m_.derivatives.images > 0 && exists) {
        store_derivatives(v, slope_f32_, mean_x, mean_y, i);
      }
      return adds ? v.value : 0.0f;
    }
  }

  // Ends a plane.
  __device__ __forceinline__ void leave() const {
    if constexpr (kKind == Kind::ants) {
      const gpu::View& gradient = m_.problem.x_gradient;
      store_run(static_cast<float*>(gradient.data) + Problem::offset(gradient, place(0)),
          gradient.strides[4], count_, m_.has_whole_runs, x_pixels_);
    }
  }

 private:
  using Weight = std::conditional_t<kKind == Kind::any, double, float>;

  __device__ Place place(int i) const { return {image_, channel_, z_, y_, x_ + i}; }

  template <class T>
  __device__ __forceinline__ static Moments<T> moments_of(
      const Sums& sums, double mean_x, double mean_y, T share) {
    return {share * static_cast<T>(fma(-sums.x, mean_y, 0.5 * sums.xy)),
        share * static_cast<T>(fma(-sums.x, mean_x, sums.xx)),
        share * static_cast<T>(fma(-sums.y, mean_y, sums.yy))};
  }

  // The formula is in f32 if derivatives are.
  __device__ __forceinline__ double run_any(const Sums& sums, int i, bool adds) const {
    const Problem& problem = m_.problem;
    const double scale = scale_at(x_ + i), mean_x = sums.x * scale, mean_y = sums.y * scale;
    const auto share = static_cast<Value>(problem.taps * scale);
    return finish_centre(problem, plane_, place(i), weights_[i],
        moments_of(sums, mean_x, mean_y, share), {mean_x + shift_.x, mean_y + shift_.y},
        m_.derivatives.images > 0, adds, [&](const Correlation<Value>& v, Value slope) {
          store_derivatives(v, slope * share, mean_x, mean_y, i);
        });
  }

  // Returns 1 / the number of the image's pixels that a window averages.
  __device__ __forceinline__ double scale_at(int x) const {
    const Geometry& g = m_.problem.geometry;
    const bool is_inside = x >= g.radius[2] && x + g.radius[2] < g.extent[2];
    if (is_inside || g.padding != Padding::renormalize) return scale_inside_;
    return reciprocal(seen_ * static_cast<double>(seen(g, 2, x)));
  }

  __device__ __forceinline__ void enter_derivatives() {
    for (int image = 0; image < 2; ++image) {
      if (image < m_.derivatives.images) {
        derivatives_[image] =
            reinterpret_cast<CentreDerivatives<Value>*>(m_.derivatives.plane(volume_, image, z_)) +
            in_plane_;
      }
    }
  }
  // Loads the weights of a plane's centres, all at once.
  __device__ __forceinline__ void load_weights() {
    const gpu::View& mask = m_.problem.mask;
    if (mask.data == nullptr) return;
    const std::int64_t row = Problem::offset(mask, place(0));
    if constexpr (kKind == Kind::weighted) {
      load_run(static_cast<const float*>(mask.data) + row, mask.strides[4], count_,
          m_.has_whole_runs, weights_);
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) weights_[i] = weights_[i] >= 0 ? weights_[i] : NAN;
    } else {
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
        if (i < count_) weights_[i] = Problem::load_weight(mask, row + i * mask.strides[4]);
      }
    }
  }
  // Asks for the pixels of a plane's centres, all at once.
  __device__ __forceinline__ void load_pixels() {
    const auto load = [&](const gpu::View& image, float(&pixels)[kOutputs]) {
      load_run(static_cast<const float*>(image.data) + Problem::offset(image, place(0)),
          image.strides[4], count_, m_.has_whole_runs, pixels);
    };
    load(m_.problem.x, x_pixels_);
    load(m_.problem.y, y_pixels_);
  }
  // Puts the gradient of a centre in the place of its pixel of x; as store_centre_gradients().
  __device__ __forceinline__ void replace_pixel(
      const Moments<float>& m, const Correlation<float>& v, double mean_x, double mean_y, int i) {
    const auto x = static_cast<float>(x_pixels_[i] - shift_.x - mean_x);
    const auto y = static_cast<float>(y_pixels_[i] - shift_.y - mean_y);
    const float ratio = m.a * gpu::approximate_reciprocal(fmaxf(m.b, 0.0f) + plane_.constants.dr);
    const float factor = slope_f32_ * v.gradient.a;
    x_pixels_[i] = slope_f32_ == 0 ? 0.0f : factor * fmaf(-ratio, x, y);
  }

  // T is f32 unless centres are of any kind.
  template <class T>
  __device__ __forceinline__ void store_derivatives(
      const Correlation<T>& v, T weight, double mean_x, double mean_y, int i) const {
    const auto by_a = static_cast<Value>(weight * v.gradient.a);
    store_image(0, i, by_a, static_cast<Value>(2 * weight * v.gradient.b), mean_y, mean_x);
    if (m_.derivatives.images < 2) return;
    store_image(1, i, by_a, static_cast<Value>(2 * weight * v.gradient.c), mean_x, mean_y);
  }
  __device__ __forceinline__ void store_image(
      int image, int i, Value by_a, Value own, double other_mean, double own_mean) const {
    store_centre(derivatives_[image] + i * rows_, by_a, own,
        fma(static_cast<double>(by_a), other_mean, static_cast<double>(own) * own_mean));
  }

  const WindowArguments& m_;
  const Shift shift_;
  const int volume_, count_;
  const std::int64_t image_, channel_;
  const int y_, x_, rows_, in_plane_;
  const PlaneTerms plane_;
  const float slope_f32_;
  const bool has_owned_row_;
  Range owned_columns_;  // counted from the first centre
  bool is_owned_ = false;
  int z_ = 0;
  CentreDerivatives<Value>* derivatives_[2] = {};
  // Weights, and the number of pixels that all windows of a row see along z and y.
  Weight weights_[kOutputs] = {1, 1, 1, 1, 1, 1, 1, 1};
  double seen_ = 0, scale_inside_ = 0;
  // The pixels of the outputs, for ANTs' gradient.
  float x_pixels_[kOutputs] = {}, y_pixels_[kOutputs] = {};
};

// Rounds the f32 sum of a few values that are at most 1 to a multiple of 2⁻²⁶. Sums of up to 2²⁶
// values are then exact in f64, whatever their order, and so do not depend on the tiles.
__device__ __forceinline__ double in_any_order(float values) {
  constexpr double kRounder = 0x1.8p26;  // its last digit is worth 2⁻²⁶
  return (static_cast<double>(values) + kRounder) - kRounder;
}

// kWindow is the number of rows of a window that the kernel is made for, or 0.
template <class Value, Kind kKind, class Pixels, int kWindow = 0>
__global__ __launch_bounds__(kWindowThreads, 1) void window_kernel(
    const SIMILIS_GRID_CONSTANT WindowArguments m) {
  using ThreadCentres = Centres<Value, kKind>;
  constexpr int kUnroll = kKind == Kind::any ? 1 : takes_whole_runs(kKind) ? kOutputs : 4;
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 128);
  const Geometry& g = m.problem.geometry;
  const BlockTile tile(m.tiles);
  const SharedTile shared_tile(shared, m.tiles);
  const int threads_across = m.tiles.threads_across, rows = m.tiles.threads_along * kOutputs;
  const int window_x = 2 * g.radius[2] + 1, window_y = 2 * g.radius[1] + 1;
  const int owned = takes_whole_runs(kKind) ? whole_runs(threads_across, window_x - 1)
                                            : threads_across - (window_x - 1);
  const int x_first = m.centres.columns.first + tile.x * owned;
  const int y_first = m.centres.rows.first + tile.y * rows;
  const Range planes = m.tiles.chunks.planes(tile.chunk);
  const int z_first = planes.first, z_last = planes.last;
  const Shift shift = shift_of(m.problem, m.tiles.first_volume + tile.volume);
  const int shared_tile_bytes = SharedTile::bytes(m.tiles);
  Pixels stage(
      shared + shared_tile_bytes, shared, shared_tile_bytes, m, tile, shift, x_first, y_first);
  // The thread stores sums in its own column of the shared tile and then loads those of another.
  const int thread = static_cast<int>(threadIdx.x);
  const int own_column = thread % threads_across, first_row = thread / threads_across * kOutputs;
  const int down = first_row * shared_tile.row_length + own_column;
  const int row = thread % rows, first = thread / rows * kOutputs;
  const int up = row * shared_tile.row_length + first;
  const int y = y_first + row, x = x_first + first;
  const int in_tile = owned - first, in_image = m.centres.columns.last - x;
  const int left = in_tile < in_image ? in_tile : in_image;
  const int mine = y >= m.centres.rows.last || y < m.derivatives.kept.rows.first ? 0
                   : left < kOutputs                                             ? left
                                     : kOutputs;  // none if <= 0
  ThreadCentres centres(m, tile, shift, y, x, mine);
  Sums windows[kOutputs] = {};
  begin(stage, z_first, g.radius[0], [&](int place, bool has_two) {
    add(windows, window_y, shift, has_two, stage.column(place, first_row, own_column));
  });
  const bool has_weights =
      (kKind == Kind::any || kKind == Kind::weighted) &&
      (sizeof(Value) != sizeof(float) || !m.problem.reduces || m.problem.mask.data != nullptr);
  double total = 0;
  for (int z = z_first;;) {
    const bool has_centres = mine > 0 && z >= m.centres.planes.first;  // a chunk may begin earlier
    if (has_centres) centres.enter(z);
#pragma unroll
    for (int i = 0; i < kOutputs; ++i)
      shared_tile.store(down + i * shared_tile.row_length, windows[i]);
    __syncthreads();
    const bool has_next = z + 1 < z_last;
    if (has_next) stage.fill(0, z + 1 + g.radius[0], z - g.radius[0], true);
    if (has_centres) {
      Sums sums = shared_tile.load(up);
      for (int k = 1; k < window_x; ++k) sums += shared_tile.load(up + k);
      typename ThreadCentres::Sum values = 0;
#pragma unroll kUnroll
      for (int i = 0; i < kOutputs; ++i) {
        values += centres.run(sums, i, i < mine);
        Sums change = shared_tile.load(up + i + window_x);
        change -= shared_tile.load(up + i);
        sums += change;
      }
      centres.leave();
      total += has_weights ? values : in_any_order(static_cast<float>(values));
    }
    if (!has_next) break;
    stage.wait(0);
    __syncthreads();
    advance<kWindow>(windows, window_y, shift, stage.column(0, first_row, own_column));
    ++z;
  }
  if (m.partials == nullptr) return;
  __syncthreads();
  total = sum_of_block(total, reinterpret_cast<double*>(shared));
  if (threadIdx.x != 0) return;
  const int slot = (tile.chunk * m.tiles.count_y + tile.y) * m.tiles.count_x + tile.x;
  m.partials[(m.tiles.first_volume + tile.volume) * m.slots + m.first_slot + slot] = total;
}

}  // namespace

Kind kind_of(const Pass& pass, Form form) {
  if ((form != Form::f32 && form != Form::half) || pass.reduction == Reduction::none) {
    return Kind::any;
  }
  const bool is_weighted = !pass.mask.empty() || pass.padding == Padding::renormalize;
  const bool is_ants = pass.has_gradient() && pass.gradient == LnccGradient::ants;
  if (!is_weighted && !is_ants && !pass.is_signed) return Kind::plain;
  if (form == Form::half) return Kind::any;
  if (!is_weighted && !is_ants) return Kind::is_signed;
  if (pass.is_signed) return Kind::any;
  if (is_ants) return is_weighted || !pass.y_gradient.empty() ? Kind::any : Kind::ants;
  const bool has_f32_weights = pass.mask.empty() || pass.mask.dtype == DType::f32;
  return has_f32_weights ? Kind::weighted : Kind::any;
}

std::int64_t window_bytes(const Tiles& tiles, const int (&radius)[3], Form form) {
  if (form == Form::far) return SharedTile::bytes(tiles);
  const std::int64_t pixel = form == Form::half  ? sizeof(F16)
                             : form == Form::f32 ? sizeof(float)
                                                 : sizeof(double);
  const int columns = stage_columns(tiles, pixels_together(form == Form::half));
  return SharedTile::bytes(tiles) + 4 * pixel * columns * stage_rows(tiles, radius[1]) +
         gpu::BulkCopies::kBytes;
}

void launch_windows(const CudaPlan& plan, const WindowArguments& arguments, Form form) {
  const Pass& pass = plan.pass;
  const int rows = 2 * plan.problem.geometry.radius[1] + 1;
  const Kind kind = kind_of(pass, form);
  const auto of_halves = [&]<class Stored>(Stored) {
    return kind == Kind::plain ? window_kernel<float, Kind::plain, PixelStage<float, Stored>>
                               : window_kernel<float, Kind::any, PixelStage<float, Stored>>;
  };
  const auto kernel_of = [&] {
    using Floats = PixelStage<float>;
    switch (form) {
      case Form::far: return window_kernel<double, Kind::any, FarPixels>;
      case Form::half: return pass.x.dtype == DType::f16 ? of_halves(F16()) : of_halves(BF16());
      case Form::f32: break;
      default: return window_kernel<double, Kind::any, PixelStage<double>>;
    }
    switch (kind) {
      case Kind::is_signed: return window_kernel<float, Kind::is_signed, Floats>;
      case Kind::weighted: return window_kernel<float, Kind::weighted, Floats>;
      case Kind::ants: return window_kernel<float, Kind::ants, Floats>;
      case Kind::any: return window_kernel<float, Kind::any, Floats>;
      case Kind::plain: break;
    }
    return rows == 3   ? window_kernel<float, Kind::plain, Floats, 3>
           : rows == 5 ? window_kernel<float, Kind::plain, Floats, 5>
                       : window_kernel<float, Kind::plain, Floats>;
  };
  const auto kernel = kernel_of();
  const auto bytes =
      static_cast<std::size_t>(window_bytes(arguments.tiles, plan.problem.geometry.radius, form));
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(arguments.tiles.blocks()),
      arguments.tiles.threads(), bytes, kernel, arguments);
}

}  // namespace similis::lncc_internal
