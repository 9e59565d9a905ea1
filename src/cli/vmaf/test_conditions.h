// SPDX-License-Identifier: Apache-2.0
// Common test conditions: sets of models and features under one name.
#pragma once

#include "src/cli/vmaf/vmaf_command.h"

namespace similis::cli {

/// Puts what --aom_ctc and --nflx_ctc stand for in front of the models and features. Throws
/// UsageError for a version that there is not.
VmafOptions with_test_conditions(VmafOptions options);

}  // namespace similis::cli
