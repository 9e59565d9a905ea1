// SPDX-License-Identifier: Apache-2.0
// LNCC's time and memory: the calls of each step of registration, by window, on a volume and on a
// batch of feature volumes.
#include "similis/lncc.hpp"

#include "bench/image_pair_bench.h"

namespace similis {
namespace {

constexpr Extents kVolume = {1, 1, 96, 96, 96}, kFeatures = {2, 4, 48, 48, 48};

template <int window_size>
void value(const TensorView& x, const TensorView& y, const Execution& exec) {
  lncc(x, y, {.window_size = window_size}, exec);
}
template <int window_size>
void x_gradient(const TensorView& x, const TensorView& y, const Execution& exec) {
  lncc_value_and_gradient(x, y, GradientOf::x, {.window_size = window_size}, exec);
}
void both_gradients(const TensorView& x, const TensorView& y, const Execution& exec) {
  lncc_value_and_gradient(x, y, GradientOf::both, {.window_size = 7}, exec);
}
void gaussian_gradient(const TensorView& x, const TensorView& y, const Execution& exec) {
  lncc_value_and_gradient(
      x, y, GradientOf::x, {.window_size = 7, .window = WindowShape::gaussian}, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("lncc/value", value<7>, kVolume, DType::f32),
    add("lncc/value_and_gradient_window_3", x_gradient<3>, kVolume, DType::f32),
    add("lncc/value_and_gradient", x_gradient<7>, kVolume, DType::f32),
    add("lncc/value_and_gradient_window_11", x_gradient<11>, kVolume, DType::f32),
    add("lncc/value_and_gradient_window_21", x_gradient<21>, kVolume, DType::f32),
    add("lncc/value_and_gradient_gaussian", gaussian_gradient, kVolume, DType::f32),
    add("lncc/value_and_both_gradients", both_gradients, kVolume, DType::f32),
    add("lncc/value_and_gradient", x_gradient<7>, kFeatures, DType::f32),
};

}  // namespace
}  // namespace similis
