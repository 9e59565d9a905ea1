// SPDX-License-Identifier: Apache-2.0
// Time and memory of SSIMULACRA 2 on a picture of 1080p.
#include "similis/ssimulacra2.hpp"

#include "bench/image_pair_bench.h"

namespace similis {
namespace {

constexpr Extents kPicture = {3, 1080, 1920};

template <Ssimulacra2Mode mode>
void score(const TensorView& x, const TensorView& y, const Execution& exec) {
  ssimulacra2(x, y, {.mode = mode}, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("ssimulacra2/exact", score<Ssimulacra2Mode::exact>, kPicture, DType::u8),
    add("ssimulacra2/fast", score<Ssimulacra2Mode::fast>, kPicture, DType::u8),
};

}  // namespace
}  // namespace similis
