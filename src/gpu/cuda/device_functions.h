// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's (or HIP's) table of device functions.
#pragma once

#include "src/gpu/device.h"

namespace similis::gpu {

const DeviceFunctions& cuda_functions();

}  // namespace similis::gpu
