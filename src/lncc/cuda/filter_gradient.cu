// SPDX-License-Identifier: Apache-2.0
// The second filter kernel: window sums of the derivatives are the gradient. For each plane of a
// tile, the derivatives of the centres whose windows see it go to the stage in shared memory;
// filter.cuh adds them up; each thread then writes the gradient of a pixel.
#include "src/lncc/cuda/filter.cuh"

namespace similis::lncc_internal {
namespace {

template <int kTaps> class DerivativePlanes {
 public:
  using Sums = Filter<3, kTaps, kFilterGradientThreads>;
  static constexpr int kBytes = 2 * 3 * Sums::kPlaces * static_cast<int>(sizeof(double));

  __device__ DerivativePlanes(unsigned char* shared, const GradientArguments& m, int volume,
      int image, int y_first, int x_first)
      : m_(m),
        stage_(reinterpret_cast<double*>(shared)),
        volume_(volume),
        image_(image),
        y_first_(y_first),
        x_first_(x_first),
        is_f64_(m.problem.x.dtype == DType::f64) {}

  // Asks for the derivatives of a plane of centres; they are 0 where no window is centred.
  __device__ __forceinline__ void ask(int z) {
    const Box& kept = m_.derivatives.kept;
    const bool has_plane = kept.planes.holds(z);
    const char* const plane = has_plane ? m_.derivatives.plane(volume_, image_, z) : nullptr;
    for_places([&](int i, int, int y, int x) {
      if (!has_plane || !kept.rows.holds(y) || !kept.columns.holds(x)) {
        next_[i] = {};
        return;
      }
      const int at = (y - kept.rows.first) * kept.columns.length() + (x - kept.columns.first);
      next_[i] = is_f64_ ? reinterpret_cast<const Raw*>(plane)[at]
                         : Raw{reinterpret_cast<const double2*>(plane)[at], 0};
    });
  }
  // Stores those that were asked for to one of two places of the stage.
  __device__ __forceinline__ void store(int to) const {
    double* const stage = stage_ + 3 * to * Sums::kPlaces;
    for_places([&](int i, int place, int, int) {
      const Raw& raw = next_[i];
      stage[place] = is_f64_ ? raw.pair.x : __int_as_float(__double2loint(raw.pair.x));
      stage[place + Sums::kPlaces] =
          is_f64_ ? raw.pair.y : __int_as_float(__double2hiint(raw.pair.x));
      stage[place + 2 * Sums::kPlaces] = is_f64_ ? raw.rest : raw.pair.y;
    });
  }
  __device__ __forceinline__ void load(int from, int place, double (&quantities)[3]) const {
#pragma unroll
    for (int i = 0; i < 3; ++i) quantities[i] = stage_[(3 * from + i) * Sums::kPlaces + place];
  }

 private:
  template <class Visit> __device__ __forceinline__ void for_places(const Visit& visit) const {
#pragma unroll
    for (int i = 0; i < Sums::kPlacesAThread; ++i) {
      const int place = static_cast<int>(threadIdx.x) + i * Sums::kThreads;
      if (place >= Sums::kPlaces) return;
      visit(i, place, y_first_ + place / Sums::kAcross, x_first_ + place % Sums::kAcross);
    }
  }

  // Derivatives as they are in memory, so that nothing waits for them.
  struct alignas(16) Raw {
    double2 pair;
    double rest;
  };
  static_assert(sizeof(Raw) == sizeof(CentreDerivatives<double>));

  const GradientArguments& m_;
  double* const stage_;
  const int volume_, image_, y_first_, x_first_;
  const bool is_f64_;
  Raw next_[Sums::kPlacesAThread];
};

template <int kTaps>
__global__ __launch_bounds__(kFilterGradientThreads,
    filter_gradient_blocks(
        kTaps)) void filter_gradient_kernel(const SIMILIS_GRID_CONSTANT GradientArguments m,
    const SIMILIS_GRID_CONSTANT FilterTaps taps) {
  using Planes = DerivativePlanes<kTaps>;
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 16);
  const Problem& problem = m.problem;
  const Geometry& g = problem.geometry;
  const BlockTile tile(m.tiles);
  const Range planes = m.tiles.chunks.planes(tile.chunk);
  const int local = tile.volume / m.derivatives.images, image = tile.volume % m.derivatives.images;
  const std::int64_t volume = m.tiles.first_volume + local;
  const Shift shift = shift_of(problem, volume);
  const int y_first = m.pixels.rows.first + tile.y * Planes::Sums::kRows;
  const int x_first = m.pixels.columns.first + tile.x * kFilterColumns;
  Planes derivatives(shared, m, local, image, y_first - g.radius[1], x_first - g.radius[2]);
  typename Planes::Sums filter(reinterpret_cast<double*>(shared + Planes::kBytes), taps);
  Place at{volume / g.channels, volume % g.channels, 0,
      y_first + static_cast<int>(threadIdx.x) / kFilterColumns,
      x_first + static_cast<int>(threadIdx.x) % kFilterColumns};
  const bool exists = at.y < m.pixels.rows.last && at.x < m.pixels.columns.last;
  const bool of_x = image == 0;
  const gpu::View& gradient = of_x ? problem.x_gradient : problem.y_gradient;
  const int first = planes.first - g.radius[0], last = planes.last + g.radius[0];
  derivatives.ask(first);
  derivatives.store(0);
  derivatives.ask(first + 1);
  __syncthreads();
  for (int z = first; z <= last; ++z) {
    const int place = (z - first) & 1;
    at.z = z - 1 - g.radius[0];
    const bool is_done = exists && at.z >= planes.first;
    const std::int64_t x_at = Problem::offset(problem.x, at);
    const std::int64_t y_at = Problem::offset(problem.y, at);
    RawElement x, y;
    if (is_done) {
      visit_type(problem.x.dtype, [&](auto type) {
        x.ask(type, problem.x, x_at);
        y.ask(type, problem.y, y_at);
      });
    }
    if (z + 1 < last) {
      derivatives.store(1 - place);
      derivatives.ask(z + 2);
    }
    if (z < last) {
      filter.sum_down(
          place, [&](int at_place, double(&sums)[3]) { derivatives.load(place, at_place, sums); });
    }
    if (z > first) filter.advance(1 - place);
    if (is_done) {
      double pixel_x = 0, pixel_y = 0;
      visit_type(problem.x.dtype, [&](auto type) {
        pixel_x = x.value(type, problem.x, x_at) - shift.x;
        pixel_y = y.value(type, problem.y, y_at) - shift.y;
      });
      double result = fma(of_x ? pixel_y : pixel_x, filter.sum(0),
          fma(of_x ? pixel_x : pixel_y, filter.sum(1), -filter.sum(2)));
      if (problem.valid_mask.data != nullptr) {
        const double valid = Problem::load_weight(problem.valid_mask, at);
        result = valid == 0 ? 0 : valid * result;
      }
      gradient.store(Problem::offset(gradient, at), result);
    }
    __syncthreads();
  }
}

}  // namespace

void launch_filter_gradient(
    const CudaPlan& plan, const GradientArguments& arguments, const FilterTaps& taps) {
  const auto launch = [&]<int kTaps>() {
    using Planes = DerivativePlanes<kTaps>;
    constexpr std::size_t bytes = Planes::kBytes + Planes::Sums::kBytes;
    gpu::allow_shared_bytes(filter_gradient_kernel<kTaps>, bytes);
    gpu::launch("lncc", plan.exec.queue.handle, static_cast<unsigned>(arguments.tiles.blocks()),
        kFilterGradientThreads, bytes, filter_gradient_kernel<kTaps>, arguments, taps);
  };
  const int taps_along = std::max({taps.count[0], taps.count[1], taps.count[2]});
  if (taps_along <= 7) return launch.template operator()<7>();
  if (taps_along <= 9) return launch.template operator()<9>();
  launch.template operator()<kMostTaps>();
}

}  // namespace similis::lncc_internal
