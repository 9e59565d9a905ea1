// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/growing_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "similis/error.hpp"
#include "src/cli/terminal/output.h"
#include "src/media/io/whole_file.h"

namespace similis::cli {
namespace {

[[noreturn]] void fail(const std::string& name) {
  throw Error(fmt::format("cannot write {}: {}", name, std::strerror(errno)));
}

}  // namespace

GrowingOutput::GrowingOutput(const std::string& path) : path_(path) {}

// Nothing is made before there is something to write.
void GrowingOutput::open() {
  const int in_place = is_standard_output(path_) ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                                 : media::open_in_place(path_);
  if (is_standard_output(path_) && in_place < 0) fail("standard output");
  if (in_place >= 0) return descriptor_.reset(in_place);
  partial_ = path_ + ".partial";
  descriptor_.reset(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (descriptor_.get() < 0) fail(partial_);
}

void GrowingOutput::write(const std::string& text) {
  if (!has_begun()) open();
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(descriptor_.get(), rest.data(), rest.size());
    if (count < 0 && errno != EINTR) {
      fail(is_standard_output(path_) ? "standard output" : partial_.empty() ? path_ : partial_);
    }
    if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

void GrowingOutput::keep() {
  if (partial_.empty()) return;
  std::error_code error;  // of a link the target is replaced
  const std::filesystem::path target = std::filesystem::is_symlink(path_, error)
                                           ? std::filesystem::weakly_canonical(path_, error)
                                           : std::filesystem::path(path_);
  const std::filesystem::file_status older = std::filesystem::status(target, error);
  if (std::filesystem::exists(older)) {
    std::filesystem::permissions(partial_, older.permissions(), error);
  }
  if (std::rename(partial_.c_str(), target.c_str()) != 0) fail(path_);
  partial_.clear();
}

}  // namespace similis::cli
