// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "src/core/require.h"

namespace similis::media {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 100;  // names tried; earlier runs that were killed may have left some

// False with errno set if it fails; what was written until then stays.
bool write_all(const fs::path& path, int flags, std::span<const std::uint8_t> bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
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
    if (write_all(beside, O_CREAT | O_EXCL, bytes)) return beside;
    if (errno == EEXIST) continue;
    const int error = errno;
    std::remove(beside.c_str());
    errno = error;
    break;
  }
  return {};
}

}  // namespace

void write_whole_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::error_code error;
  fs::path target = path;
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);
  const fs::file_status older = fs::status(target, error);
  if (fs::is_directory(older)) refuse(path, EISDIR);
  if (fs::exists(older) && !fs::is_regular_file(older)) {
    if (!write_all(target, 0, bytes)) refuse(path, errno);
    return;
  }
  const fs::path beside = write_beside(target, bytes);
  if (beside.empty()) refuse(path, errno);
  if (fs::exists(older)) fs::permissions(beside, older.permissions(), error);
  if (std::rename(beside.c_str(), target.c_str()) != 0) {
    const int reason = errno;
    std::remove(beside.c_str());
    refuse(path, reason);
  }
}

}  // namespace similis::media
