// SPDX-License-Identifier: Apache-2.0
// Time and memory of sampling and composing as registration calls them: the value by one call, then
// the gradients by another, with an upstream gradient.
#include "similis/warp.hpp"

#include <cmath>

#include "bench/image_pair_bench.h"
#include "src/core/tensor/memory.h"
#include "tests/arrays.h"

namespace similis {
namespace {

constexpr Extents kVolume = {1, 1, 128, 160, 192};

// A wave of half a period along each axis, a twentieth of the volume high, and noise on it, as
// large as the volume; made once for all calls.
const Tensor& field() {
  static const Tensor made = [] {
    const auto half_wave = [](std::int64_t i, std::int64_t n) {
      return std::sin(3.14159 * static_cast<double>(i) / static_cast<double>(n));
    };
    const std::int64_t depth = kVolume[2], height = kVolume[3], width = kVolume[4];
    return test::make(
        {1, depth, height, width, 3}, DType::f32, test::Layout::dense, [&](std::int64_t i) {
          const std::int64_t x = i / 3 % width, y = i / 3 / width % height,
                             z = i / 3 / width / height;
          const double wave = half_wave(x, width) * half_wave(y, height) * half_wave(z, depth);
          return 0.05 * wave + 0.004 * (test::uniform(3, i) - 0.5);
        });
  }();
  return made;
}

// The benchmark's x is sampled, its y is the upstream gradient.
void sample_value(const TensorView& x, const TensorView&, const Execution& exec) {
  sample(x, {.displacement = field()}, exec);
}
template <bool of_image>
void sample_gradients(const TensorView& x, const TensorView& y, const Execution& exec) {
  sample(x, {.displacement = field()}, exec);
  sample_backward(x, y, {.image = of_image, .grid = true}, {.displacement = field()}, false, exec);
}
void compose_value(const TensorView&, const TensorView&, const Execution& exec) {
  compose(field(), field(), {}, exec);
}
void compose_gradients(const TensorView&, const TensorView&, const Execution& exec) {
  const Tensor& u = field();
  const Tensor u_gradient = allocate(u.shape, u.dtype, u.device, exec);
  const Tensor v_gradient = allocate(u.shape, u.dtype, u.device, exec);
  compose(u, u, {}, exec);
  compose_into(u, u, {.upstream = u, .u_gradient = u_gradient, .v_gradient = v_gradient}, {}, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("sample/value", sample_value, kVolume, DType::f32),
    add("sample/value_and_gradient_displacement", sample_gradients<false>, kVolume, DType::f32),
    add("sample/value_and_gradient_both", sample_gradients<true>, kVolume, DType::f32),
    add("compose/value", compose_value, kVolume, DType::f32),
    add("compose/value_and_gradient", compose_gradients, kVolume, DType::f32),
};

}  // namespace
}  // namespace similis
