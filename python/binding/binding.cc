// SPDX-License-Identifier: Apache-2.0
// The C interface for torch's tensors, by tvm-ffi, which takes them as they are, with the stream
// that torch would use and with torch's allocator, in half a microsecond a tensor.
//
// call(operation, options, threads, tensors…) is similis_call(): operation is a position in
// similis_schema()'s list, options the address of a struct, threads the number of threads that the
// call may use, and a tensor that is left out is None.
// It returns the status of the C interface. similis/_library calls the same function by ctypes.
// Only tvm-ffi's C interface is used: it stays the same from one of its versions to the next.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "python/binding/framework_memory.h"
#include "similis/c/core.h"

namespace {

// The framework of the tensors of a call, as tvm-ffi has found it.
struct Lender {
  using Owner = TVMFFIObjectHandle;

  static bool can_allocate() { return TVMFFIEnvGetDLPackManagedTensorAllocator() != nullptr; }
  static void* allocate(DLTensor* wanted, Owner* owner) {
    if (TVMFFIEnvTensorAlloc(wanted, owner) != 0) return nullptr;
    return TVMFFITensorGetDLTensorPtr(*owner)->data;
  }
  static void release(Owner owner) { TVMFFIObjectDecRef(owner); }
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

int call(const TVMFFIAny* arguments, std::int32_t count, TVMFFIAny* result) {
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
  similis_binding::FrameworkMemory<Lender> memory;
  const similis_device device = tensors[0]->device;
  const similis_execution execution =
      memory.execution_on(device, stream_of(device), arguments[2].v_int64);
  const auto* const options = reinterpret_cast<const void*>(arguments[1].v_int64);
  return succeed(similis_call(static_cast<std::int32_t>(arguments[0].v_int64), tensors.data(),
                     given, options, &execution),
      result);
}

}  // namespace

// tvm-ffi finds functions by these names.
extern "C" {
TVM_FFI_DLL_EXPORT int __tvm_ffi_call(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return call(arguments, count, result);
}
}
