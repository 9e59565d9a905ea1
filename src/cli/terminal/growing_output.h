// SPDX-License-Identifier: Apache-2.0
// Results that are written as they come.
#pragma once

#include <string>

#include "src/media/io/descriptor.h"

namespace similis::cli {

class GrowingOutput {
 public:
  /// `path` is that of -o. A regular file grows as PATH.partial until keep(); standard output and
  /// what is not a regular file are written to at once.
  explicit GrowingOutput(const std::string& path);
  GrowingOutput(const GrowingOutput&) = delete;
  GrowingOutput& operator=(const GrowingOutput&) = delete;

  /// Hands the text to the system. Throws Error, naming the file and the system's reason.
  void write(const std::string& text);
  /// Gives the file its name.
  void keep();
  /// PATH.partial, if that is where the results are; else empty.
  const std::string& partial() const { return partial_; }
  bool has_begun() const { return descriptor_.get() >= 0; }

 private:
  void open();
  std::string path_, partial_;
  media::Descriptor descriptor_;
};

}  // namespace similis::cli
