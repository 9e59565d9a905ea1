// SPDX-License-Identifier: Apache-2.0
// Any bytes as what ffmpeg reported: its log, its packets and its pixel formats, a zero between
// them.
#include <algorithm>

#include "src/media/io/ffmpeg.h"
#include "src/media/io/reader_fuzz.h"

namespace {

// Up to the next zero, which is taken away.
std::string_view next_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find('\0'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const std::string_view log = next_part(text), packets = next_part(text);
  const auto probe = similis::media::parse_report(log, packets, text);
  if (!probe) return 0;
  similis::media::must(probe->width >= 1 && probe->height >= 1, "a stream has a size");
  similis::media::must(probe->channels >= 1 && probe->channels <= 4, "and 1 to 4 channels");
  similis::media::must(probe->bit_depth >= 1, "and bits");
  similis::media::code_points(*probe);
  return 0;
}
