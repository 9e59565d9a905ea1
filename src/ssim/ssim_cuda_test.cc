// SPDX-License-Identifier: Apache-2.0
// Tests of the GPU alone: strips and batches of the sliding window, and both paths on the same
// images. Skipped, with a message, where there is no GPU.
#include <gtest/gtest.h>

#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::computed;
using ssim_internal::Pair;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using test::Layout;

class SsimCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
  const test::ScopedBackend chosen_{{.name = "CUDA", .on_gpu = true}};
};

// Widths at, below and above what strips own and load, heights around a batch.
TEST_F(SsimCuda, StripsAndBatchesLeaveNoSeam) {
  const Extents shapes[] = {{1, 1, 11, 11}, {1, 2, 12, 232}, {1, 1, 23, 233}, {2, 1, 40, 244},
      {1, 1, 31, 488}, {1, 1, 64, 512}, {1, 1, 36, 256}, {1, 1, 33, 1000}, {3, 2, 21, 180},
      {2, 3, 130, 64}};
  for (const Extents& shape : shapes) {
    const auto [x, y] = ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    for (const Padding padding : {Padding::valid, Padding::same}) {
      for (const Reduction reduction :
          {Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel}) {
        const SsimOptions options{.padding = padding, .reduction = reduction};
        const Tensor upstream = ssim_internal::upstream_for(shape, options);
        const SsimRequest request{.form = SsimRequest::Form::loss,
            .l1_weight = shape[0] == 2 ? 0.3 : 0,
            .upstream = upstream};
        SCOPED_TRACE(fmt::format(
            "{} {} {}", shape, ssim_internal::name(padding), ssim_internal::name(reduction)));
        const Reference expected = reference_ssim(x, y, request, options);
        const Reference both = computed(x, y, request, options);
        const Reference value = computed(x, y, request, options, false, false);
        for (std::size_t i = 0; i < expected.value.size(); ++i) {
          EXPECT_NEAR(both.value[i] / expected.value[i], 1, 1e-5);
          EXPECT_NEAR(value.value[i] / expected.value[i], 1, 1e-5);
        }
        EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), 1e-5);
        EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), 1e-5);
      }
    }
  }
}

// More strips than blocks can share out whole: shares end in one and begin in another, or end
// before the first row of the next.
TEST_F(SsimCuda, SharesOfSeveralStripsLeaveNoSeam) {
  for (const Extents& shape : {Extents{4, 35, 40, 24}, Extents{8, 25, 40, 24}}) {
    const auto [x, y] = ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    for (const Reduction reduction : {Reduction::mean, Reduction::per_channel}) {
      const SsimOptions options{.reduction = reduction};
      const Tensor upstream = ssim_internal::upstream_for(shape, options);
      const SsimRequest request{.form = SsimRequest::Form::loss, .upstream = upstream};
      SCOPED_TRACE(fmt::format("{} {}", shape, ssim_internal::name(reduction)));
      const Reference expected = reference_ssim(x, y, request, options);
      const Reference both = computed(x, y, request, options);
      const Reference value = computed(x, y, request, options, false, false);
      for (std::size_t i = 0; i < expected.value.size(); ++i) {
        EXPECT_NEAR(both.value[i] / expected.value[i], 1, 1e-5);
        EXPECT_NEAR(value.value[i] / expected.value[i], 1, 1e-5);
      }
      EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), 1e-5);
      EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), 1e-5);
    }
  }
}

// Every instance of the sliding window, of both widths, on so little that compute-sanitizer ends
// soon:
//   compute-sanitizer --tool racecheck kit/ssim_test --gtest_filter='*EveryInstance*'
TEST_F(SsimCuda, EveryInstanceOnOneImage) {
  struct Scope {
    Reduction reduction;
    double l1_weight;
  };
  for (const Extents& shape : {Extents{1, 1, 27, 170}, Extents{1, 1, 27, 480}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
      const double range = dtype == DType::u8 ? 255 : 1;
      const double of_gradient = dtype == DType::f16    ? 0x1p-11
                                 : dtype == DType::bf16 ? 0x1p-8
                                                        : 1e-5;
      for (const Layout layout : {Layout::dense, Layout::reversed}) {
        const auto [x, y] = ssim_internal::textured(shape, dtype, layout, layout, range);
        for (const Scope& scope :
            {Scope{Reduction::mean, 0}, Scope{Reduction::mean, 0.3}, Scope{Reduction::none, 0}}) {
          const SsimOptions options{.reduction = scope.reduction};
          const test::Array upstream =
              ssim_internal::upstream_for(shape, options, DType::f32, Layout::dense, 1000);
          const SsimRequest request{
              .form = SsimRequest::Form::loss, .l1_weight = scope.l1_weight, .upstream = upstream};
          SCOPED_TRACE(fmt::format("{} {} {} {} {}", shape, name(dtype), test::name(layout),
              ssim_internal::name(scope.reduction), scope.l1_weight));
          const Reference expected = reference_ssim(x, y, request, options);
          EXPECT_LE(test::max_difference(
                        computed(x, y, request, options, false, false).value, expected.value),
              ssim_internal::kMapOnGpu * range);
          if (dtype == DType::u8) continue;
          EXPECT_LE(test::relative_l2(computed(x, y, request, options, true, false).x_gradient,
                        expected.x_gradient),
              of_gradient);
        }
      }
    }
  }
}

// Each kind of kernel: what memory holds, and whether the copy engine can walk it.
TEST_F(SsimCuda, EveryDtypeAndLayoutGoesThroughTheSlidingWindow) {
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    const double range = dtype == DType::u8 ? 255 : 1;
    const double of_gradient = dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 1e-5;
    for (const Layout layout : test::kLayouts) {
      for (const Extents& shape : {Extents{2, 3, 37, 240}, Extents{1, 2, 30, 531}}) {
        for (const Padding padding : {Padding::valid, Padding::same}) {
          SCOPED_TRACE(fmt::format(
              "{} {} {} {}", name(dtype), test::name(layout), shape, ssim_internal::name(padding)));
          const auto [x, y] = ssim_internal::textured(shape, dtype, layout, layout, range);
          const SsimOptions options{.padding = padding};
          const test::Array upstream =
              ssim_internal::upstream_for(shape, options, DType::f32, Layout::dense, 1000);
          const SsimRequest request{.upstream = upstream};
          const Reference expected = reference_ssim(x, y, request, options);
          EXPECT_NEAR(
              computed(x, y, request, options, false, false).value[0], expected.value[0], 1e-5);
          if (dtype == DType::u8) continue;
          const Layout out = layout == Layout::expanded ? Layout::permuted : layout;
          const Reference both = computed(x, y, request, options, true, true, out);
          EXPECT_NEAR(both.value[0], expected.value[0], 1e-5);
          EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), of_gradient);
          EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), of_gradient);
        }
      }
    }
  }
}

// Maps, gradients of maps, and masks, in f32 as means are.
TEST_F(SsimCuda, MapsAndMasksGoThroughTheSlidingWindow) {
  for (const Extents& shape : {Extents{2, 2, 33, 250}, Extents{1, 1, 45, 504}}) {
    const auto [x, y] = ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    const test::Array mask = test::noise(shape, DType::f32, Layout::permuted, 7, 1);
    for (const Padding padding : {Padding::valid, Padding::same}) {
      for (const bool is_masked : {false, true}) {
        for (const Reduction reduction : ssim_internal::kReductions) {
          SsimOptions options{.padding = padding, .reduction = reduction};
          if (is_masked) options.mask = mask;
          SCOPED_TRACE(fmt::format("{} {} {} {}", shape, ssim_internal::name(padding), is_masked,
              ssim_internal::name(reduction)));
          const test::Array upstream = ssim_internal::upstream_for(shape, options);
          const SsimRequest request{.form = SsimRequest::Form::loss, .upstream = upstream};
          const Reference expected = reference_ssim(x, y, request, options);
          const Reference alone = computed(x, y, request, options, false, false);
          const Reference both = computed(x, y, request, options);
          const double allowed = reduction == Reduction::none
                                     ? ssim_internal::kMapOnGpu
                                     : 1e-5 * std::max(1.0, test::largest(expected.value));
          EXPECT_LE(test::max_difference(alone.value, expected.value), allowed);
          EXPECT_LE(test::max_difference(both.value, expected.value), allowed);
          EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), 1e-5);
          EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), 1e-5);
        }
      }
    }
  }
}

TEST_F(SsimCuda, BitsAreTheSameEveryTime) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 300, 700}, DType::f32, Layout::dense, Layout::dense, 1);
  const Reference expected = computed(x, y, {}, {});
  for (int run = 0; run < 20; ++run) {
    const Reference actual = computed(x, y, {}, {});
    EXPECT_EQ(actual.value, expected.value);
    EXPECT_EQ(actual.x_gradient, expected.x_gradient);
    EXPECT_EQ(actual.y_gradient, expected.y_gradient);
  }
}

TEST_F(SsimCuda, ResultsAreReadFromTheGpu) {
  const auto [x, y] =
      ssim_internal::textured({1, 3, 64, 96}, DType::f32, Layout::dense, Layout::dense, 1);
  const test::OnGpu gpu_x(x), gpu_y(y);
  const Tensor value = ssim(gpu_x.view(), gpu_y.view());
  EXPECT_EQ(value.device, (Device{DeviceKind::cuda, 0}));
  EXPECT_NEAR(item(value), item(ssim(x, y)), 1e-6);
}

}  // namespace
}  // namespace similis
