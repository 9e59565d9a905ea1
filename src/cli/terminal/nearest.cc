// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace similis::cli {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Damerau and Levenshtein's distance, restricted: no letter is edited twice.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> distance(
      a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
          distance[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 64;  // edits() takes the product of the lengths
  std::string best;
  std::size_t fewest = 0;
  if (name.size() > kLongestName) return best;
  for (const std::string& candidate : candidates) {
    const std::size_t limit = std::max<std::size_t>(2, std::max(name.size(), candidate.size()) / 3);
    const std::size_t distance = edits(lower(name), lower(candidate));
    if (distance > limit || distance >= candidate.size()) continue;
    if (best.empty() || distance < fewest) {
      best = candidate;
      fewest = distance;
    }
  }
  return best;
}

std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string found = nearest(name, candidates);
  return found.empty() ? "" : "; did you mean " + found + "?";
}

}  // namespace similis::cli
