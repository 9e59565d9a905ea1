// SPDX-License-Identifier: Apache-2.0
// The C functions of mutual information against the C++ ones, bit for bit.
#include <gtest/gtest.h>

#include "similis/c/mutual_information.h"
#include "similis/mutual_information.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

constexpr Extents kShape = {2, 3, 7, 5};

TEST(MutualInformationCApi, DefaultsAreThoseOfCpp) {
  const similis_mutual_information_options c = SIMILIS_MUTUAL_INFORMATION_DEFAULTS;
  const MutualInformationOptions cpp;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.sigma_ratio, cpp.sigma_ratio);
  EXPECT_EQ(c.low, cpp.low);
  EXPECT_EQ(c.high, cpp.high);
  EXPECT_EQ(c.smooth_nr, cpp.smooth_nr);
  EXPECT_EQ(c.smooth_dr, cpp.smooth_dr);
  EXPECT_EQ(c.sampling, cpp.sampling);
  EXPECT_EQ(c.seed, cpp.seed);
  EXPECT_EQ(c.num_bins, cpp.num_bins);
  EXPECT_EQ(c.kernel, static_cast<int>(cpp.kernel));
  EXPECT_EQ(c.range, static_cast<int>(cpp.range));
  EXPECT_EQ(c.normalized, static_cast<int>(cpp.normalized));
  EXPECT_EQ(c.method, static_cast<int>(cpp.method));
  EXPECT_EQ(c.reduction, static_cast<int>(cpp.reduction));
  EXPECT_EQ(c.form, static_cast<int>(MutualInformationRequest{}.form));
}

TEST(MutualInformationCApi, EnumeratorsAreThoseOfCpp) {
  EXPECT_EQ(SIMILIS_PARZEN_DELTA, static_cast<int>(ParzenKernel::delta));
  EXPECT_EQ(SIMILIS_PARZEN_GAUSSIAN, static_cast<int>(ParzenKernel::gaussian));
  EXPECT_EQ(SIMILIS_RANGE_COMMON, static_cast<int>(ValueRange::common));
  EXPECT_EQ(SIMILIS_RANGE_FIXED, static_cast<int>(ValueRange::fixed));
  EXPECT_EQ(SIMILIS_RANGE_UNIT_OR_COMMON, static_cast<int>(ValueRange::unit_or_common));
  EXPECT_EQ(SIMILIS_HISTOGRAM_BINNED, static_cast<int>(HistogramMethod::binned));
  EXPECT_EQ(
      SIMILIS_MUTUAL_INFORMATION_LOSS, static_cast<int>(MutualInformationRequest::Form::loss));
}

// The results of one call.
struct Results {
  test::Array value = test::filled({2}, DType::f64, Layout::dense, test::kUntouched);
  test::Array x_gradient = test::filled(kShape, DType::f32, Layout::sliced, test::kUntouched);
  test::Array y_gradient = test::filled(kShape, DType::f32, Layout::reversed, test::kUntouched);
};

TEST(MutualInformationCApi, EveryArgumentArrives) {
  const test::Array x = test::noise(kShape, DType::f32, Layout::permuted, 1, 1);
  const test::Array y = test::noise(kShape, DType::f32, Layout::offset, 2, 1);
  const test::Array upstream = test::noise({2}, DType::f32, Layout::offset, 3, 1);
  const test::Array mask = test::noise({7, 5}, DType::f32, Layout::dense, 4, 1);
  const MutualInformationOptions cpp{.num_bins = 9,
      .kernel = ParzenKernel::gaussian,
      .sigma_ratio = 1.5,
      .range = ValueRange::fixed,
      .low = 0.125,
      .high = 0.75,
      .smooth_nr = 1e-3,
      .smooth_dr = 1e-4,
      .method = HistogramMethod::binned,
      .sampling = 0.75,
      .seed = 5,
      .mask = mask,
      .reduction = Reduction::per_image};
  similis_mutual_information_options c = SIMILIS_MUTUAL_INFORMATION_DEFAULTS;
  const CTensor c_mask(mask);
  c.num_bins = 9;
  c.kernel = SIMILIS_PARZEN_GAUSSIAN;
  c.sigma_ratio = 1.5;
  c.range = SIMILIS_RANGE_FIXED;
  c.low = 0.125;
  c.high = 0.75;
  c.smooth_nr = 1e-3;
  c.smooth_dr = 1e-4;
  c.method = SIMILIS_HISTOGRAM_BINNED;
  c.sampling = 0.75;
  c.seed = 5;
  c.mask = c_mask.get();
  c.reduction = SIMILIS_REDUCTION_PER_IMAGE;
  c.form = SIMILIS_MUTUAL_INFORMATION_LOSS;
  const Results expected, results;
  mutual_information_into(x, y,
      {.form = MutualInformationRequest::Form::loss,
          .upstream = upstream,
          .value = expected.value,
          .x_gradient = expected.x_gradient,
          .y_gradient = expected.y_gradient},
      cpp);
  ASSERT_EQ(similis_mutual_information(CTensor(x).get(), CTensor(y).get(), &c,
                CTensor(upstream).get(), CTensor(results.value).get(),
                CTensor(results.x_gradient).get(), CTensor(results.y_gradient).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(results.value), to_doubles(expected.value));
  EXPECT_EQ(to_doubles(results.x_gradient), to_doubles(expected.x_gradient));
  EXPECT_EQ(to_doubles(results.y_gradient), to_doubles(expected.y_gradient));
}

TEST(MutualInformationCApi, HistogramsAndWhatTheySayAreThoseOfCpp) {
  const test::Array x = test::noise(kShape, DType::u8, Layout::dense, 1, 255);
  const test::Array y = test::noise(kShape, DType::u8, Layout::dense, 2, 255);
  const Tensor joint = allocate({2, 3, 32, 32}, DType::f64), value = allocate({}, DType::f32);
  similis_mutual_information_options c = SIMILIS_MUTUAL_INFORMATION_DEFAULTS;
  c.normalized = 1;
  ASSERT_EQ(
      similis_histogram(CTensor(x).get(), CTensor(y).get(), &c, CTensor(joint).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(joint), to_doubles(histogram(x, y)));
  ASSERT_EQ(similis_mutual_information_from_histogram(
                CTensor(joint).get(), &c, CTensor(value).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(item(value),
      static_cast<float>(item(mutual_information_from_histogram(joint, {.normalized = true}))));
  const CTensor c_joint(joint);
  c.histogram = c_joint.get();
  const auto from_joint = [&] {
    return similis_mutual_information(CTensor(x).get(), CTensor(x).get(), &c, nullptr,
        CTensor(value).get(), nullptr, nullptr, nullptr);
  };
  const double of_joint = item(value);
  ASSERT_EQ(from_joint(), SIMILIS_OK) << similis_last_error();
  EXPECT_EQ(item(value), of_joint);
  c.reserved = 1;
  EXPECT_EQ(from_joint(), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "mutual_information: reserved is 1; it must be 0");
}

}  // namespace
}  // namespace similis
