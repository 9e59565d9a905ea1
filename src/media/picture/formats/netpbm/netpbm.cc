// SPDX-License-Identifier: Apache-2.0
// Reads Netpbm's formats: PBM, PGM and PPM, binary and plain, and PAM, by their published manual
// pages. Samples v of a largest value m that is no 2^n - 1 become v·255/m, or v·65535/m if m
// exceeds 255, rounded to nearest. A file of several binary pictures has several frames.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "src/media/picture/formats/netpbm/netpbm_text.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

constexpr std::int64_t kLargestMaximum = 65535;

// The header of one picture.
struct Header {
  const char* format = "PBM";
  std::int64_t width = 0, height = 0, maximum = 1;
  int channels = 1;
  bool is_plain = false;    // samples are numbers in decimal
  bool has_bits = false;    // PBM: a binary row is a string of bits
  std::size_t samples = 0;  // the position of the first

  std::size_t count() const { return static_cast<std::size_t>(width * height * channels); }
  std::size_t sample_bytes() const { return maximum > 255 ? 2 : 1; }
  std::size_t row_bytes() const {
    const auto per_row = static_cast<std::size_t>(width * channels);
    return has_bits ? (per_row + 7) / 8 : per_row * sample_bytes();
  }
  std::size_t end() const { return samples + row_bytes() * static_cast<std::size_t>(height); }
};

int channels_of(const File& file, std::int64_t depth, std::string_view kind) {
  static constexpr std::array<std::string_view, 4> kKinds = {
      "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
  if (kind == "BLACKANDWHITE") kind = kKinds[0];
  if (kind == "BLACKANDWHITE_ALPHA") kind = kKinds[1];
  const bool is_known =
      kind.empty() || std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
  if (depth < 1 || depth > 4 || !is_known) {
    refuse(file,
        "its DEPTH is {} and its TUPLTYPE \"{}\"; only grey and RGB, each with or without "
        "alpha, are supported",
        depth, one_line(kind));
  }
  const auto channels = static_cast<std::size_t>(depth);
  if (!kind.empty() && kind != kKinds[channels - 1]) {
    refuse_damaged(file, fmt::format("its TUPLTYPE is {} but its DEPTH {}", kind, depth));
  }
  return static_cast<int>(depth);
}

// The lines of PAM's header, in any order.
void read_pam_lines(const File& file, NetpbmText& text, Header& header) {
  std::optional<std::int64_t> width, height, depth, maximum;
  std::string kind;
  text.line();  // the rest of the first
  for (;;) {
    if (text.left() == 0) refuse_damaged(file, "its header is not complete");
    const std::string_view line = text.line();
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == line.npos || line[first] == '#') continue;
    const std::string_view words = line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    const std::string_view key = words.substr(0, words.find_first_of(" \t"));
    const std::size_t value_at = words.find_first_not_of(" \t", key.size());
    const std::string_view value = value_at == words.npos ? "" : words.substr(value_at);
    if (key == "ENDHDR") break;
    if (key == "WIDTH") {
      width = text.number_in(value, "WIDTH");
    } else if (key == "HEIGHT") {
      height = text.number_in(value, "HEIGHT");
    } else if (key == "DEPTH") {
      depth = text.number_in(value, "DEPTH");
    } else if (key == "MAXVAL") {
      maximum = text.number_in(value, "MAXVAL");
    } else if (key == "TUPLTYPE") {
      kind += kind.empty() ? value : fmt::format(" {}", value);
    } else {
      refuse_damaged(file, fmt::format("its header has a line \"{}\"", key));
    }
  }
  if (!width || !height || !depth || !maximum) {
    refuse_damaged(file, "its header lacks WIDTH, HEIGHT, DEPTH or MAXVAL");
  }
  header.width = *width;
  header.height = *height;
  header.maximum = *maximum;
  header.channels = channels_of(file, *depth, kind);
}

Header read_header(const File& file, std::size_t at) {
  constexpr std::size_t kMagicBytes = 2;
  NetpbmText text(file, at + kMagicBytes);
  const char kind = static_cast<char>(file.bytes[at + 1]);
  Header header;
  if (kind == '7') {
    header.format = "PAM";
    read_pam_lines(file, text, header);
  } else {
    header.is_plain = kind <= '3';
    header.has_bits = kind == '1' || kind == '4';
    header.channels = kind == '3' || kind == '6' ? 3 : 1;
    header.format = header.has_bits ? "PBM" : header.channels == 3 ? "PPM" : "PGM";
    header.width = text.number("width");
    header.height = text.number("height");
    if (!header.has_bits) header.maximum = text.number("largest value");
    text.end_header();
  }
  if (header.maximum < 1 || header.maximum > kLargestMaximum) {
    refuse_damaged(file, fmt::format("its largest value is {}; it must be from 1 to {}",
                             header.maximum, kLargestMaximum));
  }
  require_size(file, header.width, header.height);
  header.samples = text.position();
  const std::size_t left = text.left();
  // A plain sample takes a digit, and white space unless it is a bit.
  const bool fits = header.is_plain
                        ? header.count() <= (header.has_bits ? left : (left + 1) / 2)
                        : header.row_bytes() <= left / static_cast<std::size_t>(header.height);
  if (!fits) {
    refuse_damaged(file, fmt::format("{} bytes of samples cannot hold {} x {} pixels", left,
                             header.width, header.height));
  }
  return header;
}

// Takes stored samples to those of an image.
class SampleSink {
 public:
  SampleSink(const File& file, const Header& header, Image& image)
      : file_(file), table_(static_cast<std::size_t>(header.maximum) + 1), image_(image) {
    const std::int64_t top = image.bit_depth == 8 ? 255 : 65535;
    for (std::size_t v = 0; v < table_.size(); ++v) {
      const std::int64_t scaled =
          (static_cast<std::int64_t>(v) * top + header.maximum / 2) / header.maximum;
      table_[v] =
          static_cast<std::uint16_t>(header.has_bits ? top - scaled : scaled);  // 1 is black
    }
    image.bit_depth == 8 ? image.samples8.reserve(header.count())
                         : image.samples16.reserve(header.count());
  }

  void take(std::int64_t value) {
    if (value >= static_cast<std::int64_t>(table_.size())) {
      refuse_damaged(file_,
          fmt::format("a sample is {} but the largest value is {}", value, table_.size() - 1));
    }
    const std::uint16_t code = table_[static_cast<std::size_t>(value)];
    if (image_.bit_depth == 8) {
      image_.samples8.push_back(static_cast<std::uint8_t>(code));
    } else {
      image_.samples16.push_back(code);
    }
  }

 private:
  const File& file_;
  std::vector<std::uint16_t> table_;
  Image& image_;
};

void read_plain(const File& file, const Header& header, SampleSink& sink) {
  NetpbmText text(file, header.samples);
  std::size_t taken = 0;
  while (taken < header.count()) {
    const std::string_view word = text.word();
    if (word.empty()) refuse_damaged(file, "it ends too early");
    if (!header.has_bits) {
      sink.take(text.number_in(word, "sample"));
      ++taken;
      continue;
    }
    if (word.size() > header.count() - taken) refuse_damaged(file, "it has too many samples");
    for (const char bit : word) sink.take(text.number_in({&bit, 1}, "sample"));
    taken += word.size();
  }
  if (!text.word().empty()) refuse_damaged(file, "it has too many samples");
}

void read_binary(const File& file, const Header& header, SampleSink& sink) {
  const auto per_row = static_cast<std::size_t>(header.width * header.channels);
  for (std::int64_t y = 0; y < header.height; ++y) {
    const std::uint8_t* row =
        file.bytes.data() + header.samples + static_cast<std::size_t>(y) * header.row_bytes();
    for (std::size_t i = 0; i < per_row; ++i) {
      if (header.has_bits) {
        sink.take(row[i / 8] >> (7 - i % 8) & 1);
      } else if (header.sample_bytes() == 1) {
        sink.take(row[i]);
      } else {
        sink.take(row[2 * i] << 8 | row[2 * i + 1]);
      }
    }
  }
}

// The header of the picture at this position of the file, or none if only white space is left.
std::optional<Header> header_at(const File& file, std::size_t at) {
  const Bytes rest = file.bytes.subspan(at);
  if (std::all_of(rest.begin(), rest.end(), NetpbmText::is_space)) return std::nullopt;
  const bool is_binary = rest.size() >= 2 && rest[0] == 'P' && rest[1] >= '4' && rest[1] <= '7';
  if (!is_binary) {
    refuse_damaged(file, fmt::format("{} bytes after its pixels are no picture", rest.size()));
  }
  return read_header(file, at);
}

std::vector<Header> read_headers(const File& file) {
  std::vector<Header> headers = {read_header(file, 0)};
  while (!headers.back().is_plain) {
    const std::optional<Header> next = header_at(file, headers.back().end());
    if (!next) break;
    headers.push_back(*next);
  }
  return headers;
}

Image read_one(const File& file, const Header& header) {
  Image image{.width = header.width,
      .height = header.height,
      .channels = header.channels,
      .bit_depth = header.maximum > 255 ? 16 : 8,
      .source_bit_depth =
          static_cast<int>(std::bit_width(static_cast<std::uint32_t>(header.maximum))),
      .format = header.format};
  if (!header.is_plain && header.maximum == 255) {
    const std::uint8_t* first = file.bytes.data() + header.samples;
    image.samples8.assign(first, first + header.count());
    return image;
  }
  SampleSink sink(file, header, image);
  header.is_plain ? read_plain(file, header, sink) : read_binary(file, header, sink);
  return image;
}

}  // namespace

void read_netpbm_pictures(const File& file, const TakePicture& take) {
  const std::vector<Header> headers = read_headers(file);
  for (const Header& header : headers) {
    Image image = read_one(file, header);
    image.frames = static_cast<std::int64_t>(headers.size());
    if (!take(std::move(image))) return;
  }
}

Image read_netpbm(const File& file) { return first_picture(file, read_netpbm_pictures); }

}  // namespace similis::media
