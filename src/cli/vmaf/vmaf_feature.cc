// SPDX-License-Identifier: Apache-2.0
#include "src/cli/vmaf/vmaf_feature.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "src/cli/metrics/metrics.h"
#include "src/cli/vmaf/known_feature.h"
#include "src/core/joined.h"

namespace similis::cli {
namespace {

using vmaf_internal::FeatureRequest;

std::vector<ReadOption> of_luma(const std::vector<Option<LumaOptions>>& options) {
  std::vector<ReadOption> read;
  for (const Option<LumaOptions>& option : options) {
    read.push_back({option.name, option.takes,
        [set = option.set](
            std::string_view text, FeatureOptions& into) { return set(text, into.luma); }});
  }
  return read;
}

LumaPlanes planes_of(const VideoPair& videos, int plane) {
  return {videos.reference().plane(videos.format(), plane),
      videos.distorted().plane(videos.format(), plane), videos.format().pixels.bit_depth};
}

KnownFeature luma_feature(const char* name, const char* description,
    std::vector<ReadOption> options, const LumaMeasure& measure) {
  return {name, description, std::move(options), [name, &measure](const FeatureOptions& chosen) {
            return VmafFeature{.columns =
                                   [name, &measure, chosen](const media::VideoFormat&) {
                                     std::vector<std::string> columns;
                                     for (const std::string& part : measure.parts(chosen.luma)) {
                                       columns.push_back(
                                           part.empty() ? name : fmt::format("{}_{}", name, part));
                                     }
                                     return columns;
                                   },
                .scores =
                    [&measure, chosen](const VideoPair& videos, const Execution& exec) {
                      return measure.scores(planes_of(videos, 0), chosen.luma, exec);
                    }};
          }};
}

const std::vector<KnownFeature>& features() {
  static const std::vector<KnownFeature> table = {
      luma_feature("ssim", "integer SSIM of luma", {}, integer_ssim_of_luma),
      luma_feature("float_ssim", "SSIM of luma in floats", of_luma(float_ssim_options()),
          float_ssim_of_luma),
      luma_feature("float_ms_ssim", "SSIM of luma at five scales", of_luma(float_ms_ssim_options()),
          float_ms_ssim_of_luma),
      psnr_feature(),
      psnr_hvs_feature(),
      ciede_feature(),
  };
  return table;
}

// The features of src/vmaf.
constexpr std::array<std::pair<const char*, const char*>, 4> kClipFeatures = {{
    {"adm", "detail loss metric of luma"},
    {"cambi", "banding of the distorted video's luma"},
    {"motion", "motion of the reference's luma"},
    {"vif", "visual information fidelity of luma"},
}};

const KnownFeature& known_feature(const std::string& name, const std::string& argument) {
  std::vector<std::string> names;
  for (const KnownFeature& feature : features()) {
    if (feature.name == name) return feature;
    names.push_back(feature.name);
  }
  for (const auto& [feature, description] : kClipFeatures) names.emplace_back(feature);
  throw UsageError(fmt::format(
      "{}: there is no feature \"{}\"; the features are {}", argument, name, joined(names, ", ")));
}

// "scale=1:enable_lcs=true"; of an option given twice the last value counts, as in vmaf.
FeatureOptions read_options(
    std::string_view text, const KnownFeature& feature, const std::string& argument) {
  FeatureOptions options;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name(part.substr(0, equals));
    const std::string value(part.substr(std::min(part.size(), equals + 1)));
    const auto option = std::find_if(feature.options.begin(), feature.options.end(),
        [&](const ReadOption& candidate) { return candidate.name == name; });
    if (option == feature.options.end()) {
      throw UsageError(
          fmt::format("{}: {} has no option \"{}\" here", argument, feature.name, name));
    }
    if (!option->set(value, options)) {
      throw UsageError(
          fmt::format("{}: {} is \"{}\"; it must be {}", argument, name, value, option->takes));
    }
  }
  return options;
}

FeatureRequest with_options(
    FeatureRequest request, std::string_view text, const std::string& argument) {
  try {
    request.set_all(text);
    request.require_valid();
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("{}: {}", argument, error.what()));
  }
  return request;
}

// Two features by themselves whose columns have the same names.
bool clash(const AnyVmafFeature& a, const AnyVmafFeature& b) {
  const auto *x = std::get_if<VmafFeature>(&a), *y = std::get_if<VmafFeature>(&b);
  return x != nullptr && y != nullptr && x->name == y->name;
}

}  // namespace

AnyVmafFeature requested_feature(const std::string& text) {
  const std::string argument = "--feature " + text;
  const std::string name = text.substr(0, text.find('='));
  const std::string_view options =
      std::string_view(text).substr(std::min(text.size(), name.size() + 1));
  if (const auto request = FeatureRequest::named(name)) {
    return with_options(*request, options, argument);
  }
  const KnownFeature& feature = known_feature(name, argument);
  VmafFeature made = feature.make(read_options(options, feature, argument));
  made.name = name;
  return made;
}

std::vector<AnyVmafFeature> requested_features(const std::vector<std::string>& texts) {
  std::vector<AnyVmafFeature> requested;
  for (auto text = texts.begin(); text != texts.end(); ++text) {
    if (std::find(texts.begin(), text, *text) != text) continue;
    AnyVmafFeature feature = requested_feature(*text);
    for (const AnyVmafFeature& other : requested) {
      if (!clash(feature, other)) continue;
      throw UsageError(fmt::format("--feature {}: {} is given with other options too", *text,
          text->substr(0, text->find('='))));
    }
    requested.push_back(std::move(feature));
  }
  return requested;
}

std::string describe_features() {
  std::string text;
  for (const KnownFeature& feature : features()) {
    std::vector<std::string> names;
    for (const ReadOption& option : feature.options) names.push_back(option.name);
    text += fmt::format("  {:13}  {}{}{}\n", feature.name, feature.description,
        names.empty() ? "" : "; ", joined(names, ", "));
  }
  for (const auto& [name, description] : kClipFeatures) {
    text += fmt::format("  {:13}  {}; its options:\n", name, description);
    for (const auto& option : FeatureRequest::named(name)->options()) {
      text += fmt::format("                 {}\n", option.name);
    }
  }
  return text;
}

}  // namespace similis::cli
