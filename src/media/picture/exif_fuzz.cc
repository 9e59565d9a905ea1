// SPDX-License-Identifier: Apache-2.0
// Any bytes as an EXIF block, and a small picture turned as it says.
#include "src/media/io/reader_fuzz.h"
#include "src/media/picture/orientation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const int orientation = similis::media::exif_orientation({bytes, size});
  similis::media::must(orientation >= 1 && orientation <= 8, "an orientation is 1 to 8");
  similis::media::Image image{
      .width = 3, .height = 2, .channels = 1, .samples8 = {1, 2, 3, 4, 5, 6}};
  similis::media::apply_orientation(image, orientation);
  similis::media::must(image.width == (orientation >= 5 ? 2 : 3), "5 to 8 swap the sides");
  int sum = 0;
  for (const std::uint8_t sample : image.samples8) sum += sample;
  similis::media::must(sum == 1 + 2 + 3 + 4 + 5 + 6, "every sample is kept");
  return 0;
}
