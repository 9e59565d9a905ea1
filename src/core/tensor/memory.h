// SPDX-License-Identifier: Apache-2.0
// Memory for results and workspaces.
#pragma once

#include <cstddef>
#include <memory>

#include "similis/execution.hpp"

namespace similis {

/// Bytes aligned to 256 from exec's allocator, given back when the last copy goes.
/// Throws Error when there are none left.
std::shared_ptr<void> allocate_bytes(std::size_t bytes, Device device, const Execution& exec);

}  // namespace similis
