// SPDX-License-Identifier: Apache-2.0
// PNG files made chunk by chunk, so that tests can write what no encoder would.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string_view>

#include "src/media/picture/test_pictures.h"

namespace similis::media {

inline void append_u32(Buffer& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<std::uint8_t>(value >> shift));
}

inline Buffer png_chunk(std::string_view name, const Buffer& data) {
  Buffer out;
  out.reserve(data.size() + 12);  // GCC 12 warns of an overflow that is none without it
  append_u32(out, static_cast<std::uint32_t>(data.size()));
  out.insert(out.end(), name.begin(), name.end());
  out.insert(out.end(), data.begin(), data.end());
  append_u32(out,
      static_cast<std::uint32_t>(crc32(0, out.data() + 4, static_cast<unsigned>(out.size() - 4))));
  return out;
}

struct PngHeader {
  std::uint32_t width, height;
  std::uint8_t bit_depth, color_type, interlace = 0;
};

inline Buffer png_header(const PngHeader& header) {
  Buffer out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, data;
  append_u32(data, header.width);
  append_u32(data, header.height);
  data.insert(data.end(), {header.bit_depth, header.color_type, 0, 0, header.interlace});
  const Buffer chunk = png_chunk("IHDR", data);
  out.insert(out.end(), chunk.begin(), chunk.end());
  return out;
}

/// rows: each a filter byte, 0, and its packed samples.
inline Buffer png_pixels(const Buffer& rows) {
  uLongf size = compressBound(rows.size());
  Buffer packed(size);
  compress2(packed.data(), &size, rows.data(), rows.size(), 9);
  packed.resize(size);
  return png_chunk("IDAT", packed);
}

/// Header, then the chunks between it and the pixels, the pixels, the end.
inline Buffer png_file(
    const PngHeader& header, const std::vector<Buffer>& chunks, const Buffer& rows) {
  Buffer out = png_header(header);
  std::vector<Buffer> all = chunks;
  all.push_back(png_pixels(rows));
  all.push_back(png_chunk("IEND", {}));
  for (const Buffer& chunk : all) out.insert(out.end(), chunk.begin(), chunk.end());
  return out;
}

}  // namespace similis::media
