// SPDX-License-Identifier: Apache-2.0
// Any bytes as transforms of ITK: maps with finite numbers and whole fields, or one line that names
// the file.
#include <cmath>

#include "src/media/io/reader_fuzz.h"
#include "src/media/transform/itk_transform.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace similis::media;
  // Those are read in a process of their own, which no target sees: itk_hdf5_test.cc damages them.
  if (is_hdf5({bytes, size})) return 0;
  const auto read = [](const File& file) {
    for (const SpaceMap& map : read_itk_transforms(file)) {
      if (const auto* affine = std::get_if<Affine>(&map)) {
        for (const auto& row : affine->rows) must(!std::isnan(row[0]), "a map has numbers");
      } else {
        const auto& field = std::get<Volume>(map);
        must(field.values.shape.count() == field.grid.voxels() * field.components,
            "a field has a vector at each voxel");
      }
    }
  };
  take_or_refuse(read, {bytes, size});
  return 0;
}
