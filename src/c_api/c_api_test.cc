// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the C interface. Each room tests its own entry.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>

#include "similis/error.hpp"
#include "similis/similis.h"
#include "src/c_api/call.h"
#include "src/core/parallel.h"
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif

/// From caller_test.c: empty, or what went wrong.
extern "C" const char* complaint_of_a_c_caller(void);

namespace similis::c_api {
namespace {

const Arguments kArguments("op");
std::array<float, 24> elements{};
std::array<std::int64_t, 3> extents = {2, 3, 4};

similis_tensor tensor_2x3x4() {
  return {.data = elements.data(),
      .device = {SIMILIS_CPU, 0},
      .ndim = 3,
      .dtype = SIMILIS_FLOAT32,
      .shape = extents.data(),
      .strides = nullptr,
      .byte_offset = 0};
}

std::string refusal(const similis_tensor& tensor) {
  const similis_status status = call([&] { kArguments.image("x", &tensor); });
  return status == SIMILIS_INVALID_ARGUMENT ? similis_last_error() : "no refusal";
}

TEST(CApi, TensorIsLaidOutAsDlpackSays) {
  EXPECT_EQ(offsetof(similis_tensor, data), 0u);
  EXPECT_EQ(offsetof(similis_tensor, device), 8u);
  EXPECT_EQ(offsetof(similis_tensor, ndim), 16u);
  EXPECT_EQ(offsetof(similis_tensor, dtype), 20u);
  EXPECT_EQ(offsetof(similis_tensor, shape), 24u);
  EXPECT_EQ(offsetof(similis_tensor, strides), 32u);
  EXPECT_EQ(offsetof(similis_tensor, byte_offset), 40u);
  EXPECT_EQ(sizeof(similis_tensor), 48u);
  EXPECT_EQ(offsetof(similis_device, index), 4u);
  EXPECT_EQ(offsetof(similis_dtype, bits), 1u);
  EXPECT_EQ(offsetof(similis_dtype, lanes), 2u);
}

#ifdef DLPACK_VERSION
TEST(CApi, TensorIsLaidOutAsDlpacksHeader) {
  EXPECT_EQ(offsetof(similis_tensor, data), offsetof(DLTensor, data));
  EXPECT_EQ(offsetof(similis_tensor, device), offsetof(DLTensor, device));
  EXPECT_EQ(offsetof(similis_tensor, ndim), offsetof(DLTensor, ndim));
  EXPECT_EQ(offsetof(similis_tensor, dtype), offsetof(DLTensor, dtype));
  EXPECT_EQ(offsetof(similis_tensor, shape), offsetof(DLTensor, shape));
  EXPECT_EQ(offsetof(similis_tensor, strides), offsetof(DLTensor, strides));
  EXPECT_EQ(offsetof(similis_tensor, byte_offset), offsetof(DLTensor, byte_offset));
  EXPECT_EQ(sizeof(similis_tensor), sizeof(DLTensor));
  EXPECT_EQ(+SIMILIS_CPU, kDLCPU);
  EXPECT_EQ(+SIMILIS_CUDA, kDLCUDA);
  EXPECT_EQ(+SIMILIS_CUDA_HOST, kDLCUDAHost);
  constexpr similis_dtype u8 = SIMILIS_UINT8, f32 = SIMILIS_FLOAT32, bf16 = SIMILIS_BFLOAT16;
  EXPECT_EQ(u8.code, kDLUInt);
  EXPECT_EQ(f32.code, kDLFloat);
  EXPECT_EQ(bf16.code, kDLBfloat);
}
#endif

TEST(CApi, ReadsShapeStridesAndOffset) {
  similis_tensor tensor = tensor_2x3x4();
  const TensorView dense = kArguments.image("x", &tensor);
  EXPECT_EQ(dense.data(), elements.data());
  EXPECT_EQ(dense.shape, Extents({2, 3, 4}));
  EXPECT_EQ(dense.strides, Extents({12, 4, 1}));
  EXPECT_EQ(dense.dtype, DType::f32);
  EXPECT_EQ(dense.device, Device{});

  std::array<std::int64_t, 3> strides = {1, -2, 6};
  tensor.strides = strides.data();
  tensor.byte_offset = 16;
  const TensorView view = kArguments.image("x", &tensor);
  EXPECT_EQ(view.data(), elements.data() + 4);
  EXPECT_EQ(view.strides, Extents({1, -2, 6}));
}

TEST(CApi, IgnoresTheStrideOfAnAxisOfOneElement) {
  std::array<std::int64_t, 3> shape = {1, 3, 4}, strides = {999, 4, 1};
  similis_tensor tensor = tensor_2x3x4();
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  EXPECT_EQ(kArguments.image("x", &tensor).strides, Extents({12, 4, 1}));
}

TEST(CApi, ReadsEveryTypeAndDevice) {
  const std::array<std::pair<similis_dtype, DType>, 9> types = {{{SIMILIS_UINT8, DType::u8},
      {SIMILIS_UINT16, DType::u16}, {SIMILIS_FLOAT16, DType::f16}, {SIMILIS_BFLOAT16, DType::bf16},
      {SIMILIS_FLOAT32, DType::f32}, {SIMILIS_FLOAT64, DType::f64}, {SIMILIS_INT16, DType::i16},
      {SIMILIS_INT32, DType::i32}, {SIMILIS_BOOL, DType::boolean}}};
  similis_tensor tensor = tensor_2x3x4();
  for (const auto& [c_type, type] : types) {
    tensor.dtype = c_type;
    EXPECT_EQ(kArguments.image("x", &tensor).dtype, type);
  }
  tensor.device = {SIMILIS_CUDA, 1};
  EXPECT_EQ(kArguments.image("x", &tensor).device, (Device{DeviceKind::cuda, 1}));
  tensor.device = {SIMILIS_CUDA_HOST, 1};
  EXPECT_EQ(kArguments.image("x", &tensor).device, Device{});
}

TEST(CApi, RefusesTensorsThatSayNothingSensible) {
  similis_tensor tensor = tensor_2x3x4();
  tensor.data = nullptr;
  EXPECT_EQ(refusal(tensor), "op: x.data is NULL; it must point to the elements");
  tensor = tensor_2x3x4();
  tensor.ndim = 9;
  EXPECT_EQ(refusal(tensor), "op: x.ndim is 9; it must be from 0 to 8");
  tensor.ndim = -1;
  EXPECT_EQ(refusal(tensor), "op: x.ndim is -1; it must be from 0 to 8");
  tensor = tensor_2x3x4();
  tensor.shape = nullptr;
  EXPECT_EQ(refusal(tensor), "op: x.shape is NULL; it must point to 3 extents");
  tensor = tensor_2x3x4();
  tensor.device.type = 8;
  EXPECT_EQ(refusal(tensor),
      "op: x.device.type is 8; it must be 1 (CPU), 2 (CUDA), 3 (CUDA's pinned memory) or "
      "7 (Vulkan)");
  tensor = tensor_2x3x4();
  tensor.dtype = {0, 64, 1};
  EXPECT_EQ(refusal(tensor),
      "op: x.dtype has code 0, bits 64 and lanes 1; it must be bool, uint8, uint16, int16, int32, "
      "float16, bfloat16, float32 or float64, with 1 lane");
  tensor.dtype = {2, 32, 4};
  EXPECT_EQ(refusal(tensor),
      "op: x.dtype has code 2, bits 32 and lanes 4; it must be bool, uint8, uint16, int16, int32, "
      "float16, bfloat16, float32 or float64, with 1 lane");
}

TEST(CApi, RefusesAMissingImageAndTakesAMissingOptional) {
  EXPECT_EQ(call([] { kArguments.image("x", nullptr); }), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "op: x is NULL; it must be a tensor");
  EXPECT_TRUE(kArguments.optional("upstream", nullptr).empty());
}

struct Options {
  std::size_t struct_size;
  double first, second;
};
constexpr Options kDefaults = {sizeof(Options), 1, 2};

TEST(CApi, OlderCallersGetDefaultsForWhatTheirStructLacks) {
  const Options given = {offsetof(Options, second), 10, 20};
  EXPECT_EQ(kArguments.options(&given, kDefaults).first, 10);
  EXPECT_EQ(kArguments.options(&given, kDefaults).second, 2);
  const Options* none = nullptr;
  EXPECT_EQ(kArguments.options(none, kDefaults).first, 1);
  const Options all = {sizeof(Options), 10, 20};
  EXPECT_EQ(kArguments.options(&all, kDefaults).second, 20);
}

TEST(CApi, RefusesStructsOfNoKnownSize) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, sizeof(Options) + 8}) {
    const Options given = {size, 10, 20};
    EXPECT_EQ(call([&] { kArguments.options(&given, kDefaults); }), SIMILIS_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(similis_last_error()),
        "op: options.struct_size is " + std::to_string(size) +
            "; it must be the size of the struct, at most 24 bytes in this version of similis");
  }
}

TEST(CApi, EveryExceptionBecomesAStatus) {
  EXPECT_EQ(call([] {}), SIMILIS_OK);
  EXPECT_EQ(call([] { throw InvalidArgument("argument"); }), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "argument");
  EXPECT_EQ(call([] { throw DeviceError("device"); }), SIMILIS_DEVICE_ERROR);
  EXPECT_STREQ(similis_last_error(), "device");
  EXPECT_EQ(call([] { throw std::bad_alloc(); }), SIMILIS_FAILURE);
  EXPECT_STREQ(similis_last_error(), "out of memory");
  EXPECT_EQ(call([] { throw std::runtime_error("other"); }), SIMILIS_FAILURE);
  EXPECT_STREQ(similis_last_error(), "other");
  EXPECT_EQ(call([] { throw 1; }), SIMILIS_FAILURE);
  EXPECT_EQ(call([] {}), SIMILIS_OK);
  EXPECT_STREQ(similis_last_error(), "a callback threw something that is no std::exception");
}

TEST(CApi, EachThreadHasItsOwnLastError) {
  call([] { throw Error("mine"); });
  std::string other = "unset";
  std::thread([&] { other = similis_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_STREQ(similis_last_error(), "mine");
}

TEST(CApi, AThreadPoolRunsEveryIndexOnce) {
  similis_thread_pool* pool = nullptr;
  ASSERT_EQ(similis_thread_pool_create(3, &pool), SIMILIS_OK);
  std::array<std::atomic<int>, 100> visits{};
  const similis_task visit = [](void* context, std::int64_t index) {
    ++static_cast<std::atomic<int>*>(context)[index];
  };
  const similis_runner runner = similis_thread_pool_runner(pool);
  runner.run(runner.context, visit, visits.data(), 100);
  similis_thread_pool_destroy(pool);
  const similis_runner serial = similis_serial_runner();
  serial.run(serial.context, visit, visits.data(), 100);
  for (const std::atomic<int>& count : visits) EXPECT_EQ(count, 2);
  similis_thread_pool_destroy(nullptr);
}

TEST(CApi, RefusesImpossiblePools) {
  similis_thread_pool* pool = nullptr;
  EXPECT_EQ(similis_thread_pool_create(-1, &pool), SIMILIS_INVALID_ARGUMENT);
  EXPECT_EQ(pool, nullptr);
  EXPECT_STREQ(similis_last_error(),
      "ThreadPool: threads is -1; it must be from 1 to 1024, or 0 for one per core");
  EXPECT_EQ(similis_thread_pool_create(1, nullptr), SIMILIS_INVALID_ARGUMENT);
}

// The requests that a caller's callbacks got.
struct Caller {
  std::int64_t tasks = 0;
  std::size_t allocated = 0, released = 0;
  void* stream = nullptr;
  int device_type = 0;
};

similis_execution execution_of(Caller& caller) {
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.stream = &caller;
  execution.runner.context = &caller;
  execution.runner.run = [](void* context, similis_task task, void* task_context,
                             std::int64_t count) {
    static_cast<Caller*>(context)->tasks += count;
    for (std::int64_t index = 0; index < count; ++index) task(task_context, index);
  };
  execution.allocator.context = &caller;
  execution.allocator.allocate = [](void* context, std::size_t bytes, similis_device device,
                                     void* stream) -> void* {
    Caller& self = *static_cast<Caller*>(context);
    self.allocated += bytes;
    self.stream = stream;
    self.device_type = device.type;
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  };
  execution.allocator.release = [](void* context, void* pointer, std::size_t bytes, similis_device,
                                    void*) {
    static_cast<Caller*>(context)->released += bytes;
    std::free(pointer);
  };
  return execution;
}

TEST(CApi, WorkRunsOnTheCallersThreadsAndInTheCallersMemory) {
  Caller caller;
  const similis_execution given = execution_of(caller);
  const CallExecution execution(kArguments, &given);
  parallel_for(execution, 7, [](std::int64_t) {});
  EXPECT_EQ(caller.tasks, 7);
  { const Tensor tensor = allocate({10}, DType::f32, {}, execution); }
  EXPECT_EQ(caller.allocated, 40u);
  EXPECT_EQ(caller.released, 40u);
  EXPECT_EQ(caller.stream, &caller);
  EXPECT_EQ(caller.device_type, +SIMILIS_CPU);
}

TEST(CApi, RefusesAReleaseWithoutAnAllocate) {
  Caller caller;
  similis_execution given = execution_of(caller);
  given.allocator.allocate = nullptr;
  EXPECT_EQ(
      call([&] { const CallExecution execution(kArguments, &given); }), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(
      similis_last_error(), "op: execution.allocator has a release function but no allocate");
}

TEST(CApi, TheLibrarysVersionIsThatOfTheHeaders) {
  EXPECT_STREQ(similis_version(), SIMILIS_VERSION);
}

TEST(CApi, ServesACallerCompiledAsC11) { EXPECT_STREQ(complaint_of_a_c_caller(), ""); }

TEST(CApi, SetsTheNumberOfThreads) {
  std::int32_t threads = 0;
  EXPECT_EQ(similis_set_num_threads(3), SIMILIS_OK);
  EXPECT_EQ(similis_get_num_threads(&threads), SIMILIS_OK);
  EXPECT_EQ(threads, 3);
  EXPECT_EQ(similis_set_num_threads(-1), SIMILIS_INVALID_ARGUMENT);
  EXPECT_EQ(similis_get_num_threads(nullptr), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(
      similis_last_error(), "similis_get_num_threads: threads is NULL; it must point to a number");
  EXPECT_EQ(similis_set_num_threads(0), SIMILIS_OK);
  EXPECT_NE(similis_limited_runner(2).run, nullptr);
  EXPECT_EQ(similis_limited_runner(-1).run, similis_serial_runner().run);
}

}  // namespace
}  // namespace similis::c_api
