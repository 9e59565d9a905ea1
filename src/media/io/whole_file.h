// SPDX-License-Identifier: Apache-2.0
// Writes a file completely or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace similis::media {

/// Writes `bytes` to a new file beside `path` and renames it to `path`, so that an existing file
/// survives every failure. Replaces the target of a symbolic link; writes to what open_in_place()
/// opens as it is. Throws InvalidArgument, naming `path` and the system's reason, if that fails.
void write_whole_file(const std::string& path, std::span<const std::uint8_t> bytes);

/// True for what is never replaced: an open file of this process that `path` names (/dev/stdout,
/// /dev/fd/3), a device, a pipe or a FIFO.
bool is_written_in_place(const std::string& path);

/// A descriptor for such a path, for the caller to close; an open file keeps its position. -1 for
/// all other paths. A FIFO waits for its reader. Throws as write_whole_file() does.
int open_in_place(const std::string& path);

/// Files that appear together: each is written beside its place, and renamed once all are there.
class WholeFiles {
 public:
  WholeFiles() = default;
  /// Removes what was not committed.
  ~WholeFiles();
  WholeFiles(const WholeFiles&) = delete;
  WholeFiles& operator=(const WholeFiles&) = delete;

  /// Throws as write_whole_file() does.
  void add(const std::string& path, std::span<const std::uint8_t> bytes);
  void commit();

 private:
  struct Written {
    std::string path, target;              ///< as given, and what a symbolic link leads to
    std::string beside;                    ///< empty for what is written in place
    std::vector<std::uint8_t> bytes = {};  ///< of that
  };
  std::vector<Written> written_;
};

}  // namespace similis::media
