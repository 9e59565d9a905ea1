// SPDX-License-Identifier: Apache-2.0
// Bytes from an open file, pipe or terminal, which another thread can stop waiting for.
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
  /// What a program writes: `descriptor` is the pipe's end, `name` stands for it in errors.
  ByteStream(int descriptor, const std::string& name);

  /// As errors call it: the path, or "standard input".
  const std::string& name() const { return name_; }
  /// Of a regular file; empty for pipes.
  std::optional<std::int64_t> size() const { return size_; }

  /// The first bytes, at most `count` of them, which stay to be read.
  const std::vector<std::uint8_t>& peek(std::size_t count);

  /// Up to `count` bytes into `out`; less only at the end of the file or once cancelled. Throws
  /// InvalidArgument with the system's reason if reading fails.
  std::size_t read(std::uint8_t* out, std::size_t count);

  /// Whether bytes are left; waits for them.
  bool at_end();

  /// `count` bytes in `bytes`, of whose memory no more is touched than bytes arrive; how many did.
  std::size_t read_frame(std::vector<std::uint8_t>& bytes, std::size_t count);

  /// All that is left. Throws InvalidArgument if that is more than `limit`, of a regular file
  /// before a byte is read.
  std::vector<std::uint8_t> read_to_end(std::size_t limit);

  /// Lets a read() on another thread, and every later one, end as if the file did.
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
