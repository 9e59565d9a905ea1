// SPDX-License-Identifier: Apache-2.0
// Tests of sampling on a GPU alone: arrays of more than 2³¹ elements, and the same bits of an
// image's gradient in every run if that is asked for.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "src/warp/test_calls.h"

namespace similis {
namespace {

using test::Layout;

constexpr Device kGpu{DeviceKind::cuda, 0};

class SampleOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
  static std::vector<double> brought_back(const TensorView& view) {
    const Tensor copy = allocate(view.shape, view.dtype);
    gpu::copy_to_cpu(copy.data(), view.data(),
        static_cast<std::size_t>(view.shape.count()) * size_bytes(view.dtype), kGpu, nullptr);
    return to_doubles(copy);
  }
};

TEST_F(SampleOnGpu, DeterministicGradientsHaveTheSameBits) {
  // Everything lands on few voxels, in an order that differs from run to run.
  const Extents shape = {1, 1, 6, 7, 8}, out = {1, 1, 40, 50, 60};
  for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
    const Tensor image = test::noise(shape, dtype, Layout::dense, 1, 1);
    const Tensor upstream = test::noise(out, DType::f32, Layout::dense, 2, 1000);
    const Tensor u = test::noise({1, 40, 50, 60, 3}, DType::f32, Layout::dense, 3, 0.1);
    const test::OnGpu gpu_image(image), gpu_upstream(upstream), gpu_u(u);
    std::vector<double> first;
    for (int run = 0; run < 4; ++run) {
      const SampleGradients gradients = sample_backward(gpu_image.view(), gpu_upstream.view(),
          {.image = true}, {.displacement = gpu_u.view()}, true);
      const std::vector<double> now = brought_back(gradients.image);
      if (run == 0) first = now;
      EXPECT_EQ(now, first) << name(dtype);
    }
  }
}

TEST_F(SampleOnGpu, DeterministicGradientsKeepInfinitiesAndNans) {
  const Extents shape = {1, 1, 4, 5, 6};
  const Tensor image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor upstream = test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) {
    return i == 7 ? inf : i == 50 ? std::nan("") : 1;
  });
  const test::OnGpu gpu_image(image), gpu_upstream(upstream);
  const SampleGradients gradients = sample_backward(gpu_image.view(), gpu_upstream.view(),
      {.image = true}, {.mode = Interpolation::nearest}, true);
  const std::vector<double> g = brought_back(gradients.image);
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (i == 7) {
      EXPECT_EQ(g[i], inf);
    } else if (i == 50) {
      EXPECT_TRUE(std::isnan(g[i]));
    } else {
      EXPECT_NEAR(g[i], 1, 1e-6);
    }
  }
}

// The last planes of a volume of 1300³ voxels, and the same planes cut out of it.
TEST_F(SampleOnGpu, IndicesBeyond31BitsAreRight) {
  constexpr std::int64_t kSide = 1300, kPlane = kSide * kSide, kCut = 12;
  std::size_t available = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
  if (available < (std::size_t{60} << 30)) GTEST_SKIP() << "it takes 60 GiB of a GPU's memory";
  const Extents shape = {1, 1, kSide, kSide, kSide};
  const Tensor image = allocate(shape, DType::f16, kGpu);
  const Tensor planes = test::noise({7, kSide, kSide}, DType::f16, Layout::dense, 1, 1);
  const test::OnGpu patterns(planes);
  for (std::int64_t z = 0; z < kSide; ++z) {
    ASSERT_EQ(cudaMemcpyAsync(static_cast<F16*>(image.data()) + z * kPlane,
                  static_cast<const F16*>(patterns.view().data()) + z % 7 * kPlane, kPlane * 2,
                  cudaMemcpyDeviceToDevice, nullptr),
        cudaSuccess);
  }
  const Tensor u = allocate({1, kSide, kSide, kSide, 3}, DType::f16, kGpu);
  ASSERT_EQ(cudaMemsetAsync(u.data(), 0, static_cast<std::size_t>(u.shape.count()) * 2, nullptr),
      cudaSuccess);
  const auto shifted_by_quarter = [](std::int64_t depth) {
    return test::make({1, 3, 4}, DType::f64, Layout::dense, [=](std::int64_t i) {
      const double extents[3] = {kSide, kSide, static_cast<double>(depth)};
      return i % 4 == 3 ? 0.5 / (extents[i / 4] - 1) : i % 5 == 0 ? 1 : 0;
    });
  };
  const test::OnGpu of_whole(shifted_by_quarter(kSide)), of_cut(shifted_by_quarter(kCut));
  const std::int64_t skipped = (kSide - kCut) * kPlane;
  const auto last_planes = [&](const TensorView& whole, std::int64_t components) {
    TensorView part = whole;
    part.offset += skipped * components;
    part.shape[components == 1 ? 2 : 1] = kCut;
    return part;
  };
  const TensorView cut_image = last_planes(image, 1), cut_u = last_planes(u, 3);
  const SampleOptions options{.affine = of_whole.view(), .displacement = u};
  const SampleOptions cut_options{.affine = of_cut.view(), .displacement = cut_u};
  const auto expect_alike = [&](const TensorView& whole, const TensorView& part) {
    // The first plane of the cut image misses the one before it.
    const std::vector<double> a = brought_back(whole), b = brought_back(part);
    const std::size_t first = a.size() / kCut;
    double error = 0, norm = 0;
    for (std::size_t i = first; i < a.size(); ++i) {
      error += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
    EXPECT_LT(error, 1e-6 * norm);
    EXPECT_GT(norm, 0);
  };
  const Tensor output = sample(image, options), cut_output = sample(cut_image, cut_options);
  expect_alike(last_planes(output, 1), cut_output);
  const SampleGradientOf both{.image = true, .grid = true};
  const SampleGradients gradients = sample_backward(image, image, both, options);
  const SampleGradients cut_gradients = sample_backward(cut_image, cut_image, both, cut_options);
  expect_alike(last_planes(gradients.image, 1), cut_gradients.image);
  // u's slope along z is per coordinate: half a voxel's number of planes apart.
  const std::vector<double> whole = brought_back(last_planes(gradients.grid, 3));
  const std::vector<double> part = brought_back(cut_gradients.grid);
  const double scale = (kSide - 1.0) / (kCut - 1.0);
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const double expected = part[i] * (i % 3 == 2 ? scale : 1);
    error += (whole[i] - expected) * (whole[i] - expected);
    norm += expected * expected;
  }
  EXPECT_LT(error, 1e-5 * norm);
}

}  // namespace
}  // namespace similis
