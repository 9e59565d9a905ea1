// SPDX-License-Identifier: Apache-2.0
// The error for a command line that is wrong: exit status 2; every other error is 1.
#pragma once

#include "similis/error.hpp"

namespace similis::cli {

/// The message is one line for the person who typed the command; it names the argument.
class UsageError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

}  // namespace similis::cli
