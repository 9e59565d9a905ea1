// SPDX-License-Identifier: Apache-2.0
// The sliding window kernel under valid_mask: as sliding_window_windows.cu, with the weights of
// pixels on the stage beside them, and a sixth sum, of weights:
//   planes of x, y and weights that enter and leave ─> stage                         shared
//   ─> sums of w, wx, wy, wx², wy², wxy along z and y                                registers
//   shared tile ─> sums along x ─> moments ─ formula.h ─> value, derivatives         shared
// Passes that reduce to numbers come here; in a map,
// where windows of tiny weights count as much as others, sums that slide would not be exact.
#include <algorithm>
#include <type_traits>

#include "src/lncc/cuda/centre_runs.cuh"
#include "src/lncc/cuda/fast_path.h"
#include "src/lncc/cuda/outputs_per_thread.cuh"
#include "src/lncc/cuda/pixel_stage.cuh"

namespace similis::lncc_internal {
namespace {

// On a multiprocessor at once, with 255 registers each: 320 would have 168, spill 400 bytes and
// take a third more.
constexpr int kThreads = 256;

// A pixel about the shift, its weight, and their products. One of weight 0 may hold a NaN.
struct WeighedPixel {
  double weight, x, y, weighed_x, weighed_y;

  __device__ __forceinline__ WeighedPixel(
      float pixel_x, float pixel_y, float pixel_weight, const Shift& shift)
      : weight(pixel_weight),
        x((pixel_weight == 0 ? 0.0f : pixel_x) - shift.x),
        y((pixel_weight == 0 ? 0.0f : pixel_y) - shift.y),
        weighed_x(weight * x),
        weighed_y(weight * y) {}
};

struct Sums {
  double weight, x, y, xx, yy, xy;

  __device__ __forceinline__ void operator+=(const Sums& s) {
    weight += s.weight, x += s.x, y += s.y, xx += s.xx, yy += s.yy, xy += s.xy;
  }
  __device__ __forceinline__ void operator-=(const Sums& s) {
    weight -= s.weight, x -= s.x, y -= s.y, xx -= s.xx, yy -= s.yy, xy -= s.xy;
  }
  __device__ __forceinline__ void operator+=(const WeighedPixel& p) {
    weight += p.weight;
    x += p.weighed_x;
    y += p.weighed_y;
    xx = fma(p.weighed_x, p.x, xx);
    yy = fma(p.weighed_y, p.y, yy);
    xy = fma(p.weighed_x, p.y, xy);
  }
  __device__ __forceinline__ void operator-=(const WeighedPixel& p) {
    weight -= p.weight;
    x -= p.weighed_x;
    y -= p.weighed_y;
    xx = fma(-p.weighed_x, p.x, xx);
    yy = fma(-p.weighed_y, p.y, yy);
    xy = fma(-p.weighed_x, p.y, xy);
  }
};

// As the shared tile of sliding_window_windows.cu.
struct SharedTile {
  double2 *first, *second, *third;
  int row_length;

  SIMILIS_HOST_DEVICE static int bytes(const Tiles& tiles) {
    return 6 * tiles.shared_sums() * static_cast<int>(sizeof(double));
  }
  __device__ SharedTile(unsigned char* shared, const Tiles& tiles)
      : first(reinterpret_cast<double2*>(shared)),
        second(first + tiles.shared_sums()),
        third(second + tiles.shared_sums()),
        row_length(tiles.threads_across + 1) {}
  __device__ __forceinline__ void store(int at, const Sums& s) const {
    first[at] = {s.weight, s.x};
    second[at] = {s.y, s.xx};
    third[at] = {s.yy, s.xy};
  }
  __device__ __forceinline__ Sums load(int at) const {
    const double2 one = first[at], two = second[at], three = third[at];
    return {one.x, one.y, two.x, two.y, three.x, three.y};
  }
};

// The weights of the pixels on a PixelStage, with the same calls. Pixels outside the image weigh 1,
// as black ones, or 0. It keeps few numbers, since registers are scarce, and finds others anew.
template <class Weight> class WeightStage {
 public:
  // Returns the bytes of the two planes of a place.
  SIMILIS_HOST_DEVICE static int place_bytes(const Tiles& tiles, int radius) {
    return 2 * stage_rows(tiles, radius) * stage_columns(tiles, kTogether) *
           static_cast<int>(sizeof(Weight));
  }

  // `second`: the second place, or null.
  __device__ WeightStage(unsigned char* shared, unsigned char* second, const WindowArguments& m,
      const BlockTile& tile, int x_first, int y_first)
      : m_(m),
        shared_(reinterpret_cast<Weight*>(shared)),
        second_(
            second == nullptr ? 0 : static_cast<int>(reinterpret_cast<Weight*>(second) - shared_)),
        copies_(shared + place_bytes(m.tiles, m.problem.geometry.radius[1])),
        x_begin_((x_first - m.problem.geometry.radius[2]) & -kTogether),
        y_begin_(y_first - m.problem.geometry.radius[1]) {
    const Geometry& g = m.problem.geometry;
    const std::int64_t volume = m.tiles.first_volume + tile.volume;
    volume_ = static_cast<const Weight*>(view().data) +
              view().plane(volume / g.channels, volume % g.channels);
    for (int place = 0; place < (second != nullptr ? 2 : 1); ++place) {
      clear(place, 0);
      clear(place, 1);
    }
  }

  __device__ __forceinline__ void fill(int place, int one, int two, bool has_two) {
    const Geometry& g = m_.problem.geometry;
    const bool is_first = one >= 0 && one < g.extent[0];
    const bool is_second = has_two && two >= 0 && two < g.extent[0];
    const Range rows = in_image(y_begin_, this->rows(), g.extent[1]);
    const Range columns = in_image(x_begin_, this->columns(), g.extent[2]);
    if (m_.has_whole_weights && threadIdx.x == 0) {
      copies_.expect(place, columns.length() * static_cast<int>(sizeof(Weight)) * rows.length() *
                                ((is_first ? 1 : 0) + (is_second ? 1 : 0)));
    }
    copy_rows(place, one, is_first, two, is_second, rows, columns);
    if (!is_first) clear(place, 0);
    if (has_two && !is_second) clear(place, 1);
  }
  __device__ __forceinline__ void wait(int place) {
    if (m_.has_whole_weights) {
      copies_.wait(place);
    } else {
      gpu::BulkCopies::wait_for_words();
    }
  }

  // The weights under a thread's windows.
  struct Column {
    const Weight* first;
    int columns, plane_size;

    __device__ __forceinline__ float one(int line) const {
      return gpu::to_float(first[line * columns]);
    }
    __device__ __forceinline__ float two(int line) const {
      return gpu::to_float(first[line * columns + plane_size]);
    }
  };
  __device__ __forceinline__ Column column(int place, int row, int x) const {
    return {weights(place) + row * columns() + x - x_begin_, columns(), plane_size()};
  }

 private:
  static constexpr int kTogether = 16 / sizeof(Weight);  // copied together

  __device__ __forceinline__ const gpu::View& view() const { return m_.problem.valid_mask; }
  __device__ __forceinline__ int columns() const { return stage_columns(m_.tiles, kTogether); }
  __device__ __forceinline__ int rows() const {
    return stage_rows(m_.tiles, m_.problem.geometry.radius[1]);
  }
  __device__ __forceinline__ int plane_size() const { return rows() * columns(); }
  __device__ __forceinline__ Weight* weights(int place) const {
    return shared_ + (place == 0 ? 0 : second_);
  }
  __device__ __forceinline__ static Range in_image(int begin, int length, std::int64_t extent) {
    const int end = begin + length, last = static_cast<int>(extent);
    return {begin < 0 ? 0 : begin, end < last ? end : last};
  }
  // Warps share the rows, and in each warp one thread after the other asks the engine for a row.
  __device__ __forceinline__ void copy_rows(int place, int one, bool is_first, int two,
      bool is_second, const Range& rows, const Range& columns) const {
    const int warps = static_cast<int>(blockDim.x) / gpu::kSubgroup;
    const int warp = static_cast<int>(threadIdx.x) / gpu::kSubgroup;
    const int lane = static_cast<int>(threadIdx.x) % gpu::kSubgroup;
    const int first = m_.has_whole_weights ? lane * warps + warp : warp;
    const int step = m_.has_whole_weights ? warps * gpu::kSubgroup : warps;
#pragma unroll 1
    for (int y = rows.first + first; y < rows.last; y += step) {
      if (is_first) copy_row(place, 0, one, y, columns);
      if (is_second) copy_row(place, 1, two, y, columns);
    }
  }
  __device__ __forceinline__ void copy_row(
      int place, int part, int z, int y, const Range& columns) const {
    const Weight* const from = volume_ + view().at(z, y, columns.first);
    Weight* const to = weights(place) + part * plane_size() + (y - y_begin_) * this->columns() +
                       (columns.first - x_begin_);
    if (m_.has_whole_weights) {
      copies_.copy(place, to, from, columns.length() * static_cast<int>(sizeof(Weight)));
      return;
    }
#pragma unroll 1
    for (int x = static_cast<int>(threadIdx.x) % gpu::kSubgroup; x < columns.length();
         x += gpu::kSubgroup) {
      if constexpr (std::is_same_v<Weight, float>) {
        gpu::BulkCopies::copy_word(to + x, from + x * view().strides[4]);
      } else {
        to[x] = from[x * view().strides[4]];
      }
    }
  }
  __device__ void clear(int place, int part) const {
    const Weight outside = m_.problem.geometry.padding == Padding::renormalize ? 0 : 1;
    Weight* const to = weights(place) + part * plane_size();
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < plane_size();
         i += static_cast<int>(blockDim.x)) {
      to[i] = outside;
    }
    gpu::BulkCopies::publish();
  }

  const WindowArguments& m_;
  Weight* const shared_;
  const int second_;  // start of the second place
  gpu::BulkCopies copies_;
  const int x_begin_, y_begin_;  // the place in the image where the stage begins
  const Weight* volume_;
};

// Pixels and weights.
template <class Weight> class WeighedStage {
  using Weights = WeightStage<Weight>;
  using PixelColumn = PixelStage<float>::Column;
  using WeightColumn = typename Weights::Column;

 public:
  SIMILIS_HOST_DEVICE static int pixel_bytes(const Tiles& tiles, int radius) {
    return 4 * stage_columns(tiles, pixels_together(false)) * stage_rows(tiles, radius) *
           static_cast<int>(sizeof(float));
  }
  SIMILIS_HOST_DEVICE static int bytes(const Tiles& tiles, int radius) {
    return pixel_bytes(tiles, radius) + Weights::place_bytes(tiles, radius) +
           2 * gpu::BulkCopies::kBytes;
  }

  __device__ WeighedStage(unsigned char* shared, unsigned char* shared_tile,
      const WindowArguments& m, const BlockTile& tile, const Shift& shift, int x_first, int y_first)
      : has_two_places_(bytes(m.tiles, m.problem.geometry.radius[1]) <= SharedTile::bytes(m.tiles)),
        pixels_(shared, shared_tile, has_two_places_ ? SharedTile::bytes(m.tiles) : 0, m, tile,
            shift, x_first, y_first),
        weights_(
            shared + pixel_bytes(m.tiles, m.problem.geometry.radius[1]) + gpu::BulkCopies::kBytes,
            has_two_places_ ? shared_tile + pixel_bytes(m.tiles, m.problem.geometry.radius[1])
                            : nullptr,
            m, tile, x_first, y_first),
        x_begin_(x_first - m.problem.geometry.radius[2]) {}

  __device__ bool has_two_places() const { return has_two_places_; }
  __device__ __forceinline__ void fill(int place, int one, int two, bool has_two) {
    pixels_.fill(place, one, two, has_two);
    weights_.fill(place, one, two, has_two);
  }
  __device__ __forceinline__ void wait(int place) {
    pixels_.wait(place);
    weights_.wait(place);
  }

  struct Column {
    PixelColumn pixels;
    WeightColumn weights;
    Shift shift;

    __device__ __forceinline__ WeighedPixel one(int line) const {
      const auto pixel = pixels.one(line);
      return WeighedPixel(pixel.x, pixel.y, weights.one(line), shift);
    }
    __device__ __forceinline__ WeighedPixel two(int line) const {
      const auto pixel = pixels.two(line);
      return WeighedPixel(pixel.x, pixel.y, weights.two(line), shift);
    }
  };
  __device__ __forceinline__ Column column(
      int place, int row, int column, const Shift& shift) const {
    return {
        pixels_.column(place, row, column), weights_.column(place, row, x_begin_ + column), shift};
  }

 private:
  const bool has_two_places_;
  PixelStage<float> pixels_;
  Weights weights_;
  const int x_begin_;
};

// The centres of a thread, which lie side by side in a row. Each counts as its own pixel weighs.
template <class Weight> class WeighedCentres {
 public:
  // `count` is the number of centres.
  __device__ WeighedCentres(
      const WindowArguments& m, const BlockTile& tile, int y, int x, int count)
      : m_(m),
        volume_(tile.volume),
        count_(count),
        x_(x),
        rows_(m.derivatives.kept.rows.length()),
        in_plane_(
            (x - m.derivatives.kept.columns.first) * rows_ + y - m.derivatives.kept.rows.first),
        plane_(m.problem, m.tiles.first_volume + tile.volume),
        slope_(static_cast<float>(plane_.slope)),
        least_(static_cast<float>(
            m.problem.slopes[m.problem.geometry.planes + m.tiles.first_volume + tile.volume])),
        has_owned_row_(m.owned.rows.holds(y)) {
    const std::int64_t volume = m.tiles.first_volume + tile.volume;
    const gpu::View& valid = m.problem.valid_mask;
    row_ = static_cast<const Weight*>(valid.data) +
           Problem::offset(valid, {volume / m.problem.geometry.channels,
                                      volume % m.problem.geometry.channels, 0, y, x});
  }

  // Moves to a plane.
  __device__ __forceinline__ void enter(int z) {
    is_owned_ = has_owned_row_ && m_.owned.planes.holds(z);
    for (int image = 0; image < 2; ++image) {
      if (image < m_.derivatives.images) {
        derivatives_[image] =
            reinterpret_cast<CentreDerivatives<float>*>(m_.derivatives.plane(volume_, image, z)) +
            in_plane_;
      }
    }
    const gpu::View& valid = m_.problem.valid_mask;
    load_run(row_ + z * valid.strides[2], valid.strides[4], count_, m_.has_whole_runs, own_);
  }

  // Returns the weighted value of the i-th centre, if it exists. Sums that slide hold last digits
  // of weights that left, so a centre without weight, or with so little that it does not count,
  // does not look at them; the window of any other weighs as much as its centre at least. Products
  // with 1 / W are f64, as W may be beyond f32's range.
  __device__ __forceinline__ float run(const Sums& sums, int i, bool exists) const {
    const float own = own_[i] < least_ ? 0.0f : own_[i];
    const double window = sums.weight > own ? sums.weight : own;
    const double scale = own == 0 ? 0 : reciprocal(window);
    const double mean_x = sums.x * scale, mean_y = sums.y * scale;
    const double share = m_.problem.taps * scale;
    const Correlation<float> v =
        squared_correlation_f32({static_cast<float>(share * fma(-sums.x, mean_y, sums.xy)),
                                    static_cast<float>(share * fma(-sums.x, mean_x, sums.xx)),
                                    static_cast<float>(share * fma(-sums.y, mean_y, sums.yy))},
            plane_.constants);
    if (m_.derivatives.images > 0 && exists) {
      // Weights that are NaN make the slope of all centres NaN.
      const float slope = static_cast<float>(own * share) * slope_;
      store(0, i, slope * v.gradient.a, 2 * slope * v.gradient.b, mean_y, mean_x);
      if (m_.derivatives.images > 1)
        store(1, i, slope * v.gradient.a, 2 * slope * v.gradient.c, mean_x, mean_y);
    }
    const bool adds = is_owned_ && m_.owned.columns.holds(x_ + i) && exists;
    return adds && own != 0 ? own * v.value : 0.0f;
  }

 private:
  __device__ __forceinline__ void store(
      int image, int i, float by_a, float own, double other_mean, double own_mean) const {
    store_centre(derivatives_[image] + i * rows_, by_a, own,
        fma(static_cast<double>(by_a), other_mean, static_cast<double>(own) * own_mean));
  }

  const WindowArguments& m_;
  const int volume_, count_, x_, rows_, in_plane_;
  const PlaneTerms plane_;
  const float slope_, least_;
  const bool has_owned_row_;
  bool is_owned_ = false;
  const Weight* row_;
  CentreDerivatives<float>* derivatives_[2] = {};
  float own_[kOutputs] = {};
};

template <class Weight>
__global__ __launch_bounds__(kThreads, 1) void valid_window_kernel(
    const SIMILIS_GRID_CONSTANT WindowArguments m) {
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 128);
  const Geometry& g = m.problem.geometry;
  const BlockTile tile(m.tiles);
  const SharedTile shared_tile(shared, m.tiles);
  const int threads_across = m.tiles.threads_across, rows = m.tiles.threads_along * kOutputs;
  const int window_x = 2 * g.radius[2] + 1, window_y = 2 * g.radius[1] + 1;
  const int owned = whole_runs(threads_across, window_x - 1);
  const int x_first = m.centres.columns.first + tile.x * owned;
  const int y_first = m.centres.rows.first + tile.y * rows;
  const Range planes = m.tiles.chunks.planes(tile.chunk);
  const int z_first = planes.first, z_last = planes.last;
  const Shift shift = shift_of(m.problem, m.tiles.first_volume + tile.volume);
  WeighedStage<Weight> stage(
      shared + SharedTile::bytes(m.tiles), shared, m, tile, shift, x_first, y_first);
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
  WeighedCentres<Weight> centres(m, tile, y, x, mine);
  Sums windows[kOutputs] = {};
  begin(stage, z_first, g.radius[0], [&](int place, bool has_two) {
    const auto column = stage.column(place, first_row, own_column, shift);
    add_to_windows(windows, window_y, [&](Sums& sums, int line) {
      sums += column.one(line);
      if (has_two) sums += column.two(line);
    });
  });
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
      float values = 0;
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
        values += centres.run(sums, i, i < mine);
        Sums change = shared_tile.load(up + i + window_x);
        change -= shared_tile.load(up + i);
        sums += change;
      }
      total += values;
    }
    if (!has_next) break;
    stage.wait(0);
    __syncthreads();
    const auto column = stage.column(0, first_row, own_column, shift);
    add_to_windows(windows, window_y, [&](Sums& sums, int line) {
      sums += column.one(line);
      sums -= column.two(line);
    });
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

int valid_threads() { return kThreads; }

std::int64_t valid_window_bytes(const Tiles& tiles, const int (&radius)[3]) {
  return SharedTile::bytes(tiles) + std::max(WeighedStage<float>::bytes(tiles, radius[1]),
                                        WeighedStage<std::uint8_t>::bytes(tiles, radius[1]));
}

void launch_valid_windows(const CudaPlan& plan, const WindowArguments& arguments) {
  const auto kernel = plan.pass.valid_mask.dtype == DType::f32 ? valid_window_kernel<float>
                                                               : valid_window_kernel<std::uint8_t>;
  const auto bytes =
      static_cast<std::size_t>(valid_window_bytes(arguments.tiles, plan.problem.geometry.radius));
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(arguments.tiles.blocks()),
      arguments.tiles.threads(), bytes, kernel, arguments);
}

}  // namespace similis::lncc_internal
