// SPDX-License-Identifier: Apache-2.0
// MS-SSIM by its definition, slowly and in double: what the backends are checked with.
#pragma once

#include "similis/ms_ssim.hpp"
#include "src/ssim/reference.h"

namespace similis::ms_ssim_internal {

/// What ms_ssim_into() computes from arrays on the CPU. Of the request it takes the form and the
/// upstream gradient; where results go is not its matter. Checks nothing.
ssim_internal::Reference reference_ms_ssim(const TensorView& x, const TensorView& y,
    const MsSsimRequest& request = {}, const MsSsimOptions& options = {});

}  // namespace similis::ms_ssim_internal
