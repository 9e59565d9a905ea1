// SPDX-License-Identifier: Apache-2.0
// Runs another program: arguments as a vector, never through a shell.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace similis::media {

constexpr std::size_t kMaxErrorBytes = 65536;

struct ProgramResult {
  std::vector<std::uint8_t> output;
  std::string errors;      ///< the first kMaxErrorBytes of its standard error
  bool succeeded = false;  ///< true if it exited with status 0
  std::string end;         ///< how it ended: "status 1", "signal 11", "no output for 60 s"
};

struct ProgramLimits {
  std::size_t output_bytes;                   ///< the program is killed if it writes more
  std::chrono::milliseconds silence{60'000};  ///< it is killed after this time without output
};

/// Runs arguments[0], found on PATH, with `input` as its standard input (a file, so that nothing
/// waits for it to be read), and waits for its end. Empty if there is no such program.
/// Throws Error, with the system's reason, if it cannot be started for another reason.
std::optional<ProgramResult> run_program(const std::vector<std::string>& arguments,
    std::span<const std::uint8_t> input, const ProgramLimits& limits);

/// A program whose output is read while it runs. The destructor kills it if it still runs.
class RunningProgram {
 public:
  virtual ~RunningProgram() = default;
  /// The end of the pipe it writes to, once: the caller closes it.
  virtual int take_output() = 0;
  /// The program's standard error so far, at most kMaxErrorBytes.
  virtual std::string errors() const = 0;
  /// Waits for its end; `output` of the result stays empty.
  virtual ProgramResult wait() = 0;
};

/// Starts arguments[0], found on PATH, with `input` as its standard input (a file). Null if there
/// is no such program. Throws Error, with the system's reason, if it cannot be started for another
/// reason.
std::unique_ptr<RunningProgram> start_program(
    const std::vector<std::string>& arguments, std::span<const std::uint8_t> input = {});

}  // namespace similis::media
