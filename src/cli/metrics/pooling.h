// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace similis::cli {

/// The mean of a metric's scores of frames: the arithmetic mean, or, for scores in dB, the score of
/// the mean error of all frames, as ffmpeg's psnr filter has it.
enum class Pooling : std::uint8_t { mean, of_errors };

}  // namespace similis::cli
