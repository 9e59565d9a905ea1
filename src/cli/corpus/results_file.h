// SPDX-License-Identifier: Apache-2.0
// The JSON Lines file of a corpus: a header, then one line for each pair, that any number of runs
// fill in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/cli/corpus/pair_list.h"
#include "src/cli/terminal/json_text.h"
#include "src/media/io/descriptor.h"

namespace similis::cli {

class ResultsFile {
 public:
  /// Makes the file with `header` as its first line, or continues one that has it: a torn last line
  /// is cut off, and rows with an error are taken out, to be tried again. The file is locked as
  /// long as this lives. Throws UsageError, leaving the file as it is, if its first line is
  /// another; Error if another process has it locked or it cannot be written.
  ResultsFile(const std::string& path, const Json& header, const PairList& pairs);
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  /// True if the pair with this place in the list has its row.
  bool has(std::size_t pair) const { return has_[pair]; }

  /// Appends a row in one write; at the latest every five seconds the rows are on the disk. Throws
  /// Error.
  void add(const Json& row);
  /// Waits until all rows are on the disk.
  void sync();
  /// Calls take(row) for each row in the file, those of earlier runs too, in its order. Throws
  /// Error.
  void for_each_row(const std::function<void(const Json& row)>& take) const;

 private:
  void lock();
  void take_over(const std::string& header, const PairList& pairs);
  void rewrite(const std::string& header);

  std::string path_;
  media::Descriptor file_;
  std::vector<bool> has_;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

/// Calls take(line, offset) for each whole line of an open file from its beginning; the lines
/// have no end. Returns the bytes of the whole lines. Throws Error, naming `path`.
std::int64_t for_each_line(int descriptor, const std::string& path,
    const std::function<void(const std::string& line, std::int64_t offset)>& take);

}  // namespace similis::cli
