// SPDX-License-Identifier: Apache-2.0
// The options that register_images() takes.
#pragma once

#include "similis/register.hpp"

namespace similis::registration_internal {

/// Throws InvalidArgument, "register: NAME is …", for the first option out of its range.
void check_options(const RegisterOptions& options);

}  // namespace similis::registration_internal
