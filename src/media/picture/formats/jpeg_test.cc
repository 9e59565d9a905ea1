// SPDX-License-Identifier: Apache-2.0
#include <cstdio>  // before jpeglib.h, which needs it

#include <jpeglib.h>

#include <cstring>
#include <functional>

#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

struct JpegSettings {
  int quality = 95;
  bool is_progressive = false;
  bool has_full_chroma = false;
  J_COLOR_SPACE color_space = JCS_UNKNOWN;  // of the samples; from their number if unknown
  Buffer exif, icc_profile;
};

Buffer encode_jpeg(const Image& image, const JpegSettings& settings = {}) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = image.channels;
  jpeg.in_color_space = settings.color_space != JCS_UNKNOWN ? settings.color_space
                        : image.channels == 1               ? JCS_GRAYSCALE
                                                            : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, settings.quality, TRUE);
  if (settings.is_progressive) jpeg_simple_progression(&jpeg);
  if (settings.has_full_chroma)
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&jpeg, TRUE);
  if (!settings.exif.empty()) {
    Buffer marker = {'E', 'x', 'i', 'f', 0, 0};
    marker.insert(marker.end(), settings.exif.begin(), settings.exif.end());
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, marker.data(), static_cast<unsigned>(marker.size()));
  }
  if (!settings.icc_profile.empty()) {
    jpeg_write_icc_profile(
        &jpeg, settings.icc_profile.data(), static_cast<unsigned>(settings.icc_profile.size()));
  }
  const auto stride = static_cast<std::size_t>(image.width * image.channels);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(image.samples8.data() + jpeg.next_scanline * stride);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const Buffer bytes(out, out + size);
  std::free(out);
  return bytes;
}

TEST(Jpeg, GreyAndColourComeBackClosely) {
  for (const int channels : {1, 3}) {
    const Image image = gradient(61, 47, channels);
    for (const bool is_progressive : {false, true}) {
      const Image read = read_image(
          encode_jpeg(image, {.quality = 100, .is_progressive = is_progressive}), "a.jpg");
      EXPECT_EQ(read.channels, channels);
      EXPECT_EQ(read.width, 61);
      EXPECT_EQ(read.height, 47);
      EXPECT_EQ(read.format, "JPEG");
      EXPECT_EQ(read.bit_depth, 8);
      EXPECT_LE(largest_difference(read, image), 4);
    }
  }
}

TEST(Jpeg, ProgressiveHoldsTheSamePixels) {
  const Image image = noise(45, 31, 3, 8);
  const Image baseline = read_image(encode_jpeg(image), "b.jpg");
  const Image progressive = read_image(encode_jpeg(image, {.is_progressive = true}), "p.jpg");
  EXPECT_EQ(baseline.samples8, progressive.samples8);
}

TEST(Jpeg, RgbWithoutTransformStaysRgb) {
  Image image{.width = 8, .height = 8, .channels = 3};
  for (int i = 0; i < 64; ++i) image.samples8.insert(image.samples8.end(), {200, 30, 90});
  const Image read =
      read_image(encode_jpeg(image, {.quality = 100, .has_full_chroma = true}), "r.jpg");
  EXPECT_LE(largest_difference(read, image), 1);
}

TEST(Jpeg, CmykIsRefused) {
  EXPECT_EQ(refusal(encode_jpeg(noise(8, 8, 4, 8), {.color_space = JCS_CMYK}), "inks.jpg"),
      "cannot read inks.jpg: CMYK is not supported; convert the picture to RGB first");
}

TEST(Jpeg, OrientationIsApplied) {
  Image image{.width = 32, .height = 16, .channels = 1};
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 32; ++x)
      image.samples8.push_back(y < 8 ? x < 16 ? 0 : 80 : x < 16 ? 160 : 240);
  }
  const Image read =
      read_image(encode_jpeg(image, {.quality = 100, .exif = exif_block(8)}), "o.jpg");
  ASSERT_EQ(read.width, 16);
  ASSERT_EQ(read.height, 32);
  const auto at = [&](std::size_t x, std::size_t y) { return int{read.samples8[y * 16 + x]}; };
  // Turned 90° anticlockwise: what was at the right is on top.
  EXPECT_NEAR(at(0, 0), 80, 2);
  EXPECT_NEAR(at(15, 0), 240, 2);
  EXPECT_NEAR(at(0, 31), 0, 2);
  EXPECT_NEAR(at(15, 31), 160, 2);
}

TEST(Jpeg, ProfileLongerThanAMarkerIsJoined) {
  Buffer profile(150000);
  for (std::size_t i = 0; i < profile.size(); ++i) profile[i] = static_cast<std::uint8_t>(i * 7);
  const Image read =
      read_image(encode_jpeg(gradient(16, 16, 3), {.icc_profile = profile}), "i.jpg");
  EXPECT_EQ(read.color.icc_profile, profile);
}

TEST(Jpeg, EveryCutIsRefusedRatherThanGrey) {
  const Image image = noise(40, 40, 3, 8);
  expect_every_cut_refused(encode_jpeg(image, {.quality = 60}));
  expect_every_cut_refused(encode_jpeg(image, {.quality = 60, .is_progressive = true}), 3);
}

TEST(Jpeg, DataAfterTheEndIsNoDamage) {
  Buffer bytes = encode_jpeg(gradient(16, 16, 3));
  const Image alone = read_image(bytes, "a.jpg");
  bytes.insert(bytes.end(), 1000, 0x42);
  EXPECT_EQ(read_image(bytes, "b.jpg").samples8, alone.samples8);
}

// The size lies behind the frame header's marker (FF C0 or C2), its length and its depth.
Buffer with_size(Buffer bytes, int width, int height) {
  for (std::size_t i = 2; i + 9 < bytes.size(); ++i) {
    if (bytes[i] != 0xFF || (bytes[i + 1] != 0xC0 && bytes[i + 1] != 0xC2)) continue;
    bytes[i + 5] = static_cast<std::uint8_t>(height >> 8);
    bytes[i + 6] = static_cast<std::uint8_t>(height);
    bytes[i + 7] = static_cast<std::uint8_t>(width >> 8);
    bytes[i + 8] = static_cast<std::uint8_t>(width);
    return bytes;
  }
  ADD_FAILURE() << "no frame header";
  return bytes;
}

TEST(Jpeg, PromisesThatTheFileCannotKeepAreRefused) {
  const Buffer small = encode_jpeg(gradient(16, 16, 3));
  EXPECT_EQ(refused_at_once(with_size(small, 60000, 60000), "big.jpg"),
      "cannot read big.jpg: it is 60000 x 60000 pixels; it must have at most 268435456 pixels and "
      "sides of at most 1048576");
  EXPECT_THAT(refused_at_once(with_size(small, 16000, 16000), "fits.jpg"),
      HasSubstr("cannot read fits.jpg: it is cut off or damaged ("));
  const Buffer progressive = encode_jpeg(gradient(16, 16, 3), {.is_progressive = true});
  EXPECT_THAT(refused_at_once(with_size(progressive, 16000, 16000), "fits.jpg"),
      HasSubstr("cannot read fits.jpg: it is cut off or damaged ("));
}

// The last scan of a progressive file again and again.
TEST(Jpeg, ScansWithoutEndAreRefused) {
  Buffer bytes = encode_jpeg(gradient(16, 16, 1), {.is_progressive = true});
  std::size_t scan = bytes.size() - 2;
  while (scan > 0 && !(bytes[scan] == 0xFF && bytes[scan + 1] == 0xDA)) --scan;
  ASSERT_GT(scan, 0u);
  const Buffer last(bytes.begin() + static_cast<std::ptrdiff_t>(scan), bytes.end() - 2);
  bytes.resize(bytes.size() - 2);
  for (int i = 0; i < 200; ++i) bytes.insert(bytes.end(), last.begin(), last.end());
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  EXPECT_THAT(refused_at_once(bytes, "scans.jpg"),
      HasSubstr("cannot read scans.jpg: it is cut off or damaged"));
}

}  // namespace
}  // namespace similis::media
