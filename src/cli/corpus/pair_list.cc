// SPDX-License-Identifier: Apache-2.0
#include "src/cli/corpus/pair_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "src/cli/terminal/json_text.h"
#include "src/cli/usage_error.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

// FNV-1a with a last mix, so that any few bits are even. Shards depend on it: it stays as it is.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 33);
}

// A file read a byte at a time through the library's buffer: a list may be large.
class ListFile {
 public:
  explicit ListFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  ~ListFile() {
    if (file_) std::fclose(file_);
  }
  ListFile(const ListFile&) = delete;
  ListFile& operator=(const ListFile&) = delete;

  int get() { return getc_unlocked(file_); }
  // The next line without its end; false after the last.
  bool line(std::string& text) {
    text.clear();
    int c = get();
    if (c == EOF) return end();
    ++line_;
    for (; c != EOF && c != '\n'; c = get()) text += static_cast<char>(c);
    if (text.ends_with('\r')) text.pop_back();
    return true;
  }
  // The fields of the next row of RFC 4180; false after the last.
  bool row(std::vector<std::string>& fields) {
    fields.assign(1, "");
    int c = get();
    if (c == EOF) return end();
    ++line_;
    bool is_quoted = false;
    for (; c != EOF; c = get()) {
      if (is_quoted && c == '"') {
        c = get();
        if (c == '"') {
          fields.back() += '"';
          continue;
        }
        is_quoted = false;
        if (c == EOF) break;
      }
      if (is_quoted) {
        fields.back() += static_cast<char>(c);
      } else if (c == '"' && fields.back().empty()) {
        is_quoted = true;
      } else if (c == ',') {
        fields.emplace_back();
      } else if (c == '\n') {
        break;
      } else if (c != '\r') {
        fields.back() += static_cast<char>(c);
      }
    }
    if (is_quoted) refuse("its quotes are not closed");
    return true;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("--pairs {}: line {}: {}", path_, line_, why));
  }

 private:
  bool end() const {
    if (std::ferror(file_) != 0) {
      throw Error(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    }
    return false;
  }
  std::string path_;
  std::FILE* file_;
  std::int64_t line_ = 0;
};

void add_fields(const ListFile& file, const std::array<std::string, 3>& fields, PairList& list) {
  if (fields[0].empty() || fields[1].empty()) {
    file.refuse(fmt::format("it has no {}", fields[0].empty() ? "reference" : "distorted"));
  }
  list.add(fields[0], fields[1], fields[2]);
}

constexpr std::array kColumns = {"reference", "distorted", "id"};

void read_json_lines(ListFile& file, PairList& list) {
  for (std::string line; file.line(line);) {
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) file.refuse("it is not a JSON object");
    std::array<std::string, 3> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto found = json.find(kColumns[i]);
      if (found == json.end()) continue;
      if (!found->is_string()) file.refuse(fmt::format("its {} is not a text", kColumns[i]));
      fields[i] = found->get<std::string>();
    }
    add_fields(file, fields, list);
  }
}

// Rows below a header that names the columns.
void read_rows(
    ListFile& file, const std::function<bool(std::vector<std::string>&)>& next, PairList& list) {
  std::vector<std::string> row;
  if (!next(row)) return;
  std::array<std::size_t, 3> columns{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto found = std::find(row.begin(), row.end(), kColumns[i]);
    columns[i] = static_cast<std::size_t>(found - row.begin());
    if (found == row.end() && i < 2) {
      file.refuse(fmt::format("the first line has no column {}", kColumns[i]));
    }
  }
  while (next(row)) {
    if (row.size() == 1 && row.front().empty()) continue;
    std::array<std::string, 3> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (columns[i] < row.size()) fields[i] = row[columns[i]];
    }
    add_fields(file, fields, list);
  }
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

}  // namespace

bool Shard::has(std::string_view id) const {
  return count == 1 || hash_of(id) % count == number - 1;
}

Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t slash = text.find('/');
  const auto number = parse_number<std::uint64_t>(text.substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : parse_number<std::uint64_t>(text.substr(slash + 1));
  if (number && count && *number >= 1 && *number <= *count) return {*number, *count};
  throw UsageError(
      fmt::format("--shard is \"{}\"; it must be I/N, such as 1/8 for the first of eight", text));
}

void PairList::add(std::string_view reference, std::string_view distorted, std::string_view id) {
  const std::uint64_t offset = text_.size();
  text_.append(reference).append(1, '\t').append(distorted);
  const std::string_view own_id = id.empty() ? std::string_view(text_).substr(offset) : id;
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  const std::size_t slot = slot_of(own_id);
  if (const std::uint32_t there = slots_[slot]; there != 0) {
    const bool is_same =
        this->reference(there - 1) == reference && this->distorted(there - 1) == distorted;
    if (!is_same) {
      throw UsageError(fmt::format("the id \"{}\" is given to two pairs", own_id));
    }
    text_.resize(offset);
    ++repeated_;
    return;
  }
  text_.append(id);
  entries_.push_back({offset, static_cast<std::uint32_t>(reference.size()),
      static_cast<std::uint32_t>(distorted.size()), static_cast<std::uint32_t>(id.size())});
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
}

std::string_view PairList::reference(std::size_t i) const {
  const Entry& entry = entries_[i];
  return std::string_view(text_).substr(entry.offset, entry.reference);
}

std::string_view PairList::distorted(std::size_t i) const {
  const Entry& entry = entries_[i];
  return std::string_view(text_).substr(entry.offset + entry.reference + 1, entry.distorted);
}

std::string_view PairList::id(std::size_t i) const {
  const Entry& entry = entries_[i];
  const std::size_t both = std::size_t{entry.reference} + 1 + entry.distorted;
  const std::string_view text(text_);
  return entry.id == 0 ? text.substr(entry.offset, both)
                       : text.substr(entry.offset + both, entry.id);
}

FilePair PairList::files(std::size_t i) const {
  return {(fs::path(folder) / reference(i)).string(), (fs::path(folder) / distorted(i)).string()};
}

std::optional<std::size_t> PairList::find(std::string_view id) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t found = slots_[slot_of(id)];
  return found == 0 ? std::nullopt : std::optional<std::size_t>(found - 1);
}

// The slot of this id, or the free one where it would be.
std::size_t PairList::slot_of(std::string_view wanted) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(wanted) & mask;
  while (slots_[slot] != 0 && id(slots_[slot] - 1) != wanted) slot = (slot + 1) & mask;
  return slot;
}

void PairList::grow() {
  slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    slots_[slot_of(id(i))] = static_cast<std::uint32_t>(i + 1);
  }
}

PairList read_pair_list(const std::string& path) {
  PairList list;
  list.folder = fs::path(path).parent_path().string();
  ListFile file(path);
  if (path.ends_with(".jsonl")) {
    read_json_lines(file, list);
  } else if (path.ends_with(".csv")) {
    read_rows(
        file, [&](std::vector<std::string>& row) { return file.row(row); }, list);
  } else if (path.ends_with(".tsv")) {
    std::string line;
    const auto next = [&](std::vector<std::string>& row) {
      if (!file.line(line)) return false;
      row = split(line);
      return true;
    };
    read_rows(file, next, list);
  } else {
    throw UsageError(
        fmt::format("--pairs {}: a list of pairs is a .jsonl, .csv or .tsv file", path));
  }
  return list;
}

}  // namespace similis::cli
