// SPDX-License-Identifier: Apache-2.0
// Reads NIfTI: a header, extensions that are passed over, and samples.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "src/media/io/byte_stream.h"
#include "src/media/io/gzip.h"
#include "src/media/volume/nifti_header.h"
#include "src/media/volume/nifti_placement.h"
#include "src/media/volume/samples.h"
#include "src/media/volume/text_volume.h"
#include "src/media/volume/volume.h"

namespace similis::media {
namespace {

struct OtherType {
  std::int64_t code;
  const char* words;
};
constexpr std::array kRefusedTypes = {OtherType{1, "single bits"},
    OtherType{32, "complex numbers (complex64)"}, OtherType{1792, "complex numbers (complex128)"},
    OtherType{2048, "complex numbers (complex256)"}, OtherType{128, "colours (RGB24)"},
    OtherType{2304, "colours (RGBA32)"}, OtherType{1536, "128-bit floats"}};

constexpr std::array kTypes = {SampleType::u8, SampleType::i8, SampleType::u16, SampleType::i16,
    SampleType::u32, SampleType::i32, SampleType::u64, SampleType::i64, SampleType::f32,
    SampleType::f64};

SampleType sample_type(const NiftiHeader& header, const File& file) {
  for (const SampleType type : kTypes) {
    if (static_cast<std::int64_t>(type) == header.datatype) return type;
  }
  for (const OtherType& other : kRefusedTypes) {
    if (other.code == header.datatype) {
      refuse(file,
          "{} are not supported; its samples must be integers of up to 64 bits, float32 or float64",
          other.words);
    }
  }
  refuse(file, "its datatype is {}, which NIfTI does not define", header.datatype);
}

// Dimensions that the header does not count are 1.
void normalize_dimensions(NiftiHeader& header, const File& file) {
  const std::int64_t rank = header.dim[0];
  if (rank < 1 || rank > 7) refuse(file, "its header is damaged: it has {} dimensions", rank);
  std::int64_t voxels = 1;
  for (std::size_t axis = 1; axis < header.dim.size(); ++axis) {
    std::int64_t& extent = header.dim[axis];
    if (static_cast<std::int64_t>(axis) > rank) extent = 1;
    if (extent < 1) refuse(file, "its header is damaged: dimension {} is {}", axis, extent);
    if (extent > file.max_pixels / voxels) {
      refuse(file, "it has more samples than the limit of {}", file.max_pixels);
    }
    voxels *= extent;
  }
  if (header.dim[6] > 1 || header.dim[7] > 1) {
    refuse(file, "it has {} dimensions; it must have at most 5: x, y, z, time, vector", rank);
  }
}

// In seconds, or 0. A file that names no unit means seconds, as other readers have it.
double frame_seconds(const NiftiHeader& header) {
  const double step = header.pixdim[4];
  if (!(step > 0) || !std::isfinite(step)) return 0;
  switch (header.units & 0x38) {
    case 0:
    case 8: return step;
    case 16: return step / 1e3;
    case 24: return step / 1e6;
    default: return 0;
  }
}

// Empty if the samples are not scaled.
std::optional<Scaling> scaling(const NiftiHeader& header, const File& file) {
  if (header.slope == 0 || !std::isfinite(header.slope)) return std::nullopt;
  if (!std::isfinite(header.intercept)) {
    refuse(file, "its scl_slope is {} but its scl_inter is not a finite number", header.slope);
  }
  if (header.slope == 1 && header.intercept == 0) return std::nullopt;
  return Scaling{header.slope, header.intercept};
}

// The samples' bytes, from where the header says that they begin.
std::vector<std::uint8_t> read_samples(
    Content& content, std::size_t passed, std::size_t needed, const File& file, double offset) {
  const double most = static_cast<double>(content.most_bytes());
  if (!(offset >= 0) || offset != std::floor(offset) || offset > most) {
    refuse(file, "its header is damaged: the samples begin at byte {}", offset);
  }
  const auto begin = static_cast<std::size_t>(offset);
  const auto cut = [&](std::size_t found) {  // does not return
    refuse(file, "it is cut off: its header promises {} bytes of samples but it has {}", needed,
        found);
  };
  if (needed > content.most_bytes()) cut(content.most_bytes() - begin);
  content.skip(begin - passed);
  std::vector<std::uint8_t> bytes = content.read(needed);
  if (bytes.size() < needed) cut(bytes.size());
  content.finish();
  return bytes;
}

// Some programs write 0, which means after the header and the four bytes that say whether
// extensions follow.
double smallest_offset(const NiftiHeader& header) {
  return static_cast<double>(header.size_bytes() + 4);
}

NiftiHeader read_header(Content& content, const File& file) {
  std::vector<std::uint8_t> bytes = content.read(kNiftiLengthBytes);
  if (bytes.empty()) refuse(file, "it is empty");
  if (const std::size_t length = nifti_header_length(bytes)) {
    const std::vector<std::uint8_t> rest = content.read(length - kNiftiLengthBytes);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
  }
  return parse_nifti_header(bytes, file);
}

// `samples` is the file of a pair that has them.
Volume read_nifti(const File& file, const File* samples) {
  Content content(file);
  NiftiHeader header = read_header(content, file);
  if (header.is_of_pair && !samples) {
    refuse(file, "its samples are in a separate .img file; give the path of the .hdr file");
  }
  const SampleType type = sample_type(header, file);
  normalize_dimensions(header, file);
  Volume volume{.frames = header.dim[4],
      .components = header.dim[5],
      .frame_seconds = frame_seconds(header),
      .type = type,
      .intent = static_cast<Intent>(header.intent_code)};
  volume.grid = parse_placement(header, file, volume.forms_differ);
  volume.is_scaled = scaling(header, file).has_value();
  const auto needed =
      static_cast<std::size_t>(volume.grid.voxels() * volume.frames * volume.components) *
      bytes_of(type);
  std::vector<std::uint8_t> bytes;
  if (header.is_of_pair) {
    Content other(*samples);
    bytes = read_samples(other, 0, needed, *samples, header.samples_offset);
  } else {
    bytes = read_samples(content, header.size_bytes(), needed, file,
        std::max(header.samples_offset, smallest_offset(header)));
  }
  volume.values = values_of_samples(bytes,
      {.type = type, .is_big_endian = header.is_big_endian, .scaling = scaling(header, file)},
      {header.dim[5], header.dim[4], header.dim[3], header.dim[2], header.dim[1]}, file);
  return volume;
}

Volume read_volume(const File& file, const File* samples) {
  try {
    return read_nifti(file, samples);
  } catch (const std::bad_alloc&) {
    refuse(file, "there is not enough memory for its voxels");
  }
}

// The samples' file for brain.hdr or brain.hdr.gz: brain.img, else brain.img.gz. Empty for other
// names.
std::string image_path(const std::string& path) {
  std::string stem = path;
  if (stem.ends_with(".gz")) stem.resize(stem.size() - 3);
  if (!stem.ends_with(".hdr")) return {};
  stem.replace(stem.size() - 3, 3, "img");
  return std::filesystem::exists(stem) ? stem : stem + ".gz";
}

}  // namespace

bool is_nifti(Bytes start) {
  const std::vector<std::uint8_t> bytes = content_start(start, kLargestNiftiHeader);
  return begins_as_nifti(bytes);
}

Volume read_volume(const File& file) {
  if (is_text_volume(file.bytes)) return read_text_volume(file, {});
  return read_volume(file, nullptr);
}

Volume read_volume(const std::string& path) {
  ByteStream stream(path);
  return read_volume(stream, path);
}

Volume read_volume(ByteStream& stream, const std::string& path) {
  const std::vector<std::uint8_t> bytes = read_volume_bytes(stream);
  const File file{bytes, stream.name(), kMaxVoxels};
  if (is_text_volume(bytes)) return read_text_volume(file, path);
  const std::string other = path == "-" ? std::string() : image_path(path);
  if (other.empty()) return read_volume(file);
  ByteStream other_stream(other);
  const std::vector<std::uint8_t> samples = read_volume_bytes(other_stream);
  const File samples_file{samples, other, kMaxVoxels};
  return read_volume(file, &samples_file);
}

}  // namespace similis::media
