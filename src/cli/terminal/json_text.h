// SPDX-License-Identifier: Apache-2.0
// JSON as text for people and programs alike.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

// json_text.cc has its functions: a file that makes them anew takes a tenth longer to compile.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace similis::cli {

using Json = nlohmann::ordered_json;

/// The document, ending in a newline. A list of plain values is on one line; other lists have one
/// element per line. Doubles have the fewest digits that read back as the same number (the
/// library's own writer sometimes has more) and are null if not finite. Bytes that are not UTF-8,
/// as in file names, become U+FFFD.
std::string json_text(const Json& json);

/// The same on a single line.
std::string json_line(const Json& json);

}  // namespace similis::cli
