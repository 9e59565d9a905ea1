// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_page.h"

#include <fmt/core.h>

#include <filesystem>
#include <vector>

#include "src/cli/page/page.h"
#include "src/cli/registration/register_outputs.h"
#include "src/cli/registration/register_slices.h"
#include "src/cli/terminal/shell_word.h"
#include "src/media/picture/formats/png_writer.h"

namespace similis::cli {
namespace {

std::string source_of(const media::Image& image) {
  const std::vector<std::uint8_t> png = media::encode_png(image);
  return "data:image/png;base64," + base64({reinterpret_cast<const char*>(png.data()), png.size()});
}

Json slices_json(const RegisterPage& page) {
  const RegisterReport& report = page.report;
  const media::Volume& fixed = report.fixed.file;
  const auto own = grey_range(fixed), others = grey_range(report.moving.file);
  const bool is_warped = !report.result.displacement.empty();
  const std::int64_t step = grid_step(fixed.grid);
  const double limit = is_warped ? log_jacobian_limit(report.jacobian) : 0;
  Json slices = Json::array();
  for (const MiddleSlice& slice : middle_slices_of(fixed.grid)) {
    const media::Image grey = grey_slice(fixed, slice, own);
    Json shown = {{"across", std::string(1, slice.across())}, {"down", slice.goes_down()},
        {"width", slice.width()}, {"height", slice.height()}, {"fixed", source_of(grey)},
        {"before", source_of(grey_slice(page.before, slice, others))},
        {"affine", source_of(grey_slice(page.affine, slice, others))},
        {"warped", source_of(grey_slice(page.warped, slice, others))},
        {"edges", source_of(edges_of(grey))}};
    if (is_warped) {
      shown["grid"] = source_of(warped_grid(report.result.displacement, report.fixed, slice, step));
      shown["jacobian"] = source_of(log_jacobian_slice(report.jacobian, slice, limit));
    }
    slices.push_back(shown);
  }
  Json result = {{"slices", slices}};
  if (is_warped) {
    result["jacobian_limit"] = limit;
    result["grid_step"] = step;
  }
  return result;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// A path as a string of Python.
std::string python_text(const std::string& path) {
  std::string text = json_line(Json(path));
  text.pop_back();  // the end of the line
  return text;
}

// The commands by which other programs apply the result.
Json commands_json(const RegisterPage& page) {
  const RegisterCommand& command = page.report.command;
  const std::string fixed = shell_word(command.fixed), moving = shell_word(command.moving);
  const std::string affine = register_path(command, "0GenericAffine.mat"),
                    warp = register_volume_path(command, "1Warp"),
                    inverse_warp = register_volume_path(command, "1InverseWarp");
  const bool is_warped = !page.report.result.displacement.empty();
  const std::string there =
      (is_warped ? fmt::format("-t {} ", shell_word(warp)) : "") + "-t " + shell_word(affine);
  const std::string back = "-t " + shell_word(fmt::format("[{},1]", affine)) +
                           (is_warped ? " -t " + shell_word(inverse_warp) : "");
  std::string python = fmt::format(
      "import SimpleITK as sitk\n"
      "fixed, moving = sitk.ReadImage({}), sitk.ReadImage({})\n"
      "T = sitk.CompositeTransform({})\n"
      "T.AddTransform(sitk.ReadTransform({}))\n",
      python_text(command.fixed), python_text(command.moving), page.report.fixed.rank(),
      python_text(affine));
  if (is_warped) {
    python += fmt::format(
        "T.AddTransform(sitk.DisplacementFieldTransform(sitk.ReadImage({}, "
        "sitk.sitkVectorFloat64)))\n",
        python_text(warp));
  }
  python += "warped = sitk.Resample(moving, fixed, T)";
  Json commands = Json::array();
  const auto add = [&](const char* words, const std::string& text) {
    commands.push_back({{"words", words}, {"text", text}});
  };
  add("Made by", page.command);
  add("Another image on the grid of the fixed one, with similis",
      fmt::format("similis warp {} -r {} {} -o warped.nii.gz", moving, fixed, there));
  add("The other way, from the fixed image to the moving one's grid",
      fmt::format("similis warp {} -r {} {} -o back.nii.gz", fixed, moving, back));
  add("With ANTs", fmt::format("antsApplyTransforms -d {} -i {} -r {} {} -o warped.nii.gz",
                       page.report.fixed.rank(), moving, fixed, there));
  add("With SimpleITK, in Python", python);
  return commands;
}

}  // namespace

std::string register_page_html(const RegisterPage& page) {
  const RegisterCommand& command = page.report.command;
  std::vector<std::string> files = {command.fixed, command.moving};
  for (const std::string* path :
      {&command.fixed_mask, &command.moving_mask, &command.fixed_labels, &command.moving_labels}) {
    if (!path->empty()) files.push_back(*path);
  }
  for (const auto& [own, other] : command.channels) {
    files.push_back(own);
    files.push_back(other);
  }
  const Json section = {{"title", fmt::format("{} registered to {}", file_name(command.moving),
                                      file_name(command.fixed))},
      {"document", page.numbers}, {"registration", slices_json(page)},
      {"commands", commands_json(page)}, {"files", page_files(files)}};
  return page_html({section});
}

}  // namespace similis::cli
