// SPDX-License-Identifier: Apache-2.0
#include "src/media/transform/itk_transform.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "src/media/transform/itk_field.h"
#include "src/media/transform/itk_hdf5.h"
#include "src/media/transform/itk_parameters.h"

namespace similis::media {
namespace {

constexpr std::string_view kTextMagic = "#Insight Transform File";
constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n";
constexpr std::size_t kMaxTransforms = 100;

// ---- text ----

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<double> numbers_in(std::string_view text, const File& file) {
  std::vector<double> numbers;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto used = static_cast<std::size_t>(end - text.data());
    if (error != std::errc{} || (used < text.size() && text[used] != ' ' && text[used] != '\t')) {
      const std::string_view word = text.substr(0, std::min<std::size_t>(text.find(' '), 40));
      refuse(file, "it is damaged: \"{}\" is not a number", one_line(word));
    }
    numbers.push_back(number);
    text.remove_prefix(used);
  }
  return numbers;
}

std::vector<ItkTransform> parse_text(std::string_view text, const File& file) {
  std::vector<ItkTransform> transforms;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (line.empty() || line.front() == '#') continue;
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = colon == line.npos ? std::string_view() : line.substr(colon + 1);
    if (key == "Transform") {
      transforms.push_back({.type = std::string(trimmed(value))});
    } else if ((key == "Parameters" || key == "FixedParameters") && !transforms.empty()) {
      ItkTransform& last = transforms.back();
      (key == "Parameters" ? last.parameters : last.fixed) = numbers_in(value, file);
    } else {
      refuse(file, "it is damaged: a line begins with \"{}\"", one_line(key.substr(0, 40)));
    }
  }
  return transforms;
}

// ---- MATLAB level 4 ----

// A matrix: five 32-bit numbers (type, rows, columns, whether it is complex, length of the name),
// the name with its zero, and the numbers.
struct Matrix {
  std::string name;
  std::vector<double> numbers;
};

constexpr std::size_t kMatrixHeaderBytes = 20;
constexpr std::uint32_t kLongestName = 200;

template <class Bits> Bits load(const std::uint8_t* bytes, bool is_big_endian) {
  std::array<std::uint8_t, sizeof(Bits)> copy;
  std::memcpy(copy.data(), bytes, sizeof(Bits));
  if (is_big_endian != (std::endian::native == std::endian::big)) std::ranges::reverse(copy);
  return std::bit_cast<Bits>(copy);
}

// Its type is 1000·(0 or 1 for the byte order) + 10·(0 double, 1 float) + 0.
std::optional<Matrix> parse_matrix(Bytes& bytes) {
  if (bytes.size() < kMatrixHeaderBytes) return std::nullopt;
  const bool is_big_endian = bytes[0] == 0 && bytes[1] == 0 && (bytes[2] != 0 || bytes[3] != 0);
  std::array<std::uint32_t, 5> header;
  for (std::size_t i = 0; i < header.size(); ++i) {
    header[i] = load<std::uint32_t>(bytes.data() + 4 * i, is_big_endian);
  }
  const auto [type, rows, columns, is_complex, name_bytes] = header;
  const bool is_float = type % 100 == 10;
  if (type / 1000 != (is_big_endian ? 1 : 0) || (type % 100 != 0 && !is_float) || is_complex != 0 ||
      name_bytes < 1 || name_bytes > kLongestName) {
    return std::nullopt;
  }
  bytes = bytes.subspan(kMatrixHeaderBytes);
  const std::uint64_t count = std::uint64_t{rows} * columns;
  const std::size_t number_bytes = is_float ? sizeof(float) : sizeof(double);
  if (bytes.size() < name_bytes || count > (bytes.size() - name_bytes) / number_bytes) {
    return std::nullopt;
  }
  Matrix matrix;
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  matrix.name.assign(text, strnlen(text, name_bytes));
  bytes = bytes.subspan(name_bytes);
  for (std::uint64_t i = 0; i < count; ++i, bytes = bytes.subspan(number_bytes)) {
    matrix.numbers.push_back(is_float
                                 ? static_cast<double>(load<float>(bytes.data(), is_big_endian))
                                 : load<double>(bytes.data(), is_big_endian));
  }
  return matrix;
}

// Two matrices a transform: its parameters, named as its type, and "fixed".
std::vector<ItkTransform> parse_matlab(Bytes bytes) {
  std::vector<ItkTransform> transforms;
  while (!bytes.empty()) {
    std::optional<Matrix> parameters = parse_matrix(bytes);
    if (!parameters) return {};
    std::optional<Matrix> fixed = parse_matrix(bytes);
    if (!fixed || fixed->name != "fixed") return {};
    transforms.push_back(
        {std::move(parameters->name), std::move(parameters->numbers), std::move(fixed->numbers)});
  }
  return transforms;
}

// ---- all ----

SpaceMap map_of(const ItkTransform& transform, const File& file) {
  if (is_displacement_field(transform)) return field_of(transform, file);
  return affine_of(transform, file);
}

// The file's first map is a point's last one.
std::vector<SpaceMap> maps_of(std::vector<ItkTransform> transforms, const File& file) {
  const bool is_composite = class_name(transforms.front()) == "CompositeTransform";
  const std::size_t parts = transforms.size() - (is_composite ? 1 : 0);
  if (parts > (is_composite ? kMaxTransforms : 1)) {
    refuse(file, "it has {} transforms{}; it must have {}", parts,
        is_composite ? " in one composite" : "",
        is_composite ? fmt::format("at most {}", kMaxTransforms) : "one, or one composite");
  }
  if (is_composite && (parts == 0 || !transforms.front().parameters.empty())) {
    refuse(file,
        "it is a composite transform without its parts, as ITK writes it to .mat; write it as .txt "
        "or give its parts");
  }
  std::vector<SpaceMap> maps;
  const auto first = transforms.begin() + (is_composite ? 1 : 0);
  for (auto part = transforms.end(); part != first;) {
    SpaceMap map = map_of(*--part, file);
    *part = {};  // a field's numbers are not needed twice
    auto* const last = maps.empty() ? nullptr : std::get_if<Affine>(&maps.back());
    if (const auto* affine = std::get_if<Affine>(&map); affine != nullptr && last != nullptr) {
      *last = *affine * *last;
    } else {
      maps.push_back(std::move(map));
    }
  }
  return maps;
}

std::vector<ItkTransform> read_hdf5(const File& file) {
#if SIMILIS_WITH_HDF5
  return read_itk_hdf5(file);
#else
  refuse(file,
      "it is HDF5, but this similis was built without libhdf5; install libhdf5 (on Debian: apt "
      "install libhdf5-dev) and build again, or take it apart with ANTs' CompositeTransformUtil");
#endif
}

}  // namespace

bool is_hdf5(Bytes start) {
  return start.size() >= kHdf5Magic.size() &&
         std::memcmp(start.data(), kHdf5Magic.data(), kHdf5Magic.size()) == 0;
}

std::string transform_library() {
#if SIMILIS_WITH_HDF5
  return hdf5_library();
#else
  return {};
#endif
}

std::vector<SpaceMap> read_itk_transforms(const File& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  if (text.empty()) refuse(file, "it is empty");
  std::vector<ItkTransform> transforms = is_hdf5(file.bytes)            ? read_hdf5(file)
                                         : text.starts_with(kTextMagic) ? parse_text(text, file)
                                                                        : parse_matlab(file.bytes);
  if (transforms.empty()) {
    refuse(file,
        "it is neither an ITK transform (MATLAB 4, text or HDF5) nor a displacement field (NIfTI), "
        "or it is cut off");
  }
  return maps_of(std::move(transforms), file);
}

}  // namespace similis::media
