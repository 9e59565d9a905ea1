// SPDX-License-Identifier: Apache-2.0
// LNCC on the GPU under boxes, the fast path: value and gradients in one kernel, each image read
// once but for halos, nothing stored but the results. A block takes a tile of 32×16 columns and
// marches along z; of each plane of centres
//   pixels of the entering and the leaving plane ─> running sums along z of 5 products   registers
//   across, box sums of whole rows, 8 at a time by add and subtract                      shared
//   down, the same ─> moments ─ formula.h ─> value, and 3 or 5 fields of the gradient    shared
//   fields across and down ─> running sums along z, which a ring of window_size planes lets forget
//   the plane that leaves ─> gradients, window_size / 2 planes behind the centres
// Every sum is f64 about the tile's middle pixel. The ring lies in shared memory where it fits,
// else in the workspace, one for each block that runs; blocks then take tile after tile. Running
// sums along z drift by 1e-16 of the largest square a plane, over a few hundred planes at most.
//
// Of window 7 and one gradient, a pixel: 8 B read × 2.4 for the halo × 2 for entering and leaving
// (of which DRAM sees 8), 4 B written; 240 f64 operations among 1250 instructions; 700 B through
// shared memory. f32 images under windows of 3, 5, 7, 9 and 11 both ways have kernels of their own,
// as divisions and addresses by numbers known at run time alone take twice as long.
#include <algorithm>

#include "src/core/memory.h"
#include "src/lncc/cuda_march.h"

// A loop as long as the window, which some kernels know when they are compiled; clang calls it an
// error to be asked where it is not known.
#if defined(__HIPCC__)
#define SIMILIS_UNROLL
#else
#define SIMILIS_UNROLL _Pragma("unroll")
#endif

namespace similis::lncc_internal {
namespace {

constexpr int kThreads = kMarchThreads;

// A tile of a plane, from z_first to z_last.
struct Item {
  std::int64_t image, channel, z_first, z_last, y_first, x_first;

  __device__ Item(const March& m, std::int64_t index) {
    const std::int64_t tiles = std::int64_t{m.tiles_x} * m.tiles_y;
    const std::int64_t tile = index % tiles, outer = index / tiles;
    const std::int64_t chunk = outer % m.chunks, plane = outer / m.chunks;
    const Geometry& g = m.measure.geometry;
    image = plane / g.channels;
    channel = plane % g.channels;
    x_first = tile % m.tiles_x * kTileX;
    y_first = tile / m.tiles_x * kTileY;
    z_first = chunk * m.chunk_planes;
    z_last = z_first + m.chunk_planes < g.extent[0] ? z_first + m.chunk_planes : g.extent[0];
  }
};

// Positions along an axis of a tile's halo, [first, last), counted from the halo's edge.
struct Span {
  int first, last;

  // What of [from, to) lies in `length` positions from `edge` on.
  __device__ Span(std::int64_t from, std::int64_t to, std::int64_t edge, int length)
      : first(within(from - edge, length)), last(within(to - edge, length)) {}
  __device__ bool holds(int position) const { return position >= first && position < last; }

 private:
  static __device__ int within(std::int64_t position, int length) {
    return static_cast<int>(position < 0 ? 0 : position > length ? length : position);
  }
};

// What pixels are kept as from the load to the sums: f32 where images are f32, which is known when
// the kernel is compiled, else f64.
template <class Value>
__device__ __forceinline__ Value load_pixel(const gpu::View& view, std::int64_t offset) {
  if constexpr (sizeof(Value) == sizeof(float)) {
    return static_cast<const float*>(view.data)[offset];
  } else {
    return view.load(offset);
  }
}

struct Pair {
  double x, y;
};
template <class Value> struct Loaded {
  Value x, y;

  __device__ __forceinline__ Pair pair() const {
    return {static_cast<double>(x), static_cast<double>(y)};
  }
};

// A column of pixels under a thread's care, and its sums along z.
struct Column {
  std::int64_t x_offset, y_offset;  // of its pixel in plane 0
  bool has_pixel;                   // or it lies beside the image
  int place;                        // in a plane of products; < 0: none is
  double sums[kProducts];           // of x, y, x², y² and 2xy
};

template <int kColumns, class Value> class Columns {
 public:
  __device__ Columns(const March& m, const Layout& l, const Item& item) : m_(m), l_(l) {
    const Geometry& g = m.measure.geometry;
    const std::int64_t z = (item.z_first + item.z_last) / 2;
    const std::int64_t y = item.y_first + kTileY / 2, x = item.x_first + kTileX / 2;
    const Place middle{item.image, item.channel, z, y < g.extent[1] ? y : g.extent[1] - 1,
        x < g.extent[2] ? x : g.extent[2] - 1};
    shift_ = {
        finite(Measure::load(m.measure.x, middle)), finite(Measure::load(m.measure.y, middle))};
    const bool is_black = g.padding == Padding::same;
    outside_ = {
        static_cast<Value>(is_black ? 0 : shift_.x), static_cast<Value>(is_black ? 0 : shift_.y)};
#pragma unroll
    for (int c = 0; c < kColumns; ++c) place(c, item);
  }

  __device__ Pair shift() const { return shift_; }

  // Asks for the pixels of the plane that enters, and of the one a window behind, which leaves if
  // it came.
  __device__ __forceinline__ void fetch(std::int64_t enters, std::int64_t first) {
    const Geometry& g = m_.measure.geometry;
    const std::int64_t leaves = enters - m_.window_z;
    const bool came = leaves >= first;
    const bool has_entering = g.is_pixel(0, enters), has_leaving = came && g.is_pixel(0, leaves);
    const gpu::View &x = m_.measure.x, &y = m_.measure.y;
    const std::int64_t x_in = enters * x.strides[2], y_in = enters * y.strides[2];
    const std::int64_t x_out = leaves * x.strides[2], y_out = leaves * y.strides[2];
    const Loaded<Value> absent = {static_cast<Value>(shift_.x), static_cast<Value>(shift_.y)};
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      in_[c] = outside_;
      out_[c] = came ? outside_ : absent;
      if (columns_[c].has_pixel && has_entering) in_[c] = load(columns_[c], x_in, y_in);
      if (columns_[c].has_pixel && has_leaving) out_[c] = load(columns_[c], x_out, y_out);
    }
  }

  // The sums move on by the plane that was asked for.
  __device__ __forceinline__ void advance() {
    const Pair twice = {-2 * shift_.x, -2 * shift_.y};
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      // a² - b² = (a - b)(a + b), and with 2 the same of products.
      const Pair in = in_[c].pair(), out = out_[c].pair();
      double(&sums)[kProducts] = columns_[c].sums;
      const double dx = in.x - out.x, dy = in.y - out.y;
      const double sx = in.x + out.x + twice.x, sy = in.y + out.y + twice.y;
      sums[0] += dx;
      sums[1] += dy;
      sums[2] = fma(dx, sx, sums[2]);
      sums[3] = fma(dy, sy, sums[3]);
      sums[4] = fma(dx, sy, fma(dy, sx, sums[4]));
    }
  }

  __device__ __forceinline__ void write(double* products) const {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (columns_[c].place < 0) continue;
#pragma unroll
      for (int p = 0; p < kProducts; ++p) {
        products[p * l_.product_plane() + columns_[c].place] = columns_[c].sums[p];
      }
    }
  }

 private:
  static __device__ double finite(double value) { return value - value == 0 ? value : 0; }

  __device__ __forceinline__ Loaded<Value> load(
      const Column& column, std::int64_t x_plane, std::int64_t y_plane) const {
    return {load_pixel<Value>(m_.measure.x, column.x_offset + x_plane),
        load_pixel<Value>(m_.measure.y, column.y_offset + y_plane)};
  }

  __device__ __forceinline__ void place(int c, const Item& item) {
    const Geometry& g = m_.measure.geometry;
    const int index = c * kThreads + static_cast<int>(threadIdx.x);
    const int row = index / l_.pixels_x(), column = index % l_.pixels_x();
    Column& placed = columns_[c];
    const bool is_there = row < l_.pixels_y();
    placed.place = is_there ? row * l_.pixel_row() + column : -1;
#pragma unroll
    for (double& sum : placed.sums) sum = 0;
    const Place at{item.image, item.channel, 0, item.y_first - l_.halo_y() - g.radius[1] + row,
        item.x_first - l_.halo_x() - g.radius[2] + column};
    placed.has_pixel = is_there && g.is_pixel(1, at.y) && g.is_pixel(2, at.x);
    placed.x_offset = Measure::offset(m_.measure.x, at);
    placed.y_offset = Measure::offset(m_.measure.y, at);
  }

  const March& m_;
  const Layout& l_;
  Pair shift_;
  Loaded<Value> outside_, in_[kColumns], out_[kColumns];
  Column columns_[kColumns];
};

// Box sums of rows: of each piece the first as it is, and each other from the one before. Rows have
// room for whole pieces; what they make of it beyond the last column is not looked at.
__device__ __forceinline__ void sum_across(const double* in, int in_row, int window,
    const Pieces& pieces, double* out, int out_row, int rows) {
  for (int task = static_cast<int>(threadIdx.x); task < rows * pieces.count; task += kThreads) {
    const int row = task % rows, first = task / rows * pieces.length;
    const double* from = in + row * in_row + first;
    double* to = out + row * out_row + first;
    double sum = 0;
    SIMILIS_UNROLL
    for (int k = 0; k < window; ++k) sum += from[k];
    to[0] = sum;
    SIMILIS_UNROLL
    for (int i = 1; i < pieces.length; ++i) {
      sum += from[i + window - 1] - from[i - 1];
      to[i] = sum;
    }
  }
}

// How many pixels of the image a window sees along an axis.
__device__ __forceinline__ std::int64_t seen(const Geometry& g, int axis, std::int64_t centre) {
  const std::int64_t first = centre - g.radius[axis], last = centre + g.radius[axis];
  return (last < g.extent[axis] ? last + 1 : g.extent[axis]) - (first > 0 ? first : 0);
}

// The centres of a tile, one plane after the other.
template <int kFields> class Centres {
 public:
  __device__ Centres(const March& m, const Layout& l, const Item& item, const Pair& shift)
      : m_(m),
        l_(l),
        item_(item),
        shift_(shift),
        rows_(m.measure.geometry.first_centre[1], m.measure.geometry.last_centre[1],
            item.y_first - l.halo_y(), l.centres_y()),
        columns_(m.measure.geometry.first_centre[2], m.measure.geometry.last_centre[2],
            item.x_first - l.halo_x(), l.centres_x()),
        is_plain_(m.measure.mask.data == nullptr && m.measure.reduces &&
                  m.measure.geometry.padding != Padding::renormalize),
        slope_(m.measure.reduces
                   ? m.measure.slopes[item.image * m.measure.geometry.channels + item.channel]
                   : 0) {}

  // Down: several centres of a column a thread, whose window sums of a plane lie in `across`.
  // Returns their weighted values as far as the tile owns them.
  __device__ __forceinline__ double run(
      const double* across, double* fields, std::int64_t z) const {
    const int window = l_.window_y, row_length = l_.centre_row();
    const int down = (l_.centres_x() * l_.centres_y() + kThreads - 1) / kThreads;
    const int pieces = (l_.centres_y() + down - 1) / down;
    const bool owns_plane = z >= item_.z_first && z < item_.z_last;
    double total = 0;
    for (int task = static_cast<int>(threadIdx.x); task < l_.centres_x() * pieces;
         task += kThreads) {
      const int column = task % l_.centres_x(), first = task / l_.centres_x() * down;
      const double* in = across + first * row_length + column;
      double sums[kProducts] = {};
      SIMILIS_UNROLL
      for (int k = 0; k < window; ++k) {
#pragma unroll
        for (int p = 0; p < kProducts; ++p) {
          sums[p] += in[p * l_.across_plane() + k * row_length];
        }
      }
      for (int row = first; row < first + down && row < l_.centres_y(); ++row) {
        if (row > first) {
          in += row_length;
#pragma unroll
          for (int p = 0; p < kProducts; ++p) {
            const double* of_product = in + p * l_.across_plane();
            sums[p] += of_product[(window - 1) * row_length] - of_product[-row_length];
          }
        }
        total += run_centre(sums, fields, owns_plane, z, row, column);
      }
    }
    return total;
  }

 private:
  __device__ Place at(std::int64_t z, int row, int column) const {
    return {item_.image, item_.channel, z, item_.y_first - l_.halo_y() + row,
        item_.x_first - l_.halo_x() + column};
  }

  __device__ __forceinline__ double run_centre(const double (&sums)[kProducts], double* fields,
      bool owns_plane, std::int64_t z, int row, int column) const {
    const Measure& measure = m_.measure;
    double* const out = fields + row * l_.field_row() + column;
    if (!rows_.holds(row) || !columns_.holds(column)) {
#pragma unroll
      for (int j = 0; j < kFields; ++j) out[j * l_.field_plane()] = 0;
      if constexpr (kFields == 0) store_no_gradients(at(z, row, column));
      return 0;
    }
    const double scale = is_plain_ ? m_.scale : scale_at(at(z, row, column));
    const double share = is_plain_ ? 1 : measure.taps * scale;
    const double mean_x = sums[0] * scale, mean_y = sums[1] * scale;
    const Moments<double> moments = {share * fma(-sums[0], mean_y, 0.5 * sums[4]),
        share * fma(-sums[0], mean_x, sums[2]), share * fma(-sums[1], mean_y, sums[3])};
    const Correlation<double> v = measure.correlation(moments);
    double own_weight = 1, slope = slope_;
    if (!is_plain_) {
      own_weight = measure.pixel_weight(at(z, row, column));
      slope = measure.slope(at(z, row, column), own_weight);
    }
    if constexpr (kFields > 0) {
      store_fields<kFields>(v, slope * share, mean_x, mean_y, measure.x_gradient.data != nullptr,
          out, l_.field_plane());
      const bool is_owned = owns_plane && row >= l_.halo_y() && row < l_.halo_y() + kTileY &&
                            column >= l_.halo_x() && column < l_.halo_x() + kTileX;
      if (!is_owned) return 0;
    } else if (measure.x_gradient.data != nullptr || measure.y_gradient.data != nullptr) {
      const Place place = at(z, row, column);
      measure.store_centre_gradients(place, moments, slope,
          Measure::load(measure.x, place) - shift_.x - mean_x,
          Measure::load(measure.y, place) - shift_.y - mean_y);
    }
    if (measure.map.data != nullptr) measure.store_map(at(z, row, column), own_weight, v.value);
    return own_weight == 0 ? 0 : own_weight * v.value;
  }

  __device__ double scale_at(const Place& place) const {
    const Geometry& g = m_.measure.geometry;
    if (g.padding != Padding::renormalize) return m_.scale;
    const std::int64_t count = seen(g, 0, place.z) * seen(g, 1, place.y) * seen(g, 2, place.x);
    return 1 / static_cast<double>(count);
  }

  // ANTs' gradient where no window is centred.
  __device__ void store_no_gradients(const Place& place) const {
    const Measure& measure = m_.measure;
    const Geometry& g = measure.geometry;
    if (!g.is_pixel(0, place.z) || !g.is_pixel(1, place.y) || !g.is_pixel(2, place.x)) return;
    if (measure.x_gradient.data != nullptr) {
      measure.x_gradient.store(Measure::offset(measure.x_gradient, place), 0);
    }
    if (measure.y_gradient.data != nullptr) {
      measure.y_gradient.store(Measure::offset(measure.y_gradient, place), 0);
    }
  }

 public:
  // In a plane without centres.
  __device__ void skip(std::int64_t z) const {
    const int column = static_cast<int>(threadIdx.x) % kTileX;
    const int row = static_cast<int>(threadIdx.x) / kTileX;
    store_no_gradients(at(z, row, column));
  }

 private:
  const March& m_;
  const Layout& l_;
  const Item& item_;
  const Pair shift_;
  const Span rows_, columns_;  // where windows are centred
  const bool is_plain_;        // every centre weighs and averages alike
  const double slope_;
};

// The window sums of the fields of each thread's pixel, which move on along z.
template <int kFields, class Value> class FieldSums {
 public:
  __device__ FieldSums(const March& m, const Layout& l, const Item& item, double* ring)
      : m_(m),
        l_(l),
        ring_(ring + threadIdx.x),
        at_{item.image, item.channel, 0, item.y_first + threadIdx.x / kTileX,
            item.x_first + threadIdx.x % kTileX},
        has_pixel_(m.measure.geometry.is_pixel(1, at_.y) && m.measure.geometry.is_pixel(2, at_.x)) {
    for (int i = 0; i < kFields * m.window_z; ++i) ring_[i * kThreads] = 0;
  }

  // Forgets the oldest plane for this one, whose sums across lie in `across`; null if it has none.
  __device__ __forceinline__ void advance(const double* across) {
    const int x = static_cast<int>(threadIdx.x) % kTileX;
    const int y = static_cast<int>(threadIdx.x) / kTileX;
#pragma unroll
    for (int j = 0; j < kFields; ++j) {
      double sum = 0;
      if (across != nullptr) {
        const double* from = across + j * l_.tile_plane() + y * l_.tile_row() + x;
        SIMILIS_UNROLL
        for (int k = 0; k < l_.window_y; ++k) sum += from[k * l_.tile_row()];
      }
      double& slot = ring_[(slot_ * kFields + j) * kThreads];
      sums_[j] += sum - slot;
      slot = sum;
    }
    slot_ = slot_ + 1 == m_.window_z ? 0 : slot_ + 1;
  }

  // Asks for the pixels of the plane whose gradients come next.
  __device__ __forceinline__ void fetch(std::int64_t z) {
    at_.z = z;
    if (!has_pixel_) return;
    const Measure& measure = m_.measure;
    pixel_ = {load_pixel<Value>(measure.x, Measure::offset(measure.x, at_)),
        load_pixel<Value>(measure.y, Measure::offset(measure.y, at_))};
  }

  __device__ __forceinline__ void store(const Pair& shift) const {
    if (!has_pixel_) return;
    const Pair pixel = pixel_.pair();
    store_gradients<kFields>(m_.measure, at_, sums_, pixel.x - shift.x, pixel.y - shift.y, 1);
  }

 private:
  const March& m_;
  const Layout& l_;
  double* const ring_;
  Place at_;
  const bool has_pixel_;
  Loaded<Value> pixel_ = {};
  int slot_ = 0;
  double sums_[kFields] = {};
};

// Shared memory, and the ring wherever it lies.
struct Buffers {
  double *products, *across, *fields, *ring;

  __device__ Buffers(const March& m, const Layout& l, double* shared)
      : products(shared),
        across(shared + l.across_begin()),
        fields(products),
        ring(shared + l.doubles()) {
    if (m.rings == nullptr) return;
    ring = m.rings + std::int64_t{blockIdx.x} * ring_doubles(l.fields, m.window_z);
  }
};

template <int kFields, int kColumns, class Value>
__device__ __forceinline__ double run_item(
    const March& m, const Layout& l, const Item& item, const Buffers& buffers) {
  const Geometry& g = m.measure.geometry;
  const int radius = g.radius[0], halo = kFields > 0 ? radius : 0;
  Columns<kColumns, Value> columns(m, l, item);
  const Centres<kFields> centres(m, l, item, columns.shift());
  // Sums, moments and fields of the centres of a plane.
  const auto run_plane = [&](std::int64_t z) {
    columns.write(buffers.products);
    __syncthreads();
    sum_across(buffers.products, l.pixel_row(), l.window_x, l.across(), buffers.across,
        l.centre_row(), l.product_rows());
    __syncthreads();
    const double sum = centres.run(buffers.across, buffers.fields, z);
    if constexpr (kFields > 0) {
      __syncthreads();
      sum_across(buffers.fields, l.field_row(), l.window_x, l.fields_across(), buffers.across,
          l.tile_row(), l.field_rows());
      __syncthreads();
    }
    return sum;
  };
  const std::int64_t first = item.z_first - halo, enters = first - radius;
  for (std::int64_t z = enters; z <= first + radius; ++z) {
    columns.fetch(z, enters);
    columns.advance();
  }
  double total = 0;
  if constexpr (kFields == 0) {
    for (std::int64_t z = first; z < item.z_last; ++z) {
      columns.fetch(z + 1 + radius, enters);  // comes while this plane is at work
      if (g.is_centre(0, z)) {
        total += run_plane(z);
      } else {
        centres.skip(z);
      }
      columns.advance();
    }
  } else {
    FieldSums<kFields, Value> sums(m, l, item, buffers.ring);
    for (std::int64_t z = first; z < item.z_last + halo; ++z) {
      const bool has_centres = g.is_centre(0, z), has_results = z - radius >= item.z_first;
      columns.fetch(z + 1 + radius, enters);
      if (has_results) sums.fetch(z - radius);
      if (has_centres) total += run_plane(z);
      sums.advance(has_centres ? buffers.across : nullptr);
      if (has_results) sums.store(columns.shift());
      columns.advance();
    }
  }
  return total;
}

// kWindow: along x and y, where it is one that the kernel is made for, else 0.
template <int kFields, int kWindow, class Value>
__global__ __launch_bounds__(kThreads, 1) void march_kernel(const March m) {
  constexpr int kHalos = kFields > 0 ? 2 : 1;
  constexpr int kPixels = (kTileX + kHalos * (kWindow - 1)) * (kTileY + kHalos * (kWindow - 1));
  constexpr int kColumns = kWindow > 0 ? (kPixels + kThreads - 1) / kThreads : kMostColumns;
  extern __shared__ __align__(128) unsigned char shared[];
  const Layout l{kWindow > 0 ? kWindow : m.window_x, kWindow > 0 ? kWindow : m.window_y, kFields};
  const Buffers buffers(m, l, reinterpret_cast<double*>(shared));
  for (std::int64_t index = blockIdx.x; index < m.items; index += gridDim.x) {
    const Item item(m, index);
    const double total =
        gpu::block_sum<kThreads>(run_item<kFields, kColumns, Value>(m, l, item, buffers));
    if (m.partials != nullptr && threadIdx.x == 0) m.partials[index] = total;
    __syncthreads();
  }
}

template <int kFields> auto kernel_of(const March& m) {
  const bool is_f32 = m.measure.x.dtype == DType::f32;
  switch (is_f32 && m.window_x == m.window_y ? m.window_x : 0) {
    case 3: return march_kernel<kFields, 3, float>;
    case 5: return march_kernel<kFields, 5, float>;
    case 7: return march_kernel<kFields, 7, float>;
    case 9: return march_kernel<kFields, 9, float>;
    case 11: return march_kernel<kFields, 11, float>;
    default: return march_kernel<kFields, 0, double>;
  }
}

}  // namespace

template <int kFields> void launch_march(const CudaPlan& plan, March march) {
  const gpu::Limits& limits = gpu::limits(plan.device);
  const auto kernel = kernel_of<kFields>(march);
  std::size_t bytes = sizeof(double) * static_cast<std::size_t>(march.layout(kFields).doubles());
  const std::size_t ring =
      sizeof(double) * static_cast<std::size_t>(ring_doubles(kFields, march.window_z));
  // block_sum() has one number a thread.
  const std::size_t room =
      static_cast<std::size_t>(limits.shared_bytes_a_block) - kThreads * sizeof(double);
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(march.items, limits.multiprocessors));
  std::shared_ptr<void> rings;
  if (bytes + ring <= room) {
    bytes += ring;
  } else if (ring > 0) {
    rings = allocate_bytes(blocks * ring, plan.device, plan.exec);
    march.rings = static_cast<double*>(rings.get());
  }
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.stream, blocks, kThreads, bytes, kernel, march);
}

}  // namespace similis::lncc_internal
