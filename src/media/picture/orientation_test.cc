// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/orientation.h"

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

// Each orientation as the EXIF standard words it, by where row 0 and column 0 of the stored picture
// are seen. Stored: a b c / d e f.
TEST(Orientation, EachOfTheEightIsTurnedUpright) {
  const struct {
    int orientation;
    std::int64_t width;
    std::string pixels;
  } kCases[] = {
      {1, 3, "abcdef"},  // row 0 at the top, column 0 at the left
      {2, 3, "cbafed"},  // top, right
      {3, 3, "fedcba"},  // bottom, right
      {4, 3, "defabc"},  // bottom, left
      {5, 2, "adbecf"},  // left, top
      {6, 2, "daebfc"},  // right, top
      {7, 2, "fcebda"},  // right, bottom
      {8, 2, "cfbead"},  // left, bottom
  };
  for (const auto& expected : kCases) {
    Image image{.width = 3, .height = 2, .channels = 1, .samples8 = {'a', 'b', 'c', 'd', 'e', 'f'}};
    apply_orientation(image, expected.orientation);
    EXPECT_EQ(image.width, expected.width) << expected.orientation;
    EXPECT_EQ(image.height, 6 / expected.width) << expected.orientation;
    EXPECT_EQ(std::string(image.samples8.begin(), image.samples8.end()), expected.pixels)
        << expected.orientation;
  }
}

TEST(Orientation, PixelsOfSeveralSamplesStayWhole) {
  Image image{.width = 2,
      .height = 1,
      .channels = 3,
      .bit_depth = 16,
      .samples16 = {1, 2, 3, 1000, 2000, 3000}};
  apply_orientation(image, 2);
  EXPECT_EQ(image.samples16, (std::vector<std::uint16_t>{1000, 2000, 3000, 1, 2, 3}));
}

TEST(Orientation, IsReadInBothByteOrdersWithAndWithoutPrefix) {
  const Buffer big = exif_block(6);
  const Buffer little = {
      'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0};
  Buffer prefixed = {'E', 'x', 'i', 'f', 0, 0};
  prefixed.insert(prefixed.end(), big.begin(), big.end());
  EXPECT_EQ(exif_orientation(big), 6);
  EXPECT_EQ(exif_orientation(little), 6);
  EXPECT_EQ(exif_orientation(prefixed), 6);
}

TEST(Orientation, DamagedBlocksMeanUpright) {
  const Buffer whole = exif_block(6);
  for (std::size_t length = 0; length < 20; ++length) {
    EXPECT_EQ(exif_orientation(Bytes(whole).first(length)), 1) << length;
  }
  EXPECT_EQ(exif_orientation(exif_block(0)), 1);
  EXPECT_EQ(exif_orientation(exif_block(9)), 1);
  Buffer far = whole;
  far[4] = 0xFF;  // the directory's offset
  EXPECT_EQ(exif_orientation(far), 1);
  EXPECT_EQ(exif_orientation(Buffer{'M', 'M', 0, 42, 0xFF, 0xFF, 0xFF, 0xFF}), 1);
}

}  // namespace
}  // namespace similis::media
