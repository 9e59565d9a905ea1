// SPDX-License-Identifier: Apache-2.0
// Time and memory of VMAF on a frame of 1080p and of 2160p: all columns of the document of one
// model, and of two that differ in their gain limits.
#include "bench/image_pair_bench.h"
#include "similis/vmaf.hpp"

namespace similis {
namespace {

// One frame of a clip: the scorer keeps the frame before, so that motion is measured too.
template <int bit_depth, bool has_neg>
void frame(const TensorView& x, const TensorView& y, const Execution& exec) {
  VmafOptions options{.bit_depth = bit_depth};
  if (has_neg) options.models.emplace_back("version=vmaf_v0.6.1neg:name=neg");
  static VmafScorer scorer(x.shape[0], x.shape[1], options);
  scorer.push(x, y, exec);
  while (scorer.pop()) continue;
}

constexpr Extents kFrame = {1080, 1920}, kLargeFrame = {2160, 3840};

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("vmaf/value", frame<8, false>, kFrame, DType::u8),
    add("vmaf_neg/value", frame<8, true>, kFrame, DType::u8),
    add("vmaf_16bit/value", frame<16, false>, kLargeFrame, DType::u16),
};

}  // namespace
}  // namespace similis
