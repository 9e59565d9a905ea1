// SPDX-License-Identifier: Apache-2.0
// MS-SSIM's time and memory, on a picture and on a batch of patches.
#include "similis/ms_ssim.hpp"

#include "bench/image_pair_bench.h"

namespace similis {
namespace {

constexpr Extents kPicture = {1, 3, 1080, 1920}, kPatches = {16, 3, 512, 512};

void value(const TensorView& x, const TensorView& y, const Execution& exec) {
  ms_ssim(x, y, {}, exec);
}
void x_gradient(const TensorView& x, const TensorView& y, const Execution& exec) {
  ms_ssim_value_and_gradient(x, y, GradientOf::x, {}, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("ms_ssim/value", value, kPicture, DType::f32),
    add("ms_ssim/value", value, kPicture, DType::u8),
    add("ms_ssim/value_and_gradient", x_gradient, kPicture, DType::f32),
    add("ms_ssim/value_and_gradient", x_gradient, kPatches, DType::f32),
};

}  // namespace
}  // namespace similis
