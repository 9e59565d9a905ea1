// SPDX-License-Identifier: Apache-2.0
// The C interface for torch's tensors, by tvm-ffi, which takes them as they are, with the stream
// that torch would use and with torch's allocator, in half a microsecond a tensor.
//
// A measure is f(options, threads, x, y, mask, valid_mask, upstream, value, x_gradient,
// y_gradient), a transform f(options, threads, is_grid, accumulate, operand, affine, field,
// grid_affine, outputs…), where options is the address of its struct, threads the number of them
// that the call may use, outputs are what its C function takes behind them, and what is left out is
// None; scale is f(tensor, factor). Each returns the status of the C interface. similis/_c.py and
// _warp.py call the same library by ctypes. Only tvm-ffi's C interface is used: it stays the same
// from one of its versions to the next.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "similis/similis.h"

namespace {

using namespace std::string_view_literals;

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

// How a call runs: on the framework's stream, with its memory where it lends some, or on as many
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

// What a function was given; are() says whether each is of the kind that its place asks for.
class Arguments {
 public:
  Arguments(const TVMFFIAny* arguments, std::int32_t count)
      : arguments_(arguments), count_(count) {}

  // kinds: a letter for each: i an integer, t a tensor, n a tensor or None.
  bool are(std::string_view kinds) const {
    if (static_cast<std::size_t>(count_) != kinds.size()) return false;
    for (int i = 0; i < count_; ++i) {
      const std::int32_t type = arguments_[i].type_index;
      const char kind = kinds[static_cast<std::size_t>(i)];
      const bool is_right = kind == 'i' ? type == kTVMFFIInt || type == kTVMFFIBool
                                        : tensor(i) || (kind == 'n' && type == kTVMFFINone);
      if (!is_right) return false;
    }
    return true;
  }

  std::int64_t integer(int index) const { return arguments_[index].v_int64; }

  template <class Options> Options options() const {
    return *reinterpret_cast<const Options*>(arguments_[0].v_int64);
  }

  // Null for None.
  const similis_tensor* tensor(int index) const { return as_tensor(arguments_[index]); }

 private:
  const TVMFFIAny* arguments_;
  std::int32_t count_;
};

int refuse(const char* what) {
  TVMFFIErrorSetRaisedFromCStr("TypeError", what);
  return -1;
}

int succeed(similis_status status, TVMFFIAny* result) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = status;
  return 0;
}

template <class Options, auto function>
int run(const TVMFFIAny* given, std::int32_t count, TVMFFIAny* result) {
  const Arguments arguments(given, count);
  if (!arguments.are("iittnnnnnn")) {
    return refuse("similis: the binding takes an address, a number and 8 tensors");
  }
  Options options = arguments.options<Options>();
  if constexpr (requires { options.mask; }) options.mask = arguments.tensor(4);
  if constexpr (requires { options.valid_mask; }) options.valid_mask = arguments.tensor(5);
  const similis_tensor *x = arguments.tensor(2), *y = arguments.tensor(3);
  const similis_tensor* value = arguments.tensor(7);
  FrameworkMemory memory;
  const similis_execution execution = execution_on(x->device, arguments.integer(1), memory);
  if constexpr (std::is_invocable_v<decltype(function), decltype(x), Options*, decltype(x),
                    const similis_execution*>) {
    return succeed(function(x, &options, value, &execution), result);
  } else if constexpr (std::is_invocable_v<decltype(function), decltype(x), decltype(x), Options*,
                           decltype(x), const similis_execution*>) {
    return succeed(function(x, y, &options, value, &execution), result);
  } else {
    return succeed(function(x, y, &options, arguments.tensor(6), value, arguments.tensor(8),
                       arguments.tensor(9), &execution),
        result);
  }
}

// outputs: how many tensors the function takes behind its options.
template <auto function, int outputs>
int transform(const TVMFFIAny* given, std::int32_t count, TVMFFIAny* result) {
  constexpr int first_output = 8;
  const Arguments arguments(given, count);
  if (!arguments.are("iiiitnnnnnnnnn"sv.substr(0, first_output + outputs))) {
    return refuse(
        "similis: the binding takes an address, a number, two flags, 4 operands and the outputs");
  }
  auto options = arguments.options<similis_warp_options>();
  const similis_tensor *operand = arguments.tensor(4), *field = arguments.tensor(6);
  options.affine = arguments.tensor(5);
  options.grid_affine = arguments.tensor(7);
  options.accumulate = static_cast<std::int32_t>(arguments.integer(3));
  FrameworkMemory memory;
  const similis_execution execution = execution_on(operand->device, arguments.integer(1), memory);
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    const auto run = [&](auto... operands) {
      return function(operands..., &options, arguments.tensor(first_output + i)..., &execution);
    };
    if constexpr (std::is_same_v<decltype(function), decltype(similis_compose)*>) {
      return succeed(run(operand, field), result);
    } else {
      (arguments.integer(2) != 0 ? options.grid : options.displacement) = field;
      return succeed(run(operand), result);
    }
  }
  (std::make_integer_sequence<int, outputs>());
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
    void*, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  const Arguments arguments(given, count);
  if (!arguments.are("tt")) return refuse("similis: scale takes two tensors");
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.stream = stream_of(arguments.tensor(0)->device);
  return succeed(similis_scale(arguments.tensor(0), arguments.tensor(1), &execution), result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_ssimulacra2(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return run<similis_ssimulacra2_options, similis_ssimulacra2>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_sample(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return transform<similis_sample, 6>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_sample_labels(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return transform<similis_sample_labels, 6>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_compose(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return transform<similis_compose, 5>(arguments, count, result);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_affine_grid(
    void*, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result) {
  return transform<similis_affine_grid, 3>(arguments, count, result);
}
}
