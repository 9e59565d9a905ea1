// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/gpu_meter.h"

#include "src/core/backend.h"
#include "src/vmaf/cuda/meter.h"

namespace similis::vmaf_internal {

std::unique_ptr<GpuMeter> make_gpu_meter([[maybe_unused]] const ClipPlan& plan, Device device) {
  require_backend(device, "vmaf", device.kind == DeviceKind::cuda);
#ifdef SIMILIS_HAS_CUDA
  return make_cuda_meter(plan, device);
#else
  return nullptr;  // require_backend() has refused the device
#endif
}

}  // namespace similis::vmaf_internal
