// SPDX-License-Identifier: Apache-2.0
// Any bytes as a y4m file: frames of the size that the header says, or one line that names it.
#include <sys/mman.h>
#include <unistd.h>

#include "src/media/io/reader_fuzz.h"
#include "src/media/video/stream_source.h"

namespace similis::media {
namespace {

void read_frames(std::unique_ptr<ByteStream> stream) {
  const auto source = open_y4m(std::move(stream));
  std::int64_t number = 0;
  for (VideoFrame frame; source->read(frame); ++number) {
    must(frame.number == number, "frames are numbered");
    must(frame.bytes.size() == source->format().frame_bytes(), "a frame is whole");
    for (int plane = 0; plane < source->format().pixels.color_planes; ++plane) {
      must(frame.plane(source->format(), plane).shape.count() > 0, "planes have samples");
    }
  }
}

}  // namespace
}  // namespace similis::media

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace similis::media;
  const int file = memfd_create("y4m", MFD_CLOEXEC);
  must(write(file, bytes, size) == static_cast<ssize_t>(size) && lseek(file, 0, SEEK_SET) == 0,
      "the input is a file");
  try {
    read_frames(std::make_unique<ByteStream>(file, "any"));
  } catch (const similis::InvalidArgument& error) {
    const std::string_view words = error.what();
    must(words.starts_with("cannot read any: "), "an error names the file");
    must(words.find('\n') == words.npos, "an error is one line");
  }
  return 0;
}
