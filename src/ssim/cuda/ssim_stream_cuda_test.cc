// SPDX-License-Identifier: Apache-2.0
// The queueing of SSIM's work on a GPU: on the caller's stream beside other work, into captured
// graphs, on each device, in memory that the caller gives, and over arrays that 32 bits do not
// index. Skipped, with a message, where there is no GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "similis/ms_ssim.hpp"
#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::Pair;
using ssim_internal::reference_ssim;
using test::Layout;
using test::OnGpu;

void check(cudaError_t status) { ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status); }

class SsimCudaStream : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    check(cudaStreamDestroy(stream_));
    check(cudaStreamDestroy(other_));
  }
  cudaStream_t stream_ = nullptr, other_ = nullptr;
};

Pair pictures(const Extents& shape, std::uint32_t seed, DType dtype = DType::f32) {
  return ssim_internal::textured(
      shape, dtype, Layout::dense, Layout::dense, dtype == DType::u8 ? 255 : 1, seed);
}

// A call's value and gradient by x, read back.
struct Result {
  double value;
  std::vector<double> gradient;
};

std::vector<double> on_cpu(const TensorView& view, cudaStream_t stream) {
  const Tensor copy = allocate(view.shape, view.dtype);
  gpu::copy_to_cpu(copy.data(), view.data(),
      static_cast<std::size_t>(view.shape.count()) * size_bytes(view.dtype), view.device, stream);
  return to_doubles(copy);
}

Result run(const TensorView& x, const TensorView& y, cudaStream_t stream) {
  const ValueAndGradient result =
      ssim_value_and_gradient(x, y, GradientOf::x, {}, {.queue = Queue::cuda(stream)});
  return {on_cpu(result.value, stream)[0], on_cpu(result.x_gradient, stream)};
}

TEST_F(SsimCudaStream, OtherStreamsLoadChangesNothing) {
  const Pair pair = pictures({2, 3, 211, 320}, 1), load = pictures({4, 3, 300, 512}, 2);
  const OnGpu x(pair.x, stream_), y(pair.y, stream_), load_x(load.x, other_),
      load_y(load.y, other_);
  const Result expected = run(x.view(), y.view(), stream_);
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 3; ++k) {
      ssim_value_and_gradient(
          load_x.view(), load_y.view(), GradientOf::both, {}, {.queue = Queue::cuda(other_)});
    }
    const Result actual = run(x.view(), y.view(), stream_);
    EXPECT_EQ(actual.value, expected.value);
    EXPECT_EQ(actual.gradient, expected.gradient);
  }
  check(cudaStreamSynchronize(other_));
}

// Captured once, a call is run again on whatever its arrays then hold.
class CapturedCall {
 public:
  template <class Call> CapturedCall(cudaStream_t stream, const Call& call) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    call();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable_, graph, 0));
    check(cudaGraphDestroy(graph));
  }
  ~CapturedCall() { check(cudaGraphExecDestroy(executable_)); }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;
  void replay(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

void overwrite(const TensorView& to, const Tensor& from, cudaStream_t stream) {
  gpu::copy_from_cpu(to.data(), from.data(),
      static_cast<std::size_t>(from.shape.count()) * size_bytes(from.dtype), to.device, stream);
}

TEST_F(SsimCudaStream, GraphsReplayWithChangedInputs) {
  const Extents shape = {1, 3, 200, 240};
  struct Variant {
    SsimOptions options;
    DType dtype;
  };
  for (const Variant& v : {Variant{{}, DType::f32}, Variant{{.window_size = 7}, DType::f32},
           Variant{{.padding = Padding::same}, DType::f16},
           Variant{{.reduction = Reduction::per_channel}, DType::f32}}) {
    const Pair first = pictures(shape, 1, v.dtype);
    const OnGpu x(first.x, stream_), y(first.y, stream_);
    const Tensor value = allocate(ssim_internal::value_shape(shape, v.options), DType::f32,
        x.view().device, {.queue = Queue::cuda(stream_)});
    const Tensor gradient =
        allocate(shape, v.dtype, x.view().device, {.queue = Queue::cuda(stream_)});
    const auto call = [&](cudaStream_t stream) {
      ssim_into(x.view(), y.view(), {.value = value, .x_gradient = gradient}, v.options,
          {.queue = Queue::cuda(stream)});
    };
    const CapturedCall captured(stream_, [&] { call(stream_); });
    for (std::uint32_t seed = 1; seed < 4; ++seed) {
      const Pair pair = pictures(shape, seed, v.dtype);
      overwrite(x.view(), pair.x, stream_);
      overwrite(y.view(), pair.y, stream_);
      captured.replay(other_);
      const std::vector<double> values = on_cpu(value, other_);
      const std::vector<double> slopes = on_cpu(gradient, other_);
      call(stream_);
      EXPECT_EQ(on_cpu(value, stream_), values);
      EXPECT_EQ(on_cpu(gradient, stream_), slopes);
      const ssim_internal::Reference expected = reference_ssim(pair.x, pair.y, {}, v.options);
      EXPECT_LE(test::max_difference(values, expected.value), 1e-5);
      EXPECT_LE(
          test::relative_l2(slopes, expected.x_gradient), v.dtype == DType::f16 ? 2e-3 : 1e-5);
    }
  }
}

TEST_F(SsimCudaStream, GraphsOfMsSsimReplayToo) {
  const Extents shape = {1, 2, 192, 208};
  const Pair first = pictures(shape, 1);
  const OnGpu x(first.x, stream_), y(first.y, stream_);
  const Tensor value = allocate({}, DType::f32, x.view().device, {.queue = Queue::cuda(stream_)});
  const Tensor gradient =
      allocate(shape, DType::f32, x.view().device, {.queue = Queue::cuda(stream_)});
  const CapturedCall captured(stream_, [&] {
    ms_ssim_into(x.view(), y.view(), {.value = value, .x_gradient = gradient}, {},
        {.queue = Queue::cuda(stream_)});
  });
  for (std::uint32_t seed = 1; seed < 4; ++seed) {
    const Pair pair = pictures(shape, seed);
    overwrite(x.view(), pair.x, stream_);
    overwrite(y.view(), pair.y, stream_);
    captured.replay(stream_);
    EXPECT_NEAR(on_cpu(value, stream_)[0], item(ms_ssim(pair.x, pair.y)), 1e-5);
    EXPECT_LE(test::relative_l2(on_cpu(gradient, stream_),
                  to_doubles(ms_ssim_value_and_gradient(pair.x, pair.y).x_gradient)),
        1e-5);
  }
}

// Counts the requests of a call to its allocator.
struct Counter {
  std::size_t bytes = 0, calls = 0;
  Allocator allocator() {
    return {[](void* context, std::size_t size, Device device, void* stream) {
              auto* const counter = static_cast<Counter*>(context);
              counter->bytes += size;
              ++counter->calls;
              return gpu::device_functions(device.kind)->allocate(size, device, stream);
            },
        [](void*, void* pointer, std::size_t, Device device, void* stream) {
          gpu::device_functions(device.kind)->release(pointer, device, stream);
        },
        this};
  }
};

// Beyond results, a call takes a small workspace, once.
TEST_F(SsimCudaStream, TheWorkspaceIsSmall) {
  const Extents shape = {2, 3, 300, 500};
  for (const Layout layout : {Layout::dense, Layout::channels_last}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32}) {
      for (const SsimOptions& options : {SsimOptions{}, SsimOptions{.padding = Padding::same},
               SsimOptions{.reduction = Reduction::none}}) {
        const Pair pair =
            ssim_internal::textured(shape, dtype, layout, layout, dtype == DType::u8 ? 255 : 1);
        const OnGpu x(pair.x, stream_), y(pair.y, stream_);
        const Execution own{.queue = Queue::cuda(stream_)};
        const Tensor value =
            allocate(ssim_internal::value_shape(shape, options), DType::f32, x.view().device, own);
        SsimRequest request{.value = value};
        Tensor gradient;
        if (dtype != DType::u8) {
          gradient = allocate(shape, dtype, x.view().device, own);
          request.x_gradient = gradient;
        }
        Counter counter;
        ssim_into(x.view(), y.view(), request, options,
            {.queue = Queue::cuda(stream_), .allocator = counter.allocator()});
        EXPECT_LE(counter.calls, options.reduction == Reduction::none ? 0u : 1u);
        EXPECT_LE(counter.bytes, 64u << 10);
        check(cudaStreamSynchronize(stream_));
      }
    }
  }
}

TEST_F(SsimCudaStream, EveryDeviceOfTheProcessGivesTheSame) {
  if (gpu::device_count(DeviceKind::cuda) < 2)
    GTEST_SKIP() << "there is one GPU: " << gpu::describe(DeviceKind::cuda);
  const Pair pair = pictures({1, 3, 150, 260}, 1);
  std::vector<double> first;
  for (int index = 0; index < gpu::device_count(DeviceKind::cuda); ++index) {
    const Device device{DeviceKind::cuda, index};
    const auto copied = [&](const Tensor& array) {
      const Tensor copy = allocate(array.shape, array.dtype, device);
      overwrite(copy, array, nullptr);
      return copy;
    };
    const Tensor x = copied(pair.x), y = copied(pair.y);
    const ValueAndGradient result = ssim_value_and_gradient(x, y);
    std::vector<double> all = on_cpu(result.x_gradient, nullptr);
    all.push_back(on_cpu(result.value, nullptr)[0]);
    if (index == 0) first = all;
    EXPECT_EQ(all, first) << index;
  }
  int current = -1;
  check(cudaGetDevice(&current));
  EXPECT_EQ(current, 0);
}

// 2 GiB of pixels and more: the last rows' map is that of the last rows alone.
TEST_F(SsimCudaStream, IndicesBeyond32Bits) {
  constexpr std::int64_t kSide = 46500, kTile = 500, kLast = 40;
  std::size_t free_bytes = 0, all_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &all_bytes));
  if (free_bytes < (std::size_t{16} << 30)) {
    GTEST_SKIP() << "16 GiB of the GPU's memory are needed, " << (free_bytes >> 20)
                 << " MiB are free";
  }
  const Pair tile = pictures({1, 1, kTile, kSide}, 1, DType::u8);
  const Device device{DeviceKind::cuda, 0};
  const Execution exec{.queue = Queue::cuda(stream_)};
  const auto repeated = [&](const Tensor& rows) {
    const Tensor image = allocate({1, 1, kSide, kSide}, DType::u8, device, exec);
    for (std::int64_t row = 0; row < kSide; row += kTile) {
      check(cudaMemcpyAsync(static_cast<char*>(image.data()) + row * kSide, rows.data(),
          static_cast<std::size_t>(kTile * kSide), cudaMemcpyHostToDevice, stream_));
    }
    return image;
  };
  const Tensor x = repeated(tile.x), y = repeated(tile.y);
  const SsimOptions options{.reduction = Reduction::none};
  const Tensor map = ssim(x, y, options, exec);
  const auto last_rows = [&](const Tensor& rows) {
    TensorView view = rows;
    view.shape[2] = kLast;
    view.offset += (kTile - kLast) * kSide;
    return view;
  };
  const std::vector<double> expected =
      to_doubles(ssim(last_rows(tile.x), last_rows(tile.y), options));
  const std::int64_t width = kSide - 10, rows = kLast - 10;
  TensorView last = map;
  last.shape = {1, 1, rows, width};
  last.offset += (width - rows) * width;
  EXPECT_LE(test::max_difference(on_cpu(last, stream_), expected), ssim_internal::kMapOnGpu);
  // Every 500 rows of the map are alike, so that their mean is the whole's.
  const TensorView period(map.data(), {1, 1, kTile, width}, DType::f32, device);
  double sum = 0;
  for (const double element : on_cpu(period, stream_)) sum += element;
  EXPECT_NEAR(
      on_cpu(ssim(x, y, {}, exec), stream_)[0], sum / static_cast<double>(kTile * width), 1e-4);
}

}  // namespace
}  // namespace similis
