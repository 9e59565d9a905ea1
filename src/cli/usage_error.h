// SPDX-License-Identifier: Apache-2.0
// A command line that cannot be understood: exit status 2, where every other error is 1.
#pragma once

#include "similis/error.hpp"

namespace similis::cli {

/// The message is one line for the person who typed the command; it names the argument.
class UsageError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

}  // namespace similis::cli
