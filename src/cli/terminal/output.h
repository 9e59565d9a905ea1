// SPDX-License-Identifier: Apache-2.0
// Results to a file or to standard output.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace similis::cli {

/// True if a path of -o means standard output: "-", or none given.
bool is_standard_output(const std::string& path);

/// Throws, before a long run, if the path of an argument ("-o") is one of the inputs (UsageError),
/// if it is a directory itself, or if its directory does not exist (Error).
void require_writable(
    const std::string& argument, const std::string& path, const std::vector<std::string>& inputs);

/// Throws UsageError if two arguments, each with its path, would write the same file.
void require_files_differ(const std::vector<std::pair<std::string, std::string>>& outputs);

/// Writes the text to a file, completely or not at all, or to standard output. Throws Error, naming
/// it and the system's reason, if that fails.
void write_output(const std::string& text, const std::string& path = {});

}  // namespace similis::cli
