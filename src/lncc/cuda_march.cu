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
// else in the workspace, one for each block that runs; blocks then take tile after tile.
//
// Of window 7 and one gradient, a pixel: 8 B read × 2.4 for the halo × 2 for entering and leaving
// (of which DRAM sees 8), 4 B written; about 120 f64 operations and 12 conversions, each as long as
// 4; 700 B through shared memory, which is what bounds it.
#include <algorithm>

#include "src/core/memory.h"
#include "src/lncc/cuda_plan.h"

namespace similis::lncc_internal {
namespace {

constexpr int kThreads = 512;
constexpr int kTileX = 32, kTileY = 16;  // a column of the tile a thread
static_assert(kTileX * kTileY == kThreads);
constexpr int kProducts = 5;
constexpr int kMostColumns = 4;  // of pixels a thread: what windows of up to 11 need; 7 needs 3
constexpr int kAcross = 8, kFieldsAcross = 4;  // neighbouring sums that a thread makes of a row

// Rows of odd length: threads that walk along neighbouring rows then use different banks.
SIMILIS_HOST_DEVICE constexpr int odd(int length) { return length | 1; }

// The extents of what a block holds of one plane, x and y: pixels, centres, and how they lie.
struct Layout {
  int pixels_x, pixels_y, centres_x, centres_y;
  int halo_x, halo_y;  // from the tile to its centres

  Layout(const Geometry& g, int fields)
      : halo_x(fields > 0 ? g.radius[2] : 0), halo_y(fields > 0 ? g.radius[1] : 0) {
    centres_x = kTileX + 2 * halo_x;
    centres_y = kTileY + 2 * halo_y;
    pixels_x = centres_x + 2 * g.radius[2];
    pixels_y = centres_y + 2 * g.radius[1];
  }
  SIMILIS_HOST_DEVICE int pixel_row() const { return odd(pixels_x); }
  SIMILIS_HOST_DEVICE int centre_row() const { return odd(centres_x); }
  SIMILIS_HOST_DEVICE int products() const { return kProducts * pixels_y * pixel_row(); }
  SIMILIS_HOST_DEVICE int across() const { return kProducts * pixels_y * centre_row(); }
  SIMILIS_HOST_DEVICE int fields(int count) const { return count * centres_y * centre_row(); }
};

// Where the tiles lie, and how the work is dealt out: an item is a tile of some planes along z.
struct March {
  Measure measure;
  Layout layout;
  int window[3];
  int tiles_x, tiles_y, chunks;
  std::int64_t chunk_planes, items;
  double* partials;  // [item]; null with a map
  double* rings;     // [block][ring], if not in shared memory
};

SIMILIS_HOST_DEVICE constexpr int ring_doubles(int fields, int window_z) {
  return fields * window_z * kThreads;
}

// What a block is at: a tile of a plane, from z_first to z_last.
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

__device__ __forceinline__ double load_pixel(const gpu::View& view, std::int64_t offset) {
  if (view.dtype == DType::f32) return static_cast<const float*>(view.data)[offset];
  return view.load(offset);
}

struct Pair {
  double x, y;
};

// A column of pixels under a thread's care, and its sums along z.
struct Column {
  std::int64_t x_offset, y_offset;  // of its pixel in plane 0
  bool has_pixel;                   // or it lies beside the image
  int place;                        // in a plane of products; < 0: none is
  double sums[kProducts];           // of x, y, x², y² and 2xy
};

template <int kColumns> class Columns {
 public:
  __device__ Columns(const March& m, const Item& item) : m_(m), item_(item) {
    const Geometry& g = m.measure.geometry;
    const std::int64_t z = (item.z_first + item.z_last) / 2;
    const std::int64_t y = item.y_first + kTileY / 2, x = item.x_first + kTileX / 2;
    const Place middle{item.image, item.channel, z, y < g.extent[1] ? y : g.extent[1] - 1,
        x < g.extent[2] ? x : g.extent[2] - 1};
    shift_ = {
        finite(Measure::load(m.measure.x, middle)), finite(Measure::load(m.measure.y, middle))};
    outside_ = g.padding == Padding::same ? Pair{0, 0} : shift_;
    for (int c = 0; c < kColumns; ++c) place(c);
  }

  __device__ Pair shift() const { return shift_; }

  // The sums move on by a plane: `enters` comes, and the one a window behind goes if it came.
  __device__ __forceinline__ void advance(std::int64_t enters, std::int64_t first) {
    const Geometry& g = m_.measure.geometry;
    const std::int64_t leaves = enters - m_.window[0];
    const bool has_entering = g.is_pixel(0, enters), has_leaving = g.is_pixel(0, leaves);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      Column& column = columns_[c];
      if (column.place < 0) continue;
      const Pair in = column.has_pixel && has_entering ? load(column, enters) : outside_;
      const Pair out = leaves < first                    ? shift_
                       : column.has_pixel && has_leaving ? load(column, leaves)
                                                         : outside_;
      // a² - b² = (a - b)(a + b), and with 2 the same of products.
      const double dx = in.x - out.x, dy = in.y - out.y;
      const double sx = in.x - shift_.x + (out.x - shift_.x);
      const double sy = in.y - shift_.y + (out.y - shift_.y);
      column.sums[0] += dx;
      column.sums[1] += dy;
      column.sums[2] = fma(dx, sx, column.sums[2]);
      column.sums[3] = fma(dy, sy, column.sums[3]);
      column.sums[4] = fma(dx, sy, fma(dy, sx, column.sums[4]));
    }
  }

  __device__ __forceinline__ void write(double* products) const {
    const int plane = m_.layout.pixels_y * m_.layout.pixel_row();
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (columns_[c].place < 0) continue;
      for (int p = 0; p < kProducts; ++p) {
        products[p * plane + columns_[c].place] = columns_[c].sums[p];
      }
    }
  }

 private:
  static __device__ double finite(double value) { return value - value == 0 ? value : 0; }

  __device__ Pair load(const Column& column, std::int64_t z) const {
    const Measure& m = m_.measure;
    return {load_pixel(m.x, column.x_offset + z * m.x.strides[2]),
        load_pixel(m.y, column.y_offset + z * m.y.strides[2])};
  }

  __device__ void place(int c) {
    const Layout& l = m_.layout;
    const Geometry& g = m_.measure.geometry;
    const int index = c * kThreads + static_cast<int>(threadIdx.x);
    const int row = index / l.pixels_x, column = index % l.pixels_x;
    Column& placed = columns_[c];
    placed.place = row < l.pixels_y ? row * l.pixel_row() + column : -1;
    for (double& sum : placed.sums) sum = 0;
    const Place at{item_.image, item_.channel, 0, item_.y_first - l.halo_y - g.radius[1] + row,
        item_.x_first - l.halo_x - g.radius[2] + column};
    placed.has_pixel = g.is_pixel(1, at.y) && g.is_pixel(2, at.x);
    placed.x_offset = Measure::offset(m_.measure.x, at);
    placed.y_offset = Measure::offset(m_.measure.y, at);
  }

  const March& m_;
  const Item& item_;
  Pair shift_, outside_;
  Column columns_[kColumns];
};

// out[i] = Σ of the `window` elements of in from i on, i < count.
__device__ __forceinline__ void box_sums(const double* in, int window, int count, double* out) {
  double sum = 0;
  for (int k = 0; k < window; ++k) sum += in[k];
  out[0] = sum;
  for (int i = 1; i < count; ++i) {
    sum += in[i + window - 1] - in[i - 1];
    out[i] = sum;
  }
}

// Box sums across `layers` × `rows` rows: from rows of in_row elements to rows of `columns` sums in
// out_row, `piece` neighbours a thread.
template <int piece>
__device__ __forceinline__ void sum_across(
    const double* in, int in_row, int window, int columns, double* out, int out_row, int rows) {
  const int pieces = (columns + piece - 1) / piece;
  for (int task = static_cast<int>(threadIdx.x); task < rows * pieces; task += kThreads) {
    const int row = task % rows, first = task / rows * piece;
    const int count = columns - first < piece ? columns - first : piece;
    box_sums(in + row * in_row + first, window, count, out + row * out_row + first);
  }
}

// How many pixels of the image a window sees along an axis.
__device__ __forceinline__ std::int64_t seen(const Geometry& g, int axis, std::int64_t centre) {
  const std::int64_t first = centre - g.radius[axis], last = centre + g.radius[axis];
  return (last < g.extent[axis] ? last + 1 : g.extent[axis]) - (first > 0 ? first : 0);
}

// The centres of one plane.
template <int kFields> struct Centres {
  const March& m;
  const Item& item;
  const Pair& shift;
  std::int64_t z;
  double* fields;

  // Down: several centres of a column a thread, whose window sums of a plane lie in `across`.
  __device__ __forceinline__ double run(const double* across) const {
    const Layout& l = m.layout;
    const int plane = l.pixels_y * l.centre_row(), window = m.window[1];
    const int down = (l.centres_x * l.centres_y + kThreads - 1) / kThreads;
    const int pieces = (l.centres_y + down - 1) / down;
    double total = 0;
    for (int task = static_cast<int>(threadIdx.x); task < l.centres_x * pieces; task += kThreads) {
      const int column = task % l.centres_x, first = task / l.centres_x * down;
      const double* in = across + first * l.centre_row() + column;
      double sums[kProducts];
      for (int p = 0; p < kProducts; ++p) {
        sums[p] = 0;
        for (int k = 0; k < window; ++k) sums[p] += in[p * plane + k * l.centre_row()];
      }
      for (int row = first; row < first + down && row < l.centres_y; ++row) {
        if (row > first) {
          in += l.centre_row();
          for (int p = 0; p < kProducts; ++p) {
            sums[p] +=
                in[p * plane + (window - 1) * l.centre_row()] - in[p * plane - l.centre_row()];
          }
        }
        total += run_centre(sums, row, column);
      }
    }
    return total;
  }

  // One centre's weighted value, if the tile owns it.
  __device__ __forceinline__ double run_centre(
      const double (&sums)[kProducts], int row, int column) const {
    const Measure& measure = m.measure;
    const Geometry& g = measure.geometry;
    const Layout& l = m.layout;
    double* const out = fields + row * l.centre_row() + column;
    const int stride = l.centres_y * l.centre_row();
    const Place at{item.image, item.channel, z, item.y_first - l.halo_y + row,
        item.x_first - l.halo_x + column};
    const bool exists = g.is_centre(1, at.y) && g.is_centre(2, at.x) && g.is_centre(0, z);
    if (!exists) {
      for (int j = 0; j < kFields; ++j) out[j * stride] = 0;
      if constexpr (kFields == 0) store_no_gradients(at);
      return 0;
    }
    double scale = 1 / measure.taps;
    if (g.padding == Padding::renormalize) {
      scale = 1 / static_cast<double>(seen(g, 0, z) * seen(g, 1, at.y) * seen(g, 2, at.x));
    }
    const double share = measure.taps * scale;
    const double mean_x = sums[0] * scale, mean_y = sums[1] * scale;
    const Moments<double> moments = {share * fma(-sums[0], mean_y, 0.5 * sums[4]),
        share * fma(-sums[0], mean_x, sums[2]), share * fma(-sums[1], mean_y, sums[3])};
    const Correlation<double> v = measure.correlation(moments);
    const double own_weight = measure.mask.data == nullptr ? 1 : measure.pixel_weight(at);
    if constexpr (kFields > 0) {
      store_fields<kFields>(v, measure.slope(at, own_weight) * share, mean_x, mean_y,
          measure.x_gradient.data != nullptr, out, stride);
      const bool is_owned = z >= item.z_first && z < item.z_last && row >= l.halo_y &&
                            row < l.halo_y + kTileY && column >= l.halo_x &&
                            column < l.halo_x + kTileX;
      if (!is_owned) return 0;
    } else if (measure.x_gradient.data != nullptr || measure.y_gradient.data != nullptr) {
      measure.store_centre_gradients(at, moments, measure.slope(at, own_weight),
          Measure::load(measure.x, at) - shift.x - mean_x,
          Measure::load(measure.y, at) - shift.y - mean_y);
    }
    if (measure.map.data != nullptr) measure.store_map(at, own_weight, v.value);
    return own_weight == 0 ? 0 : own_weight * v.value;
  }

  // ANTs' gradient where no window is centred.
  __device__ void store_no_gradients(const Place& at) const {
    const Measure& measure = m.measure;
    const Geometry& g = measure.geometry;
    if (!g.is_pixel(0, at.z) || !g.is_pixel(1, at.y) || !g.is_pixel(2, at.x)) return;
    if (measure.x_gradient.data != nullptr) {
      measure.x_gradient.store(Measure::offset(measure.x_gradient, at), 0);
    }
    if (measure.y_gradient.data != nullptr) {
      measure.y_gradient.store(Measure::offset(measure.y_gradient, at), 0);
    }
  }
};

// The window sums of the fields of each thread's pixel, which move on along z.
template <int kFields> class FieldSums {
 public:
  __device__ FieldSums(const March& m, double* ring) : m_(m), ring_(ring + threadIdx.x) {
    for (int i = 0; i < kFields * m.window[0]; ++i) ring_[i * kThreads] = 0;
  }

  // Forgets the oldest plane for this one, whose sums across lie in `across`; null if it has none.
  __device__ __forceinline__ void advance(const double* across) {
    const int row = odd(kTileX), plane = m_.layout.centres_y * row;
    const int x = static_cast<int>(threadIdx.x) % kTileX,
              y = static_cast<int>(threadIdx.x) / kTileX;
#pragma unroll
    for (int j = 0; j < kFields; ++j) {
      double sum = 0;
      if (across != nullptr) {
        for (int k = 0; k < m_.window[1]; ++k) sum += across[j * plane + (y + k) * row + x];
      }
      double& slot = ring_[(slot_ * kFields + j) * kThreads];
      sums_[j] += sum - slot;
      slot = sum;
    }
    slot_ = slot_ + 1 == m_.window[0] ? 0 : slot_ + 1;
  }

  __device__ __forceinline__ void store(const Item& item, const Pair& shift, std::int64_t z) const {
    const Measure& measure = m_.measure;
    const Place at{item.image, item.channel, z, item.y_first + threadIdx.x / kTileX,
        item.x_first + threadIdx.x % kTileX};
    if (!measure.geometry.is_pixel(1, at.y) || !measure.geometry.is_pixel(2, at.x)) return;
    store_gradients<kFields>(measure, at, sums_,
        load_pixel(measure.x, Measure::offset(measure.x, at)) - shift.x,
        load_pixel(measure.y, Measure::offset(measure.y, at)) - shift.y, 1);
  }

 private:
  const March& m_;
  double* const ring_;
  int slot_ = 0;
  double sums_[kFields] = {};
};

// Shared memory: products, their sums across (later those of fields), fields, and maybe the ring.
struct Buffers {
  double *products, *across, *fields, *ring;

  __device__ Buffers(const March& m, int field_count, double* shared)
      : products(shared),
        across(products + m.layout.products()),
        fields(across + m.layout.across()),
        ring(fields + m.layout.fields(field_count)) {
    if (m.rings == nullptr) return;
    ring = m.rings + std::int64_t{blockIdx.x} * ring_doubles(field_count, m.window[0]);
  }
};

// Sums, moments and fields of the centres of a plane; the pixels around them are in `columns`.
template <int kFields, int kColumns>
__device__ __forceinline__ double run_plane(const March& m, const Item& item,
    const Columns<kColumns>& columns, const Buffers& buffers, std::int64_t z) {
  const Layout& l = m.layout;
  columns.write(buffers.products);
  __syncthreads();
  sum_across<kAcross>(buffers.products, l.pixel_row(), m.window[2], l.centres_x, buffers.across,
      l.centre_row(), kProducts * l.pixels_y);
  __syncthreads();
  const Centres<kFields> centres{m, item, columns.shift(), z, buffers.fields};
  const double total = centres.run(buffers.across);
  if constexpr (kFields > 0) {
    __syncthreads();
    sum_across<kFieldsAcross>(buffers.fields, l.centre_row(), m.window[2], kTileX, buffers.across,
        odd(kTileX), kFields * l.centres_y);
    __syncthreads();
  }
  return total;
}

template <int kFields, int kColumns>
__device__ __forceinline__ double run_item(
    const March& m, const Item& item, const Buffers& buffers) {
  const Geometry& g = m.measure.geometry;
  const int radius = g.radius[0], halo = kFields > 0 ? radius : 0;
  Columns<kColumns> columns(m, item);
  double total = 0;
  const std::int64_t first = item.z_first - halo;
  for (std::int64_t enters = first - radius; enters < first + radius; ++enters) {
    columns.advance(enters, first - radius);
  }
  if constexpr (kFields == 0) {
    for (std::int64_t z = first; z < item.z_last; ++z) {
      columns.advance(z + radius, first - radius);
      total += run_plane<kFields, kColumns>(m, item, columns, buffers, z);
    }
  } else {
    FieldSums<kFields> sums(m, buffers.ring);
    for (std::int64_t z = first; z < item.z_last + halo; ++z) {
      columns.advance(z + radius, first - radius);
      const bool has_centres = g.is_centre(0, z);
      if (has_centres) total += run_plane<kFields, kColumns>(m, item, columns, buffers, z);
      sums.advance(has_centres ? buffers.across : nullptr);
      if (z - radius >= item.z_first) sums.store(item, columns.shift(), z - radius);
    }
  }
  return total;
}

template <int kFields, int kColumns>
__global__ __launch_bounds__(kThreads, 1) void march_kernel(const March m) {
  extern __shared__ __align__(128) unsigned char shared[];
  const Buffers buffers(m, kFields, reinterpret_cast<double*>(shared));
  for (std::int64_t index = blockIdx.x; index < m.items; index += gridDim.x) {
    const Item item(m, index);
    const double total = gpu::block_sum<kThreads>(run_item<kFields, kColumns>(m, item, buffers));
    if (m.partials != nullptr && threadIdx.x == 0) m.partials[index] = total;
    __syncthreads();
  }
}

std::int64_t pieces(std::int64_t extent, std::int64_t length) {
  return (extent + length - 1) / length;
}

std::size_t shared_bytes(const Layout& layout, int fields) {
  return sizeof(double) *
         static_cast<std::size_t>(layout.products() + layout.across() + layout.fields(fields));
}

// How the work is dealt out, as far as it depends on the images and the number of multiprocessors.
March march_of(const CudaPlan& plan) {
  const Geometry& g = plan.measure.geometry;
  const int fields = field_count(plan.pass);
  const int multiprocessors = gpu::limits(plan.device).multiprocessors;
  March march{.measure = plan.measure,
      .layout = Layout(g, fields),
      .window = {2 * g.radius[0] + 1, 2 * g.radius[1] + 1, 2 * g.radius[2] + 1},
      .tiles_x = static_cast<int>(pieces(g.extent[2], kTileX)),
      .tiles_y = static_cast<int>(pieces(g.extent[1], kTileY)),
      .chunks = 1,
      .chunk_planes = g.extent[0],
      .items = 0,
      .partials = plan.partials,
      .rings = nullptr};
  // As many chunks along z as take the fewest planes one after the other, those before a chunk's
  // first result included.
  const std::int64_t columns = g.planes * march.tiles_x * march.tiles_y;
  const std::int64_t before = 2 * g.radius[0] * (fields > 0 ? 1 : 0) + g.radius[0];
  std::int64_t least = 0;
  for (std::int64_t chunks = 1; chunks <= std::min<std::int64_t>(g.extent[0], 64); ++chunks) {
    const std::int64_t planes = pieces(g.extent[0], chunks);
    const std::int64_t turns = pieces(columns * pieces(g.extent[0], planes), multiprocessors);
    if (least != 0 && turns * (planes + before) >= least) continue;
    least = turns * (planes + before);
    march.chunk_planes = planes;
  }
  march.chunks = static_cast<int>(pieces(g.extent[0], march.chunk_planes));
  march.items = columns * march.chunks;
  return march;
}

template <int kFields> void launch(const CudaPlan& plan, March march) {
  const gpu::Limits& limits = gpu::limits(plan.device);
  const bool is_narrow = march.layout.pixels_x * march.layout.pixels_y <= 3 * kThreads;
  const auto kernel = is_narrow ? march_kernel<kFields, 3> : march_kernel<kFields, kMostColumns>;
  std::size_t bytes = shared_bytes(march.layout, kFields);
  const auto ring = static_cast<std::size_t>(ring_doubles(kFields, march.window[0]));
  // block_sum() has one number a thread.
  const std::size_t room =
      static_cast<std::size_t>(limits.shared_bytes_a_block) - kThreads * sizeof(double);
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(march.items, limits.multiprocessors));
  std::shared_ptr<void> rings;
  if (bytes + ring * sizeof(double) <= room) {
    bytes += ring * sizeof(double);
  } else if (ring > 0) {
    rings = allocate_bytes(blocks * ring * sizeof(double), plan.device, plan.exec);
    march.rings = static_cast<double*>(rings.get());
  }
  gpu::allow_shared_bytes(kernel, bytes);
  gpu::launch("lncc", plan.exec.stream, blocks, kThreads, bytes, kernel, march);
}

}  // namespace

bool can_march(const CudaPlan& plan) {
  const Geometry& g = plan.measure.geometry;
  if (!plan.pass.is_box || !plan.pass.valid_mask.empty()) return false;
  const int fields = field_count(plan.pass);
  const Layout layout(g, fields);
  const std::size_t bytes = shared_bytes(layout, fields) + kThreads * sizeof(double);
  return layout.pixels_x * layout.pixels_y <= kMostColumns * kThreads &&
         bytes <= static_cast<std::size_t>(gpu::limits(plan.device).shared_bytes_a_block);
}

int march_slots(const CudaPlan& plan) {
  const March march = march_of(plan);
  return static_cast<int>(march.items / plan.measure.geometry.planes);
}

void run_march(const CudaPlan& plan) {
  const March march = march_of(plan);
  switch (field_count(plan.pass)) {
    case 3: return launch<3>(plan, march);
    case 5: return launch<5>(plan, march);
    default: return launch<0>(plan, march);
  }
}

}  // namespace similis::lncc_internal
