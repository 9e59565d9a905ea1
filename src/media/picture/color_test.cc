// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/color.h"

#include <lcms2.h>

#include <array>
#include <cmath>

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

const ColorSpace kDisplayP3 = {.cicp = Cicp{12, 13}};
const ColorSpace kSrgb = {};
const ColorSpace kGamma2 = {.gamma = 0.5};

Buffer saved(cmsHPROFILE profile) {
  cmsUInt32Number size = 0;
  cmsSaveProfileToMem(profile, nullptr, &size);
  Buffer bytes(size);
  cmsSaveProfileToMem(profile, bytes.data(), &size);
  cmsCloseProfile(profile);
  return bytes;
}

Buffer srgb_profile() { return saved(cmsCreate_sRGBProfile()); }

Buffer display_p3_profile() {
  const cmsCIExyY white = {0.3127, 0.3290, 1};
  const cmsCIExyYTRIPLE primaries = {{0.680, 0.320, 1}, {0.265, 0.690, 1}, {0.150, 0.060, 1}};
  const double curve[] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
  cmsToneCurve* tone = cmsBuildParametricToneCurve(nullptr, 4, curve);
  cmsToneCurve* const tones[] = {tone, tone, tone};
  const cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, tones);
  cmsFreeToneCurve(tone);
  return saved(profile);
}

Buffer grey_profile(double gamma) {
  cmsToneCurve* tone = cmsBuildGamma(nullptr, gamma);
  const cmsHPROFILE profile = cmsCreateGrayProfile(cmsD50_xyY(), tone);
  cmsFreeToneCurve(tone);
  return saved(profile);
}

double srgb_to_linear(double v) {
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}
double srgb_from_linear(double v) {
  return v <= 0.0031308 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
}

// Display P3 → sRGB: the matrix of CSS Color 4 (section 18), D65 to D65 in light.
std::array<double, 3> p3_to_srgb(std::array<double, 3> codes) {
  static constexpr double kMatrix[3][3] = {{1.2249401762805598, -0.22494017628055996, 0},
      {-0.042056954709688163, 1.0420569547096881, 0},
      {-0.019637554590334432, -0.078636045550631889, 1.0982736001409663}};
  std::array<double, 3> out{};
  for (int row = 0; row < 3; ++row) {
    double light = 0;
    for (int c = 0; c < 3; ++c) {
      light += kMatrix[row][c] * srgb_to_linear(codes[static_cast<std::size_t>(c)]);
    }
    out[static_cast<std::size_t>(row)] = srgb_from_linear(std::min(1.0, std::max(0.0, light)));
  }
  return out;
}

void expect_p3_becomes_srgb(const ColorSpace& p3, int bit_depth, double tolerance) {
  Image image = noise(50, 40, 4, bit_depth);
  image.color = p3;
  const Image converted = convert_color(image, kSrgb, "a.png");
  EXPECT_EQ(converted.color, kSrgb);
  const double top = (1 << bit_depth) - 1;
  const auto sample = [&](const Image& of, std::size_t i) {
    return static_cast<double>(bit_depth == 8 ? of.samples8[i] : of.samples16[i]);
  };
  double worst = 0;
  for (std::size_t i = 0; i < 50 * 40 * 4; i += 4) {
    const auto expected = p3_to_srgb(
        {sample(image, i) / top, sample(image, i + 1) / top, sample(image, i + 2) / top});
    for (std::size_t c = 0; c < 3; ++c) {
      worst = std::max(worst, std::abs(sample(converted, i + c) - expected[c] * top));
    }
    ASSERT_EQ(sample(converted, i + 3), sample(image, i + 3)) << "alpha";
  }
  EXPECT_LE(worst, tolerance);
}

TEST(Color, DisplayP3BecomesSrgbByTheFormula) {
  expect_p3_becomes_srgb(kDisplayP3, 8, 0.51);
  expect_p3_becomes_srgb(kDisplayP3, 16, 8);
  // An ICC file keeps its matrix to 1/65536.
  expect_p3_becomes_srgb({.icc_profile = display_p3_profile()}, 8, 0.6);
  expect_p3_becomes_srgb({.icc_profile = display_p3_profile()}, 16, 40);
}

TEST(Color, GammaBecomesSrgbByTheFormula) {
  Image image{.width = 256, .height = 1, .channels = 1, .color = kGamma2};
  for (int i = 0; i < 256; ++i) image.samples8.push_back(static_cast<std::uint8_t>(i));
  const Image converted = convert_color(image, kSrgb, "g.png");
  ASSERT_EQ(converted.channels, 1);
  for (std::size_t i = 0; i < 256; ++i) {
    const double light = std::pow(static_cast<double>(i) / 255, 2);
    EXPECT_NEAR(converted.samples8[i], srgb_from_linear(light) * 255, 0.51) << i;
  }
}

TEST(Color, Bt709IsTheInverseOfTheCamerasCurve) {
  Image image{.width = 256, .height = 1, .channels = 1, .color = {.cicp = Cicp{1, 1}}};
  for (int i = 0; i < 256; ++i) image.samples8.push_back(static_cast<std::uint8_t>(i));
  const Image converted = convert_color(image, kSrgb, "v.png");
  for (std::size_t i = 0; i < 256; ++i) {
    const double v = static_cast<double>(i) / 255;
    const double light = v < 0.081 ? v / 4.5 : std::pow((v + 0.099) / 1.099, 1 / 0.45);
    EXPECT_NEAR(converted.samples8[i], srgb_from_linear(light) * 255, 0.51) << i;
  }
}

TEST(Color, ThereAndBackIsTheSamePicture) {
  Image image = noise(40, 30, 3, 16);
  const Image wide = convert_color(image, {.cicp = Cicp{9, 13}}, "a.png");
  const Image back = convert_color(wide, kSrgb, "a.png");
  for (std::size_t i = 0; i < image.samples16.size(); ++i) {
    ASSERT_NEAR(back.samples16[i], image.samples16[i], 16) << i;
  }
}

TEST(Color, WaysToSaySrgbAreTheSame) {
  const Chromaticities srgb = {{0.3127, 0.329}, {0.64, 0.33}, {0.3, 0.6}, {0.15, 0.06}};
  const ColorSpace spellings[] = {kSrgb, {.cicp = Cicp{1, 13}}, {.cicp = Cicp{2, 2}},
      {.gamma = 0.45455}, {.gamma = 0.45455, .chromaticities = srgb}, {.chromaticities = srgb},
      {.icc_profile = srgb_profile()}};
  for (const ColorSpace& a : spellings) {
    for (const ColorSpace& b : spellings) {
      EXPECT_TRUE(same_color(a, b)) << describe(a) << ", " << describe(b);
    }
    EXPECT_FALSE(same_color(a, kDisplayP3)) << describe(a);
    EXPECT_FALSE(same_color(kDisplayP3, a)) << describe(a);
    EXPECT_FALSE(same_color(a, kGamma2)) << describe(a);
    EXPECT_FALSE(same_color(a, {.cicp = Cicp{1, 16}})) << describe(a);
  }
  EXPECT_TRUE(same_color(kDisplayP3, {.icc_profile = display_p3_profile()}));
  EXPECT_FALSE(same_color(kSrgb, {.icc_profile = {1, 2, 3}}));
  EXPECT_FALSE(same_color({.icc_profile = grey_profile(2.2)}, {.icc_profile = srgb_profile()}));
}

TEST(Color, GreyStaysGreyUnlessAProfileIsForRgb) {
  Image grey = noise(8, 4, 2, 8);
  grey.color = {.icc_profile = grey_profile(1.8)};
  EXPECT_EQ(convert_color(grey, kSrgb, "g.png").channels, 2);
  const Image colored = convert_color(grey, {.icc_profile = display_p3_profile()}, "g.png");
  ASSERT_EQ(colored.channels, 4);
  for (std::size_t i = 0; i < 8 * 4; ++i) {
    EXPECT_NEAR(colored.samples8[i * 4], colored.samples8[i * 4 + 1], 1);
    EXPECT_NEAR(colored.samples8[i * 4], colored.samples8[i * 4 + 2], 1);
    EXPECT_EQ(colored.samples8[i * 4 + 3], grey.samples8[i * 2 + 1]) << "alpha";
  }
}

TEST(Color, WhatCannotBeConvertedSaysWhy) {
  const auto refusal_of = [](const ColorSpace& from, const ColorSpace& to, int channels = 3) {
    Image image = noise(2, 2, channels, 8);
    image.color = from;
    try {
      convert_color(image, to, "x.png");
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal_of({.icc_profile = {1, 2, 3}}, kSrgb),
      "cannot convert x.png to sRGB: its ICC profile is damaged");
  Buffer unheard = srgb_profile();
  unheard[16] = 0xC7;  // of the four letters that say "RGB "
  EXPECT_EQ(refusal_of({.icc_profile = unheard}, kSrgb),
      "cannot convert x.png to sRGB: its ICC profile is for neither grey nor RGB");
  EXPECT_EQ(refusal_of({.cicp = Cicp{9, 16}}, kSrgb),
      "cannot convert x.png to sRGB: its transfer function is PQ or HLG, which are not "
      "supported");
  EXPECT_EQ(refusal_of(kSrgb, {.cicp = Cicp{9, 18}}),
      "cannot convert x.png to BT.2020 HLG: the other picture: its transfer function is PQ or "
      "HLG, which are not supported");
  EXPECT_EQ(refusal_of({.cicp = Cicp{77, 13}}, kSrgb),
      "cannot convert x.png to sRGB: its colours have the code points 77 (primaries) and 13 "
      "(transfer), which are not supported");
  EXPECT_EQ(refusal_of(kSrgb, {.icc_profile = grey_profile(2.2)}),
      "cannot convert x.png to ICC profile gray built-in: it has colour but the other picture's "
      "ICC "
      "profile is for grey");
  EXPECT_EQ(refusal_of({.icc_profile = grey_profile(2.2)}, kSrgb),
      "cannot convert x.png to sRGB: its ICC profile is for grey but it has colour");
}

TEST(Color, IsDescribedInAFewWords) {
  EXPECT_EQ(describe(kSrgb), "sRGB");
  EXPECT_EQ(describe({.cicp = Cicp{1, 13}}), "sRGB");
  EXPECT_EQ(describe({.cicp = Cicp{9, 16}}), "BT.2020 PQ");
  EXPECT_EQ(describe({.cicp = Cicp{1, 1}}), "BT.709");
  EXPECT_EQ(describe(kDisplayP3), "Display P3 sRGB");
  EXPECT_EQ(describe(kGamma2), "gamma 0.5");
  EXPECT_EQ(describe({.gamma = 0.45455}), "sRGB");
  EXPECT_EQ(describe({.icc_profile = srgb_profile()}), "ICC profile sRGB built-in");
}

}  // namespace
}  // namespace similis::media
