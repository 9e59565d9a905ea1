// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/core/number_text.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace similis::cli {
namespace {

std::string plain_text(const Json& json) {
  if (json.is_number_float()) {
    const double number = json.get<double>();
    return std::isfinite(number) ? shortest(number) : "null";
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

enum class Layout : std::uint8_t { lines, one_line };

void write(const Json& json, Layout layout, std::size_t depth, std::string& text) {
  if (!json.is_structured()) {
    text += plain_text(json);
    return;
  }
  const bool is_flat = layout == Layout::one_line ||
                       std::none_of(json.begin(), json.end(),
                           [](const Json& element) { return element.is_structured(); });
  const auto new_line = [&](std::size_t indent) {
    if (is_flat) return;
    text += '\n';
    text.append(2 * indent, ' ');
  };
  text += json.is_object() ? "{" : "[";
  bool is_first = true;
  for (const auto& element : json.items()) {
    if (!is_first) text += is_flat ? ", " : ",";
    is_first = false;
    new_line(depth + 1);
    if (json.is_object()) text += plain_text(element.key()) + ": ";
    write(element.value(), layout, depth + 1, text);
  }
  new_line(depth);
  text += json.is_object() ? "}" : "]";
}

}  // namespace

std::string json_text(const Json& json) {
  std::string text;
  write(json, Layout::lines, 0, text);
  return text + "\n";
}

std::string json_line(const Json& json) {
  std::string text;
  write(json, Layout::one_line, 0, text);
  return text + "\n";
}

}  // namespace similis::cli
