// SPDX-License-Identifier: Apache-2.0
// Samples as files of volumes hold them, and their values.
#pragma once

#include <optional>

#include "src/media/volume/volume.h"

namespace similis::media {

struct Scaling {
  double slope = 1, intercept = 0;
};

struct SampleLayout {
  SampleType type = SampleType::f32;
  bool is_big_endian = false;
  std::optional<Scaling> scaling = {};  ///< empty if values are the samples
};

std::size_t bytes_of(SampleType type);

/// A file to its end. Throws InvalidArgument for one of more than 256 GiB.
std::vector<std::uint8_t> read_volume_bytes(ByteStream& stream);

/// The values, f32 where that represents every sample exactly, else f64. Throws InvalidArgument,
/// naming the file, for an integer of magnitude 2^53 or more. bytes: those of as many samples.
Tensor values_of_samples(
    Bytes bytes, const SampleLayout& layout, const Extents& shape, const File& file);

}  // namespace similis::media
