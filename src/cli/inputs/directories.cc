// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/directories.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>

#include "similis/error.hpp"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

std::set<std::string> file_names(const std::string& directory) {
  std::set<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    std::error_code unknown;  // a broken link is listed; reading it gives the error
    if (!name.starts_with('.') && !entries->is_directory(unknown)) names.insert(name);
  }
  if (error) {
    throw InvalidArgument(fmt::format("cannot list {}: {}", directory, error.message()));
  }
  return names;
}

std::string stem(const std::string& name) { return fs::path(name).stem().string(); }

std::map<std::string, std::vector<std::string>> by_stem(const std::set<std::string>& names) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const std::string& name : names) groups[stem(name)].push_back(name);
  return groups;
}

// Moves names that are in both sets to `matches`.
void match_names(std::set<std::string>& reference, std::set<std::string>& distorted,
    std::map<std::string, std::string>& matches) {
  for (auto name = reference.begin(); name != reference.end();) {
    if (distorted.erase(*name) == 0) {
      ++name;
      continue;
    }
    matches[*name] = *name;
    name = reference.erase(name);
  }
}

void match_stems(std::set<std::string>& reference, std::set<std::string>& distorted,
    std::map<std::string, std::string>& matches) {
  const auto candidates = by_stem(distorted);
  for (const auto& [name_stem, names] : by_stem(reference)) {
    const auto found = candidates.find(name_stem);
    if (found == candidates.end() || names.size() > 1 || found->second.size() > 1) continue;
    matches[names.front()] = found->second.front();
    reference.erase(names.front());
    distorted.erase(found->second.front());
  }
}

}  // namespace

MatchedDirectories match_directories(const std::string& reference, const std::string& distorted) {
  std::set<std::string> reference_names = file_names(reference);
  std::set<std::string> distorted_names = file_names(distorted);
  std::map<std::string, std::string> matches;
  match_names(reference_names, distorted_names, matches);
  match_stems(reference_names, distorted_names, matches);

  const auto inside = [](const std::string& directory, const std::string& name) {
    return (fs::path(directory) / name).string();
  };
  MatchedDirectories result;
  for (const auto& [reference_name, distorted_name] : matches) {
    result.pairs.push_back({inside(reference, reference_name), inside(distorted, distorted_name)});
  }
  std::vector<std::tuple<std::string, std::string, std::string>> rest;  // name, side, directory
  for (const std::string& name : reference_names) rest.emplace_back(name, "reference", reference);
  for (const std::string& name : distorted_names) rest.emplace_back(name, "distorted", distorted);
  std::sort(rest.begin(), rest.end());
  for (const auto& [name, side, directory] : rest) {
    result.unmatched.push_back({inside(directory, name), side});
  }
  return result;
}

}  // namespace similis::cli
