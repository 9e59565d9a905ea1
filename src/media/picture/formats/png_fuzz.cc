// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PNG file. A reader looks no further than a wrong length or CRC, so most changes
// are made to the content of one chunk, and these two are written anew.
#include <zlib.h>

#include <algorithm>

#include "src/media/io/reader_fuzz.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t size, std::size_t room);

namespace {

using Writable = std::span<std::uint8_t>;
constexpr std::size_t kSignatureBytes = 8, kLengthBytes = 4, kNameBytes = 4, kCrcBytes = 4;
constexpr std::size_t kFrameBytes = kLengthBytes + kNameBytes + kCrcBytes;

std::uint32_t read_u32(Writable at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}

void write_u32(Writable at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

// Each chunk that is all there, from its length to its CRC.
std::vector<Writable> chunks_of(Writable png) {
  std::vector<Writable> chunks;
  std::size_t at = kSignatureBytes;
  while (png.size() >= at + kFrameBytes) {
    const std::size_t length = read_u32(png.subspan(at));
    if (length > png.size() - at - kFrameBytes) break;
    chunks.push_back(png.subspan(at, kFrameBytes + length));
    at += kFrameBytes + length;
  }
  return chunks;
}

void write_crc(Writable chunk) {
  const Writable checked = chunk.subspan(kLengthBytes, chunk.size() - kLengthBytes - kCrcBytes);
  write_u32(chunk.last(kCrcBytes),
      static_cast<std::uint32_t>(crc32(0, checked.data(), static_cast<uInt>(checked.size()))));
}

// Changes a chunk's content, moves what follows it, and gives the file's new size.
std::size_t change_content(Writable png, Writable chunk, std::size_t room) {
  const auto data_at =
      static_cast<std::size_t>(chunk.data() - png.data()) + kLengthBytes + kNameBytes;
  const std::size_t length = chunk.size() - kFrameBytes;
  const std::vector<std::uint8_t> rest(
      chunk.data() + chunk.size() - kCrcBytes, png.data() + png.size());
  if (data_at + rest.size() >= room) return png.size();
  const std::size_t changed =
      LLVMFuzzerMutate(png.data() + data_at, length, room - data_at - rest.size());
  std::copy(rest.begin(), rest.end(), png.data() + data_at + changed);
  write_u32(chunk, static_cast<std::uint32_t>(changed));
  return png.size() - length + changed;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(
    std::uint8_t* bytes, std::size_t size, std::size_t room, unsigned seed) {
  constexpr unsigned kWhole = 4, kBroken = 16;  // one in so many: the file as it is, CRCs as well
  if (seed % kBroken == 0) return LLVMFuzzerMutate(bytes, size, room);
  const std::vector<Writable> chunks = chunks_of({bytes, size});
  const bool is_whole = seed % kWhole == 0 || chunks.empty();
  const std::size_t changed =
      is_whole ? LLVMFuzzerMutate(bytes, size, room)
               : change_content({bytes, size}, chunks[seed / kBroken % chunks.size()], room);
  for (const Writable chunk : chunks_of({bytes, changed})) write_crc(chunk);
  return changed;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  similis::media::read_any_bytes(similis::media::read_png, {bytes, size});
  return 0;
}
