// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/raw_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "src/core/require.h"
#include "src/media/io/whole_file.h"

namespace similis::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are written as they lie");

using Bytes = std::vector<std::uint8_t>;

// A map's values with channels side by side.
struct Values {
  std::vector<std::int64_t> shape;  // [H,W] or [D,H,W]
  std::int64_t channels = 1;
  std::vector<float> samples;
};

template <class T> void interleave(const T* planes, Values& values) {
  const auto channels = static_cast<std::size_t>(values.channels);
  const std::size_t pixels = values.samples.size() / channels;
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < channels; ++c) {
      values.samples[i * channels + c] = static_cast<float>(planes[c * pixels + i]);
    }
  }
}

Values values_of(const Tensor& map) {
  Values values{.shape = {map.shape.begin() + 2, map.shape.end()}, .channels = map.shape[1]};
  values.samples.resize(static_cast<std::size_t>(map.shape.count()));
  if (map.dtype == DType::f64) {
    interleave(map.elements<double>(), values);
  } else {
    interleave(map.elements<float>(), values);
  }
  return values;
}

void append(std::span<const float> samples, Bytes& bytes) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(samples.data());
  bytes.insert(bytes.end(), first, first + samples.size_bytes());
}

// Rows from the bottom to the top.
Bytes pfm(const Values& values) {
  const std::string header = fmt::format(
      "{}\n{} {}\n-1.0\n", values.channels == 3 ? "PF" : "Pf", values.shape[1], values.shape[0]);
  Bytes bytes(header.begin(), header.end());
  const auto row = static_cast<std::size_t>(values.shape[1] * values.channels);
  const std::span<const float> samples(values.samples);
  for (std::size_t end = samples.size(); end > 0; end -= row) {
    append(samples.subspan(end - row, row), bytes);
  }
  return bytes;
}

void append_word(std::uint32_t value, std::size_t count, Bytes& bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  }
}

// One strip behind the header and before the tags, which the last two numbers of channels follow.
Bytes tiff(const Values& values) {
  constexpr std::uint32_t kHeaderBytes = 8, kShort = 3, kLong = 4, kFloat = 3;
  constexpr std::uint32_t kEntryBytes = 12, kTags = 10, kTwo = 2, kFour = 4;
  const auto size = static_cast<std::uint32_t>(values.samples.size() * sizeof(float));
  const auto height = static_cast<std::uint32_t>(values.shape[0]);
  const auto width = static_cast<std::uint32_t>(values.shape[1]);
  const auto channels = static_cast<std::uint32_t>(values.channels);
  const std::uint32_t directory = kHeaderBytes + size;
  const std::uint32_t lists = directory + kTwo + kTags * kEntryBytes + kFour;
  Bytes bytes = {'I', 'I', '*', 0};
  append_word(directory, kFour, bytes);
  append(values.samples, bytes);
  append_word(kTags, kTwo, bytes);
  const auto tag = [&](std::uint32_t number, std::uint32_t kind, std::uint32_t count,
                       std::uint32_t value) {
    append_word(number, kTwo, bytes);
    append_word(kind, kTwo, bytes);
    append_word(count, kFour, bytes);
    append_word(value, kFour, bytes);
  };
  const bool has_lists = channels == 3;  // two numbers fit a tag
  tag(256, kLong, 1, width);
  tag(257, kLong, 1, height);
  tag(258, kShort, channels, has_lists ? lists : 32);
  tag(259, kShort, 1, 1);                  // not compressed
  tag(262, kShort, 1, has_lists ? 2 : 1);  // RGB or grey
  tag(273, kLong, 1, kHeaderBytes);
  tag(277, kShort, 1, channels);
  tag(278, kLong, 1, height);
  tag(279, kLong, 1, size);
  tag(339, kShort, channels, has_lists ? lists + 3 * kTwo : kFloat);
  append_word(0, kFour, bytes);  // no further picture
  for (int i = 0; has_lists && i < 3; ++i) append_word(32, kTwo, bytes);
  for (int i = 0; has_lists && i < 3; ++i) append_word(kFloat, kTwo, bytes);
  return bytes;
}

// NumPy's format, version 1.0: the header's end is a multiple of 64 bytes.
Bytes npy(const Values& values) {
  std::string shape;
  for (const std::int64_t extent : values.shape) shape += fmt::format("{}, ", extent);
  if (values.channels > 1) shape += fmt::format("{}, ", values.channels);
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr std::size_t kStartBytes = 10, kAlignment = 64;
  while ((kStartBytes + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  append_word(static_cast<std::uint32_t>(header.size()), 2, bytes);
  bytes.insert(bytes.end(), header.begin(), header.end());
  append(values.samples, bytes);
  return bytes;
}

void write_nifti(
    const std::string& path, const Tensor& map, const media::Grid& grid, const Execution& exec) {
  TensorView values = map;
  values.shape = {map.shape[1], 1, grid.size[2], grid.size[1], grid.size[0]};
  values.strides = dense_strides(values.shape);
  const media::Volume volume{
      .grid = grid, .components = map.shape[1], .values = {values, std::make_shared<Tensor>(map)}};
  media::write_volume(path, volume, "map of similis", exec);
}

bool ends_in(const std::string& path, std::initializer_list<const char*> endings) {
  return std::any_of(
      endings.begin(), endings.end(), [&](const char* ending) { return path.ends_with(ending); });
}

}  // namespace

bool is_raw_map(const std::string& path) {
  return ends_in(path, {".pfm", ".tif", ".tiff", ".npy", ".nii", ".nii.gz"});
}

void write_raw_map(
    const std::string& path, const Tensor& map, const media::Grid* grid, const Execution& exec) {
  if (media::has_nifti_name(path)) {
    require(grid != nullptr, "{}: NIfTI is for maps of volumes; write .pfm, .tiff or .npy", path);
    return write_nifti(path, map, *grid, exec);
  }
  const Values values = values_of(map);
  if (path.ends_with(".npy")) return media::write_whole_file(path, npy(values));
  require(values.shape.size() == 2, "{}: the map has slices; write .nii.gz or .npy", path);
  require(values.channels == 1 || values.channels == 3,
      "{}: the map has {} channels, and this format takes 1 or 3; write .npy", path,
      values.channels);
  media::write_whole_file(path, path.ends_with(".pfm") ? pfm(values) : tiff(values));
}

}  // namespace similis::cli
