// SPDX-License-Identifier: Apache-2.0
// The sums of a clip's frames on a GPU: those of ClipMeter, in the same bits.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "src/vmaf/clip_meter.h"

namespace similis::vmaf_internal {

class GpuMeter {
 public:
  virtual ~GpuMeter() = default;

  /// Takes the next frames, [N,H,W] of u8 or u16 on the GPU, alike in all but their strides, and
  /// waits for their sums, without those of cambi. Throws InvalidArgument if a sample has more than
  /// bit_depth bits; the meter is then as it was.
  virtual std::vector<FrameSums> measure(const TensorView& reference, const TensorView& distorted,
      int bit_depth, const Execution& exec) = 0;

  /// Takes the next frame from planes on the host, as ClipMeter::measure() does. The numbers of
  /// cambi, which has no kernels, are computed on the host.
  virtual FrameSums measure(
      const Plane& reference, std::span<const Plane> distorted, const Execution& exec) = 0;
};

/// Throws DeviceError where this build or this machine has no such device.
std::unique_ptr<GpuMeter> make_gpu_meter(const ClipPlan& plan, Device device);

}  // namespace similis::vmaf_internal
