// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2 against its reference: sizes, dtypes, layouts, channels and modes on every SIMD
// target, bit for bit the same on all of them and with any number of threads.
#include "similis/ssimulacra2.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/core/tensor/doubles.h"
#include "src/ssimulacra2/blur.h"
#include "src/ssimulacra2/reference.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"

namespace similis {
namespace {

using namespace ssimulacra2_internal;
using test::Layout;

struct Case {
  Extents x_shape, y_shape;
  DType dtype = DType::u8;
  Layout layout = Layout::dense;
  Ssimulacra2Options options = {};
};

Case of_size(std::int64_t height, std::int64_t width, DType dtype = DType::u8) {
  return {{1, 3, height, width}, {1, 3, height, width}, dtype};
}

std::string named(const testing::TestParamInfo<Case>& info) {
  std::string text;
  for (const std::int64_t extent : info.param.x_shape) text += std::to_string(extent) + "_";
  text += std::to_string(info.param.y_shape[1]) + "_channels_" + name(info.param.dtype) + "_" +
          test::name(info.param.layout);
  if (info.param.options.mode == Ssimulacra2Mode::fast) text += "_fast";
  if (info.param.options.transfer == Ssimulacra2Transfer::linear) text += "_linear";
  return text;
}

// A ramp, a chequerboard and noise, of which y has more; some tiles are flat, some equal in both.
test::Array picture(
    const Extents& shape, DType dtype, Layout layout, std::uint32_t seed, double distortion) {
  const double range = dtype == DType::u8 ? 255 : dtype == DType::u16 ? 65535 : 1;
  const std::int64_t width = shape[3], height = shape[2];
  return test::make(shape, dtype, layout, [&](std::int64_t i) {
    const std::int64_t column = i % width, row = i / width % height, tile = column / 16 + row / 16;
    const double ramp = static_cast<double>((7 * column + 3 * row) % 97) / 97;
    const auto board = static_cast<double>((column / 5 + row / 3) % 2);
    const double flat = tile % 5 == 0 ? 0 : 1;
    const double noise = tile % 7 == 0 ? 0 : distortion * (test::uniform(seed + 1, i) - .5);
    const double value =
        .15 + flat * (.4 * ramp + .2 * board + .2 * test::uniform(seed, i)) + noise;
    return range * std::clamp(value, 0.0, 1.0);
  });
}

struct Pair {
  test::Array x, y;
};

Pair pair_of(const Case& c) {
  return {
      picture(c.x_shape, c.dtype, c.layout, 1, 0), picture(c.y_shape, c.dtype, c.layout, 1, .2)};
}

Pictures side(const TensorView& view, const Ssimulacra2Options& options = {}) {
  return {.samples = view, .transfer = options.transfer};
}

// On the chosen backend: arrays are copied to the GPU and back.
std::vector<double> scores(const TensorView& x, const TensorView& y,
    const Ssimulacra2Options& options, const Execution& exec = {}) {
  if (!test::runs_on_gpu()) return to_doubles(ssimulacra2(x, y, options, exec));
  const test::Array value = test::filled({y.shape[0]}, DType::f64, Layout::dense, 0);
  const test::OnGpu gpu_x(x), gpu_y(y), gpu_value(value);
  ssimulacra2_into(gpu_x.view(), gpu_y.view(), {.value = gpu_value.view()}, options, exec);
  gpu_value.bring_back();
  return to_doubles(value);
}

class Ssimulacra2Backends : public testing::TestWithParam<Case> {};

TEST_P(Ssimulacra2Backends, AgreeWithTheReferenceAndInAllBits) {
  const Case& c = GetParam();
  const Pair pair = pair_of(c);
  const std::vector<double> expected =
      reference_ssimulacra2(side(pair.x, c.options), side(pair.y, c.options), c.options.mode);
  std::vector<double> first;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    const std::vector<double> actual = scores(pair.x, pair.y, c.options);
    EXPECT_LT(test::max_difference(actual, expected), 1e-10);
    if (first.empty()) first = actual;
    EXPECT_EQ(actual, first);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ssimulacra2Backends,
    testing::Values(of_size(8, 8), of_size(9, 8), of_size(8, 31), of_size(15, 16), of_size(16, 17),
        of_size(33, 32), of_size(37, 53), of_size(64, 65), of_size(100, 63), of_size(131, 129),
        of_size(113, 260)),
    named);
INSTANTIATE_TEST_SUITE_P(Types, Ssimulacra2Backends,
    testing::Values(of_size(41, 43, DType::u16), of_size(41, 43, DType::f16),
        of_size(41, 43, DType::bf16), of_size(41, 43, DType::f32), of_size(41, 43, DType::f64)),
    named);
INSTANTIATE_TEST_SUITE_P(Layouts, Ssimulacra2Backends,
    testing::Values(Case{{2, 3, 20, 27}, {2, 3, 20, 27}, DType::u8, Layout::channels_last},
        Case{{2, 3, 20, 27}, {2, 3, 20, 27}, DType::u8, Layout::permuted},
        Case{{2, 3, 20, 27}, {2, 3, 20, 27}, DType::f32, Layout::reversed},
        Case{{2, 3, 20, 27}, {2, 3, 20, 27}, DType::u16, Layout::sliced},
        Case{{2, 3, 20, 27}, {2, 3, 20, 27}, DType::u16, Layout::offset},
        Case{{2, 3, 20, 27}, {2, 3, 20, 27}, DType::u8, Layout::expanded}),
    named);
INSTANTIATE_TEST_SUITE_P(Channels, Ssimulacra2Backends,
    testing::Values(Case{{2, 1, 24, 30}, {2, 1, 24, 30}}, Case{{1, 1, 24, 30}, {1, 3, 24, 30}},
        Case{{1, 4, 24, 30}, {1, 4, 24, 30}}, Case{{1, 4, 24, 30}, {1, 3, 24, 30}, DType::u16},
        Case{{1, 3, 24, 30}, {1, 4, 24, 30}, DType::f32}, Case{{1, 2, 24, 30}, {1, 4, 24, 30}},
        Case{{1, 1, 24, 30}, {1, 2, 24, 30}}),
    named);
constexpr Ssimulacra2Options kFast = {.mode = Ssimulacra2Mode::fast};
constexpr Ssimulacra2Options kLinear = {.transfer = Ssimulacra2Transfer::linear};
INSTANTIATE_TEST_SUITE_P(Options, Ssimulacra2Backends,
    testing::Values(Case{{1, 3, 8, 9}, {1, 3, 8, 9}, DType::u8, Layout::dense, kFast},
        Case{{1, 3, 75, 130}, {1, 3, 75, 130}, DType::u8, Layout::dense, kFast},
        Case{{1, 3, 40, 41}, {1, 3, 40, 41}, DType::f32, Layout::dense, kLinear},
        Case{{1, 4, 40, 41}, {1, 4, 40, 41}, DType::u8, Layout::dense, kLinear}),
    named);

#ifdef SIMILIS_SANITIZED
constexpr int kRandomPairs = 8;  // a sanitizer makes each ten times longer
#else
constexpr int kRandomPairs = 50;
#endif

// A small xorshift, so that the pairs are the same everywhere.
TEST(Ssimulacra2, RandomPairsHaveTheSameBitsOnEveryBackend) {
  std::uint32_t state = 2463534242u;
  const auto random = [&](std::int64_t from, std::int64_t to) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return from + static_cast<std::int64_t>(state % static_cast<std::uint32_t>(to - from + 1));
  };
  const std::vector<test::Backend> backends = test::backends(test::Gpu::included);
  // With a GPU there are pairs up to 1080p, from a test's half second on.
  const std::int64_t largest = backends.back().on_gpu ? 1920 : 200;
  for (int i = 0; i < kRandomPairs; ++i) {
    const std::int64_t height = random(8, largest * 9 / 16), width = random(8, largest);
    SCOPED_TRACE(fmt::format("{}x{}", width, height));
    const Extents shape = {1, 3, height, width};
    const auto seed = static_cast<std::uint32_t>(i);
    const test::Array x = picture(shape, DType::u8, Layout::dense, seed, 0);
    const test::Array y =
        picture(shape, DType::u8, Layout::dense, seed, .01 * static_cast<double>(random(0, 60)));
    std::vector<double> first;
    for (const test::Backend& backend : backends) {
      if (largest > 200 && !backend.on_gpu && !first.empty()) continue;
      const test::ScopedBackend chosen(backend);
      const std::vector<double> actual = scores(x, y, {});
      if (first.empty()) first = actual;
      EXPECT_EQ(actual, first) << backend.name;
    }
  }
}

TEST(Ssimulacra2, BitsDoNotDependOnThreads) {
  const Pair pair = pair_of(of_size(150, 211));
  for (const Ssimulacra2Mode mode : {Ssimulacra2Mode::exact, Ssimulacra2Mode::fast}) {
    const double serial =
        item(ssimulacra2(pair.x, pair.y, {.mode = mode}, {.runner = serial_runner()}));
    for (const int threads : {2, 7}) {
      ThreadPool pool(threads);
      EXPECT_EQ(
          item(ssimulacra2(pair.x, pair.y, {.mode = mode}, {.runner = pool.runner()})), serial);
    }
  }
}

TEST(Ssimulacra2, IdenticalPicturesScore100) {
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Extents& shape :
        {Extents{1, 3, 8, 8}, Extents{1, 4, 77, 90}, Extents{1, 1, 50, 33}}) {
      const test::Array x = picture(shape, DType::u8, Layout::dense, 3, 0);
      for (const Ssimulacra2Mode mode : {Ssimulacra2Mode::exact, Ssimulacra2Mode::fast}) {
        EXPECT_EQ(scores(x, x, {.mode = mode}), std::vector<double>{100}) << backend.name;
      }
    }
  }
}

TEST(Ssimulacra2, AKeptReferenceGivesTheSameBits) {
  const Extents shape = {2, 3, 45, 70};
  const test::Array y = picture(shape, DType::u8, Layout::dense, 5, .3);
  for (const std::int64_t channels : {std::int64_t{3}, std::int64_t{4}}) {
    const test::Array x = picture({1, channels, 45, 70}, DType::u8, Layout::dense, 5, 0);
    TensorView one = x;
    one.shape = {channels, 45, 70};
    one.strides = dense_strides(one.shape);
    TensorView twice = x;
    twice.shape[0] = 2;
    twice.strides[0] = 0;
    for (const Ssimulacra2Mode mode : {Ssimulacra2Mode::exact, Ssimulacra2Mode::fast}) {
      const Ssimulacra2Reference reference(one, {.mode = mode});
      EXPECT_EQ(to_doubles(reference.score(y)), to_doubles(ssimulacra2(twice, y, {.mode = mode})));
    }
  }
}

TEST(Ssimulacra2, ABytesAndItsSixteenBitsScoreAlike) {
  const Extents shape = {1, 3, 60, 90};
  const test::Array x = picture(shape, DType::u8, Layout::dense, 5, 0);
  const test::Array y = picture(shape, DType::u8, Layout::dense, 5, .3);
  const auto widened = [&](const test::Array& bytes) {
    const std::vector<double> values = to_doubles(bytes);
    return test::make(shape, DType::u16, Layout::dense,
        [&](std::int64_t i) { return 257 * values[static_cast<std::size_t>(i)]; });
  };
  const test::Array wide_x = widened(x), wide_y = widened(y);
  EXPECT_NEAR(item(ssimulacra2(x, y)), item(ssimulacra2(wide_x, wide_y)), 1e-2);
}

double mean_of(const test::Array& map) {
  const std::vector<double> values = to_doubles(map);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Ssimulacra2Map, ItsMeanIsTheSumBehindTheScore) {
  const Extents shape = {1, 3, 128, 192};  // halves evenly at all scales
  const test::Array x = picture(shape, DType::u8, Layout::dense, 5, 0);
  const test::Array y = picture(shape, DType::u8, Layout::dense, 5, .3);
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend chosen(backend);
    const test::Array map =
        test::filled({1, 128, 192}, DType::f32, Layout::dense, test::kUntouched);
    const test::Array value = test::filled({1}, DType::f64, Layout::dense, test::kUntouched);
    ssimulacra2_into(x, y, {.value = value, .map = map});
    EXPECT_TRUE(test::only_elements_written(map));
    EXPECT_NEAR(score_of_sum(mean_of(map)), to_doubles(value)[0], 1e-4) << backend.name;
  }
}

TEST(Ssimulacra2Map, ShowsWhereTheLossIs) {
  const Extents shape = {1, 3, 96, 96};
  const test::Array x = picture(shape, DType::f32, Layout::dense, 5, 0);
  const std::vector<double> values = to_doubles(x);
  const test::Array y = test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) {
    const bool is_spoiled = i % 96 >= 64 && i / 96 % 96 < 32;
    return is_spoiled ? test::uniform(9, i) : values[static_cast<std::size_t>(i)];
  });
  const test::Array map = test::filled({1, 96, 96}, DType::f32, Layout::dense, test::kUntouched);
  ssimulacra2_into(x, y, {.map = map}, {.mode = Ssimulacra2Mode::fast});
  const std::vector<double> losses = to_doubles(map);
  double inside = 0, outside = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const bool is_near = i % 96 >= 48 && i / 96 < 48;
    (is_near ? inside : outside) += losses[i];
  }
  EXPECT_GT(inside, 10 * outside);  // a quarter of the pixels
  ssimulacra2_into(x, x, {.map = map});
  EXPECT_THAT(to_doubles(map), testing::Each(0.0));
}

TEST(Ssimulacra2Score, ThePowerIsThatOfTheLibrary) {
  for (double x = 1e-9; x < 1e7; x *= 1.37) {
    const double expected = std::pow(x, .6276336467831387);
    EXPECT_NEAR(power(x, .6276336467831387) / expected, 1, 1e-14) << x;
  }
}

TEST(Ssimulacra2Score, NaNStays) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(score_of_sum(nan)));
  const test::Array x = test::noise({1, 3, 16, 16}, DType::f32, Layout::dense, 1, 1);
  test::Array y = test::noise({1, 3, 16, 16}, DType::f32, Layout::dense, 2, 1);
  y.elements<float>()[40] = std::numeric_limits<float>::quiet_NaN();
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    EXPECT_TRUE(std::isnan(scores(x, y, {})[0])) << backend.name;
  }
}

TEST(Ssimulacra2Blur, TheRecursionIsTheFilterThatFastModeTakes) {
  const Recursion recursion = make_recursion();
  const Taps taps;
  double y1[kSections] = {}, y2[kSections] = {};
  for (int n = -kAhead; n <= 12; ++n) {  // an impulse at 6
    double out = 0;
    for (int k = 0; k < kSections; ++k) {
      const Section& s = recursion.sections[k];
      const double sum = (n - kBehind == 6 ? 1 : 0) + (n + kAhead == 6 ? 1 : 0);
      const double y = s.n2 * sum - s.d1 * y1[k] - y2[k];
      y2[k] = y1[k];
      y1[k] = y;
      out += y;
    }
    const auto away = static_cast<std::size_t>(std::abs(n - 6));
    const double expected = away < kTaps ? static_cast<double>(taps.weights[away]) : 0.0;
    EXPECT_NEAR(out, expected, 1e-6) << n;
  }
}

}  // namespace
}  // namespace similis
