// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/feature_request.h"

#include <algorithm>
#include <cmath>

#include "src/core/number_text.h"
#include "src/core/require.h"
#include "src/vmaf/adm/formula.h"
#include "src/vmaf/motion/motion.h"
#include "src/vmaf/vif/vif.h"

namespace similis::vmaf_internal {
namespace {

using Type = FeatureOption::Type;

// Each in alphabetical order: that of the columns' names.
constexpr FeatureOption kAdmOptions[] = {
    {"adm_csf_mode", "csf", Type::integer, 0, 0, 3,
        "contrast sensitivity: 0 by Watson's formula, 2 by a table of displays"},
    {"adm_dlm_weight", "dlmw", Type::real, 0.5, 0, 1, "share of adm2 in adm3"},
    {"adm_enhn_gain_limit", "egl", Type::real, 100, 1, 100,
        "largest gain of detail that counts; 1: none"},
    {"adm_min_val", "min", Type::real, 0, 0, 1, "least value of adm3"},
    {"adm_noise_weight", "nw", Type::real, 0.03125, 0, 1500,
        "weight of the noise that each scale adds"},
    {"adm_norm_view_dist", "nvd", Type::real, 3, 0.75, 24,
        "viewing distance in heights of the display"},
    {"adm_ref_display_height", "rdh", Type::integer, 1080, 1, 4320,
        "height of the display in pixels"},
    {"adm_skip_aim", "", Type::flag, 0, 0, 1, "aim is 0"},
    {"adm_skip_scale0", "ssz", Type::flag, 0, 0, 1, "leave out the finest scale"},
    {"debug", "", Type::flag, 0, 0, 1, "numbers of the steps too"},
};
constexpr FeatureOption kCambiOptions[] = {
    {"cambi_eotf", "ceot", Type::eotf, 0, 0, 1, "transfer function of the display, before eotf"},
    {"cambi_high_res_speedup", "hrs", Type::integer, 0, 0, 2160,
        "1080, 1440 or 2160: frames as large as that begin at half their size"},
    {"cambi_max_val", "cmxv", Type::real, 1000, 0, 1000, "largest score"},
    {"cambi_topk", "ctpk", Type::real, 0.6, 0.0001, 1, "share of places that count, after topk"},
    {"cambi_vis_lum_threshold", "vlt", Type::real, 0, 0, 300,
        "luminance in cd/m² below which nothing is seen"},
    {"enc_bitdepth", "encbd", Type::integer, 0, 0, 16,
        "bits per sample of the encode; 0: those of the video"},
    {"enc_height", "ench", Type::integer, 0, 0, 7680, "height of the encode: that of the video"},
    {"enc_width", "encw", Type::integer, 0, 0, 7680, "width of the encode: that of the video"},
    {"eotf", "eotf", Type::eotf, 0, 0, 1, "transfer function of the display"},
    {"full_ref", "", Type::flag, 0, 0, 1, "the reference's score and the difference too"},
    {"max_log_contrast", "mlc", Type::integer, 2, 0, 5,
        "log2 of the largest step that counts, in 10 bits"},
    {"src_height", "srch", Type::integer, 0, 0, 7680, "height of the source: that of the video"},
    {"src_width", "srcw", Type::integer, 0, 0, 7680, "width of the source: that of the video"},
    {"topk", "topk", Type::real, 0.6, 0.0001, 1, "share of places that count"},
    {"tvi_threshold", "tvit", Type::real, 0.019, 0.0001, 1,
        "least contrast that is seen, of the luminance"},
    {"window_size", "ws", Type::integer, 65, 15, 127, "width of the window in frames of 3840×2160"},
};
constexpr FeatureOption kMotionOptions[] = {
    {"debug", "", Type::flag, 0, 0, 1, "numbers of the steps too"},
    {"motion_blend_factor", "mbf", Type::real, 1, 0, 1,
        "slope of motion3 above motion_blend_offset"},
    {"motion_blend_offset", "mbo", Type::real, 40, 0, 1000,
        "motion from which motion_blend_factor counts"},
    {"motion_five_frame_window", "mffw", Type::flag, 0, 0, 1, "look two frames back"},
    {"motion_force_zero", "force_0", Type::flag, 0, 0, 1, "motion is 0"},
    {"motion_fps_weight", "mfw", Type::real, 1, 0, 5, "factor of every motion"},
    {"motion_max_val", "mmxv", Type::real, 10000, 0, 10000, "largest motion"},
    {"motion_moving_average", "mma", Type::flag, 0, 0, 1, "motion3 is the mean of two frames"},
};
constexpr FeatureOption kVifOptions[] = {
    {"debug", "", Type::flag, 0, 0, 1, "numbers of the steps too"},
    {"vif_enhn_gain_limit", "egl", Type::real, 100, 1, 100,
        "largest gain of detail that counts; 1: none"},
    {"vif_skip_scale0", "ssclz", Type::flag, 0, 0, 1, "leave out the finest scale"},
};

struct Feature {
  const char* name;
  std::span<const FeatureOption> options;
  std::int64_t least_side;
};
const Feature& feature_of(FeatureKind kind) {
  static const std::array<Feature, 4> features = {
      {{"adm", kAdmOptions, kAdmSmallestSide}, {"cambi", kCambiOptions, kCambiLeastSide},
          {"motion", kMotionOptions, kMotionSmallestSide}, {"vif", kVifOptions, kVifSmallestSide}}};
  return features[static_cast<std::size_t>(kind)];
}

constexpr std::array<const char*, 2> kEotfs = {"bt1886", "pq"};

std::optional<double> parse(const FeatureOption& option, std::string_view text) {
  if (option.type == Type::eotf) {
    const auto found = std::find(kEotfs.begin(), kEotfs.end(), text);
    if (found == kEotfs.end()) return std::nullopt;
    return static_cast<double>(found - kEotfs.begin());
  }
  if (option.type == Type::flag) {
    if (text == "true") return 1;
    if (text == "false") return 0;
    return std::nullopt;
  }
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= option.least && *value <= option.most)) return std::nullopt;
  if (option.type == Type::integer && *value != std::floor(*value)) return std::nullopt;
  return value;
}

}  // namespace

std::string takes(const FeatureOption& option) {
  switch (option.type) {
    case Type::flag: return "true or false";
    case Type::integer:
      return fmt::format("a whole number from {} to {}", option.least, option.most);
    case Type::real: return fmt::format("a number from {} to {}", option.least, option.most);
    case Type::eotf: return "bt1886 or pq";
  }
  return {};
}

std::string typed(const FeatureOption& option, double value) {
  switch (option.type) {
    case Type::flag: return value != 0 ? "true" : "false";
    case Type::eotf: return kEotfs[static_cast<std::size_t>(value)];
    case Type::integer:
    case Type::real: break;
  }
  return shortest(value);
}

FeatureRequest::FeatureRequest(FeatureKind kind) : kind_(kind) {
  for (const FeatureOption& option : options()) values_.push_back(option.preset);
}

std::optional<FeatureRequest> FeatureRequest::named(std::string_view name) {
  for (const FeatureKind kind :
      {FeatureKind::adm, FeatureKind::cambi, FeatureKind::motion, FeatureKind::vif}) {
    if (feature_of(kind).name == name) return FeatureRequest(kind);
  }
  return std::nullopt;
}

const char* FeatureRequest::name() const { return feature_of(kind_).name; }
std::span<const FeatureOption> FeatureRequest::options() const { return feature_of(kind_).options; }

bool FeatureRequest::has_option(std::string_view option) const {
  return std::any_of(options().begin(), options().end(),
      [&](const FeatureOption& candidate) { return candidate.name == option; });
}

std::size_t FeatureRequest::index_of(std::string_view option) const {
  for (std::size_t i = 0; i < options().size(); ++i) {
    if (options()[i].name == option) return i;
  }
  throw InvalidArgument(fmt::format("{} has no option \"{}\" here", name(), option));
}

void FeatureRequest::set(std::string_view option, std::string_view text) {
  const std::size_t at = index_of(option);
  const auto value = parse(options()[at], text);
  require(value.has_value(), "{} is \"{}\"; it must be {}", option, text, takes(options()[at]));
  values_[at] = *value;
}

void FeatureRequest::set_all(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = std::min(part.find('='), part.size());
    set(part.substr(0, equals), part.substr(std::min(part.size(), equals + 1)));
  }
}

double FeatureRequest::value(std::string_view option) const { return values_[index_of(option)]; }

bool FeatureRequest::has_columns_of(const FeatureRequest& other) const {
  return kind_ == other.kind_ && suffix() == other.suffix();
}

void FeatureRequest::merge(const FeatureRequest& other) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::string_view option = options()[i].name;
    if (option == "debug" || option == "full_ref")
      values_[i] = std::max(values_[i], other.values_[i]);
    if (option == "adm_skip_aim") values_[i] = std::min(values_[i], other.values_[i]);
  }
}

void add_request(std::vector<FeatureRequest>& requests, const FeatureRequest& request) {
  for (FeatureRequest& known : requests) {
    if (known.has_columns_of(request)) return known.merge(request);
  }
  requests.push_back(request);
}

void FeatureRequest::require_valid() const {
  if (kind_ != FeatureKind::adm) return;
  const AdmSetting setting = adm_setting();
  require(setting.csf_mode == 0 || setting.csf_mode == 2,
      "adm: adm_csf_mode is {}; it must be 0 or 2", setting.csf_mode);
  require(setting.view_distance * setting.display_height >= kAdmLeastDistance,
      "adm: adm_norm_view_dist is {} and adm_ref_display_height is {}; their product must be at "
      "least {}",
      setting.view_distance, setting.display_height, kAdmLeastDistance);
  adm_sensitivity(setting);  // refuses what its table does not have
}

void FeatureRequest::require_size(std::int64_t width, std::int64_t height) const {
  const std::int64_t least = feature_of(kind_).least_side;
  if (kind_ == FeatureKind::cambi) {
    require(std::max(width, height) >= least,
        "cambi: frames are {}×{}; width or height must be at least {}", width, height, least);
    for (const auto& [option, side] : {std::pair{"enc_width", width}, {"enc_height", height},
             {"src_width", width}, {"src_height", height}}) {
      require(value(option) == 0 || value(option) == static_cast<double>(side),
          "cambi: {} is {}; it must be that of the frames, {}", option, value(option), side);
    }
    cambi_window(cambi_setting(), width, height);  // refuses one that is too wide
    return;
  }
  require(std::min(width, height) >= least,
      "{}: frames are {}×{}; width and height must be at least {}", name(), width, height, least);
}

std::string FeatureRequest::suffix() const {
  std::string text;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const FeatureOption& option = options()[i];
    if (*option.alias == '\0' || values_[i] == option.preset) continue;
    text += fmt::format("_{}", option.alias);
    if (option.type == Type::eotf) {
      text += fmt::format("_{}", typed(option, values_[i]));
    } else if (option.type != Type::flag) {
      text += fmt::format("_{:g}", values_[i]);
    }
  }
  return text;
}

std::vector<std::string> FeatureRequest::columns() const {
  std::vector<std::string> names;
  const auto add_scales = [&](const char* pattern) {
    for (int scale = 0; scale < 4; ++scale) {
      names.push_back(fmt::format(fmt::runtime(pattern), scale));
    }
  };
  const auto add_parts_of_scales = [&](const char* feature) {
    for (int scale = 0; scale < 4; ++scale) {
      for (const char* part : {"num", "den"}) {
        names.push_back(fmt::format("{}_{}_scale{}", feature, part, scale));
      }
    }
  };
  switch (kind_) {
    case FeatureKind::adm:
      names = {"integer_adm2", "integer_aim", "integer_adm3"};
      add_scales("integer_adm_scale{}");
      if (is_set("debug")) {
        names.insert(names.end(), {"integer_adm", "integer_adm_num", "integer_adm_den"});
        add_parts_of_scales("integer_adm");
      }
      break;
    case FeatureKind::cambi:
      // The other two have no options in their names.
      names = {"cambi" + suffix()};
      if (is_set("full_ref")) names.insert(names.end(), {"cambi_source", "cambi_full_reference"});
      return names;
    case FeatureKind::motion:
      names = {"VMAF_integer_feature_motion_sad_score"};
      if (is_set("debug")) names.emplace_back("integer_motion");
      break;
    case FeatureKind::vif:
      add_scales("integer_vif_scale{}");
      if (is_set("debug")) {
        names.insert(names.end(), {"integer_vif", "integer_vif_num", "integer_vif_den"});
        add_parts_of_scales("integer_vif");
      }
  }
  for (std::string& each : names) each += suffix();
  return names;
}

std::vector<std::string> FeatureRequest::late_columns() const {
  if (kind_ != FeatureKind::motion) return {};
  return {"integer_motion2" + suffix(), "integer_motion3" + suffix()};
}

AdmSetting FeatureRequest::adm_setting() const {
  return {.gain_limit = value("adm_enhn_gain_limit"),
      .view_distance = value("adm_norm_view_dist"),
      .display_height = static_cast<int>(value("adm_ref_display_height")),
      .csf_mode = static_cast<int>(value("adm_csf_mode"))};
}

CambiSetting FeatureRequest::cambi_setting() const {
  const auto integer = [&](const char* option) { return static_cast<int>(value(option)); };
  const auto is_preset = [&](const char* option) {
    return value(option) == options()[index_of(option)].preset;
  };
  return {.window_size = integer("window_size"),
      .top_share = value(is_preset("topk") ? "cambi_topk" : "topk"),
      .threshold = value("tvi_threshold"),
      .least_luminance = value("cambi_vis_lum_threshold"),
      .max_log_contrast = integer("max_log_contrast"),
      .encoded_bits = integer("enc_bitdepth"),
      .halves_height = integer("cambi_high_res_speedup"),
      .eotf = static_cast<Eotf>(integer(is_preset("cambi_eotf") ? "eotf" : "cambi_eotf"))};
}

AdmWeights FeatureRequest::adm_weights() const {
  return {.dlm = value("adm_dlm_weight"),
      .noise = value("adm_noise_weight"),
      .least = value("adm_min_val"),
      .skips_scale0 = is_set("adm_skip_scale0"),
      .skips_aim = is_set("adm_skip_aim")};
}

}  // namespace similis::vmaf_internal
