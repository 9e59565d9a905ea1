// SPDX-License-Identifier: Apache-2.0
// The parts of an operation's C entry (src/<room>/c_api.cc): C arguments become C++ ones, and
// exceptions become a status and similis_last_error().
//
// src/c_api/measure.h makes the whole entry of a measure from its table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "similis/c/core.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "similis/window.hpp"

namespace similis::c_api {

/// Runs body(context); what it throws becomes the status and this thread's last error.
similis_status call(void (*body)(const void* context), const void* context) noexcept;

template <class Body> similis_status call(const Body& body) noexcept {
  return call([](const void* context) { (*static_cast<const Body*>(context))(); }, &body);
}

/// The arguments of one operation, whose name begins every refusal.
class Arguments {
 public:
  explicit Arguments(const char* operation) : operation_(operation) {}

  const char* operation() const { return operation_; }

  /// A tensor that must be there.
  TensorView image(const char* argument, const similis_tensor* tensor) const;
  /// A tensor that may be left out.
  TensorView optional(const char* argument, const similis_tensor* tensor) const;

  /// The caller's struct, with defaults for what its version lacks; all defaults for NULL.
  template <class Options> Options options(const Options* given, const Options& defaults) const {
    return completed("options", given, defaults);
  }
  similis_execution execution(const similis_execution* given) const;

  /// One of an enumeration's values, which are 0 to last.
  template <class Enum> Enum enumerator(const char* argument, std::int32_t value, Enum last) const {
    require_range(argument, value, static_cast<std::int32_t>(last));
    return static_cast<Enum>(value);
  }

 private:
  template <class Struct>
  Struct completed(const char* argument, const Struct* given, const Struct& defaults) const {
    Struct result = defaults;
    if (given == nullptr) return result;
    require_struct_size(argument, given->struct_size, sizeof(Struct));
    std::memcpy(&result, given, given->struct_size);
    return result;
  }
  void require_struct_size(const char* argument, std::size_t given, std::size_t known) const;
  void require_range(const char* argument, std::int32_t value, std::int32_t last) const;

  const char* operation_;
};

/// The queue of a device of c/vulkan.h.
Queue vulkan_queue(const similis_vulkan_device& device);

/// A caller's execution in C++ terms, for the length of one call.
class CallExecution {
 public:
  CallExecution(const Arguments& arguments, const similis_execution* given);
  CallExecution(const CallExecution&) = delete;
  CallExecution& operator=(const CallExecution&) = delete;

  operator const Execution&() const { return execution_; }

 private:
  similis_allocator allocator_;  // what the functions of execution_.allocator call
  Execution execution_;
};

}  // namespace similis::c_api
