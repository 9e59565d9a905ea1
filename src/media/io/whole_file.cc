// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "src/core/number_text.h"
#include "src/core/require.h"

namespace similis::media {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 100;  // names tried; earlier runs that were killed may have left some

// Writes and closes. False with errno set if it fails; what was written until then stays.
bool write_all(int descriptor, std::span<const std::uint8_t> bytes) {
  if (descriptor < 0) return false;
  bool done = true;
  while (done && !bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count >= 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    done = count >= 0 || errno == EINTR;
  }
  const int write_error = errno;
  const bool closed = close(descriptor) == 0;
  if (!done) errno = write_error;
  return done && closed;
}

[[noreturn]] void refuse(const std::string& path, int error) {
  throw InvalidArgument(fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

// Writes a new file beside the target; empty, with errno set, if that fails.
fs::path write_beside(const fs::path& target, std::span<const std::uint8_t> bytes) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const fs::path beside = fmt::format("{}.{}-{}.partial", target.string(), getpid(), attempt);
    const int flags = O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL;
    if (write_all(open(beside.c_str(), flags, 0666), bytes)) return beside;
    if (errno == EEXIST) continue;
    const int error = errno;
    std::remove(beside.c_str());
    errno = error;
    break;
  }
  return {};
}

// The number of one of this process's open files, if `path` leads to it through /dev/stdout,
// /dev/fd or /proc/self/fd.
std::optional<int> own_descriptor(fs::path path) {
  constexpr int kMaxLinks = 40;
  std::error_code error;
  const fs::path mine = fmt::format("/proc/{}/fd", getpid());
  for (int links = 0; links < kMaxLinks; ++links) {
    const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
    if (fs::canonical(folder, error) == mine) {
      return parse_number<int>(path.filename().string());
    }
    if (!fs::is_symlink(path, error)) return std::nullopt;
    path = folder / fs::read_symlink(path, error);  // an absolute target replaces the folder
  }
  return std::nullopt;
}

}  // namespace

bool is_written_in_place(const std::string& path) {
  if (own_descriptor(path)) return true;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

int open_in_place(const std::string& path) {
  if (!is_written_in_place(path)) return -1;
  if (const std::optional<int> own = own_descriptor(path)) {
    const int copy = fcntl(*own, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) refuse(path, errno);
    return copy;
  }
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(path, errno);
  return descriptor;
}

void write_whole_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  if (const int descriptor = open_in_place(path); descriptor >= 0) {
    if (!write_all(descriptor, bytes)) refuse(path, errno);
    return;
  }
  WholeFiles file;
  file.add(path, bytes);
  file.commit();
}

WholeFiles::~WholeFiles() {
  for (const Written& file : written_) {
    if (!file.beside.empty()) std::remove(file.beside.c_str());
  }
}

void WholeFiles::add(const std::string& path, std::span<const std::uint8_t> bytes) {
  if (is_written_in_place(path)) {
    written_.push_back({path, path, "", {bytes.begin(), bytes.end()}});
    return;
  }
  std::error_code error;
  fs::path target = path;
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);
  const fs::file_status older = fs::status(target, error);
  if (fs::is_directory(older)) refuse(path, EISDIR);
  const fs::path beside = write_beside(target, bytes);
  if (beside.empty()) refuse(path, errno);
  if (fs::exists(older)) fs::permissions(beside, older.permissions(), error);
  written_.push_back({path, target.string(), beside.string()});
}

void WholeFiles::commit() {
  for (Written& file : written_) {
    if (file.beside.empty()) {
      write_whole_file(file.path, file.bytes);
    } else if (std::rename(file.beside.c_str(), file.target.c_str()) != 0) {
      refuse(file.path, errno);
    }
    file.beside.clear();
  }
}

}  // namespace similis::media
