// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_outputs.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "similis/error.hpp"
#include "src/cli/usage_error.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

std::string stem_of(const std::string& path) {
  std::string name = fs::path(path).filename();
  constexpr std::string_view kEndings[] = {
      ".gz", ".nii", ".hdr", ".img", ".mha", ".mhd", ".nrrd", ".nhdr"};
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

// Names of the volumes that are written beside those of --transform-also.
std::vector<std::string> volume_names(const RegisterCommand& command, bool is_deformable) {
  std::vector<std::string> names = {"Warped", "InverseWarped"};
  if (is_deformable) names.insert(names.end(), {"1Warp", "1InverseWarp"});
  if (is_deformable && command.writes_jacobian) names.emplace_back("Jacobian");
  if (!command.moving_labels.empty()) names.emplace_back("Labels");
  return names;
}

std::vector<std::string> inputs_of(const RegisterCommand& command) {
  std::vector<std::string> inputs = {command.fixed, command.moving, command.init,
      command.fixed_mask, command.moving_mask, command.fixed_labels, command.moving_labels};
  for (const auto& [own, other] : command.channels) inputs.insert(inputs.end(), {own, other});
  for (const FurtherOutput& further : further_outputs(command)) inputs.push_back(further.path);
  return inputs;
}

void require_writable_folder(const RegisterCommand& command) {
  const bool is_folder = command.output.ends_with('/');
  fs::path folder = fs::path(command.output).parent_path();
  std::error_code error;
  if (is_folder && !fs::exists(folder, error)) folder = fs::absolute(folder, error).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error)) {
    throw Error(fmt::format("-o {}: {} is not a directory", command.output, folder.string()));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw Error(fmt::format("-o {}: cannot write to {}", command.output, folder.string()));
  }
}

}  // namespace

std::vector<FurtherOutput> further_outputs(const RegisterCommand& command) {
  constexpr std::string_view kLabel = ":label";
  std::vector<FurtherOutput> outputs;
  for (const std::string& text : command.also) {
    FurtherOutput output{.path = text};
    if (text.ends_with(kLabel)) {
      output.path.resize(text.size() - kLabel.size());
      output.mode = ResampleMode::label;
    }
    output.name = stem_of(output.path) + "Warped";
    outputs.push_back(output);
  }
  return outputs;
}

void require_writable_outputs(const RegisterCommand& command, bool is_deformable) {
  require_writable_folder(command);
  std::vector<std::string> names = volume_names(command, is_deformable);
  const std::vector<FurtherOutput> further = further_outputs(command);
  for (std::size_t i = 0; i < further.size(); ++i) {
    const FurtherOutput& own = further[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (further[j].name != own.name) continue;
      throw UsageError(fmt::format("--transform-also {} and {} would both be written as {}",
          further[j].path, own.path, own.name));
    }
    for (const std::string& name : names) {
      if (name != own.name) continue;
      throw UsageError(
          fmt::format("--transform-also {} would be written as {}, which is another "
                      "result; rename the file",
              own.path, register_volume_path(command, name)));
    }
  }
  for (const FurtherOutput& own : further) names.push_back(own.name);
  std::vector<std::string> paths = {
      register_path(command, "0GenericAffine.mat"), register_path(command, "report.json")};
  if (!command.has_no_page) paths.push_back(register_path(command, "report.html"));
  for (const std::string& name : names) paths.push_back(register_volume_path(command, name));
  std::error_code error;
  for (const std::string& path : paths) {
    if (fs::is_directory(path, error)) {
      throw Error(fmt::format("-o {}: {} is a directory", command.output, path));
    }
    for (const std::string& input : inputs_of(command)) {
      if (fs::equivalent(path, input, error)) {
        throw UsageError(fmt::format("-o {}: {} is one of the inputs", command.output, path));
      }
    }
  }
}

std::string register_path(const RegisterCommand& command, const std::string& name) {
  return command.output + name;
}
std::string register_volume_path(const RegisterCommand& command, const std::string& name) {
  return register_path(command, name + (command.is_plain ? ".nii" : ".nii.gz"));
}

}  // namespace similis::cli
