// SPDX-License-Identifier: Apache-2.0
#include "src/cli/corpus/results_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "src/cli/usage_error.h"

namespace similis::cli {
namespace {

constexpr auto kSyncEvery = std::chrono::seconds(5);

[[noreturn]] void fail(const std::string& path) {
  throw Error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void write_all(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno != EINTR) fail(path);
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

std::int64_t for_each_line(int descriptor, const std::string& path,
    const std::function<void(const std::string&, std::int64_t)>& take) {
  std::string line, chunk(std::size_t{1} << 16, '\0');
  std::int64_t line_start = 0, at = 0;
  for (;;) {
    const ssize_t count = pread(descriptor, chunk.data(), chunk.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    if (count == 0) return line_start;
    std::string_view rest(chunk.data(), static_cast<std::size_t>(count));
    at += count;
    for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      line.append(rest.substr(0, end));
      take(line, line_start);
      line_start += static_cast<std::int64_t>(line.size()) + 1;
      line.clear();
      rest.remove_prefix(end + 1);
    }
    line.append(rest);
  }
}

ResultsFile::ResultsFile(const std::string& path, const Json& header, const PairList& pairs)
    : path_(path), has_(pairs.size()) {
  lock();
  take_over(json_line(header), pairs);
}

// Another run may have put a new file in the place of the one that was opened before it was locked.
void ResultsFile::lock() {
  for (;;) {
    file_.reset(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (file_.get() < 0) fail(path_);
    if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) fail(path_);
      throw Error(fmt::format("{} is being written by another process", path_));
    }
    struct stat locked {
    }, named{};
    if (fstat(file_.get(), &locked) != 0) fail(path_);
    if (stat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
        locked.st_dev == named.st_dev)
      return;
  }
}

void ResultsFile::take_over(const std::string& header, const PairList& pairs) {
  std::string head;
  bool has_failures = false;
  const auto read = [&](const std::string& line, std::int64_t offset) {
    if (offset == 0) {
      head = line + "\n";
      if (head != header) {
        throw UsageError(fmt::format(
            "-o {}: it has other settings, or is not a file of this command; choose another name",
            path_));
      }
      return;
    }
    const Json row = Json::parse(line, nullptr, false);
    const auto id = row.is_object() ? row.find("id") : row.end();
    if (!row.is_object() || id == row.end() || !id->is_string()) {
      throw UsageError(
          fmt::format("-o {}: the line at byte {} is not a row of results", path_, offset));
    }
    if (row.contains("error")) {
      has_failures = true;
    } else if (const auto pair = pairs.find(id->get<std::string>())) {
      has_[*pair] = true;
    }
  };
  const std::int64_t whole = for_each_line(file_.get(), path_, read);
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) fail(path_);
  if (head.empty() && status.st_size > 0) {
    std::string start(header.size(), '\0');
    const ssize_t count = pread(file_.get(), start.data(), start.size(), 0);
    start.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (!header.starts_with(start)) {
      throw UsageError(
          fmt::format("-o {}: it is not a file of this command; choose another name", path_));
    }
  }
  if (whole < status.st_size && ftruncate(file_.get(), whole) != 0) fail(path_);
  if (has_failures) rewrite(header);
  if (head.empty()) write_all(file_.get(), header, path_);
}

// The rows without an error, bit for bit, in a new file that takes the place of this one.
void ResultsFile::rewrite(const std::string& header) {
  const std::string beside = path_ + ".partial";
  media::Descriptor fresh(
      open(beside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (fresh.get() < 0 || flock(fresh.get(), LOCK_EX | LOCK_NB) != 0) fail(beside);
  std::string kept = header;
  constexpr std::size_t kFlush = std::size_t{1} << 20;
  for_each_line(file_.get(), path_, [&](const std::string& line, std::int64_t offset) {
    if (offset == 0 || Json::parse(line).contains("error")) return;
    kept += line + "\n";
    if (kept.size() < kFlush) return;
    write_all(fresh.get(), kept, beside);
    kept.clear();
  });
  write_all(fresh.get(), kept, beside);
  if (fsync(fresh.get()) != 0 || std::rename(beside.c_str(), path_.c_str()) != 0) fail(path_);
  file_.reset(fresh.release());
}

void ResultsFile::add(const Json& row) {
  write_all(file_.get(), json_line(row), path_);
  if (std::chrono::steady_clock::now() - synced_ >= kSyncEvery) sync();
}

void ResultsFile::sync() {
  if (fdatasync(file_.get()) != 0 && errno != EINVAL) fail(path_);
  synced_ = std::chrono::steady_clock::now();
}

void ResultsFile::for_each_row(const std::function<void(const Json&)>& take) const {
  for_each_line(file_.get(), path_, [&](const std::string& line, std::int64_t offset) {
    if (offset > 0) take(Json::parse(line));
  });
}

}  // namespace similis::cli
