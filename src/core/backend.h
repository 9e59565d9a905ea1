// SPDX-License-Identifier: Apache-2.0
// The backend and the SIMD instruction set that run an operation; SIMILIS_BACKEND (auto, cpu, cuda,
// vulkan) and SIMILIS_SIMD_TARGET (a name from `similis info`) force the choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// Called by every operation before it dispatches; is_offered: the operation runs on such devices.
/// Refuses a device that this build, this machine,
/// SIMILIS_BACKEND or the operation itself excludes, and makes SIMILIS_SIMD_TARGET take effect.
void require_backend(Device device, const char* operation, bool is_offered);

/// The device that runs an operation on arrays of this device: the arrays' own, but a queue of
/// Vulkan takes copies of arrays on the CPU to its device. The CPU ignores other queues. Throws
/// InvalidArgument if the queue is of another kind of GPU than the arrays.
Device device_of(const char* operation, Device device, const Execution& exec);

/// Number of DeviceKind's values.
inline constexpr std::size_t kDeviceKinds = 3;

/// The SIMD targets that are compiled in and that this processor supports, best first.
std::vector<std::int64_t> simd_targets();

/// Makes every following dispatch take this one of simd_targets(), for tests; 0 ends that.
void force_simd_target(std::int64_t target);

std::string simd_target_name(std::int64_t target);

}  // namespace similis
