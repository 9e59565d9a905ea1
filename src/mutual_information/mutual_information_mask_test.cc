// SPDX-License-Identifier: Apache-2.0
// Mutual information where no voxel of some or of all images counts, and under weights that are
// none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/require.h"
#include "src/mutual_information/reference.h"
#include "src/mutual_information/test_calls.h"

namespace similis {
namespace {

using mutual_information_internal::Reference;
using mutual_information_internal::reference_mutual_information;
using test::Array;
using test::Layout;

constexpr Extents kShape = {2, 3, 16, 17};
constexpr std::int64_t kVoxels = 16 * 17;

struct Images {
  Array x = test::make(
      kShape, DType::f64, Layout::dense, [](std::int64_t i) { return test::uniform(1, i); });
  Array y = test::make(kShape, DType::f64, Layout::dense,
      [](std::int64_t i) { return std::sin(3 * test::uniform(1, i)) + test::uniform(2, i); });
};

Array channels(bool (*has_voxels)(std::int64_t channel)) {
  return test::make(kShape, DType::f32, Layout::dense, [=](std::int64_t i) {
    return has_voxels(i / kVoxels) && i % 4 != 0 ? test::uniform(3, i) : 0;
  });
}

Reference computed(const Images& images, const MutualInformationOptions& options,
    MutualInformationRequest::Form form = MutualInformationRequest::Form::measure) {
  const Tensor value = allocate(test::value_shape(kShape, options.reduction), DType::f64);
  const Array by_x = test::filled(kShape, DType::f64, Layout::dense, test::kUntouched);
  const Array by_y = test::filled(kShape, DType::f64, Layout::dense, test::kUntouched);
  test::run_into(images.x, images.y,
      {.form = form, .value = value, .x_gradient = by_x, .y_gradient = by_y}, options);
  return {
      .value = to_doubles(value), .x_gradient = to_doubles(by_x), .y_gradient = to_doubles(by_y)};
}

// Also false for NaN.
bool are_zeros(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double each) { return each == 0; });
}

TEST(MutualInformationMask, AMeanLeavesOutChannelsWithoutVoxels) {
  const Images images;
  const Array second_of_first_and_last =
      channels([](std::int64_t channel) { return channel == 1 || channel == 5; });
  const Array first_image = channels([](std::int64_t channel) { return channel < 3; });
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Array* mask : {&second_of_first_and_last, &first_image}) {
      for (const auto range : {ValueRange::per_image, ValueRange::fixed}) {
        for (const auto reduction :
            {Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel}) {
          for (const bool normalized : {false, true}) {
            MutualInformationOptions options{.range = range, .normalized = normalized};
            options.mask = *mask;
            options.reduction = reduction;
            SCOPED_TRACE(fmt::format("{} {} {} {}", backend.name, static_cast<int>(range),
                static_cast<int>(reduction), normalized));
            const Reference expected = reference_mutual_information(images.x, images.y, options);
            const Reference actual = computed(images, options);
            EXPECT_LT(test::relative_l2(actual.value, expected.value), 1e-6);
            EXPECT_LT(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-6);
            EXPECT_LT(test::relative_l2(actual.y_gradient, expected.y_gradient), 1e-6);
          }
        }
      }
    }
  }
}

TEST(MutualInformationMask, OfNothingIsNaNAndALoss0) {
  const Images images;
  const Array nothing = test::filled({16, 17}, DType::u8, Layout::dense, 0);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const bool is_loss : {false, true}) {
      for (const auto reduction : {Reduction::mean, Reduction::per_image, Reduction::none}) {
        MutualInformationOptions options{.normalized = true, .reduction = reduction};
        options.mask = nothing;
        const Reference actual = computed(images, options,
            is_loss ? MutualInformationRequest::Form::loss
                    : MutualInformationRequest::Form::measure);
        for (const double value : actual.value) {
          EXPECT_TRUE(is_loss ? value == 0 : std::isnan(value)) << backend.name << " " << value;
        }
        EXPECT_TRUE(are_zeros(actual.x_gradient)) << backend.name;
        EXPECT_TRUE(are_zeros(actual.y_gradient)) << backend.name;
      }
    }
  }
}

// A histogram without voxels, given as such.
TEST(MutualInformationMask, OfAnEmptyHistogramIsNaN) {
  Tensor histogram = allocate({2, 1, 8, 8}, DType::f64);
  double* const counts = static_cast<double*>(histogram.data());
  std::fill_n(counts, 128, 0.0);
  counts[9] = counts[0] = 5;
  const double of_first = std::log(2);
  const auto value_of = [&](Reduction reduction) {
    return to_doubles(mutual_information_from_histogram(histogram, {.reduction = reduction}));
  };
  const std::vector<double> each = value_of(Reduction::none);
  EXPECT_NEAR(each[0], of_first, 1e-12);
  EXPECT_TRUE(std::isnan(each[1]));
  EXPECT_NEAR(value_of(Reduction::mean)[0], of_first, 1e-12);
  counts[9] = counts[0] = 0;
  EXPECT_TRUE(std::isnan(value_of(Reduction::mean)[0]));
}

// A GPU cannot refuse what it is queued to read.
TEST(MutualInformationMask, WeightsThatAreNoneGiveNaNOnAGpu) {
  const Images images;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    if (!backend.on_gpu) continue;
    const test::ScopedBackend chosen(backend);
    for (const double bad : {-1.0, std::nan("")}) {
      for (const int bins : {32, 250}) {
        const Array mask = test::make(kShape, DType::f32, Layout::dense,
            [=](std::int64_t i) { return i == 4 * kVoxels + 7 ? bad : 1.0; });
        MutualInformationOptions options{.num_bins = bins, .reduction = Reduction::per_channel};
        options.mask = mask;
        const Reference actual = computed(images, options);
        for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(actual.value[i]), i == 4) << i;
        EXPECT_TRUE(std::isnan(actual.x_gradient[4 * kVoxels + 20]));
        EXPECT_TRUE(std::isnan(actual.y_gradient[4 * kVoxels + 20]));
        EXPECT_FALSE(std::isnan(actual.x_gradient[20]));
      }
    }
  }
}

}  // namespace
}  // namespace similis
