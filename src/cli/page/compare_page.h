// SPDX-License-Identifier: Apache-2.0
// The page that `similis compare --report` writes.
#pragma once

#include <string>

#include "src/cli/page/page_images.h"
#include "src/cli/results/report.h"

namespace similis::cli {

/// Writes the page, completely or not at all; that of results with an error beside its name, as
/// PATH.partial. Throws Error, naming the file, if that fails.
void write_compare_page(
    const Report& report, const std::string& command, PageImages& images, const std::string& path);

}  // namespace similis::cli
