// SPDX-License-Identifier: Apache-2.0
// Backends of sampling, composing and grids.
#include "src/warp/warp.h"

namespace similis::warp_internal {

constinit const Step<decltype(sample_cpu)> kSample = {{sample_cpu, SIMILIS_IF_CUDA(sample_cuda)}};
constinit const Step<decltype(spline_filter_cpu)> kSplineFilter = {
    {spline_filter_cpu, SIMILIS_IF_CUDA(spline_filter_cuda)}};
constinit const Step<decltype(copy_cpu)> kCopy = {{copy_cpu, SIMILIS_IF_CUDA(copy_cuda)}};
constinit const Step<decltype(affine_grid_cpu)> kAffineGrid = {
    {affine_grid_cpu, SIMILIS_IF_CUDA(affine_grid_cuda)}};

}  // namespace similis::warp_internal
