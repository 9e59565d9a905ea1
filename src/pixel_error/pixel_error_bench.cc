// SPDX-License-Identifier: Apache-2.0
// Time and memory of MSE, MAE and PSNR on a picture: they read memory as fast as it comes.
#include "similis/pixel_error.hpp"

#include "bench/image_pair_bench.h"

namespace similis {
namespace {

constexpr Extents kPicture = {1, 3, 1080, 1920};

void value_of_mse(const TensorView& x, const TensorView& y, const Execution& exec) {
  mse(x, y, {}, exec);
}
void value_of_mae(const TensorView& x, const TensorView& y, const Execution& exec) {
  mae(x, y, {}, exec);
}
void value_of_psnr(const TensorView& x, const TensorView& y, const Execution& exec) {
  psnr(x, y, {}, exec);
}
void gradient_of_mse(const TensorView& x, const TensorView& y, const Execution& exec) {
  mse_value_and_gradient(x, y, GradientOf::x, {}, exec);
}
void gradient_of_mae(const TensorView& x, const TensorView& y, const Execution& exec) {
  mae_value_and_gradient(x, y, GradientOf::x, {}, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("mse/value", value_of_mse, kPicture, DType::f32),
    add("mse/value", value_of_mse, kPicture, DType::u8),
    add("mse/value_and_gradient", gradient_of_mse, kPicture, DType::f32),
    add("mae/value", value_of_mae, kPicture, DType::f32),
    add("mae/value_and_gradient", gradient_of_mae, kPicture, DType::f32),
    add("psnr/value", value_of_psnr, kPicture, DType::f32),
    add("psnr/value", value_of_psnr, kPicture, DType::u8),
};

}  // namespace
}  // namespace similis
