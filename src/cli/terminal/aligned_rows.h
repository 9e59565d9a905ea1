// SPDX-License-Identifier: Apache-2.0
// Tables for people.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

using Row = std::vector<std::string>;

/// A line for each row, all of the first's length or shorter: the first column to the left, numbers
/// to the right.
std::string aligned(const std::vector<Row>& rows);

}  // namespace similis::cli
