// SPDX-License-Identifier: Apache-2.0
// Time and memory of libvmaf's SSIM family on a frame of 1080p. On noise, which is the most work
// there is for the ordered sum of integer SSIM.
#include "similis/libvmaf_ssim.hpp"

#include "bench/image_pair_bench.h"

namespace similis {
namespace {

constexpr Extents kFrame = {1080, 1920};

template <int bit_depth>
void integer(const TensorView& x, const TensorView& y, const Execution& exec) {
  integer_ssim(x, y, {.bit_depth = bit_depth}, exec);
}
void full_size(const TensorView& x, const TensorView& y, const Execution& exec) {
  float_ssim(x, y, {.scale = 1}, exec);
}
void shrunk(const TensorView& x, const TensorView& y, const Execution& exec) {
  float_ssim(x, y, {}, exec);
}
void scales(const TensorView& x, const TensorView& y, const Execution& exec) {
  float_ms_ssim(x, y, {}, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("integer_ssim/value", integer<8>, kFrame, DType::u8),
    add("integer_ssim_10bit/value", integer<10>, kFrame, DType::u16),
    add("integer_ssim_16bit/value", integer<16>, kFrame, DType::u16),
    add("float_ssim_scale1/value", full_size, kFrame, DType::u8),
    add("float_ssim/value", shrunk, kFrame, DType::u8),
    add("float_ms_ssim/value", scales, kFrame, DType::u8),
};

}  // namespace
}  // namespace similis
