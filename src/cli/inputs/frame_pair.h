// SPDX-License-Identifier: Apache-2.0
// One frame of the reference and of the distorted side, in the forms that metrics take.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "similis/tensor.hpp"
#include "src/cli/inputs/as_read.h"

namespace similis::cli {

/// [H,W] of u8, or of u16 with samples in the low bits.
struct LumaPlanes {
  TensorView reference, distorted;
  int bit_depth = 8;
};

/// A pair of frames, or of one plane of them: code values in f32 or u8, [1,C,H,W], or values of
/// volumes in f32 or f64, [1,C,D,H,W]; of any strides. Both sides have the same shape and type.
struct FramePair {
  Tensor reference;
  Tensor distorted;
  double data_range =
      255;  ///< 2^depth - 1; 1 for floats; of volumes the reference's largest minus smallest
  LumaPlanes luma = {};  ///< the luma plane as stored, of video; otherwise its views are empty
  AsRead as_read = {};   ///< the whole frame; empty for a single plane of video
  std::array<double, 3> voxel_mm = {1, 1, 1};  ///< of volumes: along x, y, z
  /// For volumes: the side of the body (R, L, A, P, S or I) towards which x, y and z rise; 0 if it
  /// is not known.
  std::array<char, 3> toward = {};
  /// 0 for pixels with a value that is not finite, on either side or in any channel, which --nan
  /// mask leaves out; else 1. u8, dense, of one channel; empty if all are finite.
  Tensor mask = {};
  std::int64_t left_out = 0;  ///< the number of such pixels
  std::string refusal;        ///< why `reference` and `distorted` are empty; usually empty itself
  Device device = {};         ///< where measures run
};

}  // namespace similis::cli
