// SPDX-License-Identifier: Apache-2.0
// The exceptions of similis. The message is one sentence that names the operation, the argument,
// the value it got and the values it takes.
#pragma once

#include <stdexcept>

#include "similis/api.h"

namespace similis {

/// Every exception of similis is one of these.
class SIMILIS_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// The caller's mistake: a shape, a data type, an option or a file that cannot be used.
class SIMILIS_API InvalidArgument : public Error {
 public:
  using Error::Error;
  ~InvalidArgument() override;
};

/// A device or its driver is missing, too old, or failed; the message has the driver's words.
class SIMILIS_API DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};

}  // namespace similis
