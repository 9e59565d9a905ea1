// SPDX-License-Identifier: Apache-2.0
#include "src/cli/encodes/encoded_size.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "src/media/io/byte_stream.h"
#include "src/media/picture/sequence.h"
#include "src/media/video/stream_size.h"
#include "src/media/video/y4m.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

bool is_y4m(const std::string& path) {
  std::vector<std::uint8_t> start = media::ByteStream(path).peek(media::kY4mMagic.size());
  return std::string(start.begin(), start.end()).starts_with(media::kY4mMagic);
}

}  // namespace

std::optional<EncodedSize> encoded_size(const ScoredPair& pair, bool is_raw) {
  const std::string& path = pair.files.distorted;
  if (path == "-") return std::nullopt;
  std::vector<std::string> files = media::sequence_files(path);
  if (files.empty()) files.push_back(path);
  EncodedSize size;
  for (const std::string& file : files) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return std::nullopt;
    size.bytes += static_cast<std::int64_t>(fs::file_size(file, error));
    if (error) return std::nullopt;
  }
  const auto bits = [&] { return 8 * static_cast<double>(size.bytes); };
  const auto frames = static_cast<double>(pair.counts.distorted.value_or(1));
  if (!pair.is_video && pair.pixels > 0) {
    size.bits_per_pixel = bits() / (static_cast<double>(pair.pixels) * frames);
  }
  if (pair.is_video && !is_raw && !is_y4m(path)) {
    const std::optional<media::StreamSize> stream = media::coded_stream_size(path);
    if (!stream) return size;
    size.bytes = stream->bytes;
    size.bits_per_second = bits() / stream->seconds;
  } else if (pair.distorted_rate.is_known() && pair.counts.distorted) {
    size.bits_per_second = bits() * pair.distorted_rate.value() / frames;
  }
  return size;
}

}  // namespace similis::cli
