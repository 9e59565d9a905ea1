// SPDX-License-Identifier: Apache-2.0
// Any bytes as what ffprobe printed.
#include "src/media/io/ffmpeg.h"
#include "src/media/io/reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto probe = similis::media::parse_probe({reinterpret_cast<const char*>(bytes), size});
  if (!probe) return 0;
  similis::media::must(probe->width >= 1 && probe->height >= 1, "a stream has a size");
  similis::media::must(probe->channels >= 1 && probe->channels <= 4, "and 1 to 4 channels");
  similis::media::must(probe->bit_depth >= 1, "and bits");
  similis::media::code_points(*probe);
  return 0;
}
