// SPDX-License-Identifier: Apache-2.0
// The list of pairs of `similis compare --pairs`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/inputs/directories.h"

namespace similis::cli {

/// Part of a list: pairs whose id falls into shard `number` of `count`, whatever else is listed.
struct Shard {
  std::uint64_t number = 1, count = 1;

  bool has(std::string_view id) const;
};

/// Parses "3/8"; the whole list for "". Throws UsageError.
Shard parse_shard(const std::string& text);

/// Pairs in the order of the list, in about 20 bytes each beside their names.
class PairList {
 public:
  /// Paths are as listed, relative to `folder`; an id that is not given is both paths with a tab
  /// between them. A pair that is there already is passed over. Throws UsageError, naming the id,
  /// if another pair has it.
  void add(std::string_view reference, std::string_view distorted, std::string_view id = {});

  std::size_t size() const { return entries_.size(); }
  std::size_t repeated() const { return repeated_; }  ///< pairs that were listed again
  std::string_view reference(std::size_t i) const;
  std::string_view distorted(std::size_t i) const;
  std::string_view id(std::size_t i) const;
  /// The paths to open.
  FilePair files(std::size_t i) const;
  std::optional<std::size_t> find(std::string_view id) const;

  std::string folder;  ///< of the list; empty for the current one

 private:
  struct Entry {
    std::uint64_t offset;  // in text_: reference, tab, distorted, then the id if it is given
    std::uint32_t reference, distorted, id;  // lengths; 0: the id is what stands before
  };
  std::size_t slot_of(std::string_view id) const;
  void grow();

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // open addressing by the hash of the id; 0 is free
  std::size_t repeated_ = 0;
};

/// Reads a .jsonl, .csv or .tsv file with `reference`, `distorted` and, optionally, `id`. Throws
/// UsageError, naming the file and the line, if it is none of these or a line is malformed, Error
/// if it cannot be read.
PairList read_pair_list(const std::string& path);

}  // namespace similis::cli
