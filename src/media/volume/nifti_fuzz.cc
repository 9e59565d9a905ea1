// SPDX-License-Identifier: Apache-2.0
// Any bytes as a NIfTI file, compressed or not: a volume with the values that it says, which comes
// back from what is written of it, or one line that names the file.
#include <cstring>

#include "src/media/io/reader_fuzz.h"
#include "src/media/volume/volume.h"

namespace similis::media {
namespace {

void require_whole(const Volume& volume) {
  const auto& size = volume.grid.size;
  must(volume.values.shape == Extents{volume.components, volume.frames, size[2], size[1], size[0]},
      "a volume has the values that it says");
  must(volume.values.shape.count() <= kMaxFuzzPixels, "it is within the limit");
  must(std::abs(determinant(volume.grid.voxel_to_world)) > 0, "its voxels lie in space");
}

void require_back(Volume volume) {
  if (volume.is_scaled) volume.type = SampleType::f64;
  const std::vector<std::uint8_t> bytes = encode_nifti(volume, "");
  const Volume back = read_volume(File{bytes, "written", kMaxFuzzPixels});
  must(back.values.shape == volume.values.shape, "written volumes keep their shape");
  must(back.values.dtype == volume.values.dtype, "and their precision");
  const auto count = static_cast<std::size_t>(volume.values.shape.count());
  must(std::memcmp(
           back.values.data(), volume.values.data(), count * size_bytes(volume.values.dtype)) == 0,
      "and their values");
}

}  // namespace
}  // namespace similis::media

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace similis::media;
  const auto read = [](const File& file) {
    const Volume volume = read_volume(file);
    require_whole(volume);
    require_back(volume);
  };
  take_or_refuse(read, {bytes, size});
  return 0;
}
