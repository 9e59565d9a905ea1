// SPDX-License-Identifier: Apache-2.0
// The queueing of SSIMULACRA 2 on a GPU: batches on several streams at once, and in captured
// graphs, with the bits of the CPU. Skipped, with a message, where there is no GPU.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "similis/ssimulacra2.hpp"
#include "src/core/tensor/doubles.h"
#include "tests/arrays.h"
#include "tests/on_gpu.h"

namespace similis {
namespace {

using test::Layout;
using test::OnGpu;

constexpr Extents kShape = {3, 3, 101, 170};

void check(cudaError_t status) { ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status); }

class Ssimulacra2Cuda : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
    for (cudaStream_t& stream : streams_) {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
  }
  void TearDown() override {
    for (cudaStream_t stream : streams_) {
      if (stream != nullptr) check(cudaStreamDestroy(stream));
    }
  }
  cudaStream_t streams_[3] = {};
};

test::Array picture(std::uint32_t seed) {
  return test::noise(kShape, DType::u8, Layout::dense, seed, 256);
}

// Scores in the GPU's memory, read once all work on the stream is done.
std::vector<double> read(const Tensor& value, cudaStream_t stream) {
  std::vector<double> scores(static_cast<std::size_t>(value.shape.count()));
  gpu::copy_to_cpu(
      scores.data(), value.data(), scores.size() * sizeof(double), value.device, stream);
  return scores;
}

TEST_F(Ssimulacra2Cuda, BatchesInFlightHaveTheBitsOfTheCpu) {
  for (const Ssimulacra2Mode mode : {Ssimulacra2Mode::exact, Ssimulacra2Mode::fast}) {
    std::vector<OnGpu> images;
    std::vector<Tensor> values;
    std::vector<std::vector<double>> expected;
    std::vector<test::Array> arrays;
    for (std::uint32_t i = 0; i < 6; ++i) arrays.push_back(picture(i));
    for (std::size_t i = 0; i < 3; ++i) {
      images.emplace_back(arrays[2 * i], streams_[i]);
      images.emplace_back(arrays[2 * i + 1], streams_[i]);
      expected.push_back(to_doubles(ssimulacra2(arrays[2 * i], arrays[2 * i + 1], {.mode = mode})));
    }
    for (int round = 0; round < 4; ++round) {
      values.clear();
      for (std::size_t i = 0; i < 3; ++i) {
        values.push_back(ssimulacra2(images[2 * i].view(), images[2 * i + 1].view(), {.mode = mode},
            {.queue = Queue::cuda(streams_[i])}));
      }
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(read(values[i], streams_[i]), expected[i]);
    }
  }
}

// The more pairs there are, the higher are the strips that a warp of mode fast takes: 1 to 8
// stripes.
TEST_F(Ssimulacra2Cuda, PairsOfABatchHaveTheBitsOfOneAlone) {
  const Extents shape = {1, 3, 1000, 1500};
  const test::Array x = test::noise(shape, DType::u8, Layout::dense, 1, 256);
  const test::Array y = test::noise(shape, DType::u8, Layout::dense, 2, 256);
  const OnGpu gpu_x(x, streams_[0]), gpu_y(y, streams_[0]);
  for (const Ssimulacra2Mode mode : {Ssimulacra2Mode::exact, Ssimulacra2Mode::fast}) {
    const auto scores = [&](std::int64_t count) {
      const auto repeated = [&](TensorView view) {
        view.shape[0] = count;
        view.strides[0] = 0;
        return view;
      };
      const Tensor value = ssimulacra2(repeated(gpu_x.view()), repeated(gpu_y.view()),
          {.mode = mode}, {.queue = Queue::cuda(streams_[0])});
      return read(value, streams_[0]);
    };
    const double alone = item(ssimulacra2(x, y, {.mode = mode}));
    for (const std::int64_t count : {1, 2, 3, 5, 7, 20}) {
      EXPECT_THAT(scores(count), testing::Each(alone)) << count;
    }
  }
}

TEST_F(Ssimulacra2Cuda, GraphsReplayWithChangedPictures) {
  const test::Array first = picture(1);
  const OnGpu x(first, streams_[0]), y(first, streams_[0]);
  const Tensor value =
      allocate({kShape[0]}, DType::f64, x.view().device, {.queue = Queue::cuda(streams_[0])});
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal));
  ssimulacra2_into(x.view(), y.view(), {.value = value}, {}, {.queue = Queue::cuda(streams_[0])});
  check(cudaStreamEndCapture(streams_[0], &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  for (std::uint32_t seed = 2; seed < 5; ++seed) {
    const test::Array changed = picture(seed);
    gpu::copy_from_cpu(y.view().data(), changed.data(), static_cast<std::size_t>(kShape.count()),
        y.view().device, streams_[0]);
    check(cudaGraphLaunch(executable, streams_[0]));
    EXPECT_EQ(read(value, streams_[0]), to_doubles(ssimulacra2(first, changed)));
  }
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace similis
