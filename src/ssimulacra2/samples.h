// SPDX-License-Identifier: Apache-2.0
// The steps that SSIMULACRA 2.1 takes before linear light, for callers that take them themselves:
// pictures with alpha are blended as they are encoded, so a picture in other colours than sRGB is
// blended, converted to linear light and then given to ssimulacra2() with
// Ssimulacra2Transfer::linear.
#pragma once

#include <span>
#include <vector>

namespace similis {

/// The backgrounds that both pictures are blended over, in turn; the lowest score is the pair's.
std::span<const float> ssimulacra2_backgrounds(bool reference_has_alpha);

/// Interleaved samples of which the last channel is alpha, blended over the background: as many
/// pixels, without alpha.
std::vector<float> ssimulacra2_blend(
    std::span<const float> samples, int channels, float background);

/// Replaces samples encoded as sRGB, from 0 to 1, by linear light, in the bits of ssimulacra2().
void ssimulacra2_linearize(std::span<float> samples);

}  // namespace similis
