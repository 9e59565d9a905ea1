// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "similis/c/core.h"
#include "similis/gradient.hpp"
#include "src/gpu/device.h"
#include "tests/arrays.h"
#include "tests/c_tensor.h"
#include "tests/on_gpu.h"
#include "tests/refusal.h"

#ifdef SIMILIS_HAS_CUDA
#include <cuda_runtime.h>
#endif

namespace similis {
namespace {

using test::Array;
using test::Layout;
using test::OnGpu;

constexpr DType kFloats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};
constexpr Layout kOwnPlaces[] = {Layout::dense, Layout::channels_last, Layout::permuted,
    Layout::reversed, Layout::sliced, Layout::offset};
const Extents kShapes[] = {{}, {1}, {2, 3, 37, 129}, {2, 1, 3, 5, 7}, {3, 2, 211, 307}};

Array textured(const Extents& shape, DType dtype, Layout layout) {
  return test::make(shape, dtype, layout, [](std::int64_t i) { return test::uniform(7, i) - 0.5; });
}

Tensor one_element(DType dtype, double value) {
  return test::make({}, dtype, Layout::dense, [=](std::int64_t) { return value; });
}

// Each element times the factor, rounded as the header says; memory between elements stays NaN.
void expect_scaled(const Array& scaled, const Array& before, double factor) {
  const std::vector<double> all = to_doubles(scaled), unscaled = to_doubles(before);
  const Array expected = test::make(scaled.shape, scaled.dtype, Layout::dense, [&](std::int64_t i) {
    const double value = unscaled[static_cast<std::size_t>(i)];
    if (scaled.dtype == DType::f64) return value * factor;
    return static_cast<double>(static_cast<float>(value) * static_cast<float>(factor));
  });
  EXPECT_EQ(all, to_doubles(expected));
  for (const double value : to_doubles(scaled.memory)) {
    if (!std::isnan(value)) {
      EXPECT_LT(std::abs(value), 0.6 * std::max(1.0, std::abs(factor)));
    }
  }
}

void expect_every_layout_scaled(bool on_gpu) {
  for (const Extents& shape : kShapes) {
    for (const DType dtype : kFloats) {
      for (const Layout layout : kOwnPlaces) {
        for (const double factor : {1., 0.2, -3., 65536.}) {
          if (dtype == DType::f16 && factor == 65536) continue;  // overflows
          const Array before = textured(shape, dtype, layout);
          const Array tensor = textured(shape, dtype, layout);
          const Tensor by = one_element(dtype == DType::f64 ? DType::f64 : DType::f32, factor);
          if (on_gpu) {
            const OnGpu there(tensor), by_there(by);
            scale(there.view(), by_there.view());
            there.bring_back();
          } else {
            scale(tensor, by);
          }
          SCOPED_TRACE(std::string(name(dtype)) + " " + test::name(layout));
          expect_scaled(tensor, before, factor);
        }
      }
    }
  }
}

TEST(Scale, EveryDTypeAndLayout) { expect_every_layout_scaled(false); }

TEST(Scale, OneLeavesTheMemoryAlone) {
  Array tensor = test::filled({3, 5}, DType::f32, Layout::dense, 0);
  const std::uint32_t signalling = 0x7f800001u;  // any product would quieten it
  std::memcpy(tensor.data(), &signalling, sizeof signalling);
  scale(tensor, one_element(DType::f32, 1));
  EXPECT_EQ(std::memcmp(tensor.data(), &signalling, sizeof signalling), 0);
}

TEST(Scale, RefusesWhatItCannotReplace) {
  const Array tensor = textured({2, 3}, DType::f32, Layout::dense);
  const Tensor one = one_element(DType::f32, 1);
  test::expect_refusal([&] { scale(tensor, textured({2}, DType::f32, Layout::dense)); },
      "scale: factor has shape [2]; it must have one element");
  test::expect_refusal([&] { scale(tensor, one_element(DType::u8, 1)); },
      "scale: factor is uint8; it must be float16, bfloat16, float32 or float64");
  test::expect_refusal([&] { scale(test::filled({2}, DType::u16, Layout::dense, 0), one); },
      "scale: tensor is uint16; it must be float16, bfloat16, float32 or float64");
  test::expect_refusal(
      [&] {
        scale(textured({2, 3}, DType::f32, Layout::expanded), one);
      },
      "scale: tensor has strides [0, 0] for shape [2, 3]; each element must have a place of its "
      "own");
  test::expect_refusal([&] { scale(TensorView(), one); }, "scale: tensor has no data");
}

TEST(Scale, InC) {
  const Array before = textured({2, 3}, DType::f32, Layout::dense),
              tensor = textured({2, 3}, DType::f32, Layout::dense);
  const Tensor half = one_element(DType::f32, 0.5);
  const test::CTensor c_tensor(tensor), c_half(half);
  EXPECT_EQ(similis_scale(c_tensor.get(), c_half.get(), nullptr), SIMILIS_OK);
  expect_scaled(tensor, before, 0.5);
  EXPECT_EQ(similis_scale(c_tensor.get(), nullptr, nullptr), SIMILIS_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(similis_last_error()), "scale: factor is NULL; it must be a tensor");
}

#ifdef SIMILIS_HAS_CUDA
class ScaleCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
};

TEST_F(ScaleCuda, EveryDTypeAndLayout) { expect_every_layout_scaled(true); }

TEST_F(ScaleCuda, MoreElementsThanRunAtOnce) {
  const Extents shape{3, 1021, 1031};
  const Array before = textured(shape, DType::f32, Layout::dense),
              tensor = textured(shape, DType::f32, Layout::dense);
  const OnGpu there(tensor), half(one_element(DType::f32, 0.2));
  scale(there.view(), half.view());
  there.bring_back();
  expect_scaled(tensor, before, 0.2);
}

TEST_F(ScaleCuda, DenseFromAnyElementOn) {
  for (const DType dtype : kFloats) {
    for (const std::int64_t first : {1, 2, 3, 5, 7}) {
      for (const std::int64_t count : {1, 2, 6, 64, 4099}) {
        const Array before = textured({first + count + 9}, dtype, Layout::dense),
                    tensor = textured({first + count + 9}, dtype, Layout::dense);
        const auto part = [&](TensorView whole) {
          whole.offset += first;
          whole.shape = {count};
          return whole;
        };
        const OnGpu there(tensor), by(one_element(DType::f32, 0.75));
        scale(part(there.view()), by.view());
        there.bring_back();
        scale(part(before), one_element(DType::f32, 0.75));
        EXPECT_EQ(to_doubles(tensor), to_doubles(before)) << name(dtype) << " " << first;
      }
    }
  }
}

// Destroyed after all memory that is given back on it.
struct Stream {
  cudaStream_t handle = nullptr;
  Stream() { (void)cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking); }
  ~Stream() { (void)cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

TEST_F(ScaleCuda, AGraphReadsTheFactorWhenItIsReplayed) {
  const Stream stream;
  ASSERT_NE(stream.handle, nullptr);
  const Array before = textured({2, 37, 129}, DType::f32, Layout::dense),
              tensor = textured({2, 37, 129}, DType::f32, Layout::dense);
  const OnGpu there(tensor, stream.handle), factor(one_element(DType::f32, 1), stream.handle);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  scale(there.view(), factor.view(), {.queue = Queue::cuda(stream.handle)});
  ASSERT_EQ(cudaStreamEndCapture(stream.handle, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  double product = 1;
  for (const double by : {1., 0.5, 1., 4.}) {
    product *= by;
    const auto rounded = static_cast<float>(by);
    gpu::copy_from_cpu(
        factor.view().data(), &rounded, sizeof rounded, {DeviceKind::cuda, 0}, stream.handle);
    ASSERT_EQ(cudaGraphLaunch(executable, stream.handle), cudaSuccess);
    there.bring_back();
    expect_scaled(tensor, before, product);
  }
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}
#endif

}  // namespace
}  // namespace similis
