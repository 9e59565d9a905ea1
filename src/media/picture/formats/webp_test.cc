// SPDX-License-Identifier: Apache-2.0
#include <webp/encode.h>
#include <webp/mux.h>

#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

// Lossless, colours under full transparency included.
Buffer encode_webp(const Image& image) {
  WebPConfig config;
  WebPPicture picture;
  WebPMemoryWriter writer;
  EXPECT_TRUE(WebPConfigInit(&config) && WebPPictureInit(&picture));
  config.lossless = config.exact = 1;
  picture.use_argb = 1;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  const int stride = picture.width * image.channels;
  const auto import = image.channels == 4 ? WebPPictureImportRGBA : WebPPictureImportRGB;
  EXPECT_TRUE(import(&picture, image.samples8.data(), stride));
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  EXPECT_TRUE(WebPEncode(&config, &picture));
  const Buffer bytes(writer.mem, writer.mem + writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  return bytes;
}

Buffer with_chunk(const Buffer& file, const char* name, const Buffer& chunk) {
  const WebPData picture{file.data(), file.size()}, data{chunk.data(), chunk.size()};
  WebPMux* mux = WebPMuxNew();
  EXPECT_EQ(WebPMuxSetImage(mux, &picture, 0), WEBP_MUX_OK);
  EXPECT_EQ(WebPMuxSetChunk(mux, name, &data, 0), WEBP_MUX_OK);
  WebPData out{};
  EXPECT_EQ(WebPMuxAssemble(mux, &out), WEBP_MUX_OK);
  const Buffer bytes(out.bytes, out.bytes + out.size);
  WebPDataClear(&out);
  WebPMuxDelete(mux);
  return bytes;
}

Buffer animation_of(const std::vector<Image>& frames) {
  WebPAnimEncoderOptions options;
  EXPECT_TRUE(WebPAnimEncoderOptionsInit(&options));
  WebPConfig config;
  EXPECT_TRUE(WebPConfigInit(&config));
  config.lossless = config.exact = 1;
  const int width = static_cast<int>(frames[0].width), height = static_cast<int>(frames[0].height);
  WebPAnimEncoder* encoder = WebPAnimEncoderNew(width, height, &options);
  int time = 0;
  for (const Image& frame : frames) {
    WebPPicture picture;
    EXPECT_TRUE(WebPPictureInit(&picture));
    picture.use_argb = 1;
    picture.width = width;
    picture.height = height;
    EXPECT_TRUE(WebPPictureImportRGBA(&picture, frame.samples8.data(), width * 4));
    EXPECT_TRUE(WebPAnimEncoderAdd(encoder, &picture, time += 100, &config));
    WebPPictureFree(&picture);
  }
  EXPECT_TRUE(WebPAnimEncoderAdd(encoder, nullptr, time + 100, nullptr));
  WebPData out{};
  EXPECT_TRUE(WebPAnimEncoderAssemble(encoder, &out));
  const Buffer bytes(out.bytes, out.bytes + out.size);
  WebPDataClear(&out);
  WebPAnimEncoderDelete(encoder);
  return bytes;
}

TEST(Webp, LosslessKeepsEverySample) {
  for (const int channels : {3, 4}) {
    const Image image = noise(37, 19, channels, 8);
    const Image read = read_image(encode_webp(image), "a.webp");
    expect_pixels(read, image);
    EXPECT_EQ(read.format, "WebP");
    EXPECT_EQ(read.frames, 1);
    EXPECT_EQ(read.color, ColorSpace{});
  }
}

TEST(Webp, LossyComesBackClosely) {
  const Image image = gradient(64, 48, 3);
  std::uint8_t* out = nullptr;
  const std::size_t size = WebPEncodeRGB(image.samples8.data(), 64, 48, 64 * 3, 95, &out);
  const Image read = read_image(Buffer(out, out + size), "a.webp");
  WebPFree(out);
  EXPECT_LE(largest_difference(read, image), 12);
}

TEST(Webp, ProfileAndOrientationAreRead) {
  const Image image = noise(5, 3, 3, 8);
  const Buffer profile = {1, 2, 3, 4, 5};
  EXPECT_EQ(read_image(with_chunk(encode_webp(image), "ICCP", profile), "i.webp").color.icc_profile,
      profile);
  const Image turned = read_image(with_chunk(encode_webp(image), "EXIF", exif_block(6)), "o.webp");
  EXPECT_EQ(turned.width, 3);
  EXPECT_EQ(turned.height, 5);
  EXPECT_EQ(turned.samples8[0], image.samples8[2 * 5 * 3]) << "what was at the bottom left";
}

TEST(Webp, AnimationSaysItsFramesAndGivesTheFirst) {
  const Image first = noise(16, 8, 4, 8);
  Image second = first;
  for (std::uint8_t& sample : second.samples8) sample = static_cast<std::uint8_t>(~sample);
  const Image read = read_image(animation_of({first, second, first}), "a.webp");
  EXPECT_EQ(read.frames, 3);
  expect_pixels(read, first);
}

TEST(Webp, EachFrameIsDrawnOverThoseBefore) {
  const Image first = noise(16, 8, 4, 8);
  Image second = first, third = first;
  for (std::size_t i = 0; i < 80; ++i) second.samples8[i] ^= 0x55;  // two rows and a half
  for (std::size_t i = 3; i < 200; i += 4) third.samples8[i] = 0;   // becomes transparent
  const std::vector<Image> pictures = all_pictures(animation_of({first, second, third}));
  ASSERT_EQ(pictures.size(), 3u);
  expect_pixels(pictures[0], first);
  expect_pixels(pictures[1], second);
  for (std::size_t i = 0; i < third.samples8.size(); ++i) {
    if (third.samples8[i | 3] == 0 && i % 4 != 3) continue;  // no colour shows there
    ASSERT_EQ(pictures[2].samples8[i], third.samples8[i]) << i;
  }
}

// An animation of one frame, on a canvas of this size, at these even offsets.
Buffer on_canvas(const Buffer& frame, int width, int height, int x, int y,
    const std::vector<WebPMuxFrameInfo>& later = {}) {
  WebPMux* mux = WebPMuxNew();
  const WebPMuxFrameInfo info{.bitstream = {frame.data(), frame.size()},
      .x_offset = x,
      .y_offset = y,
      .duration = 100,
      .id = WEBP_CHUNK_ANMF,
      .dispose_method = later.empty() ? WEBP_MUX_DISPOSE_NONE : WEBP_MUX_DISPOSE_BACKGROUND,
      .blend_method = WEBP_MUX_BLEND};
  EXPECT_EQ(WebPMuxPushFrame(mux, &info, 1), WEBP_MUX_OK);
  for (const WebPMuxFrameInfo& next : later) {
    EXPECT_EQ(WebPMuxPushFrame(mux, &next, 1), WEBP_MUX_OK);
  }
  const WebPMuxAnimParams once{.bgcolor = 0, .loop_count = 1};
  EXPECT_EQ(WebPMuxSetAnimationParams(mux, &once), WEBP_MUX_OK);
  EXPECT_EQ(WebPMuxSetCanvasSize(mux, width, height), WEBP_MUX_OK);
  WebPData out{};
  EXPECT_EQ(WebPMuxAssemble(mux, &out), WEBP_MUX_OK);
  const Buffer bytes(out.bytes, out.bytes + out.size);
  WebPDataClear(&out);
  WebPMuxDelete(mux);
  return bytes;
}

TEST(Webp, FirstFrameLiesInItsPlaceOnATransparentCanvas) {
  const Image frame = noise(5, 3, 4, 8);
  const Image read = read_image(on_canvas(encode_webp(frame), 16, 8, 6, 4), "a.webp");
  ASSERT_EQ(read.width, 16);
  ASSERT_EQ(read.height, 8);
  ASSERT_EQ(read.channels, 4);
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 0; x < 16 * 4; ++x) {
      const std::int64_t column = x - 6 * 4, row = y - 4;
      const bool is_inside = column >= 0 && column < 5 * 4 && row >= 0 && row < 3;
      ASSERT_EQ(read.samples8[static_cast<std::size_t>(y * 16 * 4 + x)],
          is_inside ? frame.samples8[static_cast<std::size_t>(row * 5 * 4 + column)] : 0)
          << x << ", " << y;
    }
  }
}

// Grey of these values and alphas, one pixel high.
Image grey_pixels(const std::vector<std::pair<int, int>>& pixels) {
  Image image{.width = static_cast<std::int64_t>(pixels.size()), .height = 1, .channels = 4};
  for (const auto& [value, alpha] : pixels) {
    image.samples8.insert(image.samples8.end(), 3, static_cast<std::uint8_t>(value));
    image.samples8.push_back(static_cast<std::uint8_t>(alpha));
  }
  return image;
}

// The first frame goes before the second comes, the second stays under the third.
TEST(Webp, FramesAreDisposedOfAndBlendedAsTheySay) {
  const Buffer first = encode_webp(grey_pixels({{10, 255}, {20, 255}, {30, 255}, {40, 255}}));
  const Buffer second = encode_webp(grey_pixels({{100, 255}, {200, 128}}));
  const Buffer third = encode_webp(grey_pixels({{50, 51}, {50, 51}}));
  const auto frame = [](const Buffer& bytes, int x, WebPMuxAnimBlend blend) {
    return WebPMuxFrameInfo{.bitstream = {bytes.data(), bytes.size()},
        .x_offset = x,
        .duration = 100,
        .id = WEBP_CHUNK_ANMF,
        .blend_method = blend};
  };
  const std::vector<Image> pictures = all_pictures(on_canvas(first, 4, 1, 0, 0,
      {frame(second, 2, WEBP_MUX_BLEND), frame(third, 2, WEBP_MUX_BLEND),
          frame(third, 2, WEBP_MUX_NO_BLEND)}));
  ASSERT_EQ(pictures.size(), 4u);
  expect_pixels(pictures[0], grey_pixels({{10, 255}, {20, 255}, {30, 255}, {40, 255}}));
  EXPECT_EQ(pictures[1].samples8, grey_pixels({{0, 0}, {0, 0}, {100, 255}, {200, 128}}).samples8);
  // 0.2·50 + 0.8·100 = 90; 0.2·50 + 0.4016·200 of 0.2 + 0.4016 = 150.1, alpha 153.4
  EXPECT_EQ(pictures[2].samples8, grey_pixels({{0, 0}, {0, 0}, {90, 255}, {150, 153}}).samples8);
  EXPECT_EQ(pictures[3].samples8, grey_pixels({{0, 0}, {0, 0}, {50, 51}, {50, 51}}).samples8);
}

TEST(Webp, EveryCutIsRefused) {
  expect_every_cut_refused(encode_webp(noise(23, 17, 4, 8)), 11);
  expect_every_cut_refused(with_chunk(encode_webp(noise(9, 9, 3, 8)), "EXIF", exif_block(1)));
}

TEST(Webp, PromisesThatTheFileCannotKeepAreRefused) {
  // A lossless header (14 bits of width - 1 and height - 1, alpha, version) and nothing behind it.
  const Buffer header = {'R', 'I', 'F', 'F', 18, 0, 0, 0, 'W', 'E', 'B', 'P', 'V', 'P', '8', 'L', 6,
      0, 0, 0, 0x2f, 0xff, 0xff, 0xff, 0x0f, 0};
  EXPECT_THAT(refused_at_once(header, "big.webp"),
      HasSubstr("cannot read big.webp: it is cut off or damaged"));
}

TEST(Webp, DamagedFrameOnAHugeCanvasIsRefused) {
  Buffer bytes = on_canvas(encode_webp(noise(16, 16, 4, 8)), 16384, 16384, 0, 0);
  for (std::size_t i = bytes.size() - 600; i < bytes.size(); ++i) bytes[i] = 0xA5;
  EXPECT_THAT(refused_at_once(bytes, "big.webp"),
      HasSubstr("cannot read big.webp: it is cut off or damaged"));
}

}  // namespace
}  // namespace similis::media
