// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/sequence.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/core/number_text.h"
#include "src/core/require.h"

namespace similis::media {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "frame%05d.png": what stands before and behind the number, and its least number of digits.
struct NumberPattern {
  std::string_view before, behind;
  std::size_t digits = 1;

  // The number in a name that fits. One that has more digits than it needs begins with no 0.
  std::optional<std::int64_t> number(std::string_view name) const {
    if (name.size() < before.size() + behind.size() + digits) return std::nullopt;
    if (!name.starts_with(before) || !name.ends_with(behind)) return std::nullopt;
    name.remove_prefix(before.size());
    name.remove_suffix(behind.size());
    if (!std::all_of(name.begin(), name.end(), is_digit)) return std::nullopt;
    if (name.size() > digits && name.front() == '0') return std::nullopt;
    return parse_number<std::int64_t>(name);
  }
};

std::optional<NumberPattern> number_pattern(std::string_view name) {
  const std::size_t percent = name.find('%');
  if (percent == name.npos) return std::nullopt;
  std::size_t end = percent + 1;
  while (end < name.size() && is_digit(name[end])) ++end;
  if (end == name.size() || name[end] != 'd') return std::nullopt;
  const std::string_view width = name.substr(percent + 1, end - percent - 1);
  NumberPattern pattern{.before = name.substr(0, percent), .behind = name.substr(end + 1)};
  if (width.empty()) return pattern;
  const std::optional<int> digits = parse_number<int>(width);
  constexpr int kMostDigits = 18;
  if (width.front() != '0' || !digits || *digits < 1 || *digits > kMostDigits) return std::nullopt;
  pattern.digits = static_cast<std::size_t>(*digits);
  return pattern;
}

// True if a comes before b: runs of digits by their value, all else by its bytes.
bool is_before(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (!is_digit(a.front()) || !is_digit(b.front())) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto take_number = [](std::string_view& text) {
      while (text.size() > 1 && text[0] == '0' && is_digit(text[1])) text.remove_prefix(1);
      std::size_t count = 0;
      while (count < text.size() && is_digit(text[count])) ++count;
      const std::string_view number = text.substr(0, count);
      text.remove_prefix(count);
      return number;
    };
    const std::string_view x = take_number(a), y = take_number(b);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? fs::path(".") : folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code unknown;  // a broken link is taken; reading it gives the error
    if (!entries->is_directory(unknown)) names.push_back(entries->path().filename().string());
  }
  return names;
}

std::vector<std::string> numbered_names(
    const std::string& path, const fs::path& folder, const NumberPattern& pattern) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (std::string& name : names_in(folder)) {
    if (const auto number = pattern.number(name)) found.emplace_back(*number, std::move(name));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < found.size(); ++i) {
    require(i == 0 || found[i].first == found[i - 1].first + 1,
        "cannot read {}: number {} is missing between {} and {}", path,
        found[i - (i > 0)].first + 1, found.front().first, found.back().first);
    names.push_back(std::move(found[i].second));
  }
  return names;
}

std::vector<std::string> fitting_names(const fs::path& folder, const std::string& wildcard) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [&](const std::string& name) {
    return fnmatch(wildcard.c_str(), name.c_str(), FNM_PERIOD | FNM_NOESCAPE) != 0;
  });
  std::sort(names.begin(), names.end(), is_before);
  return names;
}

}  // namespace

std::vector<std::string> sequence_files(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const std::string name = fs::path(path).filename().string();
  const std::optional<NumberPattern> pattern = number_pattern(name);
  const bool has_wildcard = name.find_first_of("*?") != std::string::npos ||
                            name.find(']', name.find('[')) != std::string::npos;
  std::error_code error;
  if ((!pattern && !has_wildcard) || fs::exists(path, error)) return {};
  std::vector<std::string> files =
      pattern ? numbered_names(path, folder, *pattern) : fitting_names(folder, name);
  require(!files.empty(), "cannot read {}: no file has such a name", path);
  for (std::string& file : files) file = (folder / file).string();
  return files;
}

}  // namespace similis::media
