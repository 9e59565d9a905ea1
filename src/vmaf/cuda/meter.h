// SPDX-License-Identifier: Apache-2.0
// The meter of builds with CUDA.
#pragma once

#include <memory>

#include "src/vmaf/gpu_meter.h"

namespace similis::vmaf_internal {

std::unique_ptr<GpuMeter> make_cuda_meter(const ClipPlan& plan, Device device);

}  // namespace similis::vmaf_internal
