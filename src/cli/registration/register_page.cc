// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_page.h"

#include <fmt/core.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "src/cli/page/page.h"
#include "src/cli/registration/register_outputs.h"
#include "src/cli/registration/register_slices.h"
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
    Json shown = {{"across", std::string(1, slice.across())}, {"width", slice.width()},
        {"height", slice.height()}, {"fixed", source_of(grey)},
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

// The commands by which other programs apply the result.
Json commands_json(const RegisterPage& page) {
  const RegisterCommand& command = page.report.command;
  const std::string affine = register_path(command, "0GenericAffine.mat");
  const bool is_warped = !page.report.result.displacement.empty();
  const std::string warp = is_warped ? register_volume_path(command, "1Warp") : std::string();
  const auto there = [&](std::string_view flag) {
    return (is_warped ? fmt::format("{} {} ", flag, warp) : "") +
           fmt::format("{} {}", flag, affine);
  };
  std::string python =
      "import SimpleITK as sitk\n"
      "fixed, moving = sitk.ReadImage(\"" +
      command.fixed + "\"), sitk.ReadImage(\"" + command.moving + "\")\n" +
      fmt::format("T = sitk.CompositeTransform({})\n", page.report.fixed.rank()) +
      "T.AddTransform(sitk.ReadTransform(\"" + affine + "\"))\n";
  if (is_warped) {
    python += "T.AddTransform(sitk.DisplacementFieldTransform(sitk.ReadImage(\"" + warp +
              "\", sitk.sitkVectorFloat64)))\n";
  }
  python += "warped = sitk.Resample(moving, fixed, T)";
  Json commands = Json::array();
  const auto add = [&](const char* words, const std::string& text) {
    commands.push_back({{"words", words}, {"text", text}});
  };
  add("Made by", page.command);
  add("Another image on the grid of the fixed one, with similis",
      fmt::format(
          "similis warp {} -r {} {} -o warped.nii.gz", command.moving, command.fixed, there("-t")));
  std::string back = fmt::format("-t '[{},1]'", affine);
  if (is_warped) back += fmt::format(" -t {}", register_volume_path(command, "1InverseWarp"));
  add("The other way, from the fixed image to the moving one's grid",
      fmt::format("similis warp {} -r {} {} -o back.nii.gz", command.fixed, command.moving, back));
  add("With ANTs", fmt::format("antsApplyTransforms -d {} -i {} -r {} {} -o warped.nii.gz",
                       page.report.fixed.rank(), command.moving, command.fixed, there("-t")));
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
