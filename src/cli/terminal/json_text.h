// SPDX-License-Identifier: Apache-2.0
// JSON as text for people and programs alike.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace similis::cli {

using Json = nlohmann::ordered_json;

/// The document, ending in a newline. Lists of plain values stand on one line, all others spread an
/// element a line. Doubles have the fewest digits that read back as the same (the library's own
/// writer has more now and then) and are null where not finite. Bytes that are not UTF-8, as file
/// names may have, become U+FFFD.
std::string json_text(const Json& json);

}  // namespace similis::cli
