// SPDX-License-Identifier: Apache-2.0
#include "src/cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

#include "similis/error.hpp"
#include "src/media/whole_file.h"

namespace similis::cli {

bool is_standard_output(const std::string& path) { return path.empty() || path == "-"; }

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
