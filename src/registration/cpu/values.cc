// SPDX-License-Identifier: Apache-2.0
// Passes over values, masks and fields that run a few times in a registration: plain loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/parallel.h"
#include "src/core/tensor/doubles.h"
#include "src/registration/cpu/passes.h"

namespace similis::registration_internal {
namespace cpu {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 14;  // elements that a task takes

// body(i) for each element, in pieces.
template <class Body> void each(std::int64_t count, const Execution& exec, const Body& body) {
  parallel_for(exec, (count + kPiece - 1) / kPiece, [&](std::int64_t task) {
    const std::int64_t end = std::min(count, (task + 1) * kPiece);
    for (std::int64_t i = task * kPiece; i < end; ++i) body(i);
  });
}

}  // namespace

std::int64_t drop_below(
    const GridRows& rows, Reals value, double least, Reals weights, const Execution& exec) {
  with_type(value, [&]<class T>(T) {
    const T *const values = value.as<T>(), bound = static_cast<T>(least);
    each(rows.voxels(), exec, [&](std::int64_t i) {
      if (!(values[i] >= bound)) weights.as<T>()[i] = 0;
    });
  });
  return cpu::count_nonzero(rows, weights, exec);
}

std::int64_t count_nonzero(const GridRows& rows, Reals mask, const Execution&) {
  return with_type(mask, [&]<class T>(T) -> std::int64_t {
    return std::count_if(
        mask.as<T>(), mask.as<T>() + rows.voxels(), [](T value) { return value != 0; });
  });
}

void fill(Device, std::int64_t count, double value, Reals out, const Execution&) {
  with_type(out, [&]<class T>(T) { std::fill_n(out.as<T>(), count, static_cast<T>(value)); });
}

void mark_folds(const GridRows& rows, Reals u, const Box& box, double accepted, std::int64_t by,
    Reals flags, const Execution& exec) {
  cpu::corner_determinants(rows, u, box, accepted, flags, exec);
  // The largest along each axis in turn.
  const std::int64_t voxels = box.size[0] * box.size[1] * box.size[2];
  std::vector<bool> before(static_cast<std::size_t>(voxels));
  std::int64_t stride = 1;
  for (const std::int64_t extent : box.size) {
    for (std::int64_t i = 0; i < voxels; ++i) before[static_cast<std::size_t>(i)] = flags[i] != 0;
    for (std::int64_t i = 0; i < voxels; ++i) {
      if (!before[static_cast<std::size_t>(i)]) continue;
      const std::int64_t at = i / stride % extent;
      const std::int64_t low = std::max<std::int64_t>(at - by, 0),
                         high = std::min(at + by, extent - 1);
      for (std::int64_t k = low; k <= high; ++k) flags.set(i + (k - at) * stride, 1);
    }
    stride *= extent;
  }
}

void to_floats(const TensorView& view, float* out, const Execution& exec) {
  const std::int64_t count = view.shape.count();
  if (view.dtype == DType::f32 && view.strides == dense_strides(view.shape)) {
    return cpu::scale({}, count, 1, static_cast<const float*>(view.data()), out, exec);
  }
  const std::vector<double> values = to_doubles(view);
  std::transform(
      values.begin(), values.end(), out, [](double value) { return static_cast<float>(value); });
}

void threshold(Device, std::int64_t count, double least, Reals elements, const Execution& exec) {
  const double bound = elements.rounded(least);
  each(count, exec, [&](std::int64_t i) { elements.set(i, elements[i] >= bound ? 1 : 0); });
}

void normalize_mask(Device, std::int64_t count, float* elements, const Execution& exec) {
  each(count, exec, [&](std::int64_t i) {
    elements[i] = elements[i] != 0 && !std::isnan(elements[i]) ? 1.0f : 0.0f;
  });
}

std::int64_t look_for_gaps(
    const GridRows& rows, const float* values, float* mask, bool drops, const Execution&) {
  std::int64_t gaps = 0;
  for (std::int64_t i = 0; i < rows.voxels(); ++i) {
    if (std::isfinite(values[i]) || (mask != nullptr && mask[i] == 0)) continue;
    ++gaps;
    if (drops) mask[i] = 0;
  }
  return gaps;
}

Spread spread(const GridRows& rows, const float* values, const float* mask, const Execution&) {
  Spread result{.least = std::numeric_limits<float>::infinity(),
      .most = -std::numeric_limits<float>::infinity()};
  for (std::int64_t i = 0; i < rows.voxels(); ++i) {
    if (mask != nullptr && mask[i] == 0) continue;
    ++result.count;
    result.most = std::max(result.most, values[i]);
    if (values[i] > result.least) continue;
    result.lowest = values[i] < result.least ? 1 : result.lowest + 1;
    result.least = values[i];
  }
  return result;
}

Neighbours nth_above(const GridRows& rows, const float* values, const float* mask, float least,
    std::int64_t before, const Execution&) {
  std::vector<float> inside;
  inside.reserve(static_cast<std::size_t>(rows.voxels()));
  for (std::int64_t i = 0; i < rows.voxels(); ++i) {
    if ((mask == nullptr || mask[i] != 0) && values[i] > least) inside.push_back(values[i]);
  }
  const auto at = inside.begin() + before;
  std::nth_element(inside.begin(), at, inside.end());
  return {
      .value = *at, .next = at + 1 == inside.end() ? *at : *std::min_element(at + 1, inside.end())};
}

void rescale(const GridRows& rows, float low, float by, const float* mask, float* values,
    const Execution& exec) {
  each(rows.voxels(), exec, [&](std::int64_t i) {
    const bool counts = mask == nullptr || mask[i] != 0;
    values[i] = counts ? std::clamp((values[i] - low) * by, 0.0f, 1.0f) : 0.0f;
  });
}

void divide(const GridRows& rows, Reals share, double least, Reals values, const Execution& exec) {
  const double bound = share.rounded(least);
  each(rows.voxels(), exec,
      [&](std::int64_t i) { values.set(i, share[i] > bound ? values[i] / share[i] : 0); });
}

Mass mass(const GridRows& rows, const float* values, const Execution&) {
  const auto& size = rows.size;
  Mass result;
  for (std::int64_t i = 0; i < rows.voxels(); ++i) {
    const auto value = static_cast<double>(values[i]);
    const Point at = {static_cast<double>(i % size[0]), static_cast<double>(i / size[0] % size[1]),
        static_cast<double>(i / size[0] / size[1])};
    result.sum += value;
    for (std::size_t a = 0; a < 3; ++a) result.first[a] += value * at[a];
  }
  return result;
}

RegisterSummary lengths(const GridRows& rows, const float* field, const Execution&) {
  const std::int64_t voxels = rows.voxels(), rank = rows.rank;
  std::vector<double> found(static_cast<std::size_t>(voxels));
  RegisterSummary result;
  for (std::int64_t i = 0; i < voxels; ++i) {
    double square = 0;
    for (std::int64_t c = 0; c < rank; ++c) {
      const auto e = static_cast<double>(field[i * rank + c]);
      square += e * e;
    }
    const double length = std::sqrt(square);
    found[static_cast<std::size_t>(i)] = length;
    result.mean += length;
  }
  result.mean /= static_cast<double>(voxels);
  const auto at = found.begin() + static_cast<std::ptrdiff_t>(found.size() * 99 / 100);
  std::nth_element(found.begin(), at, found.end());
  result.p99 = *at;
  result.max = *std::max_element(at, found.end());
  return result;
}

Tensor upload(
    Device, const Extents& shape, const std::vector<double>& numbers, const Execution& exec) {
  Tensor result = allocate(shape, DType::f64, {}, exec);
  std::copy(numbers.begin(), numbers.end(), result.elements<double>());
  return result;
}

}  // namespace cpu

const Passes& cpu_passes() {
  static constexpr Passes passes = {.weigh_inside = cpu::weigh_inside,
      .drop_below = cpu::drop_below,
      .count_nonzero = cpu::count_nonzero,
      .moments = cpu::moments,
      .add_gradient = cpu::add_gradient,
      .add_scaled = cpu::add_scaled,
      .scale = cpu::scale,
      .fill = cpu::fill,
      .blend = cpu::blend,
      .largest_square = cpu::largest_square,
      .turn = cpu::turn,
      .round_to = cpu::round_to,
      .corner_determinants = cpu::corner_determinants,
      .mark_folds = cpu::mark_folds,
      .to_floats = cpu::to_floats,
      .threshold = cpu::threshold,
      .normalize_mask = cpu::normalize_mask,
      .look_for_gaps = cpu::look_for_gaps,
      .spread = cpu::spread,
      .nth_above = cpu::nth_above,
      .rescale = cpu::rescale,
      .divide = cpu::divide,
      .multiply = cpu::multiply,
      .edge_products = cpu::edge_products,
      .precondition = cpu::precondition,
      .mass = cpu::mass,
      .lengths = cpu::lengths,
      .upload = cpu::upload};
  return passes;
}

}  // namespace similis::registration_internal
