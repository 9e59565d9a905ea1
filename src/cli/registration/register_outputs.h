// SPDX-License-Identifier: Apache-2.0
// The names of the files that `similis register` writes.
#pragma once

#include <string>
#include <vector>

#include "src/cli/registration/register_command.h"
#include "src/cli/warp/resample.h"

namespace similis::cli {

/// An image that --transform-also names, and the name of its result.
struct FurtherOutput {
  std::string path, name;
  ResampleMode mode = ResampleMode::linear;
};
std::vector<FurtherOutput> further_outputs(const RegisterCommand& command);

/// Throws, before any work, if the files cannot be written, two have one name, or one would replace
/// an input. is_deformable: whether a stage finds a warp.
void require_writable_outputs(const RegisterCommand& command, bool is_deformable);

/// The path of a result: PREFIX and the name.
std::string register_path(const RegisterCommand& command, const std::string& name);
/// The same for a volume: .nii.gz, or .nii without compression.
std::string register_volume_path(const RegisterCommand& command, const std::string& name);

}  // namespace similis::cli
