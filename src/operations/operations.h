// SPDX-License-Identifier: Apache-2.0
// All operations that have options, for what treats them alike: the schema, and tests of all
// tables.
#pragma once

#include <span>
#include <string_view>

#include "src/core/operation.h"

namespace similis {

struct ListedOperation {
  const OperationTable* table;
  bool on_cuda, on_vulkan;  ///< beside the CPU
};

std::span<const ListedOperation> operations();

/// The operation of that name, which must be one of them.
const ListedOperation& operation(std::string_view name);

}  // namespace similis
