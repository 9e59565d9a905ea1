// SPDX-License-Identifier: Apache-2.0
// The precision of SSIM in f32, on the inputs that break it: images that are nearly equal, flat
// areas far apart, white beside grey. The bounds are those that the documentation promises.
#include <gtest/gtest.h>

#include <cctype>
#include <functional>

#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::computed;
using ssim_internal::Pair;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using test::Layout;

constexpr Extents kShape = {1, 2, 67, 83};

struct Input {
  std::string name;
  double range, bound;  // on a GPU moments are f32: see gpu_bound
  std::function<double(std::int64_t)> x, y;
};

double uniform(std::uint32_t seed, std::int64_t i) { return test::uniform(seed, i); }
double column(std::int64_t i) { return static_cast<double>(i % 83); }
double row(std::int64_t i) { return static_cast<double>(i / 83 % 67); }
double smooth(std::int64_t i) { return 0.5 + 0.4 * std::sin(0.05 * column(i) + 0.03 * row(i)); }

std::vector<Input> inputs() {
  const auto noise = [](std::int64_t i) { return uniform(1, i); };
  const auto halves = [](std::int64_t i) { return column(i) < 40 ? 1.0 : 0.5; };
  return {
      {"noise", 1, 1e-5, noise, [](std::int64_t i) { return uniform(2, i); }},
      {"12 bits", 4095, 1e-5, [](std::int64_t i) { return std::floor(4096 * uniform(1, i)); },
          [](std::int64_t i) { return std::floor(4096 * uniform(2, i)); }},
      {"12 bits, bright", 4095, 1e-5,
          [](std::int64_t i) { return std::floor(4000 + 95 * uniform(1, i)); },
          [](std::int64_t i) { return std::floor(4000 + 95 * uniform(2, i)); }},
      {"y = x + 1e-2 noise", 1, 1e-5, noise,
          [=](std::int64_t i) { return noise(i) + 1e-2 * (uniform(2, i) - 0.5); }},
      {"y = x + 1e-4 noise", 1, 1e-5, noise,
          [=](std::int64_t i) { return noise(i) + 1e-4 * (uniform(2, i) - 0.5); }},
      {"smooth, y = x + 1e-3 noise", 1, 2e-5, smooth,
          [](std::int64_t i) { return smooth(i) + 1e-3 * (uniform(2, i) - 0.5); }},
      {"smooth, y = x + 1e-5 noise", 1, 2e-5, smooth,
          [](std::int64_t i) { return smooth(i) + 1e-5 * (uniform(2, i) - 0.5); }},
      {"flat areas far apart", 1, 1e-5, [](std::int64_t i) { return column(i) < 40 ? 0.1 : 0.9; },
          [](std::int64_t i) { return column(i) < 44 ? 0.9 : 0.1; }},
      {"white beside grey", 1, 1e-5, halves,
          [=](std::int64_t i) { return halves(i) - 1e-3 * uniform(2, i); }},
      {"white and black", 1, 1e-5, [](std::int64_t) { return 1.0; },
          [](std::int64_t i) { return row(i) < 30 ? 0.0 : 1.0; }},
      {"almost black", 1, 1e-5, [](std::int64_t i) { return 1e-4 * uniform(1, i); },
          [](std::int64_t i) { return 1e-4 * uniform(2, i); }},
      {"beyond the range", 1, 1e-5, [](std::int64_t i) { return 10 * uniform(1, i) - 5; },
          [](std::int64_t i) { return 10 * uniform(2, i) - 5; }},
  };
}

// In f32, flat areas with distant values lose digits of their variances; the CPU takes f64 there.
double gpu_bound(const Input& input) {
  const bool is_flat = input.name == "flat areas far apart" || input.name == "white beside grey" ||
                       input.name == "white and black";
  return is_flat ? 3e-4 : input.bound;
}

class SsimAccuracy : public testing::TestWithParam<Input> {
 protected:
  Pair images(DType dtype) const {
    return {test::make(kShape, dtype, Layout::dense, GetParam().x),
        test::make(kShape, dtype, Layout::dense, GetParam().y)};
  }
};

TEST_P(SsimAccuracy, MapAndGradientsKeepTheirBounds) {
  const auto [x, y] = images(DType::f32);
  const double bound = GetParam().bound;
  double of_maps = 0, of_gradients = 0;
  for (const Padding padding : {Padding::valid, Padding::same, Padding::renormalize}) {
    SsimOptions options{.data_range = GetParam().range, .padding = padding};
    const Reference mean = reference_ssim(x, y, {}, options);
    options.reduction = Reduction::none;
    const Reference map = reference_ssim(x, y, {}, options);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name + " " + ssim_internal::name(padding));
      const test::ScopedBackend chosen(backend);
      options.reduction = Reduction::none;
      const double of_map = test::max_difference(computed(x, y, {}, options).value, map.value);
      const double allowed = backend.on_gpu ? gpu_bound(GetParam()) : bound;
      EXPECT_LE(of_map, allowed);
      if (!backend.on_gpu) of_maps = std::max(of_maps, of_map);
      options.reduction = Reduction::mean;
      const Reference both = computed(x, y, {}, options);
      const Reference only_x = computed(x, y, {}, options, true, false);
      const Reference only_y = computed(x, y, {}, options, false, true);
      EXPECT_LE(std::abs(both.value[0] - mean.value[0]), bound);
      for (const double of_gradient : {test::relative_l2(both.x_gradient, mean.x_gradient),
               test::relative_l2(both.y_gradient, mean.y_gradient),
               test::relative_l2(only_x.x_gradient, mean.x_gradient),
               test::relative_l2(only_y.y_gradient, mean.y_gradient)}) {
        EXPECT_LE(of_gradient, allowed);
        if (!backend.on_gpu) of_gradients = std::max(of_gradients, of_gradient);
      }
    }
  }
  // For scripts/accuracy.py.
  RecordProperty("pictures", GetParam().name);
  RecordProperty("map", fmt::format("{}", of_maps));
  RecordProperty("gradient", fmt::format("{}", of_gradients));
  RecordProperty("bound", fmt::format("{:.0e}", bound));
}

TEST_P(SsimAccuracy, DoublesAreDoubles) {
  const auto [x, y] = images(DType::f64);
  const SsimOptions options{.data_range = GetParam().range, .reduction = Reduction::none};
  const Reference expected = reference_ssim(x, y, {.form = SsimRequest::Form::loss}, options);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    const Reference actual = computed(x, y, {.form = SsimRequest::Form::loss}, options);
    EXPECT_LE(test::max_difference(actual.value, expected.value), 1e-11);
    EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-9);
    EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 1e-9);
  }
}

std::string print(const testing::TestParamInfo<Input>& info) {
  std::string text = info.param.name;
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}
INSTANTIATE_TEST_SUITE_P(Inputs, SsimAccuracy, testing::ValuesIn(inputs()), print);

// 1 - SSIM goes to 0 as two images become equal; training reads it there.
TEST(SsimConvergence, TheLossKeepsItsRelativePrecision) {
  for (const double amount : {1e-2, 1e-3, 1e-4}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const auto noisy = [&](std::int64_t i) { return uniform(1, i) + amount * uniform(2, i); };
      const Tensor x = test::noise(kShape, dtype, Layout::dense, 1, 1);
      const Tensor y = test::make(kShape, dtype, Layout::dense, noisy);
      for (const Reduction reduction : ssim_internal::kReductions) {
        const SsimOptions options{.reduction = reduction};
        const SsimRequest loss{.form = SsimRequest::Form::loss};
        const Reference expected = reference_ssim(x, y, loss, options);
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          SCOPED_TRACE(backend.name + " " + ssim_internal::name(reduction));
          const test::ScopedBackend chosen(backend);
          const std::vector<double> actual = to_doubles(ssim_loss(x, y, options));
          for (std::size_t i = 0; i < actual.size(); ++i) {
            ASSERT_NEAR(actual[i] / expected.value[i], 1, 1e-3) << amount << " " << i;
          }
        }
      }
    }
  }
}

TEST(SsimClosedForm, OfConstantImages) {
  const double levels[] = {0, 0.001, 0.1, 0.25, 0.5, 0.9, 1};
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Padding padding :
        {Padding::valid, Padding::reflect, Padding::replicate, Padding::renormalize}) {
      for (const double a : levels) {
        for (const double b : levels) {
          const auto constant = [](double level) {
            return test::make(
                {1, 1, 20, 30}, DType::f32, Layout::dense, [=](std::int64_t) { return level; });
          };
          const SsimOptions options{.padding = padding, .reduction = Reduction::none};
          const double expected = (2 * a * b + 1e-4) / (a * a + b * b + 1e-4);
          for (const double value : to_doubles(ssim(constant(a), constant(b), options))) {
            ASSERT_NEAR(value, expected, 1e-5) << backend.name << " " << a << " " << b;
          }
        }
      }
    }
  }
}

TEST(SsimClosedForm, OfConstantBytes) {
  const double c1 = 0.01 * 255 * 0.01 * 255;
  for (const int a : {0, 1, 128, 255}) {
    for (const int b : {0, 1, 128, 255}) {
      const auto constant = [](int level) {
        return test::make(
            {1, 1, 20, 30}, DType::u8, Layout::dense, [=](std::int64_t) { return level; });
      };
      EXPECT_NEAR(item(ssim(constant(a), constant(b))),
          (2.0 * a * b + c1) / (1.0 * a * a + 1.0 * b * b + c1), 1e-5);
    }
  }
}

}  // namespace
}  // namespace similis
