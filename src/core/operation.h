// SPDX-License-Identifier: Apache-2.0
// An operation is a value, declared once in src/<op>/operation.cc: its name, its options, its
// outputs and a function for each backend. The C ABI, Python and the program read OperationTable; a
// room runs its passes by Operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "similis/execution.hpp"
#include "similis/reduction.hpp"
#include "similis/tensor.hpp"
#include "src/core/backend.h"
#include "src/core/c_function.h"
#include "src/core/option.h"

namespace similis {

/// The rule by which the shape of an operation's value follows from its images.
enum class ShapeRule : std::uint8_t {
  as_x,          ///< that of x
  by_reduction,  ///< [], [N], [N,C] or a map, as the option `reduction` says
  by_plane,      ///< [] for [H,W], [N] for [N,H,W]
  by_picture,    ///< [] for [C,H,W], [N] for [N,C,H,W]
  histogram,     ///< [N,C,num_bins,num_bins]
  sampled,       ///< [N,C,…] of the field, or out_shape, or the image
  as_v,          ///< that of the field v
  coordinates,   ///< [N,…,2] or [N,…,3] of the field, or out_shape
  by_voxel,      ///< a field's, without its components
};

inline constexpr const char* kTwoImages[] = {"x", "y"};

struct OperationTable {
  const char* name;
  std::span<const Option> options = {};  ///< members of the C++ options
  std::span<const Option> request = {};  ///< other members of the C struct: the C++ request's
  const void* defaults = nullptr;        ///< of the C++ options
  const void* c_defaults = nullptr;
  const char* c_struct = nullptr;  ///< the C struct's name
  std::size_t c_size = 0;          ///< bytes of the C struct
  /// Tensors before the options in the C function, and behind them: outputs, and `upstream`.
  std::span<const char*const> operands = kTwoImages, outputs = {};
  ShapeRule shape = ShapeRule::by_reduction;
  CFunction c_function = {};

  /// Throws InvalidArgument for the first option whose value is not one that it takes.
  void check(const void* of_options) const {
    for (const Option& option : options) option.check(option, name, of_options);
  }
};

/// A pass on one backend.
template <class Pass> struct Backend {
  void (*run)(const Pass&, const Execution&) = nullptr;
  bool is_offered = false;  ///< by the room, whether this build holds it or not
};

/// A function that a build without GPU code does not have.
#ifdef SIMILIS_HAS_CUDA
#define SIMILIS_IF_CUDA(...) __VA_ARGS__
#else
#define SIMILIS_IF_CUDA(...) nullptr
#endif
#ifdef SIMILIS_HAS_VULKAN
#define SIMILIS_IF_VULKAN(...) __VA_ARGS__
#else
#define SIMILIS_IF_VULKAN(...) nullptr
#endif

/// An entry of Operation::backends.
#define SIMILIS_CPU(...) \
  { .run = __VA_ARGS__, .is_offered = true }
#define SIMILIS_CUDA(...) \
  { .run = SIMILIS_IF_CUDA(__VA_ARGS__), .is_offered = true }
#define SIMILIS_VULKAN(...) \
  { .run = SIMILIS_IF_VULKAN(__VA_ARGS__), .is_offered = true }

/// A step of several operations, by DeviceKind; the operation has checked the device.
template <class Function> struct Step {
  std::array<Function*, kDeviceKinds> run;

  bool runs_on(DeviceKind kind) const { return run[static_cast<std::size_t>(kind)] != nullptr; }
  template <class... Arguments> auto operator()(Device device, Arguments&&... arguments) const {
    return run[static_cast<std::size_t>(device.kind)](std::forward<Arguments>(arguments)...);
  }
};

template <class Pass> struct Operation {
  OperationTable table;
  std::array<Backend<Pass>, kDeviceKinds> backends;  ///< by DeviceKind

  const char* name() const { return table.name; }
  bool runs_on(DeviceKind kind) const {
    return backends[static_cast<std::size_t>(kind)].is_offered;
  }
  /// Throws unless the operation can run on arrays of this device, or on copies of them where the
  /// queue asks for that.
  void require_runs_on(Device device, const Execution& exec = {}) const {
    const Device used = device_of(table.name, device, exec);
    require_backend(used, table.name, runs_on(used.kind));
  }
  /// Hands a checked pass to the backend of the queue, or else of the device. Throws unless the
  /// operation can run there.
  void run(const Pass& pass, Device device, const Execution& exec) const {
    require_runs_on(device, exec);
    const DeviceKind kind = device_of(table.name, device, exec).kind;
    backends[static_cast<std::size_t>(kind)].run(pass, exec);
  }
};

/// Options of an operation whose C++ functions take its reduction by itself.
struct ReductionOptions {
  Reduction reduction = Reduction::mean;
};
inline constexpr ReductionOptions kReductionDefaults;

/// The enumerations that several operations take.
inline constexpr const char* kPaddingWords[] = {
    "valid", "same", "reflect", "replicate", "renormalize"};
inline constexpr Choices kPaddings{kPaddingWords};
inline constexpr const char* kWindowWords[] = {"box", "gaussian"};
inline constexpr Choices kWindows{kWindowWords};
inline constexpr const char* kReductionWords[] = {
    "mean", "sum", "none", "per_image", "per_channel"};
inline constexpr Choices kReductions{kReductionWords};
inline constexpr Choices kReductionsWithoutMap = without(kReductions, Reduction::none);
inline constexpr const char* kFormWords[] = {"similarity", "loss"};
inline constexpr Choices kForms{kFormWords};

inline constexpr const char* kValueAndGradients[] = {
    "upstream", "value", "x_gradient", "y_gradient"};
inline constexpr const char* kValue[] = {"value"};

}  // namespace similis
