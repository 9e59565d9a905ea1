// SPDX-License-Identifier: Apache-2.0
// NCC against its definition in two passes, on every backend, and what it refuses.
#include "similis/ncc.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "src/core/require.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;

std::vector<double> computed(const TensorView& x, const TensorView& y, Reduction reduction) {
  if (!test::runs_on_gpu()) return to_doubles(ncc(x, y, reduction));
  const test::OnGpu gpu_x(x), gpu_y(y);
  const Tensor value = ncc(gpu_x.view(), gpu_y.view(), reduction);
  std::vector<double> result(static_cast<std::size_t>(value.shape.count()));
  gpu::copy_to_cpu(
      result.data(), value.data, result.size() * sizeof(double), value.device, nullptr);
  return result;
}

// Of `count` pixels from `first` on.
double expected(const std::vector<double>& x, const std::vector<double>& y, std::size_t first,
    std::size_t count) {
  long double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    mean_x += x[i] / static_cast<double>(count);
    mean_y += y[i] / static_cast<double>(count);
  }
  for (std::size_t i = first; i < first + count; ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return static_cast<double>(xy / std::sqrt(xx * yy));
}

TEST(Ncc, IsPearsonsCorrelationOfEachChannel) {
  for (const Extents& shape : {Extents{2, 3, 37, 29}, Extents{2, 3, 5, 60, 11}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32, DType::f64}) {
      for (const Layout layout : {Layout::dense, Layout::channels_last, Layout::reversed}) {
        const double range = dtype == DType::u8 ? 255 : 1, offset = dtype == DType::f32 ? 1e4 : 0;
        const test::Array x = test::make(shape, dtype, layout,
            [&](std::int64_t i) { return offset + range * test::uniform(1, i); });
        const test::Array y = test::make(shape, dtype, Layout::dense, [&](std::int64_t i) {
          return offset + range * (0.6 * test::uniform(1, i) + 0.4 * test::uniform(2, i));
        });
        const std::vector<double> all_x = to_doubles(x), all_y = to_doubles(y);
        const std::size_t each = all_x.size() / 6;
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          SCOPED_TRACE(fmt::format("{} {} {}", backend.name, name(dtype), test::name(layout)));
          const test::Chosen chosen(backend);
          const std::vector<double> channels = computed(x, y, Reduction::per_channel);
          double sum = 0;
          for (std::size_t i = 0; i < 6; ++i) {
            EXPECT_NEAR(channels.at(i), expected(all_x, all_y, i * each, each), 1e-9);
            sum += channels[i];
          }
          EXPECT_NEAR(computed(x, y, Reduction::sum).at(0), sum, 1e-12);
          EXPECT_NEAR(computed(x, y, Reduction::mean).at(0), sum / 6, 1e-12);
          EXPECT_NEAR(computed(x, y, Reduction::per_image).at(1),
              (channels[3] + channels[4] + channels[5]) / 3, 1e-12);
        }
      }
    }
  }
}

TEST(Ncc, EqualTurnedOverAndFlat) {
  const Extents shape = {1, 1, 9, 20, 30};
  const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const std::vector<double> pixels = to_doubles(x);
  const test::Array turned = test::make(shape, DType::f32, Layout::dense,
      [&](std::int64_t i) { return 7 - 2 * pixels[static_cast<std::size_t>(i)]; });
  const test::Array flat = test::filled(shape, DType::f32, Layout::dense, 0.3);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::Chosen chosen(backend);
    EXPECT_DOUBLE_EQ(computed(x, x, Reduction::mean)[0], 1);
    EXPECT_NEAR(computed(x, turned, Reduction::mean)[0], -1, 1e-9);
    EXPECT_EQ(computed(x, flat, Reduction::mean)[0], 0);
    EXPECT_EQ(computed(flat, flat, Reduction::mean)[0], 0);
  }
}

TEST(Ncc, RefusesWhatItCannotTake) {
  const test::Array x = test::noise({1, 1, 9, 20}, DType::f32, Layout::dense, 1, 1);
  const test::Array wider = test::noise({1, 1, 9, 21}, DType::f32, Layout::dense, 1, 1);
  test::expect_refusal([&] { ncc(x, wider); },
      "ncc: y has shape [1, 1, 9, 21]; it must be that of x, [1, 1, 9, 20]");
  test::expect_refusal([&] { ncc(x, x, Reduction::none); },
      "ncc: reduction is none; it must be mean, sum, per_image or per_channel");
}

}  // namespace
}  // namespace similis
