// SPDX-License-Identifier: Apache-2.0
// posix_spawn rather than fork: safe among threads, and it tells a missing program from a failing
// one. The input is an unnamed file in memory, so only the two outputs are pipes, which this side
// reads: no deadlock, no SIGPIPE. The child is always reaped.
#include "src/media/io/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "src/core/require.h"
#include "src/media/io/descriptor.h"

extern char** environ;

namespace similis::media {
namespace {

[[noreturn]] void fail(const std::string& program, int error) {
  throw Error(fmt::format("{} could not be run: {}", program, std::strerror(error)));
}

struct Pipe {
  Descriptor read_end, write_end;
  explicit Pipe(const std::string& program) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail(program, errno);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

void fill(const Descriptor& file, std::span<const std::uint8_t> bytes, const std::string& program) {
  while (!bytes.empty()) {
    const ssize_t count = write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) fail(program, errno);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) fail(program, errno);
}

// A running child; killed and reaped with the object unless it was waited for.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    kill_now();
    if (id_ > 0) wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill_now() const {
    if (id_ > 0) kill(id_, SIGKILL);
  }
  int wait() {
    int status = 0;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status;
  }

 private:
  pid_t id_;
};

// The id of the child, or the negated error.
pid_t spawn(const std::vector<std::string>& arguments, int input, int output, int errors) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A group of its own: Ctrl-C reaches this program alone, which ends the child when it is done.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t id = -1;
  const int error = posix_spawnp(&id, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? id : -error;
}

// Appends the bytes that have arrived; false at the end.
template <class Buffer> bool drain(int descriptor, Buffer& buffer, std::size_t limit) {
  std::array<char, 65536> chunk;
  const ssize_t count = read(descriptor, chunk.data(), chunk.size());
  if (count < 0) return errno == EINTR;
  const auto taken = std::min(static_cast<std::size_t>(count), limit - buffer.size());
  buffer.insert(buffer.end(), chunk.data(), chunk.data() + taken);
  return count > 0;
}

// Reads both outputs to their ends; otherwise says why the child must be killed.
std::string collect(
    const Pipe& output, const Pipe& errors, const ProgramLimits& limits, ProgramResult& result) {
  std::array<pollfd, 2> ends = {
      pollfd{output.read_end.get(), POLLIN, 0}, pollfd{errors.read_end.get(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const int ready = poll(ends.data(), ends.size(), static_cast<int>(limits.silence.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return fmt::format("no output for {} s", limits.silence.count() / 1000.0);
    if (ends[0].revents && !drain(ends[0].fd, result.output, limits.output_bytes + 1)) {
      ends[0].fd = -1;
    }
    if (ends[1].revents && !drain(ends[1].fd, result.errors, kMaxErrorBytes)) ends[1].fd = -1;
    if (result.output.size() > limits.output_bytes) {
      return fmt::format("more than {} bytes of output", limits.output_bytes);
    }
  }
  return {};
}

std::string in_words(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("status {}", WEXITSTATUS(status));
}

ProgramResult ended(int status) {
  return {.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0, .end = in_words(status)};
}

class Running : public RunningProgram {
 public:
  Running(pid_t id, int output, std::unique_ptr<Descriptor> errors)
      : child_(id), output_(output), errors_(std::move(errors)) {}
  int take_output() override { return output_.release(); }
  std::string errors() const override {
    std::string text(kMaxErrorBytes, ' ');
    const ssize_t count = pread(errors_->get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }
  ProgramResult wait() override {
    ProgramResult result = ended(child_.wait());
    result.errors = errors();
    return result;
  }

 private:
  Child child_;
  Descriptor output_;
  std::unique_ptr<Descriptor> errors_;  // a file, so that nothing waits for it to be read
};

}  // namespace

std::unique_ptr<RunningProgram> start_program(
    const std::vector<std::string>& arguments, std::span<const std::uint8_t> input) {
  const std::string& program = arguments.front();
  const Descriptor input_file(memfd_create("input", MFD_CLOEXEC));
  auto errors = std::make_unique<Descriptor>(memfd_create("errors", MFD_CLOEXEC));
  if (input_file.get() < 0 || errors->get() < 0) fail(program, errno);
  fill(input_file, input, program);
  Pipe output(program);
  const pid_t id = spawn(arguments, input_file.get(), output.write_end.get(), errors->get());
  if (id == -ENOENT) return nullptr;
  if (id < 0) fail(program, -id);
  return std::make_unique<Running>(id, output.read_end.release(), std::move(errors));
}

std::optional<ProgramResult> run_program(const std::vector<std::string>& arguments,
    std::span<const std::uint8_t> input, const ProgramLimits& limits) {
  const std::string& program = arguments.front();
  const Descriptor input_file(memfd_create("input", MFD_CLOEXEC));
  if (input_file.get() < 0) fail(program, errno);
  fill(input_file, input, program);
  Pipe output(program), errors(program);
  const pid_t id =
      spawn(arguments, input_file.get(), output.write_end.get(), errors.write_end.get());
  if (id == -ENOENT) return std::nullopt;
  if (id < 0) fail(program, -id);
  Child child(id);
  output.write_end.reset();
  errors.write_end.reset();
  ProgramResult result;
  result.end = collect(output, errors, limits, result);
  if (!result.end.empty()) {
    child.kill_now();
    child.wait();
    return result;
  }
  const ProgramResult end = ended(child.wait());
  result.succeeded = end.succeeded;
  result.end = end.end;
  return result;
}

}  // namespace similis::media
