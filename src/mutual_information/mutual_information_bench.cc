// SPDX-License-Identifier: Apache-2.0
// Time and memory of mutual information of a volume, by kernel. Noise has no background, whose
// voxels would be counted at once.
#include "similis/mutual_information.hpp"

#include "bench/image_pair_bench.h"

namespace similis {
namespace {

constexpr Extents kVolume = {1, 1, 128, 128, 128};
constexpr MutualInformationOptions kBSpline{.range = ValueRange::fixed};
constexpr MutualInformationOptions kGaussian{
    .kernel = ParzenKernel::gaussian, .range = ValueRange::fixed};
constexpr MutualInformationOptions kDelta{
    .kernel = ParzenKernel::delta, .range = ValueRange::fixed};

template <const MutualInformationOptions& options>
void value(const TensorView& x, const TensorView& y, const Execution& exec) {
  mutual_information(x, y, options, exec);
}
template <const MutualInformationOptions& options>
void value_and_gradient(const TensorView& x, const TensorView& y, const Execution& exec) {
  mutual_information_value_and_gradient(x, y, GradientOf::x, options, exec);
}

using bench::add;
[[maybe_unused]] const bool registered[] = {
    add("mutual_information/value", value<kBSpline>, kVolume, DType::f32),
    add("mutual_information/value", value<kBSpline>, kVolume, DType::u8),
    add("mutual_information/value_and_gradient", value_and_gradient<kBSpline>, kVolume, DType::f32),
    add("mutual_information_gaussian/value", value<kGaussian>, kVolume, DType::f32),
    add("mutual_information_gaussian/value_and_gradient", value_and_gradient<kGaussian>, kVolume,
        DType::f32),
    add("mutual_information_delta/value", value<kDelta>, kVolume, DType::f32),
};

}  // namespace
}  // namespace similis
