// SPDX-License-Identifier: Apache-2.0
// Reads files that may be compressed with gzip, and compresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "similis/execution.hpp"
#include "src/media/picture/reader.h"

namespace similis::media {

bool is_gzip(Bytes start);

/// Reads a file from first to last byte, decompressed if it is gzip (several members too).
class Content {
 public:
  explicit Content(const File& file);
  ~Content();
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  /// An upper bound of the bytes to come, whatever a header says.
  std::size_t most_bytes() const;

  /// The next `count` bytes, or fewer at the end; touches memory only as bytes arrive. Throws
  /// InvalidArgument if the compressed file is cut off or damaged.
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

/// The first bytes of the content of a file that begins with `start`, decompressed if need be, up
/// to the first damage or cut.
std::vector<std::uint8_t> content_start(Bytes start, std::size_t count);

/// "zlib 1.2.13".
std::string gzip_library();

/// One member of gzip, at the fastest level. Blocks of 1 MiB are compressed on exec's threads; the
/// result is the same for any number of them.
std::vector<std::uint8_t> gzip(Bytes bytes, const Execution& exec = {});

}  // namespace similis::media
