// SPDX-License-Identifier: Apache-2.0
#include <OpenEXR/ImfArray.h>
#include <OpenEXR/ImfChannelList.h>
#include <OpenEXR/ImfFrameBuffer.h>
#include <OpenEXR/ImfHeader.h>
#include <OpenEXR/ImfOutputFile.h>
#include <OpenEXR/ImfTiledOutputFile.h>

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

using testing::HasSubstr;

constexpr int kWidth = 21, kHeight = 70;

struct ExrSettings {
  Imath::Box2i data = {{0, 0}, {kWidth - 1, kHeight - 1}}, shown = data;
  Imf::Compression compression = Imf::ZIP_COMPRESSION;
  Imf::PixelType type = Imf::FLOAT;
  bool is_tiled = false;
};

// The sample of a channel: multiples of 1/32, which halves hold exactly.
float sample(std::size_t channel, int x, int y) {
  return static_cast<float>((x * 7 + y * 3 + static_cast<int>(channel) * 11) % 61) / 32 - 0.5f;
}

// A file whose alpha, if it has one, is `alpha`.
Buffer encode_exr(
    const std::vector<const char*>& names, const ExrSettings& settings = {}, float alpha = 1) {
  const TestFolder folder;
  const std::string path = folder.file("a.exr");
  Imf::Header header(settings.shown, settings.data);
  header.compression() = settings.compression;
  const Imath::Box2i& data = settings.data;
  const int width = data.max.x - data.min.x + 1, height = data.max.y - data.min.y + 1;
  std::vector<std::vector<float>> planes;
  Imf::FrameBuffer buffer;
  for (const char* name : names) {
    header.channels().insert(name, Imf::Channel(settings.type));
    std::vector<float> plane;
    for (int i = 0; i < width * height; ++i) {
      const int x = data.min.x + i % width, y = data.min.y + i / width;
      plane.push_back(std::string(name) == "A" ? alpha : sample(planes.size(), x, y));
    }
    planes.push_back(std::move(plane));
  }
  std::vector<std::vector<half>> halves(planes.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    halves[i].assign(planes[i].begin(), planes[i].end());
    const bool is_half = settings.type == Imf::HALF;
    char* const base = is_half ? reinterpret_cast<char*>(halves[i].data())
                               : reinterpret_cast<char*>(planes[i].data());
    const std::size_t bytes = is_half ? sizeof(half) : sizeof(float);
    const std::ptrdiff_t first = data.min.y * static_cast<std::ptrdiff_t>(width) + data.min.x;
    const auto at =
        reinterpret_cast<std::intptr_t>(base) - first * static_cast<std::ptrdiff_t>(bytes);
    buffer.insert(names[i], Imf::Slice(settings.type, reinterpret_cast<char*>(at), bytes,
                                static_cast<std::size_t>(width) * bytes));
  }
  if (settings.is_tiled) {
    header.setTileDescription(Imf::TileDescription(16, 16, Imf::ONE_LEVEL));
    Imf::TiledOutputFile out(path.c_str(), header);
    out.setFrameBuffer(buffer);
    out.writeTiles(0, out.numXTiles() - 1, 0, out.numYTiles() - 1);
  } else {
    Imf::OutputFile out(path.c_str(), header);
    out.setFrameBuffer(buffer);
    out.writePixels(height);
  }
  return content(path);
}

TEST(Exr, EveryLayoutKeepsEverySample) {
  const ExrSettings kLayouts[] = {{}, {.compression = Imf::NO_COMPRESSION},
      {.compression = Imf::PIZ_COMPRESSION, .type = Imf::HALF}, {.type = Imf::HALF},
      {.is_tiled = true}};
  const std::vector<std::vector<const char*>> kChannels = {
      {"Y"}, {"R", "G", "B"}, {"R", "G", "B", "A"}, {"R", "G", "B", "normal.X"}};
  for (const ExrSettings& layout : kLayouts) {
    for (const std::vector<const char*>& names : kChannels) {
      const Image image = read_image(encode_exr(names, layout), "a.exr");
      const std::size_t channels = names.size() == 1 ? 1 : 3;
      ASSERT_EQ(image.channels, static_cast<int>(channels));
      EXPECT_EQ(image.width, kWidth);
      EXPECT_EQ(image.height, kHeight);
      EXPECT_EQ(image.format, "EXR");
      EXPECT_TRUE(image.has_floats());
      ASSERT_EQ(image.samples_float.size(), channels * kWidth * kHeight);
      for (std::size_t i = 0; i < image.samples_float.size(); ++i) {
        const int pixel = static_cast<int>(i / channels);
        ASSERT_EQ(image.samples_float[i], sample(i % channels, pixel % kWidth, pixel / kWidth))
            << i;
      }
    }
  }
}

TEST(Exr, ThePictureIsTheDisplayWindow) {
  const Imath::Box2i shown({0, 0}, {9, 6});
  const Image image =
      read_image(encode_exr({"Y"}, {.data = {{-3, 2}, {5, 12}}, .shown = shown}), "a.exr");
  ASSERT_EQ(image.samples_float.size(), 70u);
  for (int y = 0; y < 7; ++y) {
    for (int x = 0; x < 10; ++x) {
      EXPECT_EQ(image.samples_float[static_cast<std::size_t>(y * 10 + x)],
          x <= 5 && y >= 2 ? sample(0, x, y) : 0.0f);
    }
  }
}

TEST(Exr, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(refusal(encode_exr({"R", "G", "B", "A"}, {}, 0.5f), "a.exr"),
      "cannot read a.exr: it has transparent pixels; an EXR picture must be opaque");
  EXPECT_EQ(refusal(encode_exr({"R", "Z"}), "a.exr"),
      "cannot read a.exr: its channels are R, Z; only R, G and B, or Y alone, are supported");
  EXPECT_THAT(
      refusal(encode_exr({"Y", "RY", "BY"}), "a.exr"), HasSubstr("its channels are BY, RY, Y"));
  const Buffer whole = encode_exr({"R", "G", "B"});
  for (std::size_t size = 4; size < whole.size(); size += 97) {
    EXPECT_THAT(
        refusal(Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), "a.exr"),
        testing::StartsWith("cannot read a.exr: it is cut off or damaged ("))
        << size;
  }
}

}  // namespace
}  // namespace similis::media
