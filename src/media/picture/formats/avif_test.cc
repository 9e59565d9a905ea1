// SPDX-License-Identifier: Apache-2.0
#include <avif/avif.h>

#include <functional>

#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

using Change = std::function<void(avifImage&)>;

Buffer encode(avifImage& picture, int frames = 1) {
  avifEncoder* encoder = avifEncoderCreate();
  encoder->minQuantizer = encoder->maxQuantizer = AVIF_QUANTIZER_LOSSLESS;
  encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = AVIF_QUANTIZER_LOSSLESS;
  encoder->speed = AVIF_SPEED_FASTEST;
  for (int i = 0; i < frames; ++i) {
    EXPECT_EQ(avifEncoderAddImage(encoder, &picture, 1,
                  frames == 1 ? AVIF_ADD_IMAGE_FLAG_SINGLE : AVIF_ADD_IMAGE_FLAG_NONE),
        AVIF_RESULT_OK);
  }
  avifRWData out = AVIF_DATA_EMPTY;
  EXPECT_EQ(avifEncoderFinish(encoder, &out), AVIF_RESULT_OK);
  const Buffer bytes(out.data, out.data + out.size);
  avifRWDataFree(&out);
  avifEncoderDestroy(encoder);
  return bytes;
}

// Lossless: RGB planes (matrix 0) at full range, codes of image.source_bit_depth.
Buffer encode_rgb(
    const Image& image, const Change& change = [](avifImage&) {}, int frames = 1) {
  const auto width = static_cast<std::uint32_t>(image.width);
  const auto height = static_cast<std::uint32_t>(image.height);
  const auto depth = static_cast<std::uint32_t>(image.source_bit_depth);
  avifImage* picture = avifImageCreate(width, height, depth, AVIF_PIXEL_FORMAT_YUV444);
  picture->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_IDENTITY;
  picture->yuvRange = AVIF_RANGE_FULL;
  change(*picture);
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, picture);
  rgb.format = image.channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  std::vector<std::uint16_t> codes;
  for (const std::uint16_t code : image.samples16) {
    codes.push_back(rescale_code(code, 16, image.source_bit_depth));
  }
  Buffer samples = image.samples8;
  rgb.pixels = depth == 8 ? samples.data() : reinterpret_cast<std::uint8_t*>(codes.data());
  rgb.rowBytes = width * avifRGBImagePixelSize(&rgb);
  EXPECT_EQ(avifImageRGBToYUV(picture, &rgb), AVIF_RESULT_OK);
  const Buffer bytes = encode(*picture, frames);
  avifImageDestroy(picture);
  return bytes;
}

TEST(Avif, LosslessKeepsEveryCodeOfEveryDepth) {
  for (const int channels : {3, 4}) {
    for (const int depth : {8, 10, 12}) {
      const Image image = noise(37, 19, channels, depth == 8 ? 8 : 16, depth);
      const Image read = read_image(encode_rgb(image), "a.avif");
      expect_pixels(read, image);
      EXPECT_EQ(read.format, "AVIF");
      EXPECT_EQ(read.frames, 1);
    }
  }
}

TEST(Avif, LimitedRangeGreySpansBlackToWhite) {
  avifImage* picture = avifImageCreate(3, 1, 8, AVIF_PIXEL_FORMAT_YUV400);
  picture->yuvRange = AVIF_RANGE_LIMITED;
  avifImageAllocatePlanes(picture, AVIF_PLANES_YUV);
  const Buffer luma = {16, 126, 235};
  std::copy(luma.begin(), luma.end(), picture->yuvPlanes[AVIF_CHAN_Y]);
  const Image read = read_image(encode(*picture), "g.avif");
  avifImageDestroy(picture);
  EXPECT_EQ(read.channels, 1);
  EXPECT_EQ(read.samples8, (Buffer{0, 128, 255}));  // 110·255/219 = 128.08
}

TEST(Avif, SaysItsColourSpace) {
  const Image image = noise(4, 4, 3, 8);
  const auto color = [&](const Change& change) {
    return read_image(encode_rgb(image, change), "c.avif").color;
  };
  EXPECT_EQ(color([](avifImage& picture) {
    picture.colorPrimaries = AVIF_COLOR_PRIMARIES_SMPTE432;
    picture.transferCharacteristics = AVIF_TRANSFER_CHARACTERISTICS_SRGB;
  }),
      (ColorSpace{.cicp = Cicp{12, 13}}));
  const Buffer profile = {1, 2, 3};
  EXPECT_EQ(color([&](avifImage& picture) {
    avifImageSetProfileICC(&picture, profile.data(), profile.size());
  }),
      (ColorSpace{.icc_profile = profile}));
}

// irot turns anticlockwise, then imir swaps; each against the rows and columns it must give.
TEST(Avif, RotationAndMirrorAreApplied) {
  const Image image = noise(3, 2, 3, 8);
  const auto pixel = [](const Image& of, std::int64_t x, std::int64_t y) {
    const auto at = of.samples8.begin() + (y * of.width + x) * 3;
    return Buffer(at, at + 3);
  };
  const Image left = read_image(encode_rgb(image,
                                    [](avifImage& picture) {
                                      picture.transformFlags = AVIF_TRANSFORM_IROT;
                                      picture.irot.angle = 1;
                                    }),
      "l.avif");
  ASSERT_EQ(left.width, 2);
  EXPECT_EQ(pixel(left, 0, 0), pixel(image, 2, 0));
  EXPECT_EQ(pixel(left, 1, 2), pixel(image, 0, 1));
  const Image flipped =
      read_image(encode_rgb(image,
                     [](avifImage& picture) {
                       picture.transformFlags = AVIF_TRANSFORM_IROT | AVIF_TRANSFORM_IMIR;
                       picture.irot.angle = 1;
                       picture.imir.mode = 0;  // then top and bottom change places
                     }),
          "f.avif");
  for (std::int64_t y = 0; y < 3; ++y) {
    for (std::int64_t x = 0; x < 2; ++x) EXPECT_EQ(pixel(flipped, x, y), pixel(left, x, 2 - y));
  }
  const Image mirrored = read_image(encode_rgb(image,
                                        [](avifImage& picture) {
                                          picture.transformFlags =
                                              AVIF_TRANSFORM_IROT | AVIF_TRANSFORM_IMIR;
                                          picture.irot.angle = 3;
                                          picture.imir.mode = 1;
                                        }),
      "m.avif");
  ASSERT_EQ(mirrored.width, 2);
  for (std::int64_t y = 0; y < 3; ++y) {  // clockwise, then left and right: the transpose
    for (std::int64_t x = 0; x < 2; ++x) EXPECT_EQ(pixel(mirrored, x, y), pixel(image, y, x));
  }
}

TEST(Avif, CleanApertureIsCropped) {
  const Image image = noise(10, 8, 3, 8);
  const Image read = read_image(encode_rgb(image,
                                    [](avifImage& picture) {
                                      picture.transformFlags = AVIF_TRANSFORM_CLAP;
                                      avifCropRect part{2, 3, 6, 4};
                                      avifDiagnostics diagnostics{};
                                      EXPECT_TRUE(avifCleanApertureBoxConvertCropRect(&picture.clap,
                                          &part, 10, 8, AVIF_PIXEL_FORMAT_YUV444, &diagnostics));
                                    }),
      "c.avif");
  ASSERT_EQ(read.width, 6);
  ASSERT_EQ(read.height, 4);
  EXPECT_EQ(read.samples8[0], image.samples8[(3 * 10 + 2) * 3]);
  EXPECT_EQ(read.samples8.back(), image.samples8[(6 * 10 + 7) * 3 + 2]);
}

TEST(Avif, SequenceGivesItsFrames) {
  const Image image = noise(16, 16, 3, 8);
  const std::vector<Image> pictures = all_pictures(encode_rgb(
      image, [](avifImage&) {}, 3));
  ASSERT_EQ(pictures.size(), 3u);
  for (const Image& picture : pictures) {
    EXPECT_EQ(picture.frames, 3);
    expect_pixels(picture, image);
  }
}

TEST(Avif, EveryCutIsRefused) { expect_every_cut_refused(encode_rgb(noise(23, 17, 4, 8)), 17); }

// The size stands in a box "ispe": version and flags, width, height.
Buffer with_size(Buffer bytes, std::uint16_t side) {
  constexpr std::string_view kName = "ispe";
  const auto at = std::search(bytes.begin(), bytes.end(), kName.begin(), kName.end());
  EXPECT_NE(at, bytes.end());
  for (const int end : {12, 16}) {
    at[end - 2] = static_cast<std::uint8_t>(side >> 8);
    at[end - 1] = static_cast<std::uint8_t>(side);
  }
  return bytes;
}

TEST(Avif, PromisesThatTheFileCannotKeepAreRefused) {
  const Buffer small = encode_rgb(noise(16, 16, 3, 8));
  EXPECT_THAT(refused_at_once(with_size(small, 60000), "big.avif"),
      HasSubstr("cannot read big.avif: it is cut off or damaged ("));
  EXPECT_EQ(refused_at_once(with_size(small, 16000), "fits.avif"),
      fmt::format("cannot read fits.avif: it is 16000 x 16000 pixels in {} bytes; it must have at "
                  "most 65536 pixels per byte",
          small.size()));
}

}  // namespace
}  // namespace similis::media
