// SPDX-License-Identifier: Apache-2.0
// Tests of the GPU alone: the sliding window's tiles, chunks and ring, both paths on the same
// images, sizes beyond 32 bits. Skipped, with a message, where there is no GPU.
#include <gtest/gtest.h>

#include "src/lncc/test_cases.h"

namespace similis {
namespace {

using lncc_internal::computed;
using lncc_internal::Pair;
using lncc_internal::Reference;
using test::Layout;

class LnccCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
  const test::ScopedBackend chosen_{{.name = "CUDA", .on_gpu = true}};
};

// The results of the CPU, which other tests compare with the reference.
Reference on_cpu(const Pair& pair, const LnccRequest& request, const LnccOptions& options) {
  const test::ScopedBackend cpu({.name = "CPU"});
  return computed(pair.x, pair.y, request, options);
}

// Tiles and chunks along z, under windows that end within a thread's eight lines and beyond them.
TEST_F(LnccCuda, TilesAndChunksLeaveNoSeam) {
  const Extents shapes[] = {{1, 1, 150, 17, 33}, {2, 2, 30, 32, 64}, {1, 1, 40, 50, 100}};
  for (const Extents& shape : shapes) {
    const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    for (const int window : {3, 5, 7, 11, 17}) {
      for (const Padding padding : lncc_internal::kPaddings) {
        const LnccOptions options{.window_size = window, .padding = padding};
        SCOPED_TRACE(fmt::format("{} {} {}", shape, window, lncc_internal::name(padding)));
        const Reference expected = on_cpu(pair, {}, options);
        const Reference both = computed(pair.x, pair.y, {}, options);
        const Reference of_y = computed(pair.x, pair.y, {}, options, false, true);
        EXPECT_NEAR(both.value[0], expected.value[0], 1e-6);
        EXPECT_NEAR(of_y.value[0], expected.value[0], 1e-6);
        EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), 1e-6);
        EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), 1e-6);
        EXPECT_LE(test::relative_l2(of_y.y_gradient, expected.y_gradient), 1e-6);
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
