// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 (Jon Sneyers, Cloudinary, 2023): the visibility of the difference between a
// picture and a compressed copy of it. A score of 100 means no difference, 90 not seen in a flicker
// test, 70 hard to notice, 50 slightly annoying, 10 very low quality; there is no lowest score.
//
// Both pictures become X, Y and B of a cube-root colour space, at up to six scales that are halved
// in linear light. Each channel at each scale has three terms a pixel: 1 - SSIM, ringing (an edge
// that the reference has not) and blurring (an edge that it has lost); of each the mean and the
// 4-norm are weighed, 108 numbers in all, and a polynomial and a power make the score of their sum.
#pragma once

#include <cstdint>
#include <memory>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

inline constexpr std::int64_t kSsimulacra2SmallestSide = 8;

enum class Ssimulacra2Mode : std::uint8_t {
  exact,  ///< the reference program's recursive blur with all its roundings: its 8 decimals
  fast,   ///< the 9 taps to which this blur amounts in exact arithmetic; up to about a point away
};

/// The meaning of samples.
enum class Ssimulacra2Transfer : std::uint8_t {
  srgb,    ///< encoded as sRGB
  linear,  ///< linear light with sRGB's primaries
};

struct Ssimulacra2Options {
  Ssimulacra2Mode mode = Ssimulacra2Mode::exact;
  Ssimulacra2Transfer transfer = Ssimulacra2Transfer::srgb;
};

// Every function below takes, returns and throws:
//   x, y     the reference and the distorted picture, [C,H,W], or batches of them, [N,C,H,W]; C is
//            1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and alpha), and may differ; u8, u16,
//            f16, bf16, f32 or f64; alike in all but channels and strides. Integers span their
//            type's range, floats 0 to 1; f64 is rounded to f32
//   alpha    where x has it, both are blended over 0.1 and over 0.9 and the lower score counts;
//            where only y has it, y is blended over 0.5. Samples are blended as they are given
//   returns  f64: a scalar, or [N]; on the pictures' device. The bits do not depend on the vector
//            target, the number of threads or the device
//   throws   InvalidArgument if x and y are not that, or if a side is below 8
// On a GPU work is queued on exec.queue and not waited for. Through Vulkan there is mode exact, not
// of f64, and a score is NaN where a sample is not finite or beyond ±2^30.

/// Workspace: 11 B a pixel on the CPU; on a GPU 97 B a pixel (fast: 41) of as many pairs as take
/// 4 GiB, through Vulkan 1 GiB, or of one.
SIMILIS_API Tensor ssimulacra2(const TensorView& x, const TensorView& y,
    const Ssimulacra2Options& options = {}, const Execution& exec = {});

/// The results of one call; empty views are not computed.
struct Ssimulacra2Request {
  TensorView value = {};  ///< f64, dense, [] or [N]
  /// A map of the loss: f32, dense, [H,W] or [N,H,W]; on the CPU alone. It holds each pixel's share
  /// of the weighted sum of the norms, so that the map's mean is that sum (0: a score of 100; 22: a
  /// score of 0), except for sides that do not halve evenly. Each scale's part is smoothed over 3×3
  /// of that scale's pixels. Takes as long as a second score, and 4 B a pixel of workspace.
  TensorView map = {};
};

/// Throws also if a view of the request has the wrong shape, strides, dtype or device.
SIMILIS_API void ssimulacra2_into(const TensorView& x, const TensorView& y,
    const Ssimulacra2Request& request, const Ssimulacra2Options& options = {},
    const Execution& exec = {});

/// One reference picture, prepared for comparison with many: the part of the work that depends on
/// it alone, about half, is done once. Copies share it; calls from several threads are allowed.
class SIMILIS_API Ssimulacra2Reference {
 public:
  /// x: [C,H,W], on the CPU. Keeps at most 50 B a pixel (twice that with alpha), not x itself,
  /// in memory of the library's own.
  explicit Ssimulacra2Reference(
      const TensorView& x, const Ssimulacra2Options& options = {}, const Execution& exec = {});

  /// The scores of y, [C,H,W] or [N,C,H,W], as ssimulacra2() gives them, in all bits.
  Tensor score(const TensorView& y, const Execution& exec = {}) const;
  /// value: f64, dense, [] or [N].
  void score_into(const TensorView& y, const TensorView& value, const Execution& exec = {}) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace similis
