// SPDX-License-Identifier: Apache-2.0
// Rows of samples to light, to X, Y and B, and to half a row of the next scale. Included once per
// SIMD target, hence the guard that flips.
#if defined(SIMILIS_SSIMULACRA2_CPU_CONVERT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_SSIMULACRA2_CPU_CONVERT_INL_H
#undef SIMILIS_SSIMULACRA2_CPU_CONVERT_INL_H
#else
#define SIMILIS_SSIMULACRA2_CPU_CONVERT_INL_H
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"
#include "src/core/tensor/dispatch.h"
#include "src/ssimulacra2/cpu_plan.h"
#include "src/ssimulacra2/formula.h"

HWY_BEFORE_NAMESPACE();
namespace similis::ssimulacra2_internal::HWY_NAMESPACE {

// A row of one channel as floats from 0 to 1.
template <class T>
void load_row(const T* from, std::int64_t step, std::int64_t count, float* HWY_RESTRICT to) {
  if constexpr (std::is_integral_v<T>) {
    constexpr float kScale = 1 / static_cast<float>(static_cast<T>(-1));
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * step]) * kScale;
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(load(from[i * step]));
  }
}

void load_row(
    const Samples& samples, int channel, std::int64_t row, std::int64_t count, float* to) {
  const std::int64_t offset = channel * samples.channel_stride + row * samples.row_stride;
  visit_dtype(samples.dtype, [&]<class T>(std::type_identity<T>) {
    load_row(static_cast<const T*>(samples.data) + offset, samples.column_stride, count, to);
  });
}

void to_light(std::int64_t count, float* HWY_RESTRICT row) {
  for (std::int64_t i = 0; i < count; ++i) row[i] = linear_of_srgb(row[i]);
}

// Light of a row of samples, three planes of `stride`; grey is converted once.
void light_row(const Samples& samples, const LightOfBytes& table, std::int64_t row,
    std::int64_t count, std::int64_t stride, float* light, float* alpha) {
  const int colors = samples.channels <= 2 ? 1 : 3;
  const bool has_alpha = samples.channels % 2 == 0;
  const bool is_bytes = samples.dtype == DType::u8 && !samples.is_linear && !has_alpha;
  if (has_alpha) load_row(samples, colors, row, count, alpha);
  for (int c = 0; c < colors; ++c) {
    float* HWY_RESTRICT out = light + c * stride;
    if (is_bytes) {
      const auto* from = static_cast<const std::uint8_t*>(samples.data) +
                         c * samples.channel_stride + row * samples.row_stride;
      for (std::int64_t i = 0; i < count; ++i) out[i] = table.of[from[i * samples.column_stride]];
      continue;
    }
    load_row(samples, c, row, count, out);
    if (has_alpha) {
      for (std::int64_t i = 0; i < count; ++i)
        out[i] = blended(out[i], alpha[i], samples.background);
    }
    if (!samples.is_linear) to_light(count, out);
  }
  for (int c = colors; c < 3; ++c) std::copy_n(light, count, light + c * stride);
}

void xyb_row(const float* HWY_RESTRICT r, const float* HWY_RESTRICT g, const float* HWY_RESTRICT b,
    std::int64_t count, float* HWY_RESTRICT to_x, float* HWY_RESTRICT to_y,
    float* HWY_RESTRICT to_b) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Xyb color = positive_xyb(r[i], g[i], b[i]);
    to_x[i] = color.x;
    to_y[i] = color.y;
    to_b[i] = color.b;
  }
}

// Columns beyond the last are the last.
void half_row(const float* HWY_RESTRICT top, const float* HWY_RESTRICT bottom, std::int64_t width,
    float* HWY_RESTRICT out) {
  const std::int64_t pairs = width / 2, last = width - 1;
  for (std::int64_t i = 0; i < pairs; ++i) {
    out[i] = quarter(top[2 * i], top[2 * i + 1], bottom[2 * i], bottom[2 * i + 1]);
  }
  if (width % 2) out[pairs] = quarter(top[last], top[last], bottom[last], bottom[last]);
}

// Two rows of a side, or the last one alone.
void convert_rows(const ScalePlan& plan, const LightOfBytes& table, int side, std::int64_t first) {
  const auto of_side = static_cast<std::size_t>(side);
  const std::int64_t width = plan.extent.width, stride = plan.stride;
  const std::int64_t count = std::min<std::int64_t>(2, plan.extent.height - first);
  AlignedVector<float> memory(plan.light[of_side][0] ? 0 : static_cast<std::size_t>(7 * stride));
  std::array<std::array<const float*, 3>, 2> light{};
  for (std::int64_t i = 0; i < count; ++i) {
    std::array<const float*, 3>& rgb = light[static_cast<std::size_t>(i)];
    float* scratch = memory.empty() ? nullptr : memory.data() + i * 3 * stride;
    if (!memory.empty()) {
      light_row(plan.samples[of_side], table, first + i, width, stride, scratch,
          memory.data() + 6 * stride);
    }
    for (std::size_t c = 0; c < 3; ++c) {
      rgb[c] = memory.empty() ? plan.light[of_side][c].row(first + i)
                              : scratch + static_cast<std::int64_t>(c) * stride;
    }
    const ThreeRows& xyb = plan.xyb[of_side];
    xyb_row(rgb[0], rgb[1], rgb[2], width, xyb[0].row(first + i), xyb[1].row(first + i),
        xyb[2].row(first + i));
  }
  if (!plan.next_light[of_side][0]) return;
  for (std::size_t c = 0; c < 3; ++c) {
    half_row(light[0][c], light[static_cast<std::size_t>(count - 1)][c], width,
        plan.next_light[of_side][c].row(first / 2));
  }
}

}  // namespace similis::ssimulacra2_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
