// SPDX-License-Identifier: Apache-2.0
// Tables for people.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

using Row = std::vector<std::string>;

/// One line for each row, none longer than the first row: the first column is aligned to the left,
/// the others to the right.
std::string aligned(const std::vector<Row>& rows);

}  // namespace similis::cli
