// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/gpu_meter.h"

#include "src/core/backend.h"
#include "src/core/operation.h"
#include "src/vmaf/cuda/meter.h"

namespace similis::vmaf_internal {
namespace {

constexpr Step<decltype(make_cuda_meter)> kCudaMeter = {
    {nullptr, SIMILIS_IF_CUDA(make_cuda_meter)}};

}  // namespace

std::unique_ptr<GpuMeter> make_gpu_meter(const ClipPlan& plan, Device device) {
  require_backend(device, "vmaf", device.kind == DeviceKind::cuda);
  return kCudaMeter(device, plan, device);
}

}  // namespace similis::vmaf_internal
