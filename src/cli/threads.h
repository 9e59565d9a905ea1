// SPDX-License-Identifier: Apache-2.0
// The number of threads that --threads gives.
#pragma once

#include <string>

namespace similis::cli {

/// Returns 0, for one per core, if the text is empty. Throws UsageError unless it is a number from
/// 1 to 1024.
int parse_threads(const std::string& text);

}  // namespace similis::cli
