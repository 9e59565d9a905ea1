// SPDX-License-Identifier: Apache-2.0
// SSIM's time and memory: the calls of a training step, an evaluation and a heat map, on a picture,
// on a batch of patches and on a volume.
#include "similis/ssim.hpp"

#include "bench/image_pair_bench.h"

namespace similis {
namespace {

constexpr Extents kPicture = {1, 3, 1080, 1920}, kPatches = {16, 3, 512, 512};
constexpr Extents kSmall = {1, 3, 256, 256}, kVolume = {1, 1, 128, 128, 128};

void value(const TensorView& x, const TensorView& y, const Execution& exec) {
  ssim(x, y, {}, exec);
}
void map(const TensorView& x, const TensorView& y, const Execution& exec) {
  ssim(x, y, {.reduction = Reduction::none}, exec);
}
void x_gradient(const TensorView& x, const TensorView& y, const Execution& exec) {
  ssim_value_and_gradient(x, y, GradientOf::x, {}, exec);
}
void both_gradients(const TensorView& x, const TensorView& y, const Execution& exec) {
  ssim_value_and_gradient(x, y, GradientOf::both, {}, exec);
}
void l1(const TensorView& x, const TensorView& y, const Execution& exec) {
  l1_ssim_value_and_gradient(x, y, GradientOf::x, {}, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("ssim/value", value, kPicture, DType::f32),
    add("ssim/value", value, kPicture, DType::u8),
    add("ssim/value", value, kPicture, DType::f16),
    add("ssim/value", value, kPicture, DType::f64),
    add("ssim/value", value, kPatches, DType::f32),
    add("ssim/value", value, kSmall, DType::f32),
    add("ssim/value", value, kVolume, DType::f32),
    add("ssim/map", map, kPicture, DType::f32),
    add("ssim/value_and_gradient", x_gradient, kPicture, DType::f32),
    add("ssim/value_and_gradient", x_gradient, kPicture, DType::f16),
    add("ssim/value_and_gradient", x_gradient, kPatches, DType::f32),
    add("ssim/value_and_gradient", x_gradient, kSmall, DType::f32),
    add("ssim/value_and_gradient", x_gradient, kVolume, DType::f32),
    add("ssim/value_and_both_gradients", both_gradients, kPicture, DType::f32),
    add("l1_ssim/value_and_gradient", l1, kPicture, DType::f32),
};

}  // namespace
}  // namespace similis
