// SPDX-License-Identifier: Apache-2.0
// Pictures with known pixels, and what every format's test asks of a reader.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "similis/error.hpp"
#include "src/media/picture/decode.h"
#include "src/media/picture/reader.h"

namespace similis::media {

using Buffer = std::vector<std::uint8_t>;

/// Noise of source_bits a sample, spread over bit_depth; the same for the same arguments.
inline Image noise(
    std::int64_t width, std::int64_t height, int channels, int bit_depth, int source_bits = 0) {
  if (source_bits == 0) source_bits = bit_depth;
  Image image{.width = width,
      .height = height,
      .channels = channels,
      .bit_depth = bit_depth,
      .source_bit_depth = source_bits};
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < width * height * channels; ++i) {
    state = state * 1664525 + 1013904223;
    const std::uint16_t code =
        rescale_code(state >> 8 & ((1u << source_bits) - 1), source_bits, bit_depth);
    if (bit_depth == 8) {
      image.samples8.push_back(static_cast<std::uint8_t>(code));
    } else {
      image.samples16.push_back(code);
    }
  }
  return image;
}

/// A smooth 8-bit picture, which lossy formats keep closely.
inline Image gradient(std::int64_t width, std::int64_t height, int channels) {
  Image image{.width = width, .height = height, .channels = channels};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const std::int64_t code = 40 + (x * (c + 1) * 40) / width + (y * (4 - c) * 20) / height;
        image.samples8.push_back(static_cast<std::uint8_t>(code));
      }
    }
  }
  return image;
}

inline void expect_pixels(const Image& actual, const Image& expected) {
  EXPECT_EQ(actual.width, expected.width);
  EXPECT_EQ(actual.height, expected.height);
  EXPECT_EQ(actual.channels, expected.channels);
  EXPECT_EQ(actual.bit_depth, expected.bit_depth);
  EXPECT_EQ(actual.source_bit_depth, expected.source_bit_depth);
  EXPECT_EQ(actual.samples8, expected.samples8);
  EXPECT_EQ(actual.samples16, expected.samples16);
}

/// The largest difference of two 8-bit pictures in code values.
inline int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.samples8.size(), b.samples8.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.samples8.size(), b.samples8.size()); ++i) {
    largest = std::max(largest, std::abs(a.samples8[i] - b.samples8[i]));
  }
  return largest;
}

/// The error of read_image for the bytes; empty if there is none.
inline std::string refusal(const Buffer& bytes, const std::string& name = "test.img") {
  try {
    read_image(bytes, name);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

/// All frames or pages.
inline std::vector<Image> all_pictures(const Buffer& bytes) {
  std::vector<Image> pictures;
  read_pictures(bytes, "test.img", [&](Image picture) {
    pictures.push_back(std::move(picture));
    return true;
  });
  return pictures;
}

/// Every beginning of the file (every `step`-th, for long ones) is refused in one line by name.
inline void expect_every_cut_refused(const Buffer& whole, std::size_t step = 1) {
  for (std::size_t length = 0; length < whole.size(); length += length < 64 ? 7 : step) {
    const Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const std::string words = refusal(cut, "cut.img");
    ASSERT_THAT(words, testing::StartsWith("cannot read cut.img: ")) << "cut at " << length;
    ASSERT_THAT(words, testing::Not(testing::HasSubstr("\n"))) << "cut at " << length;
  }
}

/// An EXIF block (without JPEG's prefix) that holds only an orientation.
inline Buffer exif_block(std::uint8_t orientation) {
  return {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0,
      0, 0, 0};
}

/// A folder for one test's files, removed with the object.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "media_test.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline Buffer content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_content(const std::string& path, const Buffer& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(
          reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace similis::media
