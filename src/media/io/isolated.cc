// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/isolated.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "similis/error.hpp"
#include "src/media/io/descriptor.h"

namespace similis::media {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 20;
constexpr std::uint8_t kResult = 0, kRefusal = 1;  // the first byte says what follows

bool write_all(int descriptor, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool write_message(int descriptor, std::uint8_t kind, std::span<const std::uint8_t> bytes) {
  return write_all(descriptor, {&kind, 1}) && write_all(descriptor, bytes);
}

// Ends with its parent, at its limit of time, and by any signal that ends a process.
void limit_this_process(int seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto limit = static_cast<rlim_t>(seconds);
  const rlimit time{limit, limit}, core{0, 0};
  setrlimit(RLIMIT_CPU, &time);
  setrlimit(RLIMIT_CORE, &core);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGSEGV, SIGBUS, SIGABRT, SIGFPE}) {
    signal(number, SIG_DFL);
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
}

[[noreturn]] void run_in_copy(
    const std::function<std::vector<std::uint8_t>()>& work, int seconds, int output) {
  limit_this_process(seconds);
  bool is_written = false;
  try {
    is_written = write_message(output, kResult, work());
  } catch (const InvalidArgument& error) {
    const std::string words = error.what();
    is_written = write_message(
        output, kRefusal, {reinterpret_cast<const std::uint8_t*>(words.data()), words.size()});
  } catch (...) {  // such as no memory: nothing is said, as after a crash
  }
  _exit(is_written ? 0 : 1);
}

std::vector<std::uint8_t> read_to_end(int descriptor) {
  std::vector<std::uint8_t> bytes;
  for (;;) {
    const std::size_t filled = bytes.size();
    bytes.resize(filled + kStep);
    const ssize_t count = read(descriptor, bytes.data() + filled, kStep);
    bytes.resize(filled + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count == 0 || (count < 0 && errno != EINTR)) return bytes;
  }
}

}  // namespace

std::optional<std::vector<std::uint8_t>> run_isolated(
    const std::function<std::vector<std::uint8_t>()>& work, int seconds) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(fmt::format("there can be no pipe: {}", std::strerror(errno)));
  }
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    throw Error(fmt::format("there can be no further process: {}", std::strerror(errno)));
  }
  if (child == 0) run_in_copy(work, seconds, to.get());
  to.reset();
  std::vector<std::uint8_t> bytes = read_to_end(from.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 || bytes.empty()) return std::nullopt;
  const std::uint8_t kind = bytes.front();
  bytes.erase(bytes.begin());
  if (kind == kRefusal) throw InvalidArgument(std::string(bytes.begin(), bytes.end()));
  return bytes;
}

}  // namespace similis::media
