// SPDX-License-Identifier: Apache-2.0
// Mutual information against the reference, on every SIMD target and, where there is one, the GPU;
// its reference against finite differences and numbers computed by hand; and its properties.
#include "similis/mutual_information.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/core/require.h"
#include "src/mutual_information/reference.h"
#include "src/mutual_information/test_calls.h"
#include "tests/arrays.h"
#include "tests/backends.h"

namespace similis {
namespace {

using mutual_information_internal::Reference;
using mutual_information_internal::reference_mutual_information;
using test::Array;
using test::Layout;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  std::string name;
  Extents shape = {2, 3, 13, 11};
  MutualInformationOptions options = {};
  DType dtype = DType::f32;
  Layout layout = Layout::dense;
  double scale = 1, offset = 0;  // applied to the intensities
  bool has_mask = false;
};

std::string print(const testing::TestParamInfo<Case>& info) { return info.param.name; }

double x_value(std::int64_t i) { return test::uniform(1, i); }
// Follows x, but not as a line, with a background where x has one too.
double y_value(std::int64_t i) {
  return 0.7 * std::sin(3 * x_value(i)) + 0.3 * test::uniform(2, i);
}

class MutualInformation : public testing::TestWithParam<Case> {
 protected:
  Array image(double (*value)(std::int64_t), Layout layout) const {
    const Case& c = GetParam();
    return test::make(c.shape, c.dtype, layout,
        [&](std::int64_t i) { return c.offset + c.scale * (i % 5 == 0 ? 0 : value(i)); });
  }
  // Excludes a third of the voxels, which so may be anything.
  Array mask() const {
    Extents shape = GetParam().shape;
    shape[1] = 1;
    return test::make(shape, DType::u8, Layout::dense, [](std::int64_t i) { return i % 3 != 1; });
  }
  MutualInformationOptions options(const Array& own_mask) const {
    MutualInformationOptions result = GetParam().options;
    if (GetParam().has_mask) result.mask = own_mask;
    return result;
  }
};

// Gaussians of f32 images are cut at 6 deviations; weights on the GPU are f32, counted in steps of
// 2⁻²¹.
double value_tolerance(const test::Backend& backend) { return backend.on_gpu ? 1e-5 : 1e-7; }

double gradient_tolerance(const test::Backend& backend, DType dtype) {
  if (dtype == DType::f16) return 1e-3;
  if (dtype == DType::bf16) return 8e-3;
  return backend.on_gpu && dtype != DType::f64 ? 1e-4 : 2e-6;
}

TEST_P(MutualInformation, MatchesTheReference) {
  const Case& c = GetParam();
  const Array x = image(x_value, c.layout), y = image(y_value, Layout::dense), own_mask = mask();
  const MutualInformationOptions options = this->options(own_mask);
  const Reference expected = reference_mutual_information(x, y, options);
  const double voxels =
      static_cast<double>(c.shape.count()) / static_cast<double>(c.shape[0] * c.shape[1]);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const Tensor value = allocate(test::value_shape(c.shape, options.reduction), DType::f64);
    test::run_into(x, y, {.value = value}, options);
    EXPECT_LT(test::max_difference(to_doubles(value), expected.value), value_tolerance(backend))
        << backend.name;
    const std::vector<double> found = test::histogram_of(x, y, options);
    EXPECT_LT(test::max_difference(found, expected.histogram) / voxels, value_tolerance(backend))
        << backend.name;
  }
}

TEST_P(MutualInformation, GradientsMatchTheReferenceAndStayInTheirElements) {
  const Case& c = GetParam();
  if (!is_floating_point(c.dtype) || c.options.kernel == ParzenKernel::delta) return;
  const Array x = image(x_value, Layout::dense), y = image(y_value, c.layout), own_mask = mask();
  const MutualInformationOptions options = this->options(own_mask);
  const double voxels = static_cast<double>(c.shape.count());
  const Array upstream = test::make(test::value_shape(c.shape, options.reduction), DType::f32,
      Layout::reversed, [&](std::int64_t i) { return voxels * (test::uniform(3, i) + 0.5); });
  const Reference expected = reference_mutual_information(x, y, options, upstream);
  const Layout out = c.layout == Layout::expanded ? Layout::dense : c.layout;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const Array by_x = test::filled(c.shape, c.dtype, out, test::kUntouched);
    const Array by_y = test::filled(c.shape, c.dtype, Layout::sliced, test::kUntouched);
    test::run_into(x, y, {.upstream = upstream, .x_gradient = by_x, .y_gradient = by_y}, options);
    const double bound = gradient_tolerance(backend, c.dtype);
    EXPECT_LT(test::relative_l2(to_doubles(by_x), expected.x_gradient), bound) << backend.name;
    EXPECT_LT(test::relative_l2(to_doubles(by_y), expected.y_gradient), bound) << backend.name;
    EXPECT_TRUE(test::only_elements_written(by_x)) << backend.name;
    EXPECT_TRUE(test::only_elements_written(by_y)) << backend.name;
  }
}

std::vector<Case> cases() {
  using enum ParzenKernel;
  using enum ValueRange;
  std::vector<Case> result;
  for (const Layout layout : test::kLayouts) {
    result.push_back({.name = "layout_" + test::name(layout),
        .layout = layout,
        .has_mask = layout == Layout::sliced});
  }
  for (const DType dtype :
      {DType::u8, DType::u16, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const bool is_integer = !is_floating_point(dtype);
    const std::string type = name(dtype);
    result.push_back({.name = "b_spline_" + type,
        .options = {.num_bins = 16},
        .dtype = dtype,
        .scale = is_integer ? 250.0 : 1.0});
    result.push_back({.name = "gaussian_" + type,
        .options = {.kernel = gaussian},
        .dtype = dtype,
        .scale = is_integer ? 250.0 : 1.0});
  }
  for (const int bins : {4, 5, 31, 64, 100, 129, 256}) {
    result.push_back({.name = "b_spline_bins_" + std::to_string(bins),
        .shape = {1, 2, 7, 9, 11},
        .options = {.num_bins = bins}});
    result.push_back({.name = "gaussian_bins_" + std::to_string(bins),
        .shape = {1, 1, 7, 9, 11},
        .options = {.num_bins = bins, .kernel = gaussian, .range = fixed, .high = 0.9}});
    result.push_back({.name = "delta_bins_" + std::to_string(bins),
        .shape = {1, 2, 7, 9, 11},
        .options = {.num_bins = bins, .kernel = delta, .range = common}});
  }
  result.push_back({.name = "fixed", .options = {.range = fixed, .low = 0.2, .high = 0.8}});
  result.push_back({.name = "common", .options = {.range = common}, .scale = 4095});
  result.push_back({.name = "unit", .options = {.range = unit_or_common}});
  result.push_back({.name = "not_unit", .options = {.range = unit_or_common}, .scale = 4095});
  result.push_back({.name = "offset", .scale = 1000, .offset = 1e4});
  result.push_back({.name = "wide_gaussian",
      .options = {.num_bins = 24, .kernel = gaussian, .sigma_ratio = 3.3}});
  result.push_back(
      {.name = "narrow_gaussian", .options = {.kernel = gaussian, .sigma_ratio = 0.3}});
  result.push_back({.name = "normalized", .options = {.normalized = true}});
  result.push_back(
      {.name = "smoothed", .options = {.kernel = gaussian, .smooth_nr = 1e-5, .smooth_dr = 1e-5}});
  result.push_back({.name = "binned",
      .options = {.kernel = gaussian,
          .range = fixed,
          .smooth_nr = 1e-5,
          .smooth_dr = 1e-5,
          .method = HistogramMethod::binned}});
  result.push_back({.name = "binned_wide",
      .options = {.num_bins = 9, .sigma_ratio = 5, .method = HistogramMethod::binned}});
  result.push_back({.name = "sampled", .options = {.sampling = 0.4, .seed = 7}, .has_mask = true});
  result.push_back({.name = "masked", .options = {.range = common}, .has_mask = true});
  result.push_back({.name = "sum", .options = {.reduction = Reduction::sum}});
  result.push_back({.name = "none", .options = {.reduction = Reduction::none}, .has_mask = true});
  result.push_back({.name = "per_image", .options = {.reduction = Reduction::per_image}});
  result.push_back({.name = "per_channel", .options = {.reduction = Reduction::per_channel}});
  result.push_back({.name = "one_wide", .shape = {1, 2, 1, 97, 1}});
  result.push_back({.name = "line", .shape = {1, 1, 3001}});
  result.push_back({.name = "large", .shape = {1, 1, 1, 397, 401}, .options = {.num_bins = 8}});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cases, MutualInformation, testing::ValuesIn(cases()), print);

// The slope of the value of a pass on the CPU along one voxel.
double slope(const Array& image, std::int64_t voxel, const std::function<double()>& value) {
  const double step = 1e-6;
  double& element = image.elements<double>()[voxel];
  const double before = element;
  element = before + step;
  const double above = value();
  element = before - step;
  const double below = value();
  element = before;
  return (above - below) / (2 * step);
}

TEST(MutualInformationGradients, AreFiniteDifferences) {
  const Extents shape = {1, 1, 5, 7};
  const Array x = test::make(shape, DType::f64, Layout::dense, x_value);
  const Array y = test::make(shape, DType::f64, Layout::dense, y_value);
  for (const ParzenKernel kernel : {ParzenKernel::b_spline, ParzenKernel::gaussian}) {
    for (const int form : {0, 1, 2}) {
      const MutualInformationOptions options{.num_bins = 8,
          .kernel = kernel,
          .range = ValueRange::fixed,
          .low = -0.1,
          .high = 1.2,
          .normalized = form == 1,
          .smooth_nr = form == 2 ? 1e-3 : 0,
          .smooth_dr = form == 2 ? 1e-3 : 0};
      const ValueAndGradient found =
          mutual_information_loss_value_and_gradient(x, y, GradientOf::both, options);
      const auto loss = [&] { return item(mutual_information_loss(x, y, options)); };
      for (std::int64_t i = 0; i < shape.count(); ++i) {
        EXPECT_NEAR(found.x_gradient.elements<double>()[i], slope(x, i, loss), 1e-7);
        EXPECT_NEAR(found.y_gradient.elements<double>()[i], slope(y, i, loss), 1e-7);
      }
    }
  }
}

TEST(MutualInformationValues, AreThoseComputedByHand) {
  // Two of four voxels are (0, 0), one is (1, 0) and one is (1, 1): p = ½, ¼, ¼.
  const float xs[] = {0, 0, 1, 1}, ys[] = {0, 0, 0, 1};
  const TensorView x(xs, {1, 1, 4}, DType::f32), y(ys, {1, 1, 4}, DType::f32);
  const MutualInformationOptions options{.num_bins = 4, .kernel = ParzenKernel::delta};
  const double information = 0.5 * std::log(0.5 / (0.5 * 0.75)) +
                             0.25 * std::log(0.25 / (0.5 * 0.75)) + 0.25 * std::log(2);
  EXPECT_NEAR(item(mutual_information(x, y, options)), information, 1e-7);
  EXPECT_NEAR(item(mutual_information_loss(x, y, options)), -information, 1e-7);
  const double h_x = std::log(2), h_y = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  MutualInformationOptions normalized = options;
  normalized.normalized = true;
  EXPECT_NEAR(item(mutual_information(x, y, normalized)), (h_x + h_y) / (1.5 * std::log(2)), 1e-6);
}

TEST(MutualInformationWeights, AreCutAtTheEndsAndSumTo1) {
  // At a bin's centre a B-spline weighs 1/6, 2/3, 1/6; in the first bin's, 2/3 and 1/6 are left; at
  // its outer edge, half a bin before its centre, 23/48 and 1/48.
  const float xs[] = {0.375f, 0.125f, 0.f};
  for (int i = 0; i < 3; ++i) {
    const TensorView x(xs + i, {1, 1, 1}, DType::f32);
    const Tensor found =
        histogram(x, x, {.num_bins = 4, .range = ValueRange::fixed, .low = 0, .high = 1});
    const std::vector<std::vector<double>> expected = {
        {1.0 / 6, 2.0 / 3, 1.0 / 6, 0}, {0.8, 0.2, 0, 0}, {23.0 / 24, 1.0 / 24, 0, 0}};
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b < 4; ++b) {
        const auto& w = expected[static_cast<std::size_t>(i)];
        EXPECT_NEAR(found.elements<double>()[4 * a + b],
            w[static_cast<std::size_t>(a)] * w[static_cast<std::size_t>(b)], 1e-7);
      }
    }
  }
}

TEST(MutualInformationValues, OfConstantAndOppositeImagesAreFinite) {
  const Extents shape = {1, 1, 9, 10};
  const Array flat = test::make(shape, DType::f32, Layout::dense, [](std::int64_t) { return 7; });
  const Array x = test::make(shape, DType::f32, Layout::dense, x_value);
  const Array opposite =
      test::make(shape, DType::f32, Layout::dense, [](std::int64_t i) { return -x_value(i); });
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const ParzenKernel kernel : {ParzenKernel::b_spline, ParzenKernel::gaussian}) {
      const MutualInformationOptions options{.kernel = kernel};
      const auto of_flat = test::value_and_gradients(flat, flat, options);
      const auto of_one = test::value_and_gradients(x, flat, options);
      EXPECT_NEAR(of_flat.value, 0, 1e-6) << backend.name;
      EXPECT_NEAR(of_one.value, 0, 1e-6) << backend.name;
      EXPECT_THAT(of_flat.x_gradient, testing::Each(0)) << backend.name;
      EXPECT_THAT(of_one.y_gradient, testing::Each(0)) << backend.name;
      // Reversed bins hold the same: mutual information does not care for the sign.
      const double same = test::value_and_gradients(x, x, options).value;
      EXPECT_NEAR(test::value_and_gradients(x, opposite, options).value, same, 1e-5);
    }
  }
}

TEST(MutualInformationValues, NormalizedAreFrom1To2) {
  const Extents shape = {1, 1, 64, 64};
  const Array x =
      test::make(shape, DType::f32, Layout::dense, [](std::int64_t i) { return i % 64; });
  const Array y =
      test::make(shape, DType::f32, Layout::dense, [](std::int64_t i) { return i / 64; });
  const MutualInformationOptions options{.kernel = ParzenKernel::delta, .normalized = true};
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    EXPECT_NEAR(test::value_of(x, x, options), 2, 1e-6) << backend.name;
    EXPECT_NEAR(test::value_of(x, y, options), 1, 1e-6) << backend.name;
  }
}

TEST(MutualInformationValues, ComeFromTheHistogramToo) {
  const Array x = test::make({2, 2, 9, 8}, DType::f32, Layout::dense, x_value);
  const Array y = test::make({2, 2, 9, 8}, DType::f32, Layout::dense, y_value);
  for (const MutualInformationOptions& options :
      {MutualInformationOptions{.reduction = Reduction::per_channel},
          MutualInformationOptions{.normalized = true},
          MutualInformationOptions{.smooth_nr = 1e-5, .smooth_dr = 1e-5},
          MutualInformationOptions{.sigma_ratio = 2, .method = HistogramMethod::binned}}) {
    const Tensor found = mutual_information_from_histogram(histogram(x, y, options), options);
    EXPECT_LT(
        test::max_difference(to_doubles(found), reference_mutual_information(x, y, options).value),
        1e-10);
  }
}

TEST(MutualInformationShards, AddUpToTheWhole) {
  const MutualInformationOptions options{.range = ValueRange::fixed};
  const Extents whole = {1, 2, 12, 9}, half = {1, 2, 6, 9};
  const Array x = test::make(whole, DType::f64, Layout::dense, x_value);
  const Array y = test::make(whole, DType::f64, Layout::dense, y_value);
  const auto part = [&](const Tensor& image, std::int64_t first) {
    TensorView view = image.reshaped(half, image.strides);
    view.offset += first * 9;
    return view;
  };
  const ValueAndGradient expected =
      mutual_information_value_and_gradient(x, y, GradientOf::both, options);
  const Tensor sum = histogram(part(x, 0), part(y, 0), options);
  const Tensor rest = histogram(part(x, 6), part(y, 6), options);
  for (std::int64_t i = 0; i < sum.shape.count(); ++i) {
    sum.elements<double>()[i] += rest.elements<double>()[i];
  }
  EXPECT_NEAR(item(mutual_information_from_histogram(sum, options)), item(expected.value), 1e-12);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const std::int64_t first : {0, 6}) {
      const Tensor value = allocate({}, DType::f64), by_x = allocate(half, DType::f64);
      test::run_into(part(x, first), part(y, first),
          {.histogram = sum, .value = value, .x_gradient = by_x}, options);
      EXPECT_NEAR(item(value), item(expected.value), 1e-12) << backend.name;
      EXPECT_LT(
          test::relative_l2(to_doubles(by_x), to_doubles(part(expected.x_gradient, first))), 1e-7)
          << backend.name;
    }
  }
}

TEST(MutualInformationHistograms, DoNotSaturate) {
  // More voxels in one pair of bins than an f32 counts, and than 32 bits hold in steps of 2⁻²¹.
  constexpr std::int64_t kCount = (1 << 24) + 12345;
  const float zero = 0;
  const TensorView x(&zero, {1, 1, kCount}, {0, 0, 0}, DType::f32);
  const MutualInformationOptions options{
      .num_bins = 4, .kernel = ParzenKernel::delta, .range = ValueRange::fixed};
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    EXPECT_EQ(test::histogram_of(x, x, options)[0], kCount) << backend.name;
  }
}

TEST(MutualInformationHistograms, CountEachVoxelOnce) {
  // Runs of equal neighbours are counted at once; masks and ends of lines cut them.
  const Extents shape = {1, 1, 41, 517};
  const Array x = test::make(shape, DType::f32, Layout::dense,
      [](std::int64_t i) { return i % 97 < 70 ? 0 : x_value(i); });
  const Array mask = test::make(
      {41, 517}, DType::f32, Layout::sliced, [](std::int64_t i) { return i % 13 < 9 ? 0.25 : 0; });
  double counted = 0;
  for (const double each : to_doubles(mask)) counted += each > 0;
  const MutualInformationOptions options{.mask = mask};
  const Reference expected = reference_mutual_information(x, x, options);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const std::vector<double> found = test::histogram_of(x, x, options);
    double sum = 0;
    for (const double each : found) sum += each;
    EXPECT_NEAR(sum / counted, 1, backend.on_gpu ? 1e-6 : 1e-12) << backend.name;
    EXPECT_LT(test::max_difference(found, expected.histogram) / counted, value_tolerance(backend));
  }
}

TEST(MutualInformationHistograms, HaveTheSameBitsOnAllThreadsAndTargets) {
  const Extents shape = {1, 1, 401, 1009};
  const Array x = test::make(shape, DType::f32, Layout::dense, x_value);
  const Array y = test::make(shape, DType::f32, Layout::dense, y_value);
  const MutualInformationOptions options{.num_bins = 16, .kernel = ParzenKernel::gaussian};
  const std::vector<double> expected =
      to_doubles(histogram(x, y, options, {.runner = serial_runner()}));
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend chosen(backend);
    for (const int threads : {2, 5}) {
      ThreadPool pool(threads);
      EXPECT_EQ(to_doubles(histogram(x, y, options, {.runner = pool.runner()})), expected)
          << backend.name << " " << threads;
    }
  }
}

TEST(MutualInformationHistograms, HoldMoreThan2To31VoxelsOnAGpu) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  // One row, seen many times.
  constexpr std::int64_t kRows = 53000, kColumns = 40961;
  const Array row_x = test::make({1, 1, kColumns}, DType::f32, Layout::dense, x_value);
  const Array row_y = test::make({1, 1, kColumns}, DType::f32, Layout::dense, y_value);
  const test::OnGpu gpu_x(row_x), gpu_y(row_y);
  const auto repeated = [](const test::OnGpu& row) {
    return row.view().reshaped({1, 1, kRows, kColumns}, {0, 0, 0, 1});
  };
  const MutualInformationOptions options{.kernel = ParzenKernel::delta};
  const std::vector<double> of_row = to_doubles(histogram(row_x, row_y, options));
  const Tensor found = histogram(repeated(gpu_x), repeated(gpu_y), options);
  std::vector<double> counts(of_row.size());
  gpu::copy_to_cpu(
      counts.data(), found.data(), counts.size() * sizeof(double), found.device, nullptr);
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts[i], of_row[i] * kRows) << i;
}

TEST(MutualInformationHistograms, HaveTheSameBitsInEveryRun) {
  const Extents shape = {1, 1, 30, 61, 67};
  const Array x = test::make(shape, DType::f32, Layout::dense,
      [](std::int64_t i) { return i % 5 < 3 ? 0 : x_value(i); });  // 60 % background
  const Array y = test::make(
      shape, DType::f32, Layout::dense, [](std::int64_t i) { return i % 5 < 3 ? 0 : y_value(i); });
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const test::ValueAndGradients first = test::value_and_gradients(x, y, {});
    for (int run = 0; run < (backend.on_gpu ? 19 : 2); ++run) {
      const test::ValueAndGradients again = test::value_and_gradients(x, y, {});
      EXPECT_EQ(again.value, first.value) << backend.name;
      EXPECT_EQ(again.x_gradient, first.x_gradient) << backend.name;
      EXPECT_EQ(again.y_gradient, first.y_gradient) << backend.name;
    }
  }
}

TEST(MutualInformationVoxels, ThatAreNotNumbersAreToldUnlessTheyAreMasked) {
  const Extents shape = {1, 2, 6, 7};
  const Array x = test::make(
      shape, DType::f32, Layout::dense, [](std::int64_t i) { return i == 50 ? kNan : x_value(i); });
  const Array y = test::make(shape, DType::f32, Layout::dense, y_value);
  const Array mask =
      test::make(shape, DType::u8, Layout::dense, [](std::int64_t i) { return i != 50; });
  const Array none = test::make({6, 7}, DType::u8, Layout::dense, [](std::int64_t) { return 0; });
  MutualInformationOptions options{.reduction = Reduction::none};
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const ParzenKernel kernel :
        {ParzenKernel::b_spline, ParzenKernel::gaussian, ParzenKernel::delta}) {
      options.kernel = kernel;
      options.mask = {};
      const Tensor value = allocate({1, 2}, DType::f64);
      test::run_into(x, y, {.value = value}, options);
      EXPECT_FALSE(std::isnan(to_doubles(value)[0])) << backend.name;
      EXPECT_TRUE(std::isnan(to_doubles(value)[1])) << backend.name;
      options.mask = mask;
      test::run_into(x, y, {.value = value}, options);
      EXPECT_GT(to_doubles(value)[1], 0) << backend.name;
      options.mask = none;
      test::run_into(x, y, {.value = value}, options);
      EXPECT_THAT(to_doubles(value), testing::Each(testing::IsNan())) << backend.name;
    }
  }
}

TEST(MutualInformationSampling, TakesItsShare) {
  const Extents shape = {1, 1, 300, 300};
  const Array x = test::make(shape, DType::f32, Layout::dense, x_value);
  MutualInformationOptions options{.sampling = 0.25, .seed = 3};
  const auto counted = [&] {
    double sum = 0;
    for (const double each : to_doubles(histogram(x, x, options))) sum += each;
    return sum;
  };
  const double first = counted();
  EXPECT_NEAR(first / static_cast<double>(shape.count()), 0.25, 0.01);
  options.seed = 4;
  EXPECT_NE(counted(), first);
}

}  // namespace
}  // namespace similis
