// SPDX-License-Identifier: Apache-2.0
#include "src/media/volume/volume.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace similis::media {

const char* name(SampleType type) {
  switch (type) {
    case SampleType::u8: return "uint8";
    case SampleType::i8: return "int8";
    case SampleType::u16: return "uint16";
    case SampleType::i16: return "int16";
    case SampleType::u32: return "uint32";
    case SampleType::i32: return "int32";
    case SampleType::u64: return "uint64";
    case SampleType::i64: return "int64";
    case SampleType::f64: return "float64";
    case SampleType::f32: break;
  }
  return "float32";
}

bool is_integer(SampleType type) { return type != SampleType::f32 && type != SampleType::f64; }

Point Grid::spacing() const {
  Point spacing;
  for (std::size_t axis = 0; axis < 3; ++axis) spacing[axis] = length(voxel_to_world.column(axis));
  return spacing;
}

double grid_distance(const Grid& a, const Grid& b) {
  double farthest = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    Point voxel;
    for (unsigned axis = 0; axis < 3; ++axis) {
      voxel[axis] = (corner >> axis & 1) != 0 ? static_cast<double>(a.size[axis] - 1) : 0;
    }
    const double apart = distance(a.voxel_to_world(voxel), b.voxel_to_world(voxel));
    if (!(apart <= farthest)) farthest = apart;  // NaN too
  }
  const Point spacing = a.spacing();
  return farthest / std::min({spacing[0], spacing[1], spacing[2]});
}

}  // namespace similis::media
