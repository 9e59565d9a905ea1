// SPDX-License-Identifier: Apache-2.0
// Matches the files of two directories.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

struct FilePair {
  std::string reference;
  std::string distorted;
};

struct UnmatchedFile {
  std::string path;
  std::string side;  ///< "reference" or "distorted"
};

struct MatchedDirectories {
  std::vector<FilePair> pairs;           ///< sorted by the reference's name
  std::vector<UnmatchedFile> unmatched;  ///< sorted by name
};

/// The files of two directories by their names: same name first, then, among those left over, same
/// name up to the extension where each side has just one such file. Names that begin with a dot and
/// directories inside are passed over. Throws InvalidArgument if one cannot be listed.
MatchedDirectories match_directories(const std::string& reference, const std::string& distorted);

}  // namespace similis::cli
