// SPDX-License-Identifier: Apache-2.0
// scale() on a GPU: many elements, any first element, captured graphs. Skipped, with a message,
// where there is no GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "src/gpu/device.h"
#include "src/scale/test_scaled.h"

namespace similis {
namespace {

using namespace scale_test;

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

}  // namespace
}  // namespace similis
