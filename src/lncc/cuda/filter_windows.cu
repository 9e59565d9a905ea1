// SPDX-License-Identifier: Apache-2.0
// The first filter kernel: windows of any taps to values, and to the derivatives of the gradient.
// For each plane of a tile, x and y about the volume's middle pixel go to the stage in shared
// memory; filter.cuh adds up x, y, x², y², xy, and weights where pixels or windows have any; each
// thread then finishes a centre. Pixels of the next plane are asked for meanwhile.
#include "src/lncc/cuda/filter.cuh"

namespace similis::lncc_internal {
namespace {

// kWeighted: pixels have weights, those of valid_mask or 0 outside the image.
template <bool kWeighted, int kTaps> class PixelPlanes {
 public:
  static constexpr int kQuantities = kWeighted ? 6 : 5;
  using Sums = Filter<kQuantities, kTaps>;
  static constexpr int kBytes =
      Sums::kPlaces * static_cast<int>(sizeof(double2) + (kWeighted ? sizeof(double) : 0));

  __device__ PixelPlanes(unsigned char* shared, const Problem& problem, std::int64_t volume,
      const Shift& shift, int y_first, int x_first)
      : problem_(problem),
        shift_(shift),
        pixels_(reinterpret_cast<double2*>(shared)),
        weights_(reinterpret_cast<double*>(pixels_ + Sums::kPlaces)),
        image_(volume / problem.geometry.channels),
        channel_(volume % problem.geometry.channels),
        y_first_(y_first),
        x_first_(x_first) {}

  // Asks for the pixels of a plane.
  __device__ __forceinline__ void ask(int z) {
    for_places(
        [&](int i, int, const Place& at) {
          if (!is_inside(at)) return;
          x_[i].ask(problem_.x, Problem::offset(problem_.x, at));
          y_[i].ask(problem_.y, Problem::offset(problem_.y, at));
        },
        z);
  }
  // Stores the pixels that were asked for.
  __device__ __forceinline__ void store(int z) const {
    for_places(
        [&](int i, int place, const Place& at) {
          double weight = problem_.geometry.padding == Padding::renormalize ? 0 : 1;
          double2 pixel = {-shift_.x, -shift_.y};  // black
          if (is_inside(at)) {
            weight = problem_.valid_mask.data == nullptr
                         ? 1
                         : Problem::load_weight(problem_.valid_mask, at);
            pixel = {x_[i].value(problem_.x, Problem::offset(problem_.x, at)) - shift_.x,
                y_[i].value(problem_.y, Problem::offset(problem_.y, at)) - shift_.y};
          }
          if constexpr (kWeighted) {
            weights_[place] = weight;
            if (weight == 0) pixel = {0, 0};
          }
          pixels_[place] = pixel;
        },
        z);
  }
  __device__ __forceinline__ void load(int place, double (&quantities)[kQuantities]) const {
    const double2 pixel = pixels_[place];
    double x = pixel.x, y = pixel.y;
    if constexpr (kWeighted) {
      const double weight = weights_[place];
      x *= weight, y *= weight;
      quantities[5] = weight;
    }
    quantities[0] = x;
    quantities[1] = y;
    quantities[2] = x * pixel.x;
    quantities[3] = y * pixel.y;
    quantities[4] = x * pixel.y;
  }

 private:
  template <class Visit>
  __device__ __forceinline__ void for_places(const Visit& visit, int z) const {
#pragma unroll
    for (int i = 0; i < Sums::kPlacesAThread; ++i) {
      const int place = static_cast<int>(threadIdx.x) + i * kFilterThreads;
      if (place >= Sums::kPlaces) return;
      visit(i, place,
          Place{image_, channel_, z, y_first_ + place / Sums::kAcross,
              x_first_ + place % Sums::kAcross});
    }
  }
  __device__ __forceinline__ bool is_inside(const Place& at) const {
    const Geometry& g = problem_.geometry;
    return g.is_pixel(0, at.z) && g.is_pixel(1, at.y) && g.is_pixel(2, at.x);
  }

  const Problem& problem_;
  const Shift shift_;
  double2* const pixels_;
  double* const weights_;
  const std::int64_t image_, channel_;
  const int y_first_, x_first_;
  RawPixel x_[Sums::kPlacesAThread], y_[Sums::kPlacesAThread];
};

// Stores the derivatives of the i-th of a plane's centres, for the gradients to one image or both.
template <class Value>
__device__ __forceinline__ void store_derivatives(const DerivativeMaps& maps, int volume, int z,
    int i, const Correlation<double>& v, double weight, const Means& means) {
  const auto by_a = static_cast<Value>(weight * v.gradient.a);
  for (int image = 0; image < maps.images; ++image) {
    const bool of_x = image == 0;
    const auto own = static_cast<Value>(2 * weight * (of_x ? v.gradient.b : v.gradient.c));
    const double own_mean = of_x ? means.x : means.y, other_mean = of_x ? means.y : means.x;
    store_centre(reinterpret_cast<CentreDerivatives<Value>*>(maps.plane(volume, image, z)) + i,
        by_a, own, fma(static_cast<double>(by_a), other_mean, static_cast<double>(own) * own_mean));
  }
}

template <bool kWeighted, int kTaps>
__global__ __launch_bounds__(kFilterThreads, kTaps <= 7 ? 2 : 1) void filter_windows_kernel(
    const SIMILIS_GRID_CONSTANT WindowArguments m, const SIMILIS_GRID_CONSTANT FilterTaps taps) {
  using Planes = PixelPlanes<kWeighted, kTaps>;
  extern __shared__ __align__(16) unsigned char shared[];
  const Problem& problem = m.problem;
  const Geometry& g = problem.geometry;
  const BlockTile tile(m.tiles);
  const Range planes = m.tiles.chunks.planes(tile.chunk);
  const std::int64_t volume = m.tiles.first_volume + tile.volume;
  const Shift shift = shift_of(problem, volume);
  const int y_first = m.centres.rows.first + tile.y * kFilterRows;
  const int x_first = m.centres.columns.first + tile.x * kFilterColumns;
  Planes pixels(shared, problem, volume, shift, y_first - g.radius[1], x_first - g.radius[2]);
  Filter<Planes::kQuantities, kTaps> filter(
      reinterpret_cast<double*>(shared + Planes::kBytes), taps);
  Place at{volume / g.channels, volume % g.channels, 0,
      y_first + static_cast<int>(threadIdx.x) / kFilterColumns,
      x_first + static_cast<int>(threadIdx.x) % kFilterColumns};
  const bool exists = at.y < m.centres.rows.last && at.x < m.centres.columns.last;
  const bool is_owned =
      m.owned.rows.holds(static_cast<int>(at.y)) && m.owned.columns.holds(static_cast<int>(at.x));
  const Box& kept = m.derivatives.kept;
  const int in_plane = static_cast<int>(at.y - kept.rows.first) * kept.columns.length() +
                       static_cast<int>(at.x - kept.columns.first);
  double total = 0;
  pixels.ask(planes.first - g.radius[0]);
  for (int z = planes.first - g.radius[0]; z < planes.last + g.radius[0]; ++z) {
    pixels.store(z);
    __syncthreads();
    pixels.ask(z + 1);
    filter.sum_down([&](int place, double(&quantities)[Planes::kQuantities]) {
      pixels.load(place, quantities);
    });
    __syncthreads();
    filter.advance();
    at.z = z - g.radius[0];
    if (at.z < planes.first || !exists) continue;
    double scale = m.scale;
    if constexpr (kWeighted) {
      const double weight = filter.sum(5);
      scale = weight == 0 ? 0 : 1 / weight;
    }
    const double share = problem.taps * scale, sum_x = filter.sum(0), sum_y = filter.sum(1);
    const Means means = {sum_x * scale, sum_y * scale};
    const Moments<double> moments = {share * fma(-sum_x, means.y, filter.sum(4)),
        share * fma(-sum_x, means.x, filter.sum(2)), share * fma(-sum_y, means.y, filter.sum(3))};
    total += finish_centre(problem, at, moments, {means.x + shift.x, means.y + shift.y},
        m.derivatives.images > 0, is_owned && m.owned.planes.holds(static_cast<int>(at.z)),
        [&](const Correlation<double>& v, double slope) {
          const int plane = static_cast<int>(at.z);
          if (problem.x.dtype == DType::f64) {
            store_derivatives<double>(
                m.derivatives, tile.volume, plane, in_plane, v, slope * share, means);
          } else {
            store_derivatives<float>(
                m.derivatives, tile.volume, plane, in_plane, v, slope * share, means);
          }
        });
  }
  if (m.partials == nullptr) return;
  total = gpu::block_sum<kFilterThreads>(total);
  if (threadIdx.x != 0) return;
  const int slot = (tile.chunk * m.tiles.count_y + tile.y) * m.tiles.count_x + tile.x;
  m.partials[volume * m.slots + m.first_slot + slot] = total;
}

}  // namespace

void launch_filter_windows(
    const CudaPlan& plan, const WindowArguments& arguments, const FilterTaps& taps) {
  const Problem& problem = plan.problem;
  const bool is_weighted =
      problem.valid_mask.data != nullptr || problem.geometry.padding == Padding::renormalize;
  const bool is_wide = std::max({taps.count[0], taps.count[1], taps.count[2]}) > 7;
  const auto launch = [&]<bool kWeighted, int kTaps>() {
    using Planes = PixelPlanes<kWeighted, kTaps>;
    constexpr std::size_t bytes = Planes::kBytes + Planes::Sums::kBytes;
    gpu::allow_shared_bytes(filter_windows_kernel<kWeighted, kTaps>, bytes);
    gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(arguments.tiles.blocks()),
        kFilterThreads, bytes, filter_windows_kernel<kWeighted, kTaps>, arguments, taps);
  };
  if (is_weighted) {
    if (is_wide) return launch.template operator()<true, kMostTaps>();
    return launch.template operator()<true, 7>();
  }
  if (is_wide) return launch.template operator()<false, kMostTaps>();
  launch.template operator()<false, 7>();
}

}  // namespace similis::lncc_internal
