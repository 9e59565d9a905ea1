// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/adaptation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "src/cli/inputs/background.h"
#include "src/cli/usage_error.h"
#include "src/core/number_text.h"
#include "src/core/require.h"
#include "src/media/picture/decode.h"

namespace similis::cli {
namespace {

using media::Crop;
using media::Image;
using media::Resampling;
using media::VideoFormat;

constexpr std::array kFilters = {
    Resampling::lanczos, Resampling::spline36, Resampling::bicubic, Resampling::bilinear};

std::optional<Resampling> parse_filter(const std::string& text) {
  if (text.empty()) return std::nullopt;
  for (const Resampling filter : kFilters) {
    if (text == name_of(filter)) {
      media::require_resampling();
      return filter;
    }
  }
  throw UsageError(
      fmt::format("--resize is \"{}\"; it must be lanczos, spline36, bicubic or bilinear", text));
}

Crop parse_crop(const char* option, const std::string& text) {
  std::array<std::int64_t, 4> margins{};
  std::string_view left = text;
  bool is_crop = true;
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const std::size_t comma = left.find(',');
    const auto margin = parse_number<std::int64_t>(left.substr(0, comma));
    is_crop = is_crop && margin && *margin >= 0 && *margin < media::kMaxSide &&
              (comma == left.npos) == (i + 1 == margins.size());
    if (!is_crop) break;
    margins[i] = *margin;
    if (comma != left.npos) left.remove_prefix(comma + 1);
  }
  if (!is_crop) {
    throw UsageError(
        fmt::format("{} is \"{}\"; it must be L,R,T,B, the pixels to leave out at each side{}",
            option, text, std::string_view(option) == "--crop" ? ", or auto" : ""));
  }
  return {margins[0], margins[1], margins[2], margins[3]};
}

Json crop_json(const Crop& crop) {
  return Json::array({crop.left, crop.right, crop.top, crop.bottom});
}

Json done_to(const char* side, const char* step, const std::string& words) {
  return {{"side", side}, {"step", step}, {"words", words}};
}

void say_cropped(
    const char* side, const Crop& crop, std::int64_t width, std::int64_t height, Done& done) {
  Json entry = done_to(side, "crop",
      fmt::format("{} cropped by {},{},{},{} (left, right, top, bottom) to {}×{}", side, crop.left,
          crop.right, crop.top, crop.bottom, width, height));
  entry["margins"] = crop_json(crop);
  entry["size"] = {width, height};
  done.push_back(std::move(entry));
}

void say_no_bars(const Adaptation& adaptation, Done& done) {
  if (!adaptation.crops_bars || !adaptation.crop.is_empty()) return;
  if (!adaptation.crop_distorted.is_empty()) return;
  done.push_back(done_to("both", "crop", "no black bars found, nothing cropped"));
}

void say_resized(std::int64_t from_width, std::int64_t from_height, std::int64_t width,
    std::int64_t height, Resampling filter, Done& done) {
  Json entry = done_to("distorted", "resize",
      fmt::format("distorted resized from {}×{} to {}×{} by {} ({})", from_width, from_height,
          width, height, name_of(filter), media::resampling_library()));
  entry["from"] = {from_width, from_height};
  entry["size"] = {width, height};
  entry["filter"] = name_of(filter);
  entry["library"] = media::resampling_library();
  done.push_back(std::move(entry));
}

// One side cropped.
VideoFormat cropped(const VideoFormat& format, const char* side, const Crop& crop,
    const std::string& name, Done& done) {
  if (crop.is_empty()) return format;
  const VideoFormat result = media::cropped(format, crop, name);
  say_cropped(side, crop, result.width, result.height, done);
  return result;
}

const char* range_word(const VideoFormat& format) {
  return media::is_full_range(format) ? "full" : "limited";
}

void match_range(const VideoFormat& reference, VideoFormat& distorted, Done& done) {
  if (media::is_full_range(reference) == media::is_full_range(distorted)) return;
  Json entry = done_to("distorted", "range",
      fmt::format(
          "distorted converted from {} to {} range", range_word(distorted), range_word(reference)));
  entry["from"] = range_word(distorted);
  entry["to"] = range_word(reference);
  distorted.color.range = media::is_full_range(reference) ? "pc" : "tv";
  done.push_back(std::move(entry));
}

void match_depth(VideoFormat& reference, VideoFormat& distorted, Done& done) {
  int &x = reference.pixels.bit_depth, &y = distorted.pixels.bit_depth;
  if (x == y) return;
  const char* const side = x < y ? "reference" : "distorted";
  int& shallow = x < y ? x : y;
  const int deep = std::max(x, y);
  Json entry = done_to(side, "depth",
      fmt::format("{} converted from {} to {} bits per sample", side, shallow, deep));
  entry["from"] = shallow;
  entry["to"] = deep;
  shallow = deep;
  done.push_back(std::move(entry));
}

// Empty if the rates are equal.
std::optional<RateMatch> rate_match(const VideoFormat& reference, const VideoFormat& distorted,
    const std::string& reference_name, const std::string& distorted_name, Done& done) {
  const media::FrameRate &x = reference.rate, &y = distorted.rate;
  require(x.is_known() && y.is_known(),
      "{} does not say its frame rate, which --match-rate needs; --fps gives that of raw video",
      x.is_known() ? distorted_name : reference_name);
  if (x.value() == y.value()) return std::nullopt;
  Json entry = done_to("distorted", "rate",
      fmt::format("each frame of the reference ({:.6g} frames per second) compared with the frame "
                  "of the distorted ({:.6g}) that is nearest in time",
          x.value(), y.value()));
  entry["from"] = y.value();
  entry["to"] = x.value();
  done.push_back(std::move(entry));
  return RateMatch(x, y);
}

VideoFormat with_size(VideoFormat format, const VideoFormat& size) {
  format.width = size.width;
  format.height = size.height;
  return format;
}

}  // namespace

Adaptation parse_adaptation(const AdaptationTexts& texts) {
  Adaptation adaptation{.resize = parse_filter(texts.resize)};
  adaptation.crops_bars = texts.crop == "auto";
  if (adaptation.crops_bars && !texts.crop_distorted.empty()) {
    throw UsageError(
        "--crop auto finds the margins of both sides; it does not take --crop-distorted");
  }
  if (!texts.crop.empty() && !adaptation.crops_bars) {
    adaptation.crop = adaptation.crop_distorted = parse_crop("--crop", texts.crop);
  }
  if (!texts.crop_distorted.empty()) {
    adaptation.crop_distorted = parse_crop("--crop-distorted", texts.crop_distorted);
  }
  if (!texts.depth.empty() && texts.depth != "match") {
    throw UsageError(fmt::format("--depth is \"{}\"; it must be match", texts.depth));
  }
  adaptation.matches_depth = !texts.depth.empty();
  if (texts.range == "match") {
    adaptation.range = RangeRule::match;
  } else if (texts.range == "as-stored") {
    adaptation.range = RangeRule::as_stored;
  } else if (!texts.range.empty()) {
    throw UsageError(fmt::format("--range is \"{}\"; it must be match or as-stored", texts.range));
  }
  if (!texts.match_rate.empty() && texts.match_rate != "nearest") {
    throw UsageError(fmt::format("--match-rate is \"{}\"; it must be nearest", texts.match_rate));
  }
  adaptation.matches_rate = !texts.match_rate.empty();
  return adaptation;
}

const char* sizes_must_match(const std::optional<Adaptation>& adaptation) {
  return adaptation && !adaptation->resize
             ? "sizes must match; --resize lanczos makes the distorted as large as the reference"
             : "sizes must match";
}

Json adaptation_document(const Adaptation& adaptation) {
  Json json = Json::object();
  if (adaptation.resize) json["resize"] = name_of(*adaptation.resize);
  if (!adaptation.crop.is_empty()) json["crop"] = crop_json(adaptation.crop);
  if (adaptation.crop_distorted != adaptation.crop) {
    json["crop_distorted"] = crop_json(adaptation.crop_distorted);
  }
  if (adaptation.crops_bars) json["crop"] = "auto";
  if (adaptation.matches_rate) json["match_rate"] = "nearest";
  if (adaptation.matches_depth) json["depth"] = "match";
  if (adaptation.range != RangeRule::must_agree) {
    json["range"] = adaptation.range == RangeRule::match ? "match" : "as-stored";
  }
  return json;
}

void adapt_pictures(Image& reference, Image& distorted, const std::string& reference_name,
    const std::string& distorted_name, const Adaptation& adaptation, const Execution& exec,
    Done& done) {
  const auto crop = [&](Image& image, const char* side, const Crop& margins,
                        const std::string& name) {
    if (margins.is_empty()) return;
    image = media::cropped(image, margins, name);
    say_cropped(side, margins, image.width, image.height, done);
  };
  say_no_bars(adaptation, done);
  crop(reference, "reference", adaptation.crop, reference_name);
  crop(distorted, "distorted", adaptation.crop_distorted, distorted_name);
  const bool is_alike = distorted.width == reference.width && distorted.height == reference.height;
  if (!adaptation.resize || is_alike) return;
  require(is_opaque(distorted), "{} has transparent pixels; --resize takes opaque pictures",
      distorted_name);
  const std::int64_t width = distorted.width, height = distorted.height;
  distorted =
      media::resampled(distorted, reference.width, reference.height, *adaptation.resize, exec);
  say_resized(width, height, distorted.width, distorted.height, *adaptation.resize, done);
}

AdaptedFormats adapted_formats(const VideoFormat& reference, const VideoFormat& distorted,
    const std::string& reference_name, const std::string& distorted_name,
    const Adaptation& adaptation) {
  AdaptedFormats formats;
  Done& done = formats.done;
  say_no_bars(adaptation, done);
  if (adaptation.matches_rate) {
    formats.match = rate_match(reference, distorted, reference_name, distorted_name, done);
  }
  formats.reference = cropped(reference, "reference", adaptation.crop, reference_name, done);
  formats.distorted =
      cropped(distorted, "distorted", adaptation.crop_distorted, distorted_name, done);
  if (adaptation.range == RangeRule::match) {
    match_range(formats.reference, formats.distorted, done);
  }
  if (adaptation.range == RangeRule::as_stored &&
      media::is_full_range(reference) != media::is_full_range(distorted)) {
    done.push_back(done_to("both", "range",
        fmt::format("code values compared as stored: the reference has {} range, the distorted {}",
            range_word(reference), range_word(distorted))));
  }
  if (adaptation.matches_depth) match_depth(formats.reference, formats.distorted, done);
  const VideoFormat resized = with_size(formats.distorted, formats.reference);
  if (adaptation.resize && resized != formats.distorted) {
    say_resized(formats.distorted.width, formats.distorted.height, resized.width, resized.height,
        *adaptation.resize, done);
    formats.distorted = resized;
  }
  return formats;
}

FrameAdapter::FrameAdapter(const VideoFormat& from, const Crop& crop, const VideoFormat& to,
    const std::optional<Resampling>& resize)
    : from_(from), crop_(crop), crops_(!crop.is_empty()) {
  VideoFormat now = crops_ ? media::cropped(from, crop, "") : from;
  const VideoFormat mapped = with_size(to, now);
  if (mapped.pixels.bit_depth != now.pixels.bit_depth ||
      media::is_full_range(mapped) != media::is_full_range(now)) {
    codes_.emplace(now, mapped);
    now = mapped;
  }
  if (resize && (to.width != now.width || to.height != now.height)) {
    resampler_.emplace(now, to, *resize);
  }
}

const media::VideoFrame& FrameAdapter::adapted(
    const media::VideoFrame& frame, const Execution& exec) {
  const media::VideoFrame* now = &frame;
  if (crops_) {
    media::crop_frame(*now, from_, crop_, cropped_);
    now = &cropped_;
  }
  if (codes_) {
    codes_->run(*now, mapped_);
    now = &mapped_;
  }
  if (resampler_) {
    resampler_->run(*now, resized_, exec);
    now = &resized_;
  }
  return *now;
}

}  // namespace similis::cli
