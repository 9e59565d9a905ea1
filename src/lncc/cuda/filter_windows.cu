// SPDX-License-Identifier: Apache-2.0
// The first filter kernel: windows of any taps to values, and to the derivatives of the gradient.
// For each plane of a tile, x and y about the volume's middle pixel go to the stage in shared
// memory; filter.cuh adds up x, y, x², y², xy, and weights where pixels or windows have any; each
// thread then finishes a centre. Pixels of the next plane are asked for meanwhile.
#include "src/lncc/cuda/filter.cuh"
#include "src/lncc/cuda/outputs_per_thread.cuh"

namespace similis::lncc_internal {
namespace {

// kWeighted: pixels have weights, those of valid_mask or 0 outside the image.
template <bool kWeighted, int kTaps> class PixelPlanes {
 public:
  static constexpr int kQuantities = kWeighted ? 6 : 5;
  using Sums = Filter<kQuantities, kTaps, filter_window_threads(kTaps)>;
  static constexpr int kBytes =
      2 * Sums::kPlaces * static_cast<int>(sizeof(double2) + (kWeighted ? sizeof(double) : 0));

  __device__ PixelPlanes(unsigned char* shared, const Problem& problem, std::int64_t volume,
      const Shift& shift, int y_first, int x_first)
      : problem_(problem),
        shift_(shift),
        pixels_(reinterpret_cast<double2*>(shared)),
        weights_(reinterpret_cast<double*>(pixels_ + 2 * Sums::kPlaces)),
        image_(volume / problem.geometry.channels),
        channel_(volume % problem.geometry.channels) {
    const Geometry& g = problem.geometry;
    for_places([&](int i, int place) {
      const int y = y_first + place / Sums::kAcross, x = x_first + place % Sums::kAcross;
      is_inside_[i] = g.is_pixel(1, y) && g.is_pixel(2, x);
      x_offsets_[i] = static_cast<int>(problem.x.at(0, y, x));
      y_offsets_[i] = static_cast<int>(problem.y.at(0, y, x));
      if (kWeighted) valid_offsets_[i] = static_cast<int>(problem.valid_mask.at(0, y, x));
    });
  }

  // Asks for the pixels of a plane.
  __device__ __forceinline__ void ask(int z) {
    if (!problem_.geometry.is_pixel(0, z)) return;
    const std::int64_t x_plane = plane_of(problem_.x, z), y_plane = plane_of(problem_.y, z);
    visit_type(problem_.x.dtype, [&](auto type) {
      for_places([&](int i, int) {
        if (!is_inside_[i]) return;
        x_[i].ask(type, problem_.x, x_plane + x_offsets_[i]);
        y_[i].ask(type, problem_.y, y_plane + y_offsets_[i]);
      });
    });
    if (!kWeighted || problem_.valid_mask.data == nullptr) return;
    const std::int64_t valid_plane = plane_of(problem_.valid_mask, z);
    visit_type(problem_.valid_mask.dtype, [&](auto type) {
      for_places([&](int i, int) {
        if (is_inside_[i])
          valid_[i].ask(type, problem_.valid_mask, valid_plane + valid_offsets_[i]);
      });
    });
  }
  // Stores the pixels that were asked for, those of plane z, to one of two places of the stage.
  __device__ __forceinline__ void store(int z, int to) const {
    double2* const pixels = pixels_ + to * Sums::kPlaces;
    const bool has_plane = problem_.geometry.is_pixel(0, z);
    const std::int64_t x_plane = plane_of(problem_.x, z), y_plane = plane_of(problem_.y, z);
    visit_type(problem_.x.dtype, [&](auto type) {
      for_places([&](int i, int place) {
        double2 pixel = {-shift_.x, -shift_.y};  // black
        if (has_plane && is_inside_[i]) {
          pixel = {x_[i].value(type, problem_.x, x_plane + x_offsets_[i]) - shift_.x,
              y_[i].value(type, problem_.y, y_plane + y_offsets_[i]) - shift_.y};
        }
        pixels[place] = pixel;
      });
    });
    if constexpr (kWeighted) store_weights(z, to, has_plane);
  }
  __device__ __forceinline__ void load(
      int from, int place, double (&quantities)[kQuantities]) const {
    const double2 pixel = pixels_[from * Sums::kPlaces + place];
    double x = pixel.x, y = pixel.y;
    if constexpr (kWeighted) {
      const double weight = weights_[from * Sums::kPlaces + place];
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
  __device__ __forceinline__ void store_weights(int z, int to, bool has_plane) const {
    const gpu::View& valid_mask = problem_.valid_mask;
    const double outside = problem_.geometry.padding == Padding::renormalize ? 0 : 1;
    const std::int64_t plane = plane_of(valid_mask, z);
    visit_type(valid_mask.dtype, [&](auto type) {
      for_places([&](int i, int place) {
        double weight = outside;
        if (has_plane && is_inside_[i]) {
          weight = valid_mask.data == nullptr
                       ? 1
                       : valid_[i].value(type, valid_mask, plane + valid_offsets_[i]);
          if (!(weight >= 0)) weight = NAN;
        }
        weights_[to * Sums::kPlaces + place] = weight;
        if (weight == 0) pixels_[to * Sums::kPlaces + place] = {0, 0};
      });
    });
  }
  template <class Visit> __device__ __forceinline__ static void for_places(const Visit& visit) {
#pragma unroll
    for (int i = 0; i < Sums::kPlacesAThread; ++i) {
      const int place = static_cast<int>(threadIdx.x) + i * Sums::kThreads;
      if (place < Sums::kPlaces) visit(i, place);
    }
  }
  __device__ __forceinline__ std::int64_t plane_of(const gpu::View& view, int z) const {
    return view.plane(image_, channel_) + view.at(z, 0, 0);
  }

  const Problem& problem_;
  const Shift shift_;
  double2* const pixels_;
  double* const weights_;
  const std::int64_t image_, channel_;
  bool is_inside_[Sums::kPlacesAThread] = {};
  int x_offsets_[Sums::kPlacesAThread], y_offsets_[Sums::kPlacesAThread];
  int valid_offsets_[Sums::kPlacesAThread];
  RawElement x_[Sums::kPlacesAThread], y_[Sums::kPlacesAThread], valid_[Sums::kPlacesAThread];
};

// Stores the derivatives of the i-th of a plane's centres, for the gradients to one image or both.
template <class Value, class T>
__device__ __forceinline__ void store_derivatives(const DerivativeMaps& maps, int volume, int z,
    int i, const Correlation<T>& v, T weight, const Means& means) {
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
__global__ __launch_bounds__(filter_window_threads(kTaps),
    filter_window_blocks(
        kTaps)) void filter_windows_kernel(const SIMILIS_GRID_CONSTANT WindowArguments m,
    const SIMILIS_GRID_CONSTANT FilterTaps taps) {
  using Planes = PixelPlanes<kWeighted, kTaps>;
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 16);
  const Problem& problem = m.problem;
  const Geometry& g = problem.geometry;
  const BlockTile tile(m.tiles);
  const Range planes = m.tiles.chunks.planes(tile.chunk);
  const std::int64_t volume = m.tiles.first_volume + tile.volume;
  const Shift shift = shift_of(problem, volume);
  const int y_first = m.centres.rows.first + tile.y * Planes::Sums::kRows;
  const int x_first = m.centres.columns.first + tile.x * kFilterColumns;
  Planes pixels(shared, problem, volume, shift, y_first - g.radius[1], x_first - g.radius[2]);
  typename Planes::Sums filter(reinterpret_cast<double*>(shared + Planes::kBytes), taps);
  Place at{volume / g.channels, volume % g.channels, 0,
      y_first + static_cast<int>(threadIdx.x) / kFilterColumns,
      x_first + static_cast<int>(threadIdx.x) % kFilterColumns};
  const bool exists = at.y < m.centres.rows.last && at.x < m.centres.columns.last;
  const bool is_owned =
      m.owned.rows.holds(static_cast<int>(at.y)) && m.owned.columns.holds(static_cast<int>(at.x));
  const Box& kept = m.derivatives.kept;
  const int in_plane = static_cast<int>(at.y - kept.rows.first) * kept.columns.length() +
                       static_cast<int>(at.x - kept.columns.first);
  const PlaneTerms plane(problem, volume);
  // Finishes the centre at `at`, and returns its weighted value.
  const auto finish = [&] {
    double scale = m.scale;
    if constexpr (kWeighted) {
      const double weight = filter.sum(5);
      scale = weight == 0 ? 0 : reciprocal(weight);
    }
    const double share = problem.taps * scale, sum_x = filter.sum(0), sum_y = filter.sum(1);
    const Means means = {sum_x * scale, sum_y * scale};
    const Moments<double> moments = {share * fma(-sum_x, means.y, filter.sum(4)),
        share * fma(-sum_x, means.x, filter.sum(2)), share * fma(-sum_y, means.y, filter.sum(3))};
    const bool adds = is_owned && m.owned.planes.holds(static_cast<int>(at.z));
    const auto finish_as = [&]<class T>(const Moments<T>& converted) {
      return finish_centre(problem, plane, at, problem.pixel_weight(at), converted,
          {means.x + shift.x, means.y + shift.y}, m.derivatives.images > 0, adds,
          [&](const Correlation<T>& v, T slope) {
            const T weight = slope * static_cast<T>(share);
            const int z_centre = static_cast<int>(at.z);
            if (m.has_f64_derivatives) {
              store_derivatives<double>(
                  m.derivatives, tile.volume, z_centre, in_plane, v, weight, means);
            } else {
              store_derivatives<float>(
                  m.derivatives, tile.volume, z_centre, in_plane, v, weight, means);
            }
          });
    };
    if (!m.has_f32_formula) return finish_as(moments);
    return finish_as(Moments<float>{static_cast<float>(moments.a), static_cast<float>(moments.b),
        static_cast<float>(moments.c)});
  };
  double total = 0;
  const int first = planes.first - g.radius[0], last = planes.last + g.radius[0];
  pixels.ask(first);
  pixels.store(first, 0);
  pixels.ask(first + 1);
  __syncthreads();
  for (int z = first; z <= last; ++z) {
    const int place = (z - first) & 1;
    if (z + 1 < last) {
      pixels.store(z + 1, 1 - place);
      pixels.ask(z + 2);
    }
    if (z < last) {
      filter.sum_down(place, [&](int at_place, double(&quantities)[Planes::kQuantities]) {
        pixels.load(place, at_place, quantities);
      });
    }
    if (z > first) {
      filter.advance(1 - place);
      at.z = z - 1 - g.radius[0];
      if (at.z >= planes.first && exists) total += finish();
    }
    __syncthreads();
  }
  if (m.partials == nullptr) return;
  __syncthreads();
  total = sum_of_block(total, reinterpret_cast<double*>(shared));
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
  const int taps_along = std::max({taps.count[0], taps.count[1], taps.count[2]});
  const auto launch = [&]<bool kWeighted, int kTaps>() {
    using Planes = PixelPlanes<kWeighted, kTaps>;
    constexpr std::size_t bytes = Planes::kBytes + Planes::Sums::kBytes;
    gpu::allow_shared_bytes(filter_windows_kernel<kWeighted, kTaps>, bytes);
    gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(arguments.tiles.blocks()),
        filter_window_threads(kTaps), bytes, filter_windows_kernel<kWeighted, kTaps>, arguments,
        taps);
  };
  const auto launch_taps = [&]<int kTaps>() {
    if (is_weighted) return launch.template operator()<true, kTaps>();
    launch.template operator()<false, kTaps>();
  };
  if (taps_along <= 7) return launch_taps.template operator()<7>();
  if (taps_along <= 9) return launch_taps.template operator()<9>();
  launch_taps.template operator()<kMostTaps>();
}

}  // namespace similis::lncc_internal
