// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/reader.h"

namespace similis::media {

std::string one_line(std::string_view words) {
  std::string line;
  for (const char c : words) {
    const bool is_space = static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
    if (!is_space || !line.ends_with(' ')) line += is_space ? ' ' : c;
  }
  return line;
}

void refuse_damaged(const File& file, std::string_view words) {
  refuse(file, "it is cut off or damaged ({})", one_line(words));
}

void require_size(const File& file, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1) refuse(file, "it has no pixels ({} x {})", width, height);
  if (width > kMaxSide || height > kMaxSide || width > file.max_pixels / height) {
    refuse(file, "it is {} x {} pixels; it must have at most {} pixels and sides of at most {}",
        width, height, file.max_pixels, kMaxSide);
  }
}

void require_density(const File& file, std::int64_t width, std::int64_t height) {
  const auto bytes = static_cast<std::int64_t>(file.bytes.size());
  if (width * height <= bytes * kMaxPixelsPerByte) return;
  refuse(file, "it is {} x {} pixels in {} bytes; it must have at most {} pixels per byte", width,
      height, bytes, kMaxPixelsPerByte);
}

Image first_picture(const File& file, void (*read_all)(const File&, const TakePicture&)) {
  Image first;
  read_all(file, [&first](Image picture) {
    first = std::move(picture);
    return false;
  });
  return first;
}

void rescale_to_16(std::vector<std::uint16_t>& codes, int n) {
  if (n == 16) return;
  std::vector<std::uint16_t> table(std::size_t{1} << n);
  for (std::uint32_t v = 0; v < table.size(); ++v) table[v] = rescale_code(v, n, 16);
  for (std::uint16_t& code : codes) code = table[code & (table.size() - 1)];
}

}  // namespace similis::media
