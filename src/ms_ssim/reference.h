// SPDX-License-Identifier: Apache-2.0
// MS-SSIM by its definition, slowly and in double, to check the backends with.
#pragma once

#include "similis/ms_ssim.hpp"
#include "src/ssim/reference.h"

namespace similis::ms_ssim_internal {

/// The results of ms_ssim_into() for arrays on the CPU. It reads the form and the upstream gradient
/// of the request, not its views of results. Checks nothing.
ssim_internal::Reference reference_ms_ssim(const TensorView& x, const TensorView& y,
    const MsSsimRequest& request = {}, const MsSsimOptions& options = {});

}  // namespace similis::ms_ssim_internal
