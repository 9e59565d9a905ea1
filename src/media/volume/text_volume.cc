// SPDX-License-Identifier: Apache-2.0
#include "src/media/volume/text_volume.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "similis/execution.hpp"
#include "src/media/io/byte_stream.h"

namespace similis::media {
namespace {

constexpr std::size_t kMaxDeflateRatio = 1032;  // no stream of zlib unpacks to more

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_nrrd(Bytes start) { return text_of(start).starts_with("NRRD000"); }

// ITK begins with ObjectType; the format asks for no order, but NDims must come early.
bool is_metaimage(Bytes start) {
  const std::string_view text = text_of(start);
  for (const std::string_view key : {"ObjectType", "ObjectSubType", "NDims", "Comment"}) {
    if (text.starts_with(key) && trimmed(text.substr(key.size(), 8)).starts_with("=")) return true;
  }
  return false;
}

[[noreturn]] void refuse_cut(const File& file, std::size_t needed, std::size_t found) {
  refuse(
      file, "it is cut off: its header promises {} bytes of samples but it has {}", needed, found);
}

std::vector<std::uint8_t> inflated(const File& file, Bytes bytes, std::size_t needed) {
  if (needed / kMaxDeflateRatio > bytes.size()) refuse_cut(file, needed, 0);
  std::vector<std::uint8_t> result(needed);
  z_stream stream{};
  constexpr int kZlibOrGzip = 15 + 32;
  if (inflateInit2(&stream, kZlibOrGzip) != Z_OK) throw std::bad_alloc();
  stream.next_in = const_cast<std::uint8_t*>(bytes.data());
  std::size_t read = 0, written = 0;
  int status = Z_OK;
  while (status == Z_OK && written < needed) {
    constexpr std::size_t kMost = 1u << 30;  // zlib counts in 32 bits
    const std::size_t input = std::min(bytes.size() - read, kMost),
                      output = std::min(needed - written, kMost);
    stream.avail_in = static_cast<uInt>(input);
    stream.avail_out = static_cast<uInt>(output);
    stream.next_out = result.data() + written;
    status = inflate(&stream, Z_NO_FLUSH);
    read += input - stream.avail_in;
    written += output - stream.avail_out;
    if (input == 0 && stream.avail_out == output) break;
  }
  inflateEnd(&stream);
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
    refuse(file, "its compressed samples are damaged");
  }
  if (written < needed) refuse_cut(file, needed, written);
  return result;
}

// Components from beside each other to one behind the other.
Tensor components_first(const Tensor& values, std::int64_t components) {
  if (components == 1) return values;
  const Tensor result = allocate(values.shape, values.dtype);
  const std::int64_t voxels = values.shape.count() / components;
  const auto move = [&]<class T>(const T* from, T* to) {
    for (std::int64_t c = 0; c < components; ++c) {
      for (std::int64_t i = 0; i < voxels; ++i) to[c * voxels + i] = from[i * components + c];
    }
  };
  if (values.dtype == DType::f32) {
    move(values.elements<float>(), result.elements<float>());
  } else {
    move(values.elements<double>(), result.elements<double>());
  }
  return result;
}

Volume volume_of(const TextHeader& header, const File& file) {
  const std::int64_t count = header.grid.voxels() * header.frames * header.components;
  const std::size_t needed = static_cast<std::size_t>(count) * bytes_of(header.samples.type);
  std::size_t begin = std::min(header.begin, file.bytes.size());
  if (header.is_at_end) begin = file.bytes.size() - std::min(needed, file.bytes.size());
  Bytes bytes = file.bytes.subspan(begin);
  std::vector<std::uint8_t> unpacked;
  if (header.is_compressed) {
    unpacked = inflated(file, bytes, needed);
    bytes = unpacked;
  }
  if (bytes.size() < needed) refuse_cut(file, needed, bytes.size());
  const auto& size = header.grid.size;
  const Extents shape = {header.components, header.frames, size[2], size[1], size[0]};
  const Tensor values = values_of_samples(bytes.first(needed), header.samples, shape, file);
  return {.grid = header.grid,
      .frames = header.frames,
      .components = header.components,
      .frame_seconds = header.frame_seconds,
      .values = components_first(values, header.components),
      .type = header.samples.type,
      .intent = header.components > 1 ? Intent::vector : Intent::none};
}

void require_count(const File& file, const TextHeader& header) {
  std::int64_t count = 1;
  for (const std::int64_t side : {header.grid.size[0], header.grid.size[1], header.grid.size[2],
           header.frames, header.components}) {
    if (side > file.max_pixels / count) {
      refuse(file, "it has more samples than the limit of {}", file.max_pixels);
    }
    count *= side;
  }
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<double> numbers_of(const File& file, std::string_view name, std::string_view text) {
  std::vector<double> numbers;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    if (std::string_view(" \t\r,()").find(*at) != std::string_view::npos) {
      ++at;
      continue;
    }
    if (*at == '+') ++at;
    double number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc()) {
      refuse(file, "its header is damaged: {} is \"{}\"", name, one_line(text));
    }
    numbers.push_back(number);
    at = rest;
  }
  return numbers;
}

void set_sides(const File& file, const std::vector<double>& sides, Grid& grid) {
  if (sides.size() != 2 && sides.size() != 3) {
    refuse(file, "it has {} axes of space; it must have 2 or 3", sides.size());
  }
  grid.is_flat = sides.size() == 2;
  for (std::size_t axis = 0; axis < sides.size(); ++axis) {
    const double side = sides[axis];
    if (!(side >= 1 && side <= static_cast<double>(kMaxVoxels) && side == std::floor(side))) {
      refuse(file, "its header is damaged: it has {} voxels along an axis", side);
    }
    grid.size[axis] = static_cast<std::int64_t>(side);
  }
}

void require_placed(const File& file, const Grid& grid) {
  const double volume = std::abs(determinant(grid.voxel_to_world));
  const Point sides = grid.spacing();
  if (!(volume > 1e-6 * sides[0] * sides[1] * sides[2])) {  // NaN too
    refuse(file, "its directions and spacings do not place the voxels in space");
  }
}

bool is_text_volume(Bytes start) { return is_nrrd(start) || is_metaimage(start); }

Volume read_text_volume(const File& file, const std::string& path) {
  try {
    const TextHeader header = is_nrrd(file.bytes) ? parse_nrrd(file) : parse_metaimage(file);
    require_count(file, header);
    require_placed(file, header.grid);
    if (header.data_file.empty()) return volume_of(header, file);
    const std::filesystem::path name = header.data_file;
    if (path.empty() || path == "-") {
      refuse(file, "its samples are in {}; give the path of the header's file", name.string());
    }
    if (name.has_parent_path()) {
      refuse(file, "its samples are in {}; they must be in a file beside it", name.string());
    }
    const std::string other = (std::filesystem::path(path).parent_path() / name).string();
    ByteStream stream(other);
    const std::vector<std::uint8_t> bytes = read_volume_bytes(stream);
    return volume_of(header, {.bytes = bytes, .name = other, .max_pixels = file.max_pixels});
  } catch (const std::bad_alloc&) {
    refuse(file, "there is not enough memory for its voxels");
  }
}

}  // namespace similis::media
