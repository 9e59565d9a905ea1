// SPDX-License-Identifier: Apache-2.0
// similis_schema(): the operations' tables as JSON.
#include <cmath>
#include <string>

#include "similis/c/core.h"
#include "src/core/number_text.h"
#include "src/core/require.h"
#include "src/operations/operations.h"

namespace similis {
namespace {

constexpr const char* kTypes[] = {"number", "integer", "flag", "choice", "numbers", "range",
    "tensor", "extents", "coordinates", "interval", "reserved"};
constexpr const char* kCTypes[] = {"double", "int32", "int64", "uint64", "pointer"};
constexpr const char* kShapes[] = {"as_x", "by_reduction", "by_plane", "by_picture", "histogram",
    "sampled", "as_v", "coordinates", "by_voxel"};

// Elements in [], each made by text(element).
template <class Range, class Text> std::string list(const Range& elements, const Text& text) {
  std::string all = "[";
  for (const auto& element : elements) {
    if (all.size() > 1) all += ',';
    all += text(element);
  }
  return all + "]";
}

std::string quoted(std::string_view words) { return fmt::format("\"{}\"", words); }

std::string number(double value) { return std::isfinite(value) ? shortest(value) : "null"; }

std::string choices(const Choices& choices) {
  std::size_t index = 0;
  return list(choices.words, [&](const char* word) {
    return fmt::format(R"({{"word":"{}","is_taken":{}}})", word, choices.take(index++));
  });
}

// value: in JSON; empty: the row has no default of its own.
std::string option(const Option& row, const std::string& value) {
  const auto c_type = kCTypes[static_cast<std::size_t>(row.c_type)];
  const Bounds& bounds = row.bounds;
  return fmt::format(
      R"({{"name":"{}","type":"{}","c_type":"{}","c_count":{},"offset":{},"count_offset":{},"may_be_empty":{},)"
      R"("takes":"{}","least":{},"most":{},"above_least":{},"odd":{},"finite":{},"choices":{},"default":{}}})",
      row.name, kTypes[static_cast<std::size_t>(row.type)], c_type, row.c_count, row.c_offset(),
      row.c_count_offset == nullptr ? "null" : shortest(row.c_count_offset()), row.may_be_empty,
      accepted_values(row), number(bounds.least), number(bounds.most), bounds.above_least,
      bounds.odd, bounds.finite, choices(row.choices), value.empty() ? "null" : value);
}

std::string bytes(const void* data, std::size_t count) {
  std::string digits;
  for (std::size_t i = 0; i < count; ++i) {
    digits += fmt::format("{:02x}", static_cast<const unsigned char*>(data)[i]);
  }
  return digits;
}

std::string in_json(const ListedOperation& listed) {
  const OperationTable& table = *listed.table;
  const auto with_default = [&](const Option& row) {
    return option(row, row.json(row, table.defaults));
  };
  const auto without_default = [](const Option& row) { return option(row, ""); };
  return fmt::format(
      R"({{"name":"{}","c_struct":"{}","c_size":{},"c_defaults":"{}","shape":"{}","backends":["cpu"{}{}],)"
      R"("operands":{},"outputs":{},"options":{},"request":{}}})",
      table.name, table.c_struct, table.c_size, bytes(table.c_defaults, table.c_size),
      kShapes[static_cast<std::size_t>(table.shape)], listed.on_cuda ? ",\"cuda\"" : "",
      listed.on_vulkan ? ",\"vulkan\"" : "", list(table.operands, quoted),
      list(table.outputs, quoted), list(table.options, with_default),
      list(table.request, without_default));
}

}  // namespace
}  // namespace similis

const char* similis_schema() {
  using namespace similis;
  static const std::string text =
      fmt::format(R"({{"version":1,"operations":{}}})", list(operations(), in_json));
  return text.c_str();
}
