// SPDX-License-Identifier: Apache-2.0
// The C interface for torch's tensors, by tvm-ffi, which takes them as they are, with the stream
// that torch would use and with torch's allocator, in half a microsecond a tensor.
//
// call(operation, options, threads, tensors…) is similis_call(): operation is a position in
// similis_schema()'s list, options the address of a struct, threads the number of threads that the
// call may use, and a tensor that is left out is None. attempt(…) is call(…) for callers who have
// another way: where a tensor that is given has no memory, which the library would take for one
// that is left out, it calls nothing and returns kHasNoMemory. scale(tensor, factor, threads) is
// similis_scale().
// All return the status of the C interface. similis/_library calls the same functions by ctypes.
// Only tvm-ffi's C interface is used: it stays the same from one of its versions to the next.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "similis/c/core.h"
#include "similis/c/threads.h"

namespace {

static_assert(sizeof(similis_tensor) == sizeof(DLTensor));

// Workspaces from the framework's allocator. What a call leaves is given back at its end.
class FrameworkMemory {
 public:
  FrameworkMemory() = default;
  FrameworkMemory(const FrameworkMemory&) = delete;
  FrameworkMemory& operator=(const FrameworkMemory&) = delete;
  ~FrameworkMemory() {
    for (const Block& block : blocks_) TVMFFIObjectDecRef(block.owner);
  }

  similis_allocator allocator() {
    return {.allocate = allocate, .release = release, .context = this};
  }

 private:
  struct Block {
    void* data;
    TVMFFIObjectHandle owner;
  };

  static void* allocate(void* context, std::size_t bytes, similis_device device, void*) {
    auto extent = static_cast<std::int64_t>(bytes);
    std::int64_t stride = 1;
    DLTensor wanted{.data = nullptr,
        .device = {static_cast<DLDeviceType>(device.type), device.index},
        .ndim = 1,
        .dtype = {kDLUInt, 8, 1},
        .shape = &extent,
        .strides = &stride,
        .byte_offset = 0};
    TVMFFIObjectHandle owner = nullptr;
    if (TVMFFIEnvTensorAlloc(&wanted, &owner) != 0) return nullptr;
    void* data = TVMFFITensorGetDLTensorPtr(owner)->data;
    static_cast<FrameworkMemory*>(context)->blocks_.push_back({data, owner});
    return data;
  }

  static void release(void* context, void* pointer, std::size_t, similis_device, void*) {
    auto& blocks = static_cast<FrameworkMemory*>(context)->blocks_;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].data != pointer) continue;
      TVMFFIObjectDecRef(blocks[i].owner);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }

  std::vector<Block> blocks_;
};

// Null for what is none.
const similis_tensor* as_tensor(const TVMFFIAny& argument) {
  if (argument.type_index == kTVMFFIDLTensorPtr) {
    return static_cast<const similis_tensor*>(argument.v_ptr);
  }
  if (argument.type_index != kTVMFFITensor) return nullptr;
  return reinterpret_cast<const similis_tensor*>(TVMFFITensorGetDLTensorPtr(argument.v_obj));
}

// The stream that the framework would use.
void* stream_of(similis_device device) {
  return device.type == SIMILIS_CUDA ? TVMFFIEnvGetStream(device.type, device.index) : nullptr;
}

// A call runs on the framework's stream, with its memory where it lends some, or on as many
// threads as it uses itself.
similis_execution execution_on(
    similis_device device, std::int64_t threads, FrameworkMemory& memory) {
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.stream = stream_of(device);
  if (device.type != SIMILIS_CUDA && threads > 0) {
    execution.runner = similis_limited_runner(static_cast<std::int32_t>(threads));
  }
  if (device.type == SIMILIS_CUDA && TVMFFIEnvGetDLPackManagedTensorAllocator() != nullptr) {
    execution.allocator = memory.allocator();
  }
  return execution;
}

bool is_integer(const TVMFFIAny& argument) {
  return argument.type_index == kTVMFFIInt || argument.type_index == kTVMFFIBool;
}

bool is_tensor_or_none(const TVMFFIAny& argument) {
  return argument.type_index == kTVMFFINone || as_tensor(argument) != nullptr;
}

int refuse(const char* sentence) {
  TVMFFIErrorSetRaisedFromCStr("TypeError", sentence);
  return -1;
}

int succeed(similis_status status, TVMFFIAny* result) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = status;
  return 0;
}

constexpr std::int32_t kFirstTensor = 3;  // behind the operation, its options and the threads

constexpr similis_status kHasNoMemory = -1;

int call(const TVMFFIAny* arguments, std::int32_t count, bool needs_memory, TVMFFIAny* result) {
  std::array<const similis_tensor*, 24> tensors{};
  const std::int32_t given = count - kFirstTensor;
  bool are_right = given > 0 && given <= static_cast<std::int32_t>(tensors.size());
  for (std::int32_t i = 0; are_right && i < count; ++i) {
    are_right = i < kFirstTensor ? is_integer(arguments[i]) : is_tensor_or_none(arguments[i]);
    if (i >= kFirstTensor) {
      tensors[static_cast<std::size_t>(i - kFirstTensor)] = as_tensor(arguments[i]);
    }
  }
  if (!are_right || tensors[0] == nullptr) {
    return refuse(
        "similis: the binding takes an operation, an address, a number of threads and tensors");
  }
  for (std::int32_t i = 0; needs_memory && i < given; ++i) {
    const similis_tensor* const tensor = tensors[static_cast<std::size_t>(i)];
    if (tensor != nullptr && tensor->data == nullptr) return succeed(kHasNoMemory, result);
  }
  FrameworkMemory memory;
  const similis_execution execution =
      execution_on(tensors[0]->device, arguments[2].v_int64, memory);
  const auto* const options = reinterpret_cast<const void*>(arguments[1].v_int64);
  return succeed(similis_call(static_cast<std::int32_t>(arguments[0].v_int64), tensors.data(),
                     given, options, &execution),
      result);
}

int scale(const TVMFFIAny* arguments, std::int32_t count, TVMFFIAny* result) {
  const bool are_three = count == 3 && is_integer(arguments[2]);
  const similis_tensor* const tensor = are_three ? as_tensor(arguments[0]) : nullptr;
  const similis_tensor* const factor = are_three ? as_tensor(arguments[1]) : nullptr;
  if (tensor == nullptr || factor == nullptr)
    return refuse("similis: scale takes two tensors and a number of threads");
  FrameworkMemory memory;
  const similis_execution execution = execution_on(tensor->device, arguments[2].v_int64, memory);
  return succeed(similis_scale(tensor, factor, &execution), result);
}

}  // namespace

// tvm-ffi finds functions by these names.
extern "C" {
TVM_FFI_DLL_EXPORT int __tvm_ffi_call(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return call(arguments, count, false, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_attempt(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return call(arguments, count, true, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_scale(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return scale(arguments, count, result);
}
}
