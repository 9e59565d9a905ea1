// SPDX-License-Identifier: Apache-2.0
// Against the filters' published kernels, in f64, away from the borders, where zimg mirrors.
#include "src/media/resample/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

struct Kernel {
  double support;
  std::function<double(double)> weight;
};

double lanczos(double x) {
  if (x == 0) return 1;
  const double a = std::numbers::pi * x;
  return 3 * std::sin(a) * std::sin(a / 3) / (a * a);
}

double spline36(double x) {
  if (x < 1) return ((13.0 / 11 * x - 453.0 / 209) * x - 3.0 / 209) * x + 1;
  if (x < 2) return ((-6.0 / 11 * (x - 1) + 270.0 / 209) * (x - 1) - 156.0 / 209) * (x - 1);
  return ((1.0 / 11 * (x - 2) - 45.0 / 209) * (x - 2) + 26.0 / 209) * (x - 2);
}

double catmull_rom(double x) {
  return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2;
}

Kernel kernel_of(Resampling filter) {
  switch (filter) {
    case Resampling::lanczos: return {3, lanczos};
    case Resampling::spline36: return {3, spline36};
    case Resampling::bicubic: return {2, catmull_rom};
    case Resampling::bilinear: break;
  }
  return {1, [](double x) { return 1 - x; }};
}

// The value at `place` on the input's axis, whose sample i lies at i + 0.5.
double at(const std::function<double(std::int64_t)>& sample, double place, double ratio,
    const Kernel& kernel) {
  const double wide = std::max(1.0, ratio), reach = kernel.support * wide;
  double sum = 0, weights = 0;
  for (auto i = static_cast<std::int64_t>(std::floor(place - reach));
       i <= static_cast<std::int64_t>(std::ceil(place + reach)); ++i) {
    const double distance = std::abs(static_cast<double>(i) + 0.5 - place) / wide;
    if (distance >= kernel.support) continue;
    weights += kernel.weight(distance);
    sum += kernel.weight(distance) * sample(i);
  }
  return sum / weights;
}

// One channel, resampled to width x height, at (x, y).
double expected(const std::function<double(std::int64_t, std::int64_t)>& sample, double place_x,
    double place_y, double ratio_x, double ratio_y, const Kernel& kernel) {
  return at(
      [&](std::int64_t row) {
        return at(
            [&](std::int64_t column) { return sample(row, column); }, place_x, ratio_x, kernel);
      },
      place_y, ratio_y, kernel);
}

class Resample : public testing::Test {
 protected:
  void SetUp() override {
    if (resampling_library().empty()) GTEST_SKIP() << "this build has no zimg";
  }
};

TEST_F(Resample, EveryFilterHasItsKernel) {
  const std::int64_t kWidth = 60, kHeight = 44;
  const Image image = noise(kWidth, kHeight, 3, 8);
  for (const Resampling filter :
      {Resampling::lanczos, Resampling::spline36, Resampling::bicubic, Resampling::bilinear}) {
    for (const auto& [width, height] : {std::pair<std::int64_t, std::int64_t>{97, 66}, {33, 30}}) {
      const Image result = resampled(image, width, height, filter, {});
      const double x_ratio = static_cast<double>(kWidth) / static_cast<double>(width);
      const double y_ratio = static_cast<double>(kHeight) / static_cast<double>(height);
      double largest = 0;
      for (std::int64_t y = height / 3; y < 2 * height / 3; ++y) {
        for (std::int64_t x = width / 3; x < 2 * width / 3; ++x) {
          for (std::int64_t c = 0; c < 3; ++c) {
            const double value = expected(
                [&](std::int64_t row, std::int64_t column) {
                  return static_cast<double>(
                      image.samples8[static_cast<std::size_t>((row * kWidth + column) * 3 + c)]);
                },
                (static_cast<double>(x) + 0.5) * x_ratio, (static_cast<double>(y) + 0.5) * y_ratio,
                x_ratio, y_ratio, kernel_of(filter));
            const auto got = result.samples8[static_cast<std::size_t>((y * width + x) * 3 + c)];
            largest = std::max(largest, std::abs(got - std::clamp(value, 0.0, 255.0)));
          }
        }
      }
      EXPECT_LT(largest, 0.5 + 0.01) << name_of(filter) << " to " << width;
    }
  }
}

TEST_F(Resample, SixteenBitsAndFloatsKeepTheirPrecision) {
  const Image deep = noise(48, 40, 1, 16);
  Image floats = deep;
  floats.bit_depth = kFloatBits;
  floats.samples_float.assign(deep.samples16.begin(), deep.samples16.end());
  floats.samples16.clear();
  const Image of_deep = resampled(deep, 64, 50, Resampling::lanczos, {});
  const Image of_floats = resampled(floats, 64, 50, Resampling::lanczos, {});
  ASSERT_EQ(of_deep.samples16.size(), 64u * 50);
  for (std::size_t i = 0; i < of_deep.samples16.size(); ++i) {
    const float clipped = std::clamp(of_floats.samples_float[i], 0.0f, 65535.0f);
    EXPECT_LE(std::abs(static_cast<float>(of_deep.samples16[i]) - clipped), 0.5f);
  }
}

TEST_F(Resample, ChromaStaysWhereItLies) {
  // A ramp across: luma is its position in luma samples, chroma that of the chroma sample.
  for (const auto& [siting, offset] : {std::pair("left", 0.5), {"center", 1.0}, {"", 0.5}}) {
    VideoFormat from{.width = 64, .height = 48, .pixels = {}};
    from.color.siting = siting;
    VideoFrame frame{.number = 7, .bytes = std::vector<std::uint8_t>(from.frame_bytes())};
    for (int plane = 0; plane < 3; ++plane) {
      const TensorView view = frame.plane(from, plane);
      for (std::int64_t y = 0; y < view.shape[0]; ++y) {
        for (std::int64_t x = 0; x < view.shape[1]; ++x) {
          const double place = plane == 0 ? x + 0.5 : 2.0 * static_cast<double>(x) + offset;
          static_cast<std::uint8_t*>(view.data())[y * view.shape[1] + x] =
              static_cast<std::uint8_t>(std::lround(3 * place + 0.25));
        }
      }
    }
    VideoFormat to = from;
    to.width = 128;
    to.height = 30;
    VideoFrame out;
    FrameResampler(from, to, Resampling::bilinear).run(frame, out, {});
    EXPECT_EQ(out.number, 7);
    for (int plane = 0; plane < 3; ++plane) {
      const TensorView view = out.plane(to, plane);
      for (std::int64_t x = view.shape[1] / 4; x < view.shape[1] * 3 / 4; ++x) {
        const double place = plane == 0 ? x + 0.5 : 2.0 * static_cast<double>(x) + offset;
        EXPECT_NEAR(static_cast<const std::uint8_t*>(view.data())[10 * view.shape[1] + x],
            3 * place / 2 + 0.25, 0.76)
            << plane << " " << siting;
      }
    }
  }
}

TEST_F(Resample, OddSidesAndDeepFramesAreResized) {
  VideoFormat from{.width = 33, .height = 21, .pixels = {.bit_depth = 10}}, to = from;
  to.width = 51;
  to.height = 40;
  VideoFrame frame{.number = 0, .bytes = std::vector<std::uint8_t>(from.frame_bytes())}, out;
  for (int plane = 0; plane < 3; ++plane) {
    const TensorView view = frame.plane(from, plane);
    std::fill_n(static_cast<std::uint16_t*>(view.data()), view.shape.count(),
        static_cast<std::uint16_t>(1000 + plane));
  }
  FrameResampler(from, to, Resampling::lanczos).run(frame, out, {});
  ASSERT_EQ(out.bytes.size(), to.frame_bytes());
  for (int plane = 0; plane < 3; ++plane) {
    const TensorView view = out.plane(to, plane);
    for (std::int64_t i = 0; i < view.shape.count(); ++i) {
      ASSERT_EQ(static_cast<const std::uint16_t*>(view.data())[i], 1000 + plane);
    }
  }
}

}  // namespace
}  // namespace similis::media
