// SPDX-License-Identifier: Apache-2.0
// The headers of NIfTI-1 (348 bytes) and NIfTI-2 (540 bytes): the same fields, in other places and
// wider. Sources: nifti1.h and nifti2.h of the NIfTI Data Format Working Group.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/media/picture/reader.h"

namespace similis::media {

struct NiftiHeader {
  int version = 1;
  bool is_big_endian = false;
  bool is_of_pair = false;               ///< the samples are in a file of their own
  std::array<std::int64_t, 8> dim = {};  ///< how many, then x, y, z, time, vector and two more
  std::array<double, 8> pixdim = {};     ///< the qform's handedness, then steps along these
  std::int64_t intent_code = 0;
  std::int64_t datatype = 0;
  std::int64_t bits = 0;            ///< of a sample
  double samples_offset = 0;        ///< vox_offset
  double slope = 0, intercept = 0;  ///< scl_slope and scl_inter
  std::int64_t units = 0;           ///< xyzt_units
  std::int64_t qform_code = 0, sform_code = 0;
  std::array<double, 3> quaternion = {};  ///< b, c, d
  std::array<double, 3> qform_offset = {};
  std::array<std::array<double, 4>, 3> sform_rows = {};
  std::string description;  ///< at most 79 bytes are written

  std::size_t size_bytes() const { return version == 1 ? 348 : 540; }
};

inline constexpr std::size_t kLargestNiftiHeader = 540;
inline constexpr std::size_t kNiftiLengthBytes = 4;  ///< that nifti_header_length() looks at

/// The length of the header that begins so: 348 or 540, or 0 if none does.
std::size_t nifti_header_length(Bytes start);

/// True if the bytes begin with a header of either version and byte order, its magic included.
bool begins_as_nifti(Bytes start);

/// The header that is `bytes`. Throws InvalidArgument, naming the file, if that is none; `file` is
/// only named.
NiftiHeader parse_nifti_header(Bytes bytes, const File& file);

/// The header's bytes, little-endian, without extensions.
std::vector<std::uint8_t> nifti_header_bytes(const NiftiHeader& header);

}  // namespace similis::media
