// SPDX-License-Identifier: Apache-2.0
// The exceptions' vtables live here, once, so that catching works across shared libraries.
#include "similis/error.hpp"

namespace similis {

Error::~Error() = default;
InvalidArgument::~InvalidArgument() = default;
DeviceError::~DeviceError() = default;

}  // namespace similis
