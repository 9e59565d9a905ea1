// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of MetaImage or NRRD: a volume with the values that it says, or one line that
// names the file.
#include <cmath>

#include "src/media/io/reader_fuzz.h"
#include "src/media/volume/text_volume.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace similis::media;
  const auto read = [](const File& file) {
    const Volume volume = read_text_volume(file, {});
    const auto& sides = volume.grid.size;
    must(volume.values.shape ==
             similis::Extents{volume.components, volume.frames, sides[2], sides[1], sides[0]},
        "a volume has the values that it says");
    must(volume.values.shape.count() <= kMaxFuzzPixels, "it is within the limit");
    must(std::abs(determinant(volume.grid.voxel_to_world)) > 0, "its voxels lie in space");
  };
  take_or_refuse(read, {bytes, size});
  return 0;
}
