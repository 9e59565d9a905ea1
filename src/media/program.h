// SPDX-License-Identifier: Apache-2.0
// Runs another program: arguments as a vector, never through a shell.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace similis::media {

struct ProgramResult {
  std::vector<std::uint8_t> output;
  std::string errors;      ///< the first 64 KiB of what it wrote to standard error
  bool succeeded = false;  ///< it ended by itself, with status 0
  std::string end;  ///< how it ended, in words: "status 1", "signal 11", "no output for 60 s"
};

struct ProgramLimits {
  std::size_t output_bytes;                   ///< one byte more and it is killed
  std::chrono::milliseconds silence{60'000};  ///< killed after so long without output
};

/// Runs arguments[0], found on PATH, with `input` as its standard input (a file, so that nothing
/// waits for it to be read), and waits for its end. Empty if there is no such program.
/// Throws Error, with the system's reason, if it cannot be started for another reason.
std::optional<ProgramResult> run_program(const std::vector<std::string>& arguments,
    std::span<const std::uint8_t> input, const ProgramLimits& limits);

}  // namespace similis::media
