// SPDX-License-Identifier: Apache-2.0
// Reads QOI by its specification of 2022-01-05: every byte belongs to one operation, which gives
// one pixel or a run of up to 62.
#include <array>
#include <cstring>

#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

constexpr std::size_t kHeaderBytes = 14, kEndBytes = 8;
constexpr std::int64_t kLongestRun = 62;
constexpr std::uint8_t kLinear = 1, kTransferLinear = 8, kPrimariesOfSrgb = 1;

struct Pixel {
  std::uint8_t r = 0, g = 0, b = 0, a = 255;
  std::size_t place() const { return (r * 3u + g * 5u + b * 7u + a * 11u) % 64; }
};

std::uint32_t u32_at(Bytes bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 |
         std::uint32_t{bytes[at + 2]} << 8 | bytes[at + 3];
}

std::uint8_t added(std::uint8_t value, int difference) {
  return static_cast<std::uint8_t>(value + difference);
}

// The operations between the header and the end.
class Decoder {
 public:
  explicit Decoder(const File& file)
      : file_(file), bytes_(file.bytes.first(file.bytes.size() - kEndBytes)) {}

  // Decodes the next operation into pixel(), and returns how often it stands there.
  std::int64_t next() {
    const std::uint8_t first = take();
    std::int64_t run = 1;
    if (first == 0xfe || first == 0xff) {
      pixel_.r = take();
      pixel_.g = take();
      pixel_.b = take();
      if (first == 0xff) pixel_.a = take();
    } else if (first < 0x40) {
      pixel_ = seen_[first];
    } else if (first < 0x80) {
      change((first >> 4 & 3) - 2, (first >> 2 & 3) - 2, (first & 3) - 2);
    } else if (first < 0xc0) {
      const std::uint8_t second = take();
      const int green = (first & 63) - 32;
      change(green + (second >> 4) - 8, green, green + (second & 15) - 8);
    } else {
      run = (first & 63) + 1;
    }
    seen_[pixel_.place()] = pixel_;
    return run;
  }
  const Pixel& pixel() const { return pixel_; }
  bool is_at_end() const { return at_ == bytes_.size(); }

 private:
  std::uint8_t take() {
    if (is_at_end()) refuse_damaged(file_, "it ends too early");
    return bytes_[at_++];
  }
  void change(int red, int green, int blue) {
    pixel_.r = added(pixel_.r, red);
    pixel_.g = added(pixel_.g, green);
    pixel_.b = added(pixel_.b, blue);
  }

  const File& file_;
  Bytes bytes_;
  std::size_t at_ = kHeaderBytes;
  Pixel pixel_;
  std::array<Pixel, 64> seen_ = [] {
    std::array<Pixel, 64> none;
    none.fill({0, 0, 0, 0});
    return none;
  }();
};

void require_end(const File& file) {
  static constexpr std::array<std::uint8_t, kEndBytes> kEnd = {0, 0, 0, 0, 0, 0, 0, 1};
  if (file.bytes.size() < kHeaderBytes + kEndBytes ||
      std::memcmp(file.bytes.data() + file.bytes.size() - kEndBytes, kEnd.data(), kEndBytes) != 0) {
    refuse_damaged(file, "the end of the QOI is missing");
  }
}

}  // namespace

Image read_qoi(const File& file) {
  require_end(file);
  const std::uint8_t channels = file.bytes[12], color = file.bytes[13];
  Image image{.width = u32_at(file.bytes, 4),
      .height = u32_at(file.bytes, 8),
      .channels = channels,
      .format = "QOI"};
  require_size(file, image.width, image.height);
  if (channels < 3 || channels > 4 || color > kLinear) {
    refuse_damaged(file, fmt::format("it says {} channels and colour space {}", channels, color));
  }
  if (color == kLinear) image.color.cicp = Cicp{kPrimariesOfSrgb, kTransferLinear};
  const auto operations = static_cast<std::int64_t>(file.bytes.size() - kHeaderBytes - kEndBytes);
  std::int64_t left = image.width * image.height;
  if (left > operations * kLongestRun) {
    refuse_damaged(file, fmt::format("{} bytes cannot hold {} x {} pixels", file.bytes.size(),
                             image.width, image.height));
  }
  Decoder decoder(file);
  image.samples8.reserve(static_cast<std::size_t>(left * channels));
  while (left > 0) {
    const std::int64_t run = decoder.next();
    if (run > left) refuse_damaged(file, "a run is longer than the picture");
    const Pixel& pixel = decoder.pixel();
    for (std::int64_t i = 0; i < run; ++i) {
      image.samples8.insert(image.samples8.end(), {pixel.r, pixel.g, pixel.b});
      if (channels == 4) image.samples8.push_back(pixel.a);
    }
    left -= run;
  }
  if (!decoder.is_at_end()) refuse_damaged(file, "it has more pixels than its size says");
  return image;
}

}  // namespace similis::media
