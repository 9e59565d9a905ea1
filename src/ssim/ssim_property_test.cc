// SPDX-License-Identifier: Apache-2.0
// Properties of SSIM of any images: identity, symmetry, an upper bound, flips, transposes and
// batches that commute, bits that depend on nothing but the input.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <thread>
#include <utility>

#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::computed;
using ssim_internal::Pair;
using ssim_internal::Reference;
using test::Layout;

Extents any_shape() {
  return {*rc::gen::inRange<std::int64_t>(1, 3), *rc::gen::inRange<std::int64_t>(1, 4),
      *rc::gen::inRange<std::int64_t>(8, 60), *rc::gen::inRange<std::int64_t>(8, 60)};
}

SsimOptions any_options() {
  return {.window_size = {2 * *rc::gen::inRange(0, 4) + 1, 2 * *rc::gen::inRange(0, 4) + 1},
      .sigma = {0.1 * *rc::gen::inRange(3, 40), 0.1 * *rc::gen::inRange(3, 40)},
      .padding = *rc::gen::elementOf(std::vector<Padding>(
          std::begin(ssim_internal::kPaddings), std::end(ssim_internal::kPaddings))),
      .reduction = *rc::gen::elementOf(std::vector<Reduction>(
          std::begin(ssim_internal::kReductions), std::end(ssim_internal::kReductions)))};
}

Pair any_images(const Extents& shape, DType dtype = DType::f32) {
  return ssim_internal::textured(
      shape, dtype, Layout::dense, Layout::dense, 1, *rc::gen::inRange<std::uint32_t>(1, 1000));
}

void check(const char* property, const std::function<void()>& body) {
  EXPECT_TRUE(rc::check(property, [&] {
    const test::ScopedBackend chosen(*rc::gen::elementOf(test::backends(test::Gpu::included)));
    body();
  }));
}

Tensor flipped(const Tensor& tensor, int axis) {
  Tensor view = tensor;
  const std::int64_t last = (tensor.shape[axis] - 1) * tensor.strides[axis];
  view.offset += last;
  view.strides[axis] = -tensor.strides[axis];
  return view;
}

Tensor transposed(const Tensor& tensor) {
  Tensor view = tensor;
  std::swap(view.shape[2], view.shape[3]);
  std::swap(view.strides[2], view.strides[3]);
  return view;
}

TEST(SsimProperty, EqualImagesAreExactlyAlike) {
  check("ssim(x, x) is 1, its loss 0 and its gradient 0, in all bits", [] {
    const DType dtype = *rc::gen::element(DType::f16, DType::bf16, DType::f32, DType::f64);
    const Extents shape = any_shape();
    const SsimOptions options = any_options();
    const auto [x, other] = any_images(shape, dtype);
    const Reference value = computed(x, x, {}, options);
    const Reference loss = computed(x, x, {.form = SsimRequest::Form::loss}, options);
    SsimOptions map = options;
    map.reduction = Reduction::none;
    const std::int64_t windows = ssim_internal::value_shape(shape, map).count();
    const double one = options.reduction == Reduction::sum ? static_cast<double>(windows) : 1;
    for (const double v : value.value) RC_ASSERT(v == one);
    for (const double v : loss.value) RC_ASSERT(v == 0);
    RC_ASSERT(test::largest(value.x_gradient) == 0);
    RC_ASSERT(test::largest(value.y_gradient) == 0);
  });
}

TEST(SsimProperty, ValuesAreAtMostOne) {
  check("ssim(x, y) <= 1 and the loss is its complement", [] {
    const Extents shape = any_shape();
    SsimOptions options = any_options();
    options.reduction = Reduction::none;
    const auto [x, y] = any_images(shape);
    const std::vector<double> map = to_doubles(ssim(x, y, options));
    const std::vector<double> loss = to_doubles(ssim_loss(x, y, options));
    for (std::size_t i = 0; i < map.size(); ++i) {
      RC_ASSERT(map[i] <= 1);
      RC_ASSERT(map[i] >= -1);
      RC_ASSERT(std::abs(map[i] + loss[i] - 1) < 1e-6);
    }
  });
}

TEST(SsimProperty, ImagesMayChangePlaces) {
  check("ssim(x, y) == ssim(y, x), and so do the gradients", [] {
    const SsimOptions options = any_options();
    const auto [x, y] = any_images(any_shape());
    const Tensor upstream = ssim_internal::upstream_for(x.shape, options);
    const Reference xy = computed(x, y, {.upstream = upstream}, options);
    const Reference yx = computed(y, x, {.upstream = upstream}, options);
    RC_ASSERT(xy.value == yx.value);
    RC_ASSERT(test::relative_l2(xy.x_gradient, yx.y_gradient) < 1e-6);
    RC_ASSERT(test::relative_l2(xy.y_gradient, yx.x_gradient) < 1e-6);
  });
}

// Computes with views of the images and options that fit them, and looks at the results through the
// same views.
template <class View>
void expect_to_commute(const View& view, const SsimOptions& options, const SsimOptions& of_views) {
  const auto [x, y] = any_images(any_shape());
  const ValueAndGradient plain = ssim_value_and_gradient(x, y, GradientOf::both, options);
  const ValueAndGradient viewed =
      ssim_value_and_gradient(view(x), view(y), GradientOf::both, of_views);
  const auto distance = [&](const Tensor& actual, const Tensor& expected) {
    return test::relative_l2(to_doubles(actual), to_doubles(view(expected)));
  };
  RC_ASSERT(distance(viewed.value, plain.value) < 1e-6);
  RC_ASSERT(distance(viewed.x_gradient, plain.x_gradient) < 1e-6);
  RC_ASSERT(distance(viewed.y_gradient, plain.y_gradient) < 1e-6);
}

TEST(SsimProperty, FlipsCommute) {
  check("the map of flipped images is the flipped map", [] {
    SsimOptions options = any_options();
    options.reduction = Reduction::none;
    const int axis = *rc::gen::inRange(0, 4);
    expect_to_commute(
        [&](const Tensor& tensor) { return flipped(tensor, axis); }, options, options);
  });
}

TEST(SsimProperty, TransposesCommute) {
  check("the map of transposed images is the transposed map", [] {
    SsimOptions options = any_options();
    options.reduction = Reduction::none;
    SsimOptions of_views = options;
    of_views.window_size = {options.window_size.x(), options.window_size.y()};
    of_views.sigma = {options.sigma.x(), options.sigma.y()};
    expect_to_commute(transposed, options, of_views);
  });
}

TEST(SsimProperty, BatchesAreTheirImages) {
  check("per_image and per_channel are what each alone gives, in all bits", [] {
    const Extents shape = any_shape();
    SsimOptions options = any_options();
    options.reduction = Reduction::per_channel;
    const auto [x, y] = any_images(shape);
    const std::vector<double> all = to_doubles(ssim(x, y, options));
    const std::int64_t pixels = shape[2] * shape[3];
    for (std::int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
      const auto alone = [&](const Tensor& image) {
        TensorView view = image;
        view.shape = {1, 1, shape[2], shape[3]};
        view.offset += plane * pixels;
        return view;
      };
      options.reduction = Reduction::mean;
      RC_ASSERT(item(ssim(alone(x), alone(y), options)) == all[static_cast<std::size_t>(plane)]);
    }
  });
}

TEST(SsimProperty, HasTheSameBitsForAnyNumberOfThreads) {
  // More than one tile along each axis.
#ifdef SIMILIS_SANITIZED
  const Extents shape = {1, 2, 150, 300};
#else
  const Extents shape = {2, 2, 150, 300};
#endif
  const auto [x, y] =
      ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::channels_last, 1);
  const test::Array mask = test::noise({150, 300}, DType::f32, Layout::dense, 3, 1);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Reduction reduction : ssim_internal::kReductions) {
      const SsimOptions options{.padding = Padding::reflect, .reduction = reduction, .mask = mask};
      const SsimRequest request{.l1_weight = 0.5};
      const auto run = [&, &x = x, &y = y](ParallelRunner runner) {
        return computed(x, y, request, options, true, true, Layout::dense, {.runner = runner});
      };
      const Reference expected = run(serial_runner());
      for (const int threads : {1, 2, 7, 7}) {
        SCOPED_TRACE(fmt::format("{} {} threads", backend.name, threads));
        ThreadPool pool(threads);
        const Reference actual = run(pool.runner());
        EXPECT_EQ(actual.value, expected.value);
        EXPECT_EQ(actual.x_gradient, expected.x_gradient);
        EXPECT_EQ(actual.y_gradient, expected.y_gradient);
      }
    }
  }
}

TEST(SsimProperty, CallersOnSeveralThreadsDoNotDisturbEachOther) {
  const auto [x, y] =
      ssim_internal::textured({1, 3, 140, 90}, DType::f32, Layout::dense, Layout::dense, 1);
  const Reference expected = computed(x, y, {}, {});
  std::vector<Reference> results(4);
  std::vector<std::thread> callers;
  for (Reference& result : results) {
    callers.emplace_back(
        [&, &images_x = x, &images_y = y] { result = computed(images_x, images_y, {}, {}); });
  }
  for (std::thread& caller : callers) caller.join();
  for (const Reference& result : results) {
    EXPECT_EQ(result.value, expected.value);
    EXPECT_EQ(result.x_gradient, expected.x_gradient);
  }
}

}  // namespace
}  // namespace similis
