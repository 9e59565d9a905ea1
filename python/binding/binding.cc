// SPDX-License-Identifier: Apache-2.0
// The C interface for torch's tensors, by tvm-ffi, which takes them as they are, with the stream
// that torch would use and with torch's allocator, in half a microsecond a tensor.
//
// A measure is f(options, x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient), where
// options is the address of its struct, and what is left out is None; scale is f(tensor, factor).
// Each returns the status of the C interface. similis/_c.py calls the same library by ctypes. Only
// tvm-ffi's C interface is used: it stays the same from one of its versions to the next.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "similis/similis.h"

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

int refuse(const char* what) {
  TVMFFIErrorSetRaisedFromCStr("TypeError", what);
  return -1;
}

// The arguments of a measure, each of the kind that its place asks for.
class Arguments {
 public:
  Arguments(const TVMFFIAny* arguments, std::int32_t count)
      : arguments_(arguments), is_right_(count == kCount) {
    if (!is_right_) return;
    is_right_ = arguments[0].type_index == kTVMFFIInt;
    for (int i = 1; i < kCount; ++i) {
      const bool may_be_none = i > 2;
      is_right_ &= tensor(i) != nullptr || (may_be_none && arguments[i].type_index == kTVMFFINone);
    }
  }

  bool are_right() const { return is_right_; }

  const void* options() const { return reinterpret_cast<const void*>(arguments_[0].v_int64); }

  // Null for None.
  const similis_tensor* tensor(int index) const { return as_tensor(arguments_[index]); }

 private:
  static constexpr std::int32_t kCount = 9;
  const TVMFFIAny* arguments_;
  bool is_right_;
};

template <class Options, auto function>
int run(const TVMFFIAny* given, std::int32_t count, TVMFFIAny* result) {
  const Arguments arguments(given, count);
  if (!arguments.are_right()) return refuse("similis: the binding takes an address and 8 tensors");
  Options options = *static_cast<const Options*>(arguments.options());
  if constexpr (requires { options.mask; }) options.mask = arguments.tensor(3);
  if constexpr (requires { options.valid_mask; }) options.valid_mask = arguments.tensor(4);
  const similis_tensor* x = arguments.tensor(1);
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  FrameworkMemory memory;
  execution.stream = stream_of(x->device);
  if (x->device.type == SIMILIS_CUDA && TVMFFIEnvGetDLPackManagedTensorAllocator() != nullptr) {
    execution.allocator = memory.allocator();
  }
  result->type_index = kTVMFFIInt;
  const similis_tensor *y = arguments.tensor(2), *value = arguments.tensor(6);
  if constexpr (std::is_invocable_v<decltype(function), decltype(x), Options*, decltype(x),
                    similis_execution*>) {
    result->v_int64 = function(x, &options, value, &execution);
  } else if constexpr (std::is_invocable_v<decltype(function), decltype(x), decltype(x), Options*,
                           decltype(x), similis_execution*>) {
    result->v_int64 = function(x, y, &options, value, &execution);
  } else {
    result->v_int64 = function(x, y, &options, arguments.tensor(5), value, arguments.tensor(7),
        arguments.tensor(8), &execution);
  }
  return 0;
}

}  // namespace

// tvm-ffi finds functions by these names.
extern "C" {
TVM_FFI_DLL_EXPORT int __tvm_ffi_ssim(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_ssim_options, similis_ssim>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_ms_ssim(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_ms_ssim_options, similis_ms_ssim>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_lncc(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_lncc_options, similis_lncc>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_ncc(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_ncc_options, similis_ncc>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_mse(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_pixel_error_options, similis_mse>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_mae(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_pixel_error_options, similis_mae>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_mutual_information(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_mutual_information_options, similis_mutual_information>(
      arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_histogram(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_mutual_information_options, similis_histogram>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_mutual_information_from_histogram(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_mutual_information_options, similis_mutual_information_from_histogram>(
      arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_integer_ssim(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_integer_ssim_options, similis_integer_ssim>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_scale(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  const similis_tensor* tensor = count == 2 ? as_tensor(arguments[0]) : nullptr;
  const similis_tensor* factor = count == 2 ? as_tensor(arguments[1]) : nullptr;
  if (tensor == nullptr || factor == nullptr) return refuse("similis: scale takes two tensors");
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.stream = stream_of(tensor->device);
  result->type_index = kTVMFFIInt;
  result->v_int64 = similis_scale(tensor, factor, &execution);
  return 0;
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_ssimulacra2(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_ssimulacra2_options, similis_ssimulacra2>(arguments, count, result);
}
}
