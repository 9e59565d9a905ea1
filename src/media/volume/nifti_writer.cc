// SPDX-License-Identifier: Apache-2.0
// Writes NIfTI: a header, the four zeros that say that there are no extensions, and samples.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "src/core/require.h"
#include "src/media/io/gzip.h"
#include "src/media/io/whole_file.h"
#include "src/media/volume/nifti_header.h"
#include "src/media/volume/nifti_placement.h"
#include "src/media/volume/volume.h"

namespace similis::media {
namespace {

constexpr std::int64_t kLongestSide = 32767;  // that NIfTI-1 can say
constexpr double kFloatRounding = 1e-7;
constexpr std::int64_t kSeconds = 8;  // of the units of time
constexpr std::size_t kExtensionFlagBytes = 4;

// NIfTI-1 has sides and codes of 16 bits and floats of 32.
bool fits_nifti1(const Volume& volume) {
  const auto& size = volume.grid.size;
  const std::int64_t longest =
      std::max({size[0], size[1], size[2], volume.frames, volume.components});
  const std::int64_t intent = static_cast<std::int64_t>(volume.intent);
  const std::int64_t largest_code =
      std::max<std::int64_t>(volume.grid.world_code, std::abs(intent));
  if (longest > kLongestSide || largest_code > kLongestSide) return false;
  for (const auto& row : volume.grid.voxel_to_world.rows) {
    for (const double number : row) {
      const double rounded = static_cast<double>(static_cast<float>(number));
      if (!(std::abs(rounded - number) <= kFloatRounding * std::abs(number))) return false;
    }
  }
  return true;
}

NiftiHeader header_of(const Volume& volume, const std::string& description) {
  NiftiHeader header;
  header.version = fits_nifti1(volume) ? 1 : 2;
  header.dim = {volume.grid.is_flat ? 2 : 3, 1, 1, 1, volume.frames, volume.components, 1, 1};
  if (volume.frames > 1) header.dim[0] = 4;
  if (volume.components > 1) header.dim[0] = 5;
  if (volume.frame_seconds > 0) {
    header.pixdim[4] = volume.frame_seconds;
    header.units = kSeconds;
  }
  write_placement(volume.grid, header);
  header.intent_code = static_cast<std::int64_t>(volume.intent);
  header.datatype = static_cast<std::int64_t>(volume.type);
  header.bits = visit(
      volume.type, []<class T>(std::type_identity<T>) { return std::int64_t{8 * sizeof(T)}; });
  header.samples_offset = static_cast<double>(header.size_bytes() + kExtensionFlagBytes);
  header.slope = 1;
  header.description = description;
  return header;
}

template <class T> bool type_holds(double value) {
  if constexpr (std::is_integral_v<T>) {
    // The upper limit is 2^n, which double holds where it does not hold 2^n - 1.
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return value >= static_cast<double>(std::numeric_limits<T>::min()) && value < above &&
           value == std::floor(value);
  }
  return true;
}

template <class T, class Value>
void write_samples(const Value* values, std::size_t count, SampleType type, std::uint8_t* bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!type_holds<T>(static_cast<double>(values[i]))) {  // names the type only then
      require(
          false, "encode_nifti: a value is {}; it must be one that {} has", values[i], name(type));
    }
    auto sample = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(static_cast<T>(values[i]));
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(sample);
    std::copy(sample.begin(), sample.end(), bytes + i * sizeof(T));
  }
}

}  // namespace

bool holds(SampleType type, double number) {
  return visit(type, [number]<class T>(std::type_identity<T>) { return type_holds<T>(number); });
}

bool has_nifti_name(const std::string& path) {
  return path.ends_with(".nii") || path.ends_with(".nii.gz");
}

std::vector<std::uint8_t> encode_nifti(const Volume& volume, const std::string& description) {
  const Extents shape = {volume.components, volume.frames, volume.grid.size[2], volume.grid.size[1],
      volume.grid.size[0]};
  require(volume.values.shape == shape, "encode_nifti: values have shape {}; it must be {}",
      volume.values.shape, shape);
  std::vector<std::uint8_t> bytes = nifti_header_bytes(header_of(volume, description));
  bytes.resize(bytes.size() + kExtensionFlagBytes);
  const auto count = static_cast<std::size_t>(shape.count());
  visit(volume.type, [&]<class T>(std::type_identity<T>) {
    const std::size_t header_bytes = bytes.size();
    bytes.resize(header_bytes + count * sizeof(T));
    std::uint8_t* const samples = bytes.data() + header_bytes;
    if (volume.values.dtype == DType::f32) {
      write_samples<T>(volume.values.elements<float>(), count, volume.type, samples);
    } else {
      write_samples<T>(volume.values.elements<double>(), count, volume.type, samples);
    }
  });
  return bytes;
}

std::vector<std::uint8_t> volume_file_bytes(const std::string& path, const Volume& volume,
    const std::string& description, const Execution& exec) {
  require(has_nifti_name(path), "cannot write {}: its name must end in .nii or .nii.gz", path);
  std::vector<std::uint8_t> bytes = encode_nifti(volume, description);
  return path.ends_with(".gz") ? gzip(bytes, exec) : bytes;
}

void write_volume(const std::string& path, const Volume& volume, const std::string& description,
    const Execution& exec) {
  write_whole_file(path, volume_file_bytes(path, volume, description, exec));
}

}  // namespace similis::media
