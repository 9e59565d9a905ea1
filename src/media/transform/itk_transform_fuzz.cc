// SPDX-License-Identifier: Apache-2.0
// Any bytes as a transform of ITK: a map with finite numbers, or one line that names the file.
#include <cmath>

#include "src/media/io/reader_fuzz.h"
#include "src/media/transform/itk_transform.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace similis::media;
  const auto read = [](const File& file) {
    const Affine map = read_itk_transform(file);
    for (const auto& row : map.rows) must(!std::isnan(row[0]), "a map has numbers");
  };
  take_or_refuse(read, {bytes, size});
  return 0;
}
