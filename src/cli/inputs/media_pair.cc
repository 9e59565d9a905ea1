// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/media_pair.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/media/open.h"

namespace similis::cli {
namespace {

// Opens both at once; if both fail, throws the reference's error.
std::array<media::OpenedMedia, 2> open_both(
    const FilePair& files, const std::optional<media::RawVideo>& raw, const Execution& exec) {
  const std::array<const std::string*, 2> paths = {&files.reference, &files.distorted};
  std::array<media::OpenedMedia, 2> media;
  std::array<std::exception_ptr, 2> errors;
  parallel_for(exec, 2, [&](std::int64_t i) {
    const auto side = static_cast<std::size_t>(i);
    try {
      media[side] = media::open_media(*paths[side], raw);
    } catch (...) {
      errors[side] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return media;
}

const char* kind(const media::OpenedMedia& media) {
  if (media.video) return "a video";
  return media.volume ? "a volume" : "a picture";
}

// True for animations, files of several pages and image sequences.
bool is_clip(const media::OpenedMedia& media) {
  return media.picture && (media.picture->frames > 1 || !media.files.empty());
}

PictureClip clip_of(media::OpenedMedia media, const std::string& name) {
  PictureClip clip{.name = name, .bytes = std::move(media.bytes), .files = std::move(media.files)};
  clip.video = std::move(media.video);
  if (!media.picture) return clip;
  clip.frames = media.picture->frames;
  if (clip.files.empty()) return clip;
  media.picture->frames = 1;  // it is one of the sequence
  clip.first = std::make_shared<const media::Image>(*std::move(media.picture));
  return clip;
}

}  // namespace

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

OpenedReference::OpenedReference(const std::string& path, media::OpenedMedia media,
    const InputOptions& options, int threads, const Execution& exec)
    : path_(path),
      options_(options),
      threads_(threads),
      exec_(exec),
      media_(std::move(media)),
      frames_(media_.video ? std::make_shared<ReferenceFrames>(
                                 std::move(media_.video), options.selection, threads > 1)
                           : nullptr) {}

OpenedReference::OpenedReference(
    const std::string& path, const InputOptions& options, int threads, const Execution& exec)
    : OpenedReference(path, media::open_media(path, options.raw), options, threads, exec) {}

MediaPair OpenedReference::pair_with(const std::string& distorted) {
  return pair_with(distorted, media::open_media(distorted, options_.raw), false);
}

MediaPair OpenedReference::pair_with(
    const std::string& path, media::OpenedMedia distorted, bool is_last) {
  const std::string reference_name = display_name(path_), distorted_name = display_name(path);
  const char* const reference_kind = frames_ ? "a video" : kind(media_);
  const bool is_clip_beside_video =
      frames_ ? is_clip(distorted) : is_clip(media_) && distorted.video;
  require(is_clip_beside_video || std::string_view(reference_kind) == kind(distorted),
      "{} is {} but {} is {}; compare two pictures, two videos or two volumes", reference_name,
      reference_kind, distorted_name, kind(distorted));
  PictureRules rules = options_.rules;
  if (rules.adaptation && rules.adaptation->crops_bars && !media_.volume) {
    if (!bars_) bars_ = find_bars(path_, media_, options_.raw);
    crop_bars(*bars_, find_bars(path, distorted, options_.raw), *rules.adaptation);
  }
  if (is_clip_beside_video || (!frames_ && (is_clip(media_) || is_clip(distorted)))) {
    return pair_clips(distorted_name, std::move(distorted), rules);
  }
  if (frames_) {
    return std::make_unique<VideoPair>(frames_, std::move(distorted.video),
        VideoOptions{options_.selection, options_.depths, rules.adaptation}, threads_ > 1, exec_);
  }
  if (media_.volume) {
    return std::make_unique<VolumePair>(*media_.volume, std::move(*distorted.volume),
        reference_name, distorted_name, options_.selection, rules.masks_not_finite);
  }
  distorted.bytes = {};  // only animations are read again
  if (is_last) media_.bytes = {};
  media::Image reference = is_last ? std::move(*media_.picture) : *media_.picture;
  return pair_pictures(std::move(reference), std::move(*distorted.picture), reference_name,
      distorted_name, rules, exec_);
}

std::unique_ptr<AnimationPair> OpenedReference::pair_clips(
    const std::string& name, media::OpenedMedia distorted, const PictureRules& rules) {
  const bool reads_ahead = threads_ > 1;
  if (!pictures_ && frames_) pictures_ = std::make_shared<ReferencePictures>(frames_);
  if (!pictures_) {
    media::OpenedMedia copy{
        .picture = media_.picture, .bytes = media_.bytes, .files = media_.files};
    pictures_ = std::make_shared<ReferencePictures>(
        clip_of(std::move(copy), display_name(path_)), options_.selection, reads_ahead);
  }
  return std::make_unique<AnimationPair>(
      pictures_, clip_of(std::move(distorted), name), options_.selection, rules, reads_ahead);
}

MediaPair open_media_pair(
    const FilePair& files, const InputOptions& options, int threads, const Execution& exec) {
  auto [reference, distorted] = open_both(files, options.raw, exec);
  if (reference.video && distorted.video) {
    reference.video->keep_planes(options.kept_planes);
    distorted.video->keep_planes(options.kept_planes);
  }
  OpenedReference opened(files.reference, std::move(reference), options, threads, exec);
  return opened.pair_with(files.distorted, std::move(distorted), true);
}

}  // namespace similis::cli
