// SPDX-License-Identifier: Apache-2.0
// Volumes with known values, and NIfTI files made byte by byte.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "src/media/picture/test_pictures.h"
#include "src/media/volume/volume.h"

namespace similis::media {

/// A volume whose value at index i is value(i), x fastest, then y, z, frames, components.
template <class Function>
Volume make_volume(const std::array<std::int64_t, 3>& size, Function value,
    std::int64_t components = 1, std::int64_t frames = 1, DType dtype = DType::f32) {
  Volume volume{.grid = {.size = size}, .frames = frames, .components = components};
  volume.values = allocate({components, frames, size[2], size[1], size[0]}, dtype);
  for (std::int64_t i = 0; i < volume.values.shape.count(); ++i) {
    if (dtype == DType::f64) {
      volume.values.elements<double>()[i] = value(i);
    } else {
      volume.values.elements<float>()[i] = static_cast<float>(value(i));
    }
  }
  volume.type = dtype == DType::f64 ? SampleType::f64 : SampleType::f32;
  return volume;
}

/// A volume's values as doubles.
inline std::vector<double> values_of(const Volume& volume) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < volume.values.shape.count(); ++i) {
    const bool is_wide = volume.values.dtype == DType::f64;
    values.push_back(is_wide ? volume.values.elements<double>()[i]
                             : static_cast<double>(volume.values.elements<float>()[i]));
  }
  return values;
}

/// A NIfTI file written field by field at the offsets that nifti1.h and nifti2.h give.
class HandMadeNifti {
 public:
  explicit HandMadeNifti(int version = 1, bool is_big_endian = false)
      : version_(version), is_big_endian_(is_big_endian), bytes_(version == 1 ? 352 : 544) {
    put<std::int32_t>(0, version == 1 ? 348 : 540);
    const std::string magic = version == 1 ? std::string("n+1") : std::string("n+2\0\r\n\x1a\n", 8);
    std::copy(magic.begin(), magic.end(), bytes_.begin() + (version == 1 ? 344 : 4));
    if (version == 1) {
      put<float>(108, 352);
    } else {
      put<std::int64_t>(168, 544);
    }
    steps({1, 1, 1, 1, 1, 1, 1, 1});
  }

  template <class T> HandMadeNifti& put(std::size_t offset, T value) {
    auto copy = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(value);
    if (is_big_endian_) std::reverse(copy.begin(), copy.end());
    std::copy(copy.begin(), copy.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    return *this;
  }
  HandMadeNifti& real(std::size_t offset1, std::size_t offset2, double value) {
    if (version_ == 1) return put<float>(offset1, static_cast<float>(value));
    return put<double>(offset2, value);
  }
  HandMadeNifti& dimensions(std::initializer_list<int> dim) {
    std::size_t i = 0;
    for (const int value : dim) {
      if (version_ == 1) {
        put<std::int16_t>(40 + 2 * i++, static_cast<std::int16_t>(value));
      } else {
        put<std::int64_t>(16 + 8 * i++, value);
      }
    }
    return *this;
  }
  HandMadeNifti& steps(std::initializer_list<double> pixdim) {
    std::size_t i = 0;
    for (const double value : pixdim) {
      real(76 + 4 * i, 104 + 8 * i, value);
      ++i;
    }
    return *this;
  }
  HandMadeNifti& type(int datatype, int bits) {
    put<std::int16_t>(version_ == 1 ? 70 : 12, static_cast<std::int16_t>(datatype));
    return put<std::int16_t>(version_ == 1 ? 72 : 14, static_cast<std::int16_t>(bits));
  }
  HandMadeNifti& scaling(double slope, double intercept) {
    return real(112, 176, slope).real(116, 184, intercept);
  }
  HandMadeNifti& units(int code) {
    if (version_ == 1) return put<std::uint8_t>(123, static_cast<std::uint8_t>(code));
    return put<std::int32_t>(500, code);
  }
  HandMadeNifti& codes(int qform, int sform) {
    if (version_ == 2) return put<std::int32_t>(344, qform).put<std::int32_t>(348, sform);
    put<std::int16_t>(252, static_cast<std::int16_t>(qform));
    return put<std::int16_t>(254, static_cast<std::int16_t>(sform));
  }
  HandMadeNifti& quaternion(const Point& bcd, const Point& offset) {
    for (std::size_t i = 0; i < 3; ++i) {
      real(256 + 4 * i, 352 + 8 * i, bcd[i]).real(268 + 4 * i, 376 + 8 * i, offset[i]);
    }
    return *this;
  }
  HandMadeNifti& sform(const Affine& affine) {
    for (std::size_t i = 0; i < 12; ++i) {
      real(280 + 4 * i, 400 + 8 * i, affine.rows[i / 4][i % 4]);
    }
    return *this;
  }
  /// An extension of 32 bytes, which samples come behind.
  HandMadeNifti& extension() {
    bytes_[bytes_.size() - 4] = 1;
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + 32, 0x55);
    put<std::int32_t>(begin, 32).put<std::int32_t>(begin + 4, 6);
    if (version_ == 1) return put<float>(108, static_cast<float>(bytes_.size()));
    return put<std::int64_t>(168, static_cast<std::int64_t>(bytes_.size()));
  }
  template <class T> HandMadeNifti& samples(std::initializer_list<T> values) {
    for (const T value : values) {
      bytes_.resize(bytes_.size() + sizeof(T));
      put<T>(bytes_.size() - sizeof(T), value);
    }
    return *this;
  }
  const Buffer& bytes() const { return bytes_; }
  Volume read() const { return read_volume({bytes_, "made.nii", kMaxVoxels}); }

 private:
  int version_;
  bool is_big_endian_;
  Buffer bytes_;
};

/// The error of reading these bytes as a volume; empty if there is none.
inline std::string volume_refusal(const Buffer& bytes) {
  try {
    read_volume({bytes, "a.nii", kMaxVoxels});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

}  // namespace similis::media
