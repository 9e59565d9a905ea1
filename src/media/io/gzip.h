// SPDX-License-Identifier: Apache-2.0
// Content that may be compressed with gzip, and its making.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/media/picture/reader.h"

namespace similis::media {

bool is_gzip(Bytes start);

/// A file's bytes from first to last, decompressed if they are gzip's (several members too).
class Content {
 public:
  explicit Content(const File& file);
  ~Content();
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  /// More than this cannot come, whatever a header says.
  std::size_t most_bytes() const;

  /// The next `count` bytes, or fewer at the end, of whose memory no more is touched than bytes
  /// arrive. Throws InvalidArgument if the compressed file is cut off or damaged.
  std::vector<std::uint8_t> read(std::size_t count);

  /// Passes over bytes; fewer at the end.
  void skip(std::size_t count);

  /// Reads to the end of a compressed file, where its checksum is.
  void finish();

 private:
  class Inflater;
  std::size_t read_some(std::uint8_t* out, std::size_t count);

  File file_;
  std::size_t at_ = 0;  // of a file that is not compressed
  std::unique_ptr<Inflater> inflater_;
};

/// The first bytes of what a file holds of which `start` is the beginning, decompressed if need be;
/// what is damaged or cut off ends them.
std::vector<std::uint8_t> content_start(Bytes start, std::size_t count);

/// "zlib 1.2.13".
std::string gzip_library();

/// One member of gzip, at the fastest level.
std::vector<std::uint8_t> gzip(Bytes bytes);

}  // namespace similis::media
