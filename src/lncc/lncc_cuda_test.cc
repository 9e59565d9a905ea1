// SPDX-License-Identifier: Apache-2.0
// Tests of the GPU alone: the sliding window's tiles, chunks and ring, both paths on the same
// images, sizes beyond 32 bits. Skipped, with a message, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/lncc/cuda_test_cases.h"

namespace similis {
namespace {

using lncc_internal::computed;
using lncc_internal::expect_same_bits;
using lncc_internal::LnccCuda;
using lncc_internal::on_cpu;
using lncc_internal::Pair;
using lncc_internal::Reference;
using test::Layout;

// Tiles and chunks along z, under windows that end within a thread's eight lines and beyond them;
// rows of halves that are copied whole, and others.
TEST_F(LnccCuda, TilesAndChunksLeaveNoSeam) {
  const Extents shapes[] = {{1, 1, 150, 17, 33}, {2, 2, 30, 32, 64}, {1, 1, 40, 50, 100}};
  for (const Extents& shape : shapes) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const Pair pair = lncc_internal::textured(shape, dtype, Layout::dense, Layout::dense, 1);
      const double rounding = dtype == DType::f32 ? 0 : lncc_internal::tolerance(dtype).gradient;
      for (const int window : {3, 5, 7, 11, 17}) {
        for (const Padding padding : lncc_internal::kPaddings) {
          const LnccOptions options{
              .window_size = window, .padding = padding, .reduction = Reduction::sum};
          SCOPED_TRACE(
              fmt::format("{} {} {} {}", shape, name(dtype), window, lncc_internal::name(padding)));
          const Reference expected = on_cpu(pair, {}, options);
          const Reference both = computed(pair.x, pair.y, {}, options);
          const Reference of_y = computed(pair.x, pair.y, {}, options, false, true);
          const double near = 1e-6 * std::max(1.0, std::abs(expected.value[0]));
          EXPECT_NEAR(both.value[0], expected.value[0], near);
          EXPECT_NEAR(of_y.value[0], expected.value[0], near);
          EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), 1e-6 + rounding);
          EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), 1e-6 + rounding);
          EXPECT_LE(test::relative_l2(of_y.y_gradient, expected.y_gradient), 1e-6 + rounding);
        }
      }
    }
  }
}

// Kernels whose centres load pixels or weights from memory, and store gradients, in runs: rows of
// whole vectors and others, one row, several tiles; masks of each dtype and stride.
TEST_F(LnccCuda, RunsOfCentresLeaveNoSeam) {
  const Extents shapes[] = {{1, 1, 5, 5, 72}, {2, 2, 5, 7, 33}, {1, 1, 3, 1, 228}};
  for (const Extents& shape : shapes) {
    const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    const auto weight = [](std::int64_t i) { return i % 5 == 2 ? 0.0 : test::uniform(9, i); };
    const Extents spatial = {shape[2], shape[3], shape[4]};
    const test::Array no_mask, of_f32 = test::make(spatial, DType::f32, Layout::dense, weight),
                               of_f64 = test::make(spatial, DType::f64, Layout::dense, weight),
                               of_each = test::make({shape[0], 1, shape[2], shape[3], shape[4]},
                                   DType::f32, Layout::dense, weight);
    for (const int window : {5, 7}) {
      for (const Padding padding : lncc_internal::kPaddings) {
        if (padding == Padding::valid && (shape[2] < window || shape[3] < window)) continue;
        for (const test::Array* mask : {&no_mask, &of_f32, &of_f64, &of_each}) {
          LnccOptions options{.window_size = window, .padding = padding};
          if (mask->shape.rank() > 0) options.mask = *mask;
          SCOPED_TRACE(fmt::format("{} {} {} {}", shape, window, lncc_internal::name(padding),
              mask == &no_mask  ? "no mask"
              : mask == &of_f32 ? "f32"
              : mask == &of_f64 ? "f64"
                                : "one for each image"));
          const Reference exact = computed(pair.x, pair.y, {}, options);
          const Reference expected = on_cpu(pair, {}, options);
          EXPECT_NEAR(exact.value[0], expected.value[0], 1e-6);
          EXPECT_LE(test::relative_l2(exact.x_gradient, expected.x_gradient), 2e-6);
          EXPECT_LE(test::relative_l2(exact.y_gradient, expected.y_gradient), 2e-6);
          options.gradient = LnccGradient::ants;
          const Reference ants = computed(pair.x, pair.y, {}, options, true, false);
          const Reference ants_on_cpu = on_cpu(pair, {}, options);
          EXPECT_NEAR(ants.value[0], expected.value[0], 1e-6);
          EXPECT_LE(test::relative_l2(ants.x_gradient, ants_on_cpu.x_gradient), 2e-6);
          const Reference again = computed(pair.x, pair.y, {}, options, true, false);
          EXPECT_EQ(again.x_gradient, ants.x_gradient);
          EXPECT_EQ(again.value, ants.value);
        }
      }
    }
  }
}

// Volumes whose derivatives do not fit into the workspace: they are kept in the gradient, for slabs
// along z and strips along y, or strips alone where there are few planes.
TEST_F(LnccCuda, SlabsAndStripsLeaveNoSeam) {
  const Extents shapes[] = {{1, 1, 70, 430, 431}, {1, 1, 24, 720, 720}};
  for (const Extents& shape : shapes) {
    const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    for (const Padding padding : {Padding::same, Padding::valid}) {
      const LnccOptions options{.window_size = 7, .padding = padding};
      SCOPED_TRACE(fmt::format("{} {}", shape, lncc_internal::name(padding)));
      const Reference expected = on_cpu(pair, {}, options);
      const Reference of_x = computed(pair.x, pair.y, {}, options, true, false);
      const Reference both = computed(pair.x, pair.y, {}, options);
      EXPECT_NEAR(of_x.value[0], expected.value[0], 1e-6);
      EXPECT_NEAR(both.value[0], expected.value[0], 1e-6);
      EXPECT_LE(test::relative_l2(of_x.x_gradient, expected.x_gradient), 1e-6);
      EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), 1e-6);
      EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), 1e-6);
    }
  }
}

// Gradients that cannot hold fields, as they are not dense, and those of several volumes that can.
TEST_F(LnccCuda, GradientsOfAnyStridesAgree) {
  const Pair pair =
      lncc_internal::textured({2, 3, 40, 190, 200}, DType::f32, Layout::dense, Layout::dense, 1);
  const LnccOptions options{.window_size = 5, .reduction = Reduction::per_channel};
  const Reference dense = computed(pair.x, pair.y, {}, options);
  const Reference strided =
      computed(pair.x, pair.y, {}, options, true, true, Layout::channels_last);
  for (std::size_t i = 0; i < dense.value.size(); ++i) {
    EXPECT_NEAR(dense.value[i], strided.value[i], 1e-6);
  }
  EXPECT_LE(test::relative_l2(dense.x_gradient, strided.x_gradient), 1e-6);
  EXPECT_LE(test::relative_l2(dense.y_gradient, strided.y_gradient), 1e-6);
}

// The division of the image into parts changes no bit: whole volumes, slabs, strips and pieces of a
// workspace, under windows of each kind of kernel.
TEST_F(LnccCuda, AWorkspaceChangesNoBit) {
  const Extents shapes[] = {{1, 1, 70, 430, 431}, {1, 1, 24, 720, 720}, {1, 5, 40, 210, 220}};
  LnccOptions each[] = {{.window_size = 7}, {.window_size = 5}, {.window_size = {3, 9, 5}},
      {.window_size = 7, .window = WindowShape::gaussian}, {.window_size = 7, .is_signed = true},
      {.window_size = 7, .padding = Padding::valid},
      {.window_size = 7, .padding = Padding::renormalize}};
  for (const Extents& shape : shapes) {
    const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    for (LnccOptions& options : each) {
      SCOPED_TRACE(fmt::format("{} {}", shape, &options - each));
      options.workspace = LnccWorkspace::automatic;
      const Reference whole = computed(pair.x, pair.y, {}, options, true, false);
      options.workspace = LnccWorkspace::small;
      expect_same_bits(computed(pair.x, pair.y, {}, options, true, false), whole);
    }
    for (const DType dtype : {DType::f16, DType::bf16}) {
      const Pair half = lncc_internal::textured(shape, dtype, Layout::dense, Layout::dense, 1);
      const Reference whole = computed(half.x, half.y, {}, {.window_size = 7}, false, true);
      expect_same_bits(computed(half.x, half.y, {},
                           {.window_size = 7, .workspace = LnccWorkspace::small}, false, true),
          whole);
    }
  }
}

// Pieces of a workspace so small that columns are cut: weights are loaded from any column on.
TEST_F(LnccCuda, PartsUnderAMaskChangeNoBit) {
  const Extents shape = {1, 1, 40, 430, 540};
  const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array mask = test::make({shape[2], shape[3], shape[4]}, DType::f32, Layout::dense,
      [](std::int64_t i) { return i / 5 % 7 == 3 ? 0.0 : test::uniform(5, i); });
  LnccOptions options{.window_size = 7, .mask = mask};
  const Reference expected = on_cpu(pair, {}, options);
  const Reference whole = computed(pair.x, pair.y, {}, options, true, false);
  EXPECT_NEAR(whole.value[0], expected.value[0], 1e-6);
  EXPECT_LE(test::relative_l2(whole.x_gradient, expected.x_gradient), 2e-6);
  options.workspace = LnccWorkspace::small;
  expect_same_bits(computed(pair.x, pair.y, {}, options, true, false), whole);
}

// Filters: sizes around tiles of 32 × 6 and 32 × 8 and a chunk, one row, one plane, any taps from 3
// to 11, all options, all dtypes, against the reference.
TEST_F(LnccCuda, FiltersMatchTheReference) {
  const Extents shapes[] = {{1, 1, 9, 8, 32}, {2, 2, 13, 9, 33}, {1, 1, 37, 17, 31},
      {1, 1, 1, 41, 67}, {1, 3, 1, 1, 40}, {1, 1, 40, 1, 1}, {1, 2, 40, 70}, {1, 1, 20, 25, 33}};
  const PerAxis<int> sizes[] = {3, 5, 7, 9, 11, {3, 11, 7}, {11, 3, 5}};
  std::uint32_t seed = 1;
  for (const Extents& shape : shapes) {
    Extents spatial =
        shape.rank() == 4 ? Extents{shape[2], shape[3]} : Extents{shape[2], shape[3], shape[4]};
    const test::Array mask = test::noise(spatial, DType::f32, Layout::dense, 7, 1);
    const test::Array valid = test::make(spatial, DType::f32, Layout::dense,
        [](std::int64_t i) { return i % 7 == 3 ? 0.0 : 0.25 + 0.5 * static_cast<double>(i % 3); });
    for (PerAxis<int> size : sizes) {
      if (shape.rank() == 4 && size.z() != size.x()) continue;
      ++seed;
      const DType dtype = seed % 4 == 0   ? DType::f64
                          : seed % 4 == 1 ? DType::f16
                          : seed % 4 == 2 ? DType::bf16
                                          : DType::f32;
      // A row or a plane near 1000 between others of zeros varies by its whole level: what is left
      // of it in f32 is no gradient. Half types do not resolve a texture of 1 there.
      const bool is_thin = std::count(spatial.begin(), spatial.end(), 1) > 0;
      const bool is_half = dtype == DType::f16 || dtype == DType::bf16;
      const double offset = seed % 5 == 0 && !is_thin && !is_half ? 1000 : 0;
      const Pair pair = lncc_internal::textured(
          shape, dtype, Layout::dense, Layout::channels_last, 1, offset, seed);
      for (const Padding padding : {Padding::same, Padding::renormalize}) {
        for (int which = 0; which < 6; ++which) {
          LnccOptions options{.window_size = size,
              .window = which == 1 ? WindowShape::box : WindowShape::gaussian,
              .sigma = 1.3,
              .padding = padding};
          if (which == 1 || which == 2) options.valid_mask = valid;
          if (which == 3) options.mask = mask;
          if (which == 4) options.is_signed = true;
          if (which == 5) options.gradient = LnccGradient::ants;
          options.reduction = which % 2 == 0 ? Reduction::mean : Reduction::none;
          SCOPED_TRACE(
              fmt::format("{} {} {} {}", shape, seed, lncc_internal::name(padding), which));
          const Reference expected = on_cpu(pair, {}, options);
          const Reference both = computed(pair.x, pair.y, {}, options);
          const Reference of_y = computed(pair.x, pair.y, {}, options, false, true);
          const lncc_internal::Tolerance within = lncc_internal::tolerance(dtype);
          ASSERT_EQ(both.value.size(), expected.value.size());
          for (std::size_t i = 0; i < both.value.size(); ++i) {
            if (std::isnan(expected.value[i]) || std::isnan(both.value[i])) continue;
            EXPECT_NEAR(both.value[i], expected.value[i], 10 * within.value);
          }
          EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), within.gradient);
          EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), within.gradient);
          EXPECT_LE(test::relative_l2(of_y.y_gradient, expected.y_gradient), within.gradient);
        }
      }
    }
  }
}

// Chunks and tiles of filters on a volume of several of each, and the same bits in every run.
TEST_F(LnccCuda, FiltersLeaveNoSeam) {
  const Pair pair =
      lncc_internal::textured({1, 2, 90, 70, 101}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const int size : {7, 9, 11}) {
    const LnccOptions options{.window_size = size, .window = WindowShape::gaussian};
    const Reference expected = on_cpu(pair, {}, options);
    const Reference actual = computed(pair.x, pair.y, {}, options);
    EXPECT_NEAR(actual.value[0], expected.value[0], 1e-6);
    EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-6);
    EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 1e-6);
    for (int run = 0; run < 20; ++run) {
      expect_same_bits(computed(pair.x, pair.y, {}, options), actual);
    }
  }
}

// One volume and the gradient to one image, which an H100's or H200's places cut into long chunks
// and a short one: the windows under all three sizes, the gradient under 11 taps.
class LnccCudaChunks : public LnccCuda, public testing::WithParamInterface<int> {
 protected:
  Reference found() const { return computed(pair_.x, pair_.y, {}, options_, true, false); }

  const Pair pair_ =
      lncc_internal::textured({1, 1, 90, 70, 101}, DType::f32, Layout::dense, Layout::dense, 1);
  const LnccOptions options_{.window_size = GetParam(), .window = WindowShape::gaussian};
};

// By itself, for racecheck: it has few launches.
TEST_P(LnccCudaChunks, OfTwoLengthsLeaveNoSeam) {
  const Reference expected = on_cpu(pair_, {}, options_), actual = found();
  EXPECT_NEAR(actual.value[0], expected.value[0], 1e-6);
  EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-6);
}

TEST_P(LnccCudaChunks, OfTwoLengthsHaveTheSameBitsInEveryRun) {
  const Reference first = found();
  for (int run = 0; run < 20; ++run) expect_same_bits(found(), first);
}

INSTANTIATE_TEST_SUITE_P(Windows, LnccCudaChunks, testing::Values(7, 9, 11));

// A pixel that is NaN reaches the windows that see it and no other.
TEST_F(LnccCuda, ANaNStaysInItsWindowsUnderFilters) {
  const Extents shape = {1, 1, 24, 24, 40};
  const auto image = [&](bool has_nan) {
    return test::make(shape, DType::f32, Layout::dense, [=](std::int64_t i) {
      return has_nan && i == (12 * 24 + 10) * 40 + 20 ? std::nan("") : test::uniform(3, i);
    });
  };
  const test::Array x = image(true), y = test::noise(shape, DType::f32, Layout::dense, 2, 1);
  for (const int size : {5, 9}) {
    const LnccOptions options{
        .window_size = size, .window = WindowShape::gaussian, .reduction = Reduction::none};
    const Reference map = computed(x, y, {}, options, false, false);
    std::int64_t count = 0;
    for (const double value : map.value) count += std::isnan(value) ? 1 : 0;
    EXPECT_EQ(count, size * size * size);
  }
}

// Weights fail closed, as docs/reference says: NaN for a negative weight or a NaN, for a mean
// without weights, and 0 for a loss without weights.
TEST_F(LnccCuda, WeightsFailClosed) {
  const Extents shape = {2, 1, 12, 20, 40};
  const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const auto weights = [](double bad, double others) {
    return test::make({2, 1, 12, 20, 40}, DType::f32, Layout::dense,
        [=](std::int64_t i) { return i == 500 ? bad : others; });
  };
  for (const bool is_valid_mask : {false, true}) {
    for (const WindowShape window : {WindowShape::box, WindowShape::gaussian}) {
      for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::per_image}) {
        LnccOptions options{.window_size = 5, .window = window, .reduction = reduction};
        for (const double bad : {-1.0, std::nan("")}) {
          const test::Array mask = weights(bad, 1);
          (is_valid_mask ? options.valid_mask : options.mask) = mask;
          const Reference actual = computed(pair.x, pair.y, {}, options, true, false);
          EXPECT_TRUE(std::isnan(actual.value[0]));
          EXPECT_TRUE(std::isnan(actual.x_gradient[501]));
          EXPECT_EQ(std::isnan(actual.value.back()), reduction != Reduction::per_image);
        }
        if (reduction == Reduction::sum) continue;
        const test::Array none = weights(0, 0);
        (is_valid_mask ? options.valid_mask : options.mask) = none;
        for (const double weight : {1.0, -1.0}) {
          const Reference actual =
              computed(pair.x, pair.y, {.weight = weight}, options, true, false);
          EXPECT_EQ(std::isnan(actual.value[0]), weight > 0);
          if (weight < 0) {
            EXPECT_EQ(actual.value[0], 0);
          }
          for (const double gradient : actual.x_gradient) ASSERT_EQ(gradient, 0);
        }
      }
    }
  }
}

// Windows that no block has room for, which are looked at where images and fields stand.
TEST_F(LnccCuda, WidestWindows) {
  const Pair pair =
      lncc_internal::textured({1, 1, 6, 110, 130}, DType::f32, Layout::dense, Layout::dense, 1);
  const LnccOptions options{.window_size = {3, 81, 91}};
  const Reference expected = on_cpu(pair, {}, options);
  const Reference actual = computed(pair.x, pair.y, {}, options);
  EXPECT_NEAR(actual.value[0], expected.value[0], 1e-6);
  EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-6);
  EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 1e-6);
}

// A head in air: most windows are flat at exactly one number.
TEST_F(LnccCuda, BackgroundsOf60Percent) {
  const Extents shape = {1, 1, 48, 64, 96};
  for (const double background : {0.0, -1000.0}) {
    const auto image = [&](std::uint32_t seed) {
      return test::make(shape, DType::f32, Layout::dense, [=](std::int64_t i) {
        const double x = static_cast<double>(i % 96) / 48 - 1;
        const double y = static_cast<double>(i / 96 % 64) / 32 - 1;
        const double z = static_cast<double>(i / (96 * 64)) / 24 - 1;
        return x * x + y * y + z * z < 0.85 ? 1500 * test::uniform(seed, i) + 0.25 : background;
      });
    };
    const Pair pair{image(1), image(2)};
    const LnccOptions options{.window_size = 7};
    const Reference expected = on_cpu(pair, {}, options);
    const Reference actual = computed(pair.x, pair.y, {}, options);
    EXPECT_NEAR(actual.value[0], expected.value[0], 1e-6);
    EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-5);
    EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 1e-5);
  }
}

TEST_F(LnccCuda, BitsAreTheSameEveryTime) {
  const Pair pair =
      lncc_internal::textured({2, 2, 60, 70, 90}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const WindowShape window : {WindowShape::box, WindowShape::gaussian}) {
    const LnccOptions options{.window_size = 5, .window = window};
    const Reference expected = computed(pair.x, pair.y, {}, options);
    for (int run = 0; run < 20; ++run) {
      const Reference actual = computed(pair.x, pair.y, {}, options);
      EXPECT_EQ(actual.value, expected.value);
      EXPECT_EQ(actual.x_gradient, expected.x_gradient);
      EXPECT_EQ(actual.y_gradient, expected.y_gradient);
    }
  }
}

// 3·2³⁰ elements that are views of one volume by stride 0, so that 6 GiB do not have to travel; the
// last image is another. Its gradient and value must be its own.
TEST_F(LnccCuda, MoreThan2To31Elements) {
  const std::int64_t images = 97, planes = 64, height = 500, width = 700;
  const Extents shape = {1, 1, planes, height, width};
  const Pair pair = lncc_internal::textured(shape, DType::u8, Layout::dense, Layout::dense, 255);
  const test::OnGpu x(pair.x), y(pair.y);
  const auto repeated = [&](const TensorView& view) {
    TensorView many = view;
    many.shape[0] = images;
    many.strides[0] = 0;
    return many;
  };
  ASSERT_GT(images * shape.count(), std::int64_t{1} << 31);
  const LnccOptions options{.window_size = 3, .reduction = Reduction::per_image};
  const Tensor many = lncc(repeated(x.view()), repeated(y.view()), options);
  const Tensor one = lncc(x.view(), y.view(), options);
  std::vector<float> values(static_cast<std::size_t>(images));
  gpu::copy_to_cpu(
      values.data(), many.data(), values.size() * sizeof(float), {DeviceKind::cuda, 0}, nullptr);
  for (const float value : values) EXPECT_NEAR(value, item(one), 1e-6);
}

// Rows so far apart that 32 bits cannot count the elements of a plane, under a filter: 8.6 GB, most
// of which are not touched.
TEST_F(LnccCuda, RowsMayBeFarApartUnderFilters) {
  const Extents shape = {1, 1, 5, 3, 40};
  const Device device{DeviceKind::cuda, 0};
  const std::int64_t row_stride = std::int64_t{1} << 30;
  Tensor memory;
  try {
    memory = allocate({2 * row_stride + 200}, DType::f32, device);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const TensorView far = memory.reshaped(shape, {200, 200, 40, row_stride, 1});
  for (std::int64_t row = 0; row < 15; ++row) {
    gpu::copy_from_cpu(static_cast<float*>(far.data()) + row / 3 * 40 + row % 3 * row_stride,
        static_cast<const float*>(pair.x.data()) + row * 40, 40 * sizeof(float), device, nullptr);
  }
  const LnccOptions options{
      .window_size = 3, .window = WindowShape::gaussian, .reduction = Reduction::none};
  const test::OnGpu x(pair.x), y(pair.y);
  const auto results = [&](const TensorView& of_x) {
    const ValueAndGradient found = lncc_value_and_gradient(of_x, y.view(), GradientOf::x, options);
    std::vector<float> numbers(2 * 600);
    const std::size_t bytes = 600 * sizeof(float);
    gpu::copy_to_cpu(numbers.data(), found.value.data(), bytes, device, nullptr);
    gpu::copy_to_cpu(numbers.data() + 600, found.x_gradient.data(), bytes, device, nullptr);
    return numbers;
  };
  const std::vector<float> expected = results(x.view()), actual = results(far);
  float largest = 1;
  for (const float number : expected) largest = std::max(largest, std::abs(number));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-5 * largest) << i;
  }
}

// A dense volume of more than 2³¹ elements with its gradient: 26 GB.
TEST_F(LnccCuda, AGradientOfMoreThan2To31Elements) {
  const Extents shape = {1, 1, 2, 32800, 32800};
  const Device device{DeviceKind::cuda, 0};
  const auto bytes = static_cast<std::size_t>(shape.count());
  Tensor x, gradient;
  try {
    x = allocate(shape, DType::f16, device);
    gradient = allocate(shape, DType::f16, device);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  // The images' last corner is noise, all else 0; so must the gradient be, but for its rim.
  const Extents corner_shape = {1, 1, 2, 64, 64};
  const Pair corner =
      lncc_internal::textured(corner_shape, DType::f16, Layout::dense, Layout::dense, 1);
  const std::vector<char> zeros(std::size_t{1} << 28);
  for (std::size_t done = 0; done < 2 * bytes; done += zeros.size()) {
    gpu::copy_from_cpu(static_cast<char*>(x.data()) + done, zeros.data(),
        std::min(zeros.size(), 2 * bytes - done), device, nullptr);
  }
  Tensor y = allocate(shape, DType::f16, device);
  for (std::size_t done = 0; done < 2 * bytes; done += zeros.size()) {
    gpu::copy_from_cpu(static_cast<char*>(y.data()) + done, zeros.data(),
        std::min(zeros.size(), 2 * bytes - done), device, nullptr);
  }
  const std::int64_t first = shape[4] - 64;
  const auto copy_corner = [&](const TensorView& to, const TensorView& from, bool back) {
    for (std::int64_t z = 0; z < 2; ++z) {
      for (std::int64_t row = 0; row < 64; ++row) {
        char* const far =
            static_cast<char*>(to.data()) + 2 * ((z * shape[3] + first + row) * shape[4] + first);
        char* const near = static_cast<char*>(from.data()) + 2 * 64 * (z * 64 + row);
        if (back) {
          gpu::copy_to_cpu(near, far, 128, device, nullptr);
        } else {
          gpu::copy_from_cpu(far, near, 128, device, nullptr);
        }
      }
    }
  };
  copy_corner(x, corner.x, false);
  copy_corner(y, corner.y, false);
  const LnccOptions options{.window_size = {1, 5, 5}, .reduction = Reduction::sum};
  lncc_into(x, y, {.weight = 0.001, .x_gradient = gradient}, options);
  // The corner alone, its right and lower rim at the border as in the large volume.
  const Reference expected = on_cpu(corner, {.weight = 0.001}, options);
  const test::Array actual =
      test::filled(corner_shape, DType::f16, Layout::dense, test::kUntouched);
  copy_corner(gradient, actual, true);
  const std::vector<double> found = to_doubles(actual);
  double largest = 0;
  for (std::int64_t i = 0; i < corner_shape.count(); ++i) {
    const std::int64_t row = i / 64 % 64, column = i % 64;
    if (row < 4 || column < 4) continue;
    const auto at = static_cast<std::size_t>(i);
    largest = std::max(largest, std::abs(found[at] - expected.x_gradient[at]));
  }
  EXPECT_LE(largest, 1e-3 * test::largest(expected.x_gradient));
}

}  // namespace
}  // namespace similis
