// SPDX-License-Identifier: Apache-2.0
// Numbered or alike named pictures that together are a clip.
#pragma once

#include <string>
#include <vector>

namespace similis::media {

/// The files that `path` stands for, in order: "frame%05d.png" by their numbers, from the lowest;
/// "*.png", with the shell's wildcards *, ? and [a-z] in the name, by name, numbers in names by
/// value. Folders have no pattern. Empty if `path` has no pattern, or if a file has just this name.
/// Throws InvalidArgument, naming `path`, if no file fits or a number is missing.
std::vector<std::string> sequence_files(const std::string& path);

}  // namespace similis::media
