// SPDX-License-Identifier: Apache-2.0
// NRRD's header: lines "field: value" up to an empty line. Source:
// teem.sourceforge.net/nrrd/format.html.
#include <array>
#include <cmath>
#include <limits>

#include "src/media/volume/text_volume.h"

namespace similis::media {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

Fields fields_of(const File& file, std::size_t& begin) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  Fields fields;
  bool is_first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at));
    at = std::min(end + 1, text.size());
    begin = at;
    if (line.empty()) return fields;
    const std::size_t colon = line.find(": ");
    const bool is_comment = is_first || line.starts_with('#');
    is_first = false;
    if (is_comment || line.find(":=") != std::string_view::npos) continue;
    if (colon == std::string_view::npos) {
      refuse(file, "its header is damaged: it has the line \"{}\"", one_line(line.substr(0, 60)));
    }
    fields[std::string(line.substr(0, colon))] = trimmed(line.substr(colon + 2));
  }
  return fields;  // a detached header may end without an empty line
}

std::string_view value_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

SampleType type_of(const File& file, std::string_view word) {
  struct Names {
    SampleType type;
    std::array<std::string_view, 8> words;
  };
  constexpr std::array kNames = {Names{SampleType::i8, {"signed char", "int8", "int8_t"}},
      Names{SampleType::u8, {"uchar", "unsigned char", "uint8", "uint8_t"}},
      Names{SampleType::i16,
          {"short", "short int", "signed short", "signed short int", "int16", "int16_t"}},
      Names{SampleType::u16,
          {"ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"}},
      Names{SampleType::i32, {"int", "signed int", "int32", "int32_t"}},
      Names{SampleType::u32, {"uint", "unsigned int", "uint32", "uint32_t"}},
      Names{SampleType::i64, {"longlong", "long long", "long long int", "signed long long",
                                 "signed long long int", "int64", "int64_t"}},
      Names{SampleType::u64,
          {"ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"}},
      Names{SampleType::f32, {"float"}}, Names{SampleType::f64, {"double"}}};
  for (const Names& names : kNames) {
    for (const std::string_view known : names.words) {
      if (!known.empty() && known == word) return names.type;
    }
  }
  refuse(file, "its type is \"{}\"; it must be an integer of up to 64 bits, float or double",
      one_line(word));
}

// The words of a field: "(1,0,0)" is one, and so is "none".
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::size_t end = text[0] == '(' ? text.find(')') : text.find_first_of(" \t") - 1;
    const std::size_t length = end >= text.size() ? text.size() : end + 1;
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

// Finds the axes that lie in space.
std::vector<bool> axes_of_space(const File& file, const Fields& fields, std::size_t rank) {
  std::vector<bool> in_space(rank, true);
  const auto directions = words_of(value_of(fields, "space directions"));
  const auto kinds = words_of(value_of(fields, "kinds"));
  if (!directions.empty()) {
    if (directions.size() != rank) {
      refuse(file, "its header is damaged: it has {} space directions and {} axes",
          directions.size(), rank);
    }
    for (std::size_t axis = 0; axis < rank; ++axis) in_space[axis] = directions[axis] != "none";
  } else if (kinds.size() == rank) {
    for (std::size_t axis = 0; axis < rank; ++axis) {
      in_space[axis] = kinds[axis] == "domain" || kinds[axis] == "space" || kinds[axis] == "???";
    }
  }
  return in_space;
}

// The factors that take a world's axes to right, anterior and superior.
std::array<double, 3> signs_of(const File& file, std::string_view space) {
  struct Name {
    std::string_view longer, shorter;
    std::array<double, 3> signs;
  };
  constexpr std::array kNames = {Name{"right-anterior-superior", "RAS", {1, 1, 1}},
      Name{"left-anterior-superior", "LAS", {-1, 1, 1}},
      Name{"left-posterior-superior", "LPS", {-1, -1, 1}}};
  for (const Name& name : kNames) {
    if (space == name.longer || space == name.shorter) return name.signs;
  }
  if (space.empty()) return {-1, -1, 1};  // as ITK reads it
  refuse(file,
      "its space is \"{}\"; it must be right-anterior-superior, left-anterior-superior or "
      "left-posterior-superior",
      one_line(space));
}

void place(
    const File& file, const Fields& fields, const std::vector<bool>& in_space, TextHeader& header) {
  const std::size_t axes = header.grid.is_flat ? 2 : 3;
  const auto directions = words_of(value_of(fields, "space directions"));
  const auto spacings = words_of(value_of(fields, "spacings"));
  const auto origin = numbers_of(file, "space origin", value_of(fields, "space origin"));
  const std::string_view space = value_of(fields, "space");
  const auto signs = signs_of(file, space);
  if (space.empty()) header.grid.world_code = 0;
  std::size_t column = 0;
  Affine& affine = header.grid.voxel_to_world;
  for (std::size_t axis = 0; axis < in_space.size(); ++axis) {
    if (!in_space[axis]) continue;
    std::vector<double> step(axes, 0.0);
    step[column] = 1;
    if (!directions.empty()) {
      step = numbers_of(file, "space directions", directions[axis]);
    } else if (axis < spacings.size()) {
      const auto number = numbers_of(file, "spacings", spacings[axis]);
      // NaN says that the axis has none.
      if (number.size() == 1 && !std::isnan(number[0])) step[column] = number[0];
    }
    if (step.size() != axes) {
      refuse(file,
          "its header is damaged: a space direction has {} numbers, and {} axes lie in space",
          step.size(), axes);
    }
    for (std::size_t row = 0; row < axes; ++row) affine.rows[row][column] = signs[row] * step[row];
    ++column;
  }
  for (std::size_t row = 0; row < 3; ++row) {
    affine.rows[row][3] = row < origin.size() && row < axes ? signs[row] * origin[row] : 0;
  }
  if (axes == 2) affine.rows[2] = {0, 0, 1, 0};
}

}  // namespace

TextHeader parse_nrrd(const File& file) {
  TextHeader header;
  const Fields fields = fields_of(file, header.begin);
  header.samples.type = type_of(file, value_of(fields, "type"));
  const auto sizes = numbers_of(file, "sizes", value_of(fields, "sizes"));
  const std::vector<bool> in_space = axes_of_space(file, fields, sizes.size());
  std::vector<double> sides;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (in_space[axis]) {
      sides.push_back(sizes[axis]);
      continue;
    }
    // Components of a voxel come first; a series has its frames behind each other.
    const bool is_first = axis == 0, is_last = axis + 1 == sizes.size();
    if ((!is_first && !is_last) || !(sizes[axis] >= 1 && sizes[axis] <= 1e9)) {
      refuse(file,
          "its axis {} has no direction in space; only the first (of components) and the last (of "
          "time) may have none",
          axis);
    }
    (is_first ? header.components : header.frames) = static_cast<std::int64_t>(sizes[axis]);
  }
  set_sides(file, sides, header.grid);
  place(file, fields, in_space, header);
  if (const auto order = value_of(fields, "endian"); !order.empty()) {
    header.samples.is_big_endian = order == "big";
  }
  const std::string_view encoding = value_of(fields, "encoding");
  header.is_compressed = encoding == "gzip" || encoding == "gz";
  if (!header.is_compressed && encoding != "raw") {
    refuse(file, "its encoding is \"{}\"; it must be raw or gzip", one_line(encoding));
  }
  for (const std::string_view name : {"line skip", "lineskip", "byte skip", "byteskip"}) {
    const auto skipped = numbers_of(file, name, value_of(fields, name));
    if (skipped.empty() || skipped[0] == 0) continue;
    header.is_at_end = name.starts_with("byte") && skipped[0] == -1;
    if (!header.is_at_end) refuse(file, "its {} is {}; it must be 0", name, skipped[0]);
  }
  std::string_view data = value_of(fields, "data file");
  if (data.empty()) data = value_of(fields, "datafile");
  if (data == "LIST" || data.find(' ') != std::string_view::npos) {
    refuse(file, "its samples are in several files; write it as one .nrrd file");
  }
  header.data_file = data;
  if (!data.empty()) header.begin = 0;
  return header;
}

}  // namespace similis::media
