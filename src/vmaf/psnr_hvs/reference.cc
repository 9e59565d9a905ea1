// SPDX-License-Identifier: Apache-2.0
// PSNR-HVS by loops: the oracle of the other backends.
#include <array>
#include <cmath>
#include <cstdlib>

#include "src/vmaf/psnr_hvs/psnr_hvs.h"
#include "src/vmaf/psnr_hvs/sensitivity.h"

namespace similis::vmaf_internal {
namespace {

using Block = std::array<std::int32_t, 64>;

std::int32_t half(std::int32_t value) { return value / 2; }
std::int32_t scaled(std::int32_t factor, std::int32_t value, int shift) {
  return static_cast<std::int32_t>(rounded_shift(std::int64_t{factor} * value, shift));
}

// Eight samples, `step` apart, by lifting steps of integers.
void transform(std::int32_t* x, std::size_t step) {
  const auto at = [&](std::size_t i) -> std::int32_t& { return x[i * step]; };
  std::int32_t d = at(0) - at(7), y = half(d);
  const std::int32_t m = at(0) - y, s = at(1) + at(6);
  std::int32_t e = at(6) - half(s), f = at(2) - at(5);
  const std::int32_t n = at(2) - half(f), t = at(3) + at(4);
  std::int32_t h = half(t) - at(4), a = m + half(t), g = a - t, c = half(s) - n, b = c - s;
  a -= scaled(13573, b, 15);
  b += scaled(11585, a, 14);
  a -= scaled(13573, b, 15);
  g -= scaled(21895, c, 15);
  c += scaled(15137, g, 14);
  g -= scaled(21895, c, 15);
  f += scaled(19195, e, 15);
  e += scaled(11585, f, 14);
  f -= scaled(7489, e, 13);
  h = half(e) - h;
  e -= h;
  f = y - f;
  d -= f;
  h += scaled(3227, d, 15);
  d -= scaled(6393, h, 15);
  h += scaled(3227, d, 15);
  e += scaled(2485, f, 13);
  f -= scaled(18205, e, 15);
  e += scaled(2485, f, 13);
  const std::array<std::int32_t, 8> outputs = {a, d, c, f, b, e, g, h};
  for (std::size_t i = 0; i < 8; ++i) at(i) = outputs[i];
}

// The sum of the variances of the quarters over that of the block.
float variance_ratio(const Block& block) {
  const auto variance = [&](std::size_t top, std::size_t left, std::size_t size) {
    float sum = 0, squares = 0;
    const auto for_each = [&](const auto& add) {
      for (std::size_t i = top; i < top + size; ++i) {
        for (std::size_t j = left; j < left + size; ++j) add(static_cast<float>(block[8 * i + j]));
      }
    };
    for_each([&](float value) { sum += value; });
    const float mean = sum / static_cast<float>(size * size);
    for_each([&](float value) { squares += (value - mean) * (value - mean); });
    return squares * (size == 8 ? 1 / 63.0f * 64 : 1 / 15.0f * 16);
  };
  const float whole = variance(0, 0, 8);
  if (!(whole > 0)) return whole;
  const float a = variance(0, 0, 4), b = variance(4, 0, 4), c = variance(0, 4, 4);
  return (a + b + c + variance(4, 4, 4)) / whole;
}

Block transformed(Block block) {
  for (std::size_t column = 0; column < 8; ++column) transform(&block[column], 8);
  for (std::size_t row = 0; row < 8; ++row) transform(&block[8 * row], 1);
  return block;
}

float mask_of(const Block& coefficients, float ratio, const PsnrHvsWeights& weights) {
  float sum = 0;
  for (std::size_t k = 1; k < 64; ++k) {
    sum += static_cast<float>(coefficients[k] * coefficients[k]) * weights.mask[k];
  }
  return static_cast<float>(std::sqrt(static_cast<double>(sum * ratio)) / 32);
}

}  // namespace

float reference_psnr_hvs(const PlanePair& planes, int component) {
  const PsnrHvsWeights weights = psnr_hvs_weights(component);
  float error = 0;
  std::int64_t count = 0;
  for (std::int64_t y = 0; y + 8 <= planes.reference.height; y += kPsnrHvsStep) {
    for (std::int64_t x = 0; x + 8 <= planes.reference.width; x += kPsnrHvsStep) {
      std::array<Block, 2> blocks;
      std::array<float, 2> masks;
      for (std::size_t image = 0; image < 2; ++image) {
        const Plane& plane = image == 0 ? planes.reference : planes.distorted;
        Block block;
        for (int k = 0; k < 64; ++k) {
          block[static_cast<std::size_t>(k)] = plane.at(y + k / 8, x + k % 8);
        }
        blocks[image] = transformed(block);
        masks[image] = mask_of(blocks[image], variance_ratio(block), weights);
      }
      const float mask = masks[1] > masks[0] ? masks[1] : masks[0];
      for (std::size_t k = 0; k < 64; ++k) {
        auto seen = static_cast<float>(std::abs(blocks[0][k] - blocks[1][k]));
        if (k > 0) {
          const float hidden = mask / weights.mask[k];
          seen = seen < hidden ? 0 : seen - hidden;
        }
        error += (seen * weights.sensitivity[k]) * (seen * weights.sensitivity[k]);
        ++count;
      }
    }
  }
  const std::int64_t largest = (1 << planes.reference.bit_depth) - 1;
  return error / static_cast<float>(count) / static_cast<float>(largest * largest);
}

}  // namespace similis::vmaf_internal
