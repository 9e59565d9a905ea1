// SPDX-License-Identifier: Apache-2.0
#include "src/warp/reference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/core/tensor/doubles.h"

namespace similis::warp_internal {
namespace {

using Vector = std::array<double, 3>;  // x, y, z
using Voxel = std::array<std::int64_t, 3>;

// An operand as row-major doubles; N is 1 where it is shared.
struct Operand {
  explicit Operand(const TensorView& view) {
    if (view.empty()) return;
    values = to_doubles(view);
    images = view.shape[0];
    size = static_cast<std::int64_t>(values.size()) / images;
  }
  bool empty() const { return values.empty(); }
  std::size_t start(std::int64_t n) const {
    return static_cast<std::size_t>(images == 1 ? 0 : n * size);
  }
  std::vector<double> values;
  std::int64_t images = 1, size = 0;
};

struct Tap {
  std::int64_t voxel;
  double weight, slope;
};

double cubic_spline(double t) {
  t = std::abs(t);
  if (t < 1) return 2.0 / 3 - t * t + t * t * t / 2;
  return t < 2 ? (2 - t) * (2 - t) * (2 - t) / 6 : 0;
}

double cubic_spline_slope(double t) {
  const double sign = t < 0 ? -1 : 1;
  t = std::abs(t);
  if (t < 1) return sign * (-2 * t + 1.5 * t * t);
  return t < 2 ? sign * (-(2 - t) * (2 - t) / 2) : 0;
}

// torch's reflect_coordinates: about `low` and `low + span`.
double reflect(double index, double low, double span, double* slope) {
  if (span == 0) return *slope = 0;
  const double sign = index < low ? -1 : 1;
  const double distance = std::abs(index - low);
  const double rest = std::fmod(distance, span);
  const bool is_even = std::fmod(std::floor(distance / span), 2) == 0;
  *slope *= is_even ? sign : -sign;
  return is_even ? low + rest : low + span - rest;
}

class Sampler {
 public:
  Sampler(const TensorView& image, const SampleOptions& options)
      : options_(options),
        rank_(image.shape.rank() - 2),
        image_(image),
        field_(options.grid.empty() ? options.displacement : options.grid),
        affine_(options.affine),
        grid_affine_(options.grid_affine) {
    channels_ = image.shape[1];
    const TensorView& field = options.grid.empty() ? options.displacement : options.grid;
    for (int a = 0; a < rank_; ++a) {
      const auto at = static_cast<std::size_t>(a);
      extent_[at] = image.shape[image.shape.rank() - 1 - a];
      out_[at] = !field.empty()                 ? field.shape[rank_ - a]
                 : options.out_shape.rank() > 0 ? options.out_shape[rank_ - 1 - a]
                                                : extent_[at];
    }
    for (const Operand* operand : {&image_, &field_, &affine_, &grid_affine_}) {
      batch_ = std::max(batch_, operand->images);
    }
  }

  Reference run(const TensorView& upstream_view) {
    const Operand upstream(upstream_view);
    Reference result;
    if (!upstream.empty()) {
      result.image_gradient.resize(image_.values.size());
      result.affine_gradient.resize(affine_.values.size());
      result.grid_gradient.resize(field_.values.size());
      result.grid_affine_gradient.resize(grid_affine_.values.size());
    }
    const std::int64_t voxels = out_[0] * out_[1] * out_[2];
    result.output.resize(static_cast<std::size_t>(batch_ * channels_ * voxels));
    for (std::int64_t n = 0; n < batch_; ++n) {
      for (std::int64_t v = 0; v < voxels; ++v) {
        const Voxel voxel = {v % out_[0], v / out_[0] % out_[1], v / (out_[0] * out_[1])};
        run_voxel(n, v, voxels, voxel, upstream, &result);
      }
    }
    return result;
  }

 private:
  double output_coordinate(int a, std::int64_t voxel) const {
    const auto n = static_cast<double>(out_[static_cast<std::size_t>(a)]);
    const double edge = n == 1 ? 0 : options_.align_corners ? 1 : 1 - 1 / n;
    const auto of = [a](const Coordinates& c) { return a == 0 ? c.x : a == 1 ? c.y : c.z; };
    const double low = options_.min_coords ? of(*options_.min_coords) : -edge;
    const double high = options_.max_coords ? of(*options_.max_coords) : edge;
    return n == 1 ? (low + high) / 2 : low + (high - low) * static_cast<double>(voxel) / (n - 1);
  }

  double affine(std::int64_t n, int i, int j) const {
    if (affine_.empty()) return i == j ? 1 : 0;
    return affine_.values[affine_.start(n) + static_cast<std::size_t>(i * (rank_ + 1) + j)];
  }
  double grid_affine(std::int64_t n, int i, int j) const {
    if (grid_affine_.empty()) return i == j ? 1 : 0;
    return grid_affine_.values[grid_affine_.start(n) + static_cast<std::size_t>(i * rank_ + j)];
  }

  // The index along an axis, folded, and its derivative by the coordinate.
  double fold(int a, double coordinate, double* slope) const {
    const auto n = static_cast<double>(extent_[static_cast<std::size_t>(a)]);
    const bool align = options_.align_corners;
    *slope = align ? (n - 1) / 2 : n / 2;
    double index = align ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
    if (options_.padding_mode == Outside::reflection) {
      index = reflect(index, align ? 0 : -0.5, align ? n - 1 : n, slope);
    }
    if (options_.padding_mode != Outside::zeros) {
      if (index <= 0 || index >= n - 1) *slope = 0;
      index = std::clamp(index, 0.0, n - 1);
    }
    return index;
  }

  std::vector<Tap> taps(int a, double index) const {
    const std::int64_t n = extent_[static_cast<std::size_t>(a)];
    std::vector<Tap> result;
    if (!std::isfinite(index) || std::abs(index) > 1e9) return result;
    const auto add = [&](std::int64_t voxel, double weight, double slope) {
      if (voxel >= 0 && voxel < n) result.push_back({voxel, weight, slope});
    };
    const auto floor = static_cast<std::int64_t>(std::floor(index));
    const double f = index - std::floor(index);
    switch (options_.mode) {
      case Interpolation::nearest: add(std::llrint(index), 1, 0); break;
      case Interpolation::linear:
        add(floor, 1 - f, -1);
        add(floor + 1, f, 1);
        break;
      case Interpolation::cubic:
        if (index < -1e-6 || index > static_cast<double>(n - 1) + 1e-6) break;
        for (std::int64_t k = floor - 1; k <= floor + 2; ++k) {
          std::int64_t voxel = k;
          while (n > 1 && (voxel < 0 || voxel >= n))
            voxel = voxel < 0 ? -voxel : 2 * (n - 1) - voxel;
          const double t = index - static_cast<double>(k);
          add(n == 1 ? 0 : voxel, cubic_spline(t), cubic_spline_slope(t));
        }
    }
    return result;
  }

  void run_voxel(std::int64_t n, std::int64_t v, std::int64_t voxels, const Voxel& voxel,
      const Operand& upstream, Reference* result) const {
    Vector base{}, field{}, slope{};
    std::vector<Tap> axis[3] = {{}, {}, {{0, 1, 0}}};
    const std::size_t field_start =
        field_.empty() ? 0 : field_.start(n) + static_cast<std::size_t>(v * rank_);
    for (int a = 0; a < rank_; ++a) {
      const auto at = static_cast<std::size_t>(a);
      base[at] = output_coordinate(a, voxel[at]);
      if (!field_.empty()) field[at] = field_.values[field_start + at];
    }
    bool is_at_a_kink = false, is_number = true;
    for (int a = 0; a < rank_; ++a) {
      double coordinate = 0;
      for (int j = 0; j < rank_; ++j) {
        const auto at = static_cast<std::size_t>(j);
        if (options_.grid.empty()) coordinate += affine(n, a, j) * base[at];
        if (!field_.empty()) coordinate += grid_affine(n, a, j) * field[at];
      }
      if (options_.grid.empty()) coordinate += affine(n, a, rank_);
      const double index = fold(a, coordinate, &slope[static_cast<std::size_t>(a)]);
      axis[a] = std::isfinite(coordinate) ? taps(a, index) : std::vector<Tap>{};
      is_number = is_number && !std::isnan(coordinate);
      const double kinks = options_.mode == Interpolation::nearest ? index - 0.5 : index;
      is_at_a_kink |= std::abs(kinks - std::rint(kinks)) < 1e-4;
    }
    result->is_at_a_kink.push_back(is_at_a_kink);
    Vector by_coordinate{};
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto out = static_cast<std::size_t>((n * channels_ + c) * voxels + v);
      const double g = upstream.empty() ? 0 : upstream.values[out];
      if (!is_number) {
        result->output[out] = std::nan("");
        by_coordinate.fill(std::nan(""));
        continue;
      }
      const std::size_t plane =
          image_.start(n) + static_cast<std::size_t>(c * extent_[0] * extent_[1] * extent_[2]);
      for (const Tap& z : axis[2]) {
        for (const Tap& y : axis[1]) {
          for (const Tap& x : axis[0]) {
            const std::size_t at =
                plane +
                static_cast<std::size_t>((z.voxel * extent_[1] + y.voxel) * extent_[0] + x.voxel);
            const double value = image_.values[at];
            result->output[out] += x.weight * y.weight * z.weight * value;
            if (upstream.empty()) continue;
            result->image_gradient[at] += g * x.weight * y.weight * z.weight;
            by_coordinate[0] += g * value * x.slope * y.weight * z.weight * slope[0];
            by_coordinate[1] += g * value * x.weight * y.slope * z.weight * slope[1];
            by_coordinate[2] += g * value * x.weight * y.weight * z.slope * slope[2];
          }
        }
      }
    }
    if (!upstream.empty()) add_gradients(n, field_start, by_coordinate, base, field, result);
  }

  void add_gradients(std::int64_t n, std::size_t field_start, const Vector& by_coordinate,
      const Vector& base, const Vector& field, Reference* result) const {
    for (int a = 0; a < rank_; ++a) {
      const double g = by_coordinate[static_cast<std::size_t>(a)];
      for (int j = 0; j <= rank_ && !affine_.empty(); ++j) {
        result->affine_gradient[affine_.start(n) + static_cast<std::size_t>(a * (rank_ + 1) + j)] +=
            g * (j == rank_ ? 1 : base[static_cast<std::size_t>(j)]);
      }
      for (int j = 0; j < rank_ && !field_.empty(); ++j) {
        const auto at = static_cast<std::size_t>(j);
        result->grid_gradient[field_start + at] += g * grid_affine(n, a, j);
        if (grid_affine_.empty() || g == 0) continue;
        result->grid_affine_gradient[grid_affine_.start(n) +
                                     static_cast<std::size_t>(a * rank_ + j)] += g * field[at];
      }
    }
  }

  const SampleOptions& options_;
  int rank_;
  Operand image_, field_, affine_, grid_affine_;
  std::int64_t channels_ = 1, batch_ = 1;
  Voxel extent_ = {1, 1, 1}, out_ = {1, 1, 1};
};

}  // namespace

Reference reference_sample(
    const TensorView& image, const SampleOptions& options, const TensorView& upstream) {
  return Sampler(image, options).run(upstream);
}

std::vector<double> reference_spline_samples(const TensorView& coefficients) {
  return reference_sample(coefficients, {.mode = Interpolation::cubic}).output;
}

}  // namespace similis::warp_internal
