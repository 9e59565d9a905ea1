// SPDX-License-Identifier: Apache-2.0
// MetaImage's header: lines "Key = Value", the last of which is ElementDataFile. Source:
// itk.org/Wiki/ITK/MetaIO/Documentation.
#include <array>
#include <limits>

#include "src/media/volume/text_volume.h"

namespace similis::media {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

// The fields, and where the samples would begin.
Fields fields_of(const File& file, std::size_t& begin) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  Fields fields;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      if (trimmed(line).empty()) continue;
      break;
    }
    const std::string key(trimmed(line.substr(0, equals)));
    fields[key] = trimmed(line.substr(equals + 1));
    if (key == "ElementDataFile") {
      begin = std::min(at, text.size());
      return fields;
    }
  }
  refuse(file, "its header is damaged: it has no ElementDataFile");
}

// The first of the names that is there; empty if none is.
std::string_view first_of(const Fields& fields, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = fields.find(name);
    if (found != fields.end()) return found->second;
  }
  return {};
}

bool is_true(std::string_view word) { return !word.empty() && (word[0] == 'T' || word[0] == 't'); }

SampleType type_of(const File& file, std::string_view word) {
  struct Name {
    std::string_view word;
    SampleType type;
  };
  constexpr std::array kNames = {Name{"MET_UCHAR", SampleType::u8},
      Name{"MET_CHAR", SampleType::i8}, Name{"MET_USHORT", SampleType::u16},
      Name{"MET_SHORT", SampleType::i16}, Name{"MET_UINT", SampleType::u32},
      Name{"MET_INT", SampleType::i32}, Name{"MET_ULONG_LONG", SampleType::u64},
      Name{"MET_LONG_LONG", SampleType::i64},
      // "long" has 4 bytes in the format, whatever it has on the machine that wrote it.
      Name{"MET_ULONG", SampleType::u32}, Name{"MET_LONG", SampleType::i32},
      Name{"MET_FLOAT", SampleType::f32}, Name{"MET_DOUBLE", SampleType::f64}};
  for (const Name& name : kNames) {
    if (name.word == word) return name.type;
  }
  refuse(file, "its ElementType is \"{}\"; it must be MET_UCHAR, MET_SHORT, MET_FLOAT or the like",
      one_line(word));
}

}  // namespace

TextHeader parse_metaimage(const File& file) {
  TextHeader header;
  const Fields fields = fields_of(file, header.begin);
  const auto numbers = [&](std::initializer_list<const char*> names) {
    return numbers_of(file, *names.begin(), first_of(fields, names));
  };
  const std::string_view object = first_of(fields, {"ObjectType"});
  if (!object.empty() && object != "Image") {
    refuse(file, "its ObjectType is \"{}\"; it must be Image", one_line(object));
  }
  if (const std::string_view binary = first_of(fields, {"BinaryData"});
      !binary.empty() && !is_true(binary)) {
    refuse(file, "its samples are text; write it with BinaryData = True");
  }
  set_sides(file, numbers({"DimSize"}), header.grid);
  const std::size_t axes = header.grid.is_flat ? 2 : 3;
  if (const auto given = numbers({"NDims"}); given.size() != 1 || given[0] != axes) {
    refuse(file, "its header is damaged: NDims is \"{}\" but DimSize has {} numbers",
        one_line(first_of(fields, {"NDims"})), axes);
  }
  if (const auto channels = numbers({"ElementNumberOfChannels"}); !channels.empty()) {
    if (!(channels[0] >= 1 && channels[0] <= 1e6)) {
      refuse(file, "its header is damaged: ElementNumberOfChannels is {}", channels[0]);
    }
    header.components = static_cast<std::int64_t>(channels[0]);
  }
  header.samples.type = type_of(file, first_of(fields, {"ElementType"}));
  header.samples.is_big_endian =
      is_true(first_of(fields, {"BinaryDataByteOrderMSB", "ElementByteOrderMSB"}));
  header.is_compressed = is_true(first_of(fields, {"CompressedData"}));

  // A row of TransformMatrix is the direction of an axis, towards left, posterior and superior.
  const auto matrix = numbers({"TransformMatrix", "Rotation", "Orientation"}),
             offset = numbers({"Offset", "Position", "Origin"}),
             spacing = numbers({"ElementSpacing", "ElementSize"});
  Affine lps;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const double step = axis < spacing.size() ? spacing[axis] : 1;
    for (std::size_t row = 0; row < axes; ++row) {
      const bool is_given = matrix.size() == axes * axes;
      lps.rows[row][axis] = step * (is_given ? matrix[axis * axes + row] : row == axis);
    }
    lps.rows[axis][3] = axis < offset.size() ? offset[axis] : 0;
  }
  header.grid.voxel_to_world = kTurnRasLps * lps;

  const std::string_view data = first_of(fields, {"ElementDataFile"});
  if (data == "LOCAL") return header;
  if (data == "LIST" || data.find('%') != std::string_view::npos || data.empty()) {
    refuse(file, "its samples are in several files; write it as one .mha file");
  }
  header.data_file = data;
  header.begin = 0;
  if (const auto skipped = numbers({"HeaderSize"}); !skipped.empty()) {
    header.is_at_end = skipped[0] == -1;
    if (!header.is_at_end && !(skipped[0] >= 0 && skipped[0] <= 1e12)) {
      refuse(file, "its header is damaged: HeaderSize is {}", skipped[0]);
    }
    if (!header.is_at_end) header.begin = static_cast<std::size_t>(skipped[0]);
  }
  return header;
}

}  // namespace similis::media
