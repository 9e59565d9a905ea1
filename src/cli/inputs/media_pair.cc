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

AnimationPair::Side pictures_of(media::OpenedMedia media, const std::string& path) {
  return {std::move(media.bytes), display_name(path), media.picture->frames};
}

}  // namespace

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

MediaPair open_media_pair(
    const FilePair& files, const InputOptions& options, int threads, const Execution& exec) {
  auto [reference, distorted] = open_both(files, options.raw, exec);
  const std::string reference_name = display_name(files.reference);
  const std::string distorted_name = display_name(files.distorted);
  require(std::string_view(kind(reference)) == kind(distorted),
      "{} is {} but {} is {}; compare two pictures, two videos or two volumes", reference_name,
      kind(reference), distorted_name, kind(distorted));
  if (reference.volume) {
    return std::make_unique<VolumePair>(std::move(*reference.volume), std::move(*distorted.volume),
        reference_name, distorted_name, options.selection);
  }
  if (reference.video) {
    return std::make_unique<VideoPair>(std::move(reference.video), std::move(distorted.video),
        options.selection, threads > 1, options.depths);
  }
  if (reference.picture->frames > 1 || distorted.picture->frames > 1) {
    return std::make_unique<AnimationPair>(pictures_of(std::move(reference), files.reference),
        pictures_of(std::move(distorted), files.distorted), options.selection, options.background);
  }
  return pair_pictures(std::move(*reference.picture), std::move(*distorted.picture), reference_name,
      distorted_name, options.background, exec);
}

}  // namespace similis::cli
