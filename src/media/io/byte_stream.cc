// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/byte_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "src/media/picture/reader.h"

namespace similis::media {

namespace {

int open_path(const std::string& path) {
  if (path == "-") return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

}  // namespace

ByteStream::ByteStream(const std::string& path)
    : ByteStream(open_path(path), path == "-" ? "standard input" : path) {}

ByteStream::ByteStream(int descriptor, const std::string& name)
    : name_(name), descriptor_(descriptor), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const File file{.bytes = {}, .name = name_};
  struct stat status {};
  if (descriptor < 0 || wake_.get() < 0 || fstat(descriptor, &status) != 0) {
    refuse(file, "{}", std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) refuse(file, "it is a directory; it must be a file");
  if (S_ISREG(status.st_mode)) size_ = status.st_size;
}

const std::vector<std::uint8_t>& ByteStream::peek(std::size_t count) {
  while (peeked_.size() < count) {
    const std::size_t filled = peeked_.size();
    peeked_.resize(count);
    peeked_.resize(filled + read_some(peeked_.data() + filled, count - filled));
    if (peeked_.size() == filled) break;
  }
  return peeked_;
}

std::size_t ByteStream::read_some(std::uint8_t* out, std::size_t count) {
  for (;;) {
    std::array<pollfd, 2> ends = {
        pollfd{descriptor_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
    if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) break;
    if (ends[1].revents != 0) return 0;
    if (ends[0].revents == 0) continue;
    const ssize_t taken = ::read(descriptor_.get(), out, count);
    if (taken >= 0) return static_cast<std::size_t>(taken);
    if (errno != EINTR && errno != EAGAIN) break;
  }
  refuse({.bytes = {}, .name = name_}, "{}", std::strerror(errno));
}

std::size_t ByteStream::read(std::uint8_t* out, std::size_t count) {
  std::size_t done = std::min(count, peeked_.size());
  std::copy_n(peeked_.begin(), done, out);
  peeked_.erase(peeked_.begin(), peeked_.begin() + static_cast<std::ptrdiff_t>(done));
  while (done < count) {
    const std::size_t taken = read_some(out + done, count - done);
    if (taken == 0) break;
    done += taken;
  }
  return done;
}

bool ByteStream::at_end() { return peek(1).empty(); }

std::size_t ByteStream::skip(std::size_t count) {
  std::size_t done = std::min(count, peeked_.size());
  peeked_.erase(peeked_.begin(), peeked_.begin() + static_cast<std::ptrdiff_t>(done));
  const auto rest = static_cast<std::int64_t>(count - done);
  const std::int64_t place = size_ ? lseek(descriptor_.get(), 0, SEEK_CUR) : -1;
  if (place >= 0 && rest <= *size_ - place) {
    if (lseek(descriptor_.get(), rest, SEEK_CUR) >= 0) return count;
  }
  std::array<std::uint8_t, std::size_t{1} << 15> passed;
  while (done < count) {
    const std::size_t wanted = std::min(passed.size(), count - done);
    const std::size_t taken = read(passed.data(), wanted);
    done += taken;
    if (taken < wanted) break;
  }
  return done;
}

namespace {
constexpr std::size_t kStep = std::size_t{1} << 20;
// Frames up to this size get their memory at once; it is touched as bytes arrive.
constexpr std::size_t kReserved = std::size_t{1} << 26;
}  // namespace

std::size_t ByteStream::read_frame(std::vector<std::uint8_t>& bytes, std::size_t count) {
  std::size_t filled = 0;
  bytes.reserve(std::min(count, kReserved));
  while (filled < count) {
    // Memory that the vector already has is used whole; it grows as bytes arrive.
    const std::size_t end = std::min(count, std::max(bytes.size(), filled + kStep));
    bytes.resize(end);
    const std::size_t taken = read(bytes.data() + filled, end - filled);
    filled += taken;
    if (filled < end) break;
  }
  bytes.resize(filled);
  return filled;
}

std::vector<std::uint8_t> ByteStream::read_to_end(std::size_t limit) {
  const bool is_long = size_ && static_cast<std::size_t>(*size_) > limit;
  std::vector<std::uint8_t> bytes;
  if (size_ && !is_long) {  // no step of read_frame: a small file takes little memory
    const auto expected = static_cast<std::size_t>(*size_);
    bytes.resize(expected + 1);
    bytes.resize(read(bytes.data(), expected + 1));
    if (bytes.size() <= expected) return bytes;
  }
  // The rest of a pipe, or of a file that grows or, as in /proc, has no size.
  std::vector<std::uint8_t> rest;
  if (!is_long && bytes.size() + read_frame(rest, limit + 1 - bytes.size()) <= limit) {
    if (bytes.empty()) return rest;
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return bytes;
  }
  refuse({.bytes = {}, .name = name_}, "it is larger than the limit of {} bytes", limit);
}

void ByteStream::cancel() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
}

bool ByteStream::is_cancelled() const {
  pollfd end{wake_.get(), POLLIN, 0};
  return poll(&end, 1, 0) > 0;
}

}  // namespace similis::media
