// SPDX-License-Identifier: Apache-2.0
// torch's table of C functions, as DLPack 1.3 lays it out (DLPackExchangeAPI of dlpack.h): how a
// framework lends its tensors, its stream and its allocator to others. Declared here, as no header
// of it is installed everywhere. A similis_tensor is DLPack's DLTensor.
#pragma once

#include <cstdint>

#include "similis/c/core.h"

namespace similis_binding {

struct ExchangeVersion {
  std::uint32_t major, minor;
};
constexpr std::uint32_t kMajorVersion = 1;  // another one may lay the table out in another way

/// DLManagedTensorVersioned: memory of the framework, until the deleter is called.
struct LentTensor {
  ExchangeVersion version;
  void* context;
  void (*deleter)(LentTensor* self);
  std::uint64_t flags;
  similis_tensor tensor;
};

/// Functions return 0, or another number for a failure. Those that take an object of Python set an
/// exception then.
struct ExchangeTable {
  ExchangeVersion version;
  const void* older;
  int (*allocate)(const similis_tensor* wanted, LentTensor** lent, void* context,
      void (*set_error)(void* context, const char* kind, const char* sentence));
  int (*lend)(void* object, LentTensor** lent);
  int (*to_object)(LentTensor* lent, void** object);
  int (*describe)(
      void* object, similis_tensor* tensor);  ///< valid as long as the object; may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** stream);
};

}  // namespace similis_binding
