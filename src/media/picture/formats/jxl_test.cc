// SPDX-License-Identifier: Apache-2.0
#include <jxl/encode.h>

#include <functional>

#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

struct JxlSettings {
  std::function<void(JxlBasicInfo&)> change = [](JxlBasicInfo&) {};
  std::optional<JxlColorEncoding> color;
  int frames = 1;
  float distance = 0;  // 0 is lossless
};

Buffer encode_jxl(const Image& image, const JxlSettings& settings = {}) {
  JxlEncoder* encoder = JxlEncoderCreate(nullptr);
  JxlBasicInfo info;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = static_cast<std::uint32_t>(image.width);
  info.ysize = static_cast<std::uint32_t>(image.height);
  info.bits_per_sample = static_cast<std::uint32_t>(image.source_bit_depth);
  info.num_color_channels = image.channels <= 2 ? 1 : 3;
  info.num_extra_channels = image.has_alpha();
  info.alpha_bits = image.has_alpha() ? info.bits_per_sample : 0;
  info.uses_original_profile = settings.distance == 0;
  if (settings.frames > 1) {
    info.have_animation = JXL_TRUE;
    info.animation.tps_numerator = info.animation.tps_denominator = 1;
  }
  settings.change(info);
  EXPECT_EQ(JxlEncoderSetBasicInfo(encoder, &info), JXL_ENC_SUCCESS);
  JxlColorEncoding color;
  JxlColorEncodingSetToSRGB(&color, info.num_color_channels == 1);
  if (settings.color) color = *settings.color;
  EXPECT_EQ(JxlEncoderSetColorEncoding(encoder, &color), JXL_ENC_SUCCESS);
  JxlEncoderFrameSettings* frame = JxlEncoderFrameSettingsCreate(encoder, nullptr);
  JxlEncoderFrameSettingsSetOption(frame, JXL_ENC_FRAME_SETTING_EFFORT, 3);
  if (settings.distance == 0) {
    JxlEncoderSetFrameLossless(frame, JXL_TRUE);
  } else {
    JxlEncoderSetFrameDistance(frame, settings.distance);
  }
  if (settings.frames > 1) {
    JxlFrameHeader header;
    JxlEncoderInitFrameHeader(&header);
    header.duration = 1;
    JxlEncoderSetFrameHeader(frame, &header);
  }
  const JxlPixelFormat format = {.num_channels = static_cast<std::uint32_t>(image.channels),
      .data_type = image.bit_depth == 8 ? JXL_TYPE_UINT8 : JXL_TYPE_UINT16,
      .endianness = JXL_NATIVE_ENDIAN,
      .align = 0};
  const void* samples = image.bit_depth == 8 ? static_cast<const void*>(image.samples8.data())
                                             : static_cast<const void*>(image.samples16.data());
  const std::size_t bytes =
      static_cast<std::size_t>(image.width * image.height * image.channels * image.bit_depth / 8);
  for (int i = 0; i < settings.frames; ++i) {
    EXPECT_EQ(JxlEncoderAddImageFrame(frame, &format, samples, bytes), JXL_ENC_SUCCESS);
  }
  JxlEncoderCloseInput(encoder);
  Buffer out(1 << 20);
  std::uint8_t* next = out.data();
  std::size_t room = out.size();
  EXPECT_EQ(JxlEncoderProcessOutput(encoder, &next, &room), JXL_ENC_SUCCESS);
  out.resize(out.size() - room);
  JxlEncoderDestroy(encoder);
  return out;
}

class JxlRoundTrip : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(JxlRoundTrip, LosslessKeepsEveryCode) {
  const auto [channels, depth] = GetParam();
  const Image image = noise(37, 19, channels, depth <= 8 ? 8 : 16, depth);
  const Image read = read_image(encode_jxl(image), "a.jxl");
  expect_pixels(read, image);
  EXPECT_EQ(read.format, "JXL");
  EXPECT_EQ(read.frames, 1);
  EXPECT_EQ(read.color, (ColorSpace{.cicp = Cicp{1, 13}}));
}
INSTANTIATE_TEST_SUITE_P(ChannelsAndDepths, JxlRoundTrip,
    testing::Combine(testing::Range(1, 5), testing::Values(4, 8, 10, 12, 16)));

TEST(Jxl, LossyComesBackClosely) {
  const Image image = gradient(64, 48, 3);
  const Image read = read_image(encode_jxl(image, {.distance = 0.5}), "a.jxl");
  EXPECT_LE(largest_difference(read, image), 8);
  EXPECT_EQ(read.color, (ColorSpace{.cicp = Cicp{1, 13}}));
}

TEST(Jxl, SaysItsColourSpace) {
  JxlColorEncoding color;
  JxlColorEncodingSetToSRGB(&color, JXL_FALSE);
  color.primaries = JXL_PRIMARIES_P3;
  const Image image = noise(4, 4, 3, 8);
  EXPECT_EQ(read_image(encode_jxl(image, {.color = color}), "p.jxl").color,
      (ColorSpace{.cicp = Cicp{12, 13}}));
  color.transfer_function = JXL_TRANSFER_FUNCTION_GAMMA;
  color.gamma = 0.5;
  EXPECT_FALSE(read_image(encode_jxl(image, {.color = color}), "g.jxl").color.icc_profile.empty());
}

TEST(Jxl, OrientationIsApplied) {
  const Image image = noise(3, 2, 1, 8);
  const Image read = read_image(
      encode_jxl(image,
          {.change = [](JxlBasicInfo& info) { info.orientation = JXL_ORIENT_ROTATE_90_CW; }}),
      "o.jxl");
  ASSERT_EQ(read.width, 2);
  const Buffer& s = image.samples8;
  EXPECT_EQ(read.samples8, (Buffer{s[3], s[0], s[4], s[1], s[5], s[2]}));
}

TEST(Jxl, AnimationGivesItsFrames) {
  const Image image = noise(16, 16, 3, 16, 12);
  const std::vector<Image> pictures = all_pictures(encode_jxl(image, {.frames = 3}));
  ASSERT_EQ(pictures.size(), 3u);
  for (const Image& picture : pictures) {
    EXPECT_EQ(picture.frames, 3);
    expect_pixels(picture, image);
  }
}

TEST(Jxl, FloatingPointIsRefused) {
  const JxlSettings half = {.change =
                                [](JxlBasicInfo& info) {
                                  info.bits_per_sample = 16;
                                  info.exponent_bits_per_sample = 5;
                                },
      .distance = 1};
  EXPECT_EQ(refusal(encode_jxl(noise(4, 4, 3, 16), half), "f.jxl"),
      "cannot read f.jxl: it has 16-bit floating-point samples; they must be integers of at most "
      "16 "
      "bits");
}

TEST(Jxl, EveryCutIsRefused) { expect_every_cut_refused(encode_jxl(noise(23, 17, 4, 8)), 17); }

constexpr std::string_view kSignature = "\xff\x0a";

// A codestream's header, bit by bit, the lowest first.
class JxlHeader {
 public:
  JxlHeader& bits(std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i, ++at_, value >>= 1) {
      if (at_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | (value & 1) << at_ % 8);
    }
    return *this;
  }
  const Buffer& bytes() const { return bytes_; }

 private:
  Buffer bytes_ = Buffer(kSignature.begin(), kSignature.end());
  int at_ = 16;
};

TEST(Jxl, PromisesThatTheFileCannotKeepAreRefused) {
  // Not small; a height of 18 or 30 bits; a square; all else as usual; zeros for a frame.
  const Buffer fits =
      JxlHeader().bits(0, 1).bits(2, 2).bits(15999, 18).bits(1, 3).bits(1, 1).bits(0, 999).bytes();
  const Buffer large = JxlHeader()
                           .bits(0, 1)
                           .bits(3, 2)
                           .bits((1u << 30) - 1, 30)
                           .bits(1, 3)
                           .bits(1, 1)
                           .bits(0, 999)
                           .bytes();
  EXPECT_THAT(refused_at_once(fits, "fits.jxl"), HasSubstr("cannot read fits.jxl: "));
  EXPECT_THAT(refused_at_once(large, "big.jxl"),
      HasSubstr("cannot read big.jxl: it is 1073741824 x 1073741824 pixels"));
}

}  // namespace
}  // namespace similis::media
