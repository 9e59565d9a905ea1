// SPDX-License-Identifier: Apache-2.0
// Volumes: samples on a grid of voxels that has a place in the world, as files of NIfTI-1, NIfTI-2,
// MetaImage and NRRD hold them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "src/media/io/byte_stream.h"
#include "src/media/picture/reader.h"
#include "src/media/volume/affine.h"

namespace similis::media {

/// The type of a sample in a file; the numbers are NIfTI's codes.
enum class SampleType : std::int16_t {
  u8 = 2,
  i16 = 4,
  i32 = 8,
  f32 = 16,
  f64 = 64,
  i8 = 256,
  u16 = 512,
  u32 = 768,
  i64 = 1024,
  u64 = 1280,
};

/// "uint8", "float32", …
const char* name(SampleType type);
bool is_integer(SampleType type);

/// Calls visitor(std::type_identity<T>()) with the type's C++ type.
template <class Visitor> decltype(auto) visit(SampleType type, Visitor&& visitor);

/// The meaning of a voxel; the numbers are NIfTI's intent codes.
enum class Intent : std::int32_t { none = 0, displacement_vector = 1006, vector = 1007 };

/// The placement of voxels in space.
struct Grid {
  std::array<std::int64_t, 3> size = {1, 1, 1};  ///< along x, y, z
  bool is_flat = false;  ///< its file has no z: a picture rather than a volume of one slice
  /// From the (x, y, z) of a voxel's centre to mm towards right, anterior and superior.
  Affine voxel_to_world;
  /// NIfTI's word for what the world is: 1 scanner, 2 aligned, 3 Talairach, 4 MNI, 5 template;
  /// 0 if the file does not say, which is then read as ITK does: mm from the first voxel towards
  /// left, posterior and superior.
  int world_code = 1;

  std::int64_t voxels() const { return size[0] * size[1] * size[2]; }
  /// mm between neighbours along x, y, z.
  Point spacing() const;
};

struct Volume {
  Grid grid;
  std::int64_t frames = 1;      ///< of a time series
  std::int64_t components = 1;  ///< of a vector at each voxel
  double frame_seconds = 0;     ///< between frames; 0 if the file does not say
  /// [components, frames, Z, Y, X], dense, x fastest, on the CPU, scl_slope and scl_inter applied:
  /// f32 where that holds every value of the file exactly, else f64.
  Tensor values;
  SampleType type = SampleType::f32;  ///< in the file
  bool is_scaled = false;             ///< scl_slope or scl_inter changed the file's values
  Intent intent = Intent::none;       ///< or a code that is not named there
  bool forms_differ = false;          ///< qform and sform disagree; see read_volume()
};

inline constexpr std::int64_t kMaxVoxels = std::int64_t{1} << 36;  ///< all frames and components

/// True if these first bytes of a file are NIfTI, compressed or not.
bool is_nifti(Bytes start);
inline constexpr std::size_t kNiftiStartBytes = 4096;  ///< is_nifti() looks at this many

/// The volume in a NIfTI-1 or NIfTI-2 file, compressed with gzip or not, of either byte order; or
/// in a file of MetaImage or NRRD, compressed or not, which places the first voxel's centre in the
/// world itself.
///   size      2 to 5 dimensions: x, y, z, time, vector
///   world     by the sform if its code is above 0, else by the qform if its is, else see Grid;
///             forms_differ says that both are given and place a corner 0.01 voxels apart or more.
///             Metres and micrometres become mm.
///   extensions are passed over
/// Throws InvalidArgument, in one line that names the file, if it is cut off or damaged, larger
/// than kMaxVoxels, of complex numbers, colours, 128-bit floats or single bits, has an integer
/// beyond 2^53 in magnitude, or has its samples in another file, which only the second form reads.
Volume read_volume(const File& file);

/// The same from a path, "-" being standard input; the .hdr of a pair .hdr and .img too (either may
/// end in .gz).
Volume read_volume(const std::string& path);

/// The same from the file at `path` that was opened as `stream`.
Volume read_volume(ByteStream& stream, const std::string& path);

/// A file with these values as `type`, in little-endian order: NIfTI-1, or NIfTI-2 where that
/// cannot represent a side (of 32768 voxels or more) or the matrix; compressed if `path` ends in
/// .gz, on exec's threads, with the same bytes for any number of them. sform and qform say the
/// same, but the qform is left out where the matrix is more than a rotation and scales. Whole or
/// not at all, as write_whole_file() does it. Throws InvalidArgument if `path` ends neither in .nii
/// nor in .nii.gz, an integer type cannot represent a value, or the file cannot be written.
void write_volume(const std::string& path, const Volume& volume, const std::string& description,
    const Execution& exec = {});

/// The bytes that write_volume() writes to a path of this name. Throws as it does.
std::vector<std::uint8_t> volume_file_bytes(const std::string& path, const Volume& volume,
    const std::string& description, const Execution& exec = {});

/// The same before compression.
std::vector<std::uint8_t> encode_nifti(const Volume& volume, const std::string& description);

/// True if write_volume() takes a path with this name.
bool has_nifti_name(const std::string& path);

/// True if a sample of this type can represent the number; floats may round it.
bool holds(SampleType type, double number);

/// The largest distance between corners of two grids of the same size, in voxels of the first.
double grid_distance(const Grid& a, const Grid& b);

template <class Visitor> decltype(auto) visit(SampleType type, Visitor&& visitor) {
  switch (type) {
    case SampleType::u8: return visitor(std::type_identity<std::uint8_t>());
    case SampleType::i8: return visitor(std::type_identity<std::int8_t>());
    case SampleType::u16: return visitor(std::type_identity<std::uint16_t>());
    case SampleType::i16: return visitor(std::type_identity<std::int16_t>());
    case SampleType::u32: return visitor(std::type_identity<std::uint32_t>());
    case SampleType::i32: return visitor(std::type_identity<std::int32_t>());
    case SampleType::u64: return visitor(std::type_identity<std::uint64_t>());
    case SampleType::i64: return visitor(std::type_identity<std::int64_t>());
    case SampleType::f64: return visitor(std::type_identity<double>());
    case SampleType::f32: break;
  }
  return visitor(std::type_identity<float>());
}

}  // namespace similis::media
