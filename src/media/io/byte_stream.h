// SPDX-License-Identifier: Apache-2.0
// Reads bytes from a file, pipe or terminal; another thread can cancel the wait for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/media/io/descriptor.h"

namespace similis::media {

class ByteStream {
 public:
  /// Opens the file at `path`, "-" being standard input. Throws InvalidArgument if that fails or it
  /// is a directory.
  explicit ByteStream(const std::string& path);
  /// Reads the output of a program: `descriptor` is the end of a pipe, `name` stands for it in
  /// errors.
  ByteStream(int descriptor, const std::string& name);

  /// The name for errors: the path, or "standard input".
  const std::string& name() const { return name_; }
  /// Size of a regular file in bytes; empty for pipes.
  std::optional<std::int64_t> size() const { return size_; }

  /// The next bytes, at most `count` of them, without consuming them.
  const std::vector<std::uint8_t>& peek(std::size_t count);

  /// Reads up to `count` bytes into `out`; fewer only at the end of the file or once cancelled.
  /// Throws InvalidArgument with the system's reason if reading fails.
  std::size_t read(std::uint8_t* out, std::size_t count);

  /// True if no bytes are left; waits until that is known.
  bool at_end();

  /// Reads `count` bytes into `bytes`, touching memory only as bytes arrive; returns their number.
  std::size_t read_frame(std::vector<std::uint8_t>& bytes, std::size_t count);

  /// Goes over up to `count` bytes, without reading those of a regular file; returns their number,
  /// which is less as for read().
  std::size_t skip(std::size_t count);

  /// Reads all remaining bytes. Throws InvalidArgument if they are more than `limit`; for a regular
  /// file before any is read.
  std::vector<std::uint8_t> read_to_end(std::size_t limit);

  /// Makes a read() on another thread, and every later one, end as at the end of the file.
  void cancel();
  bool is_cancelled() const;

 private:
  std::size_t read_some(std::uint8_t* out, std::size_t count);

  std::string name_;
  Descriptor descriptor_;
  Descriptor wake_;  // readable once cancelled
  std::optional<std::int64_t> size_;
  std::vector<std::uint8_t> peeked_;
};

}  // namespace similis::media
