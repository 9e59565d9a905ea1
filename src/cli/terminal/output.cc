// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/output.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>

#include "similis/error.hpp"
#include "src/cli/usage_error.h"
#include "src/media/io/whole_file.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool is_standard_output(const std::string& path) { return path.empty() || path == "-"; }

void require_writable(
    const std::string& argument, const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code error;  // set for missing files, which are neither directories nor the same
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    throw Error(fmt::format("{} {}: {} is not a directory", argument, path, folder.string()));
  }
  if (fs::is_directory(path, error)) {
    throw Error(fmt::format("{} {} is a directory; it must be a file", argument, path));
  }
  for (const std::string& input : inputs) {
    if (input != "-" && fs::equivalent(path, input, error) && fs::is_regular_file(path, error)) {
      throw UsageError(fmt::format("{} {} is one of the inputs", argument, path));
    }
  }
}

void require_files_differ(const std::vector<std::pair<std::string, std::string>>& outputs) {
  std::map<fs::path, std::string> arguments;  // by file
  for (const auto& [argument, path] : outputs) {
    if (is_standard_output(path) || media::is_written_in_place(path)) continue;
    std::error_code error;
    const fs::path file = fs::weakly_canonical(fs::absolute(path, error), error);
    const auto [earlier, is_new] = arguments.emplace(file, argument);
    if (is_new) continue;
    throw UsageError(fmt::format("{} and {} would both write {}", earlier->second, argument, path));
  }
}

void write_output(const std::string& text, const std::string& path) {
  if (!is_standard_output(path)) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
    media::write_whole_file(path, std::span(bytes, text.size()));
    return;
  }
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!is_written || std::fflush(stdout) != 0) {
    throw Error(fmt::format("cannot write standard output: {}", std::strerror(errno)));
  }
}

}  // namespace similis::cli
