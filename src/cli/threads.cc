// SPDX-License-Identifier: Apache-2.0
#include "src/cli/threads.h"

#include <fmt/core.h>

#include <optional>

#include "src/cli/usage_error.h"
#include "src/core/number_text.h"

namespace similis::cli {

int parse_threads(const std::string& text) {
  if (text.empty()) return 0;
  const std::optional<int> threads = parse_number<int>(text);
  if (!threads || *threads < 1 || *threads > 1024) {
    throw UsageError(fmt::format("--threads is \"{}\"; it must be a number from 1 to 1024", text));
  }
  return *threads;
}

}  // namespace similis::cli
