// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <cstring>

#include "src/media/volume/test_volumes.h"
#include "src/media/volume/text_volume.h"

namespace similis::media {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kStart = "ObjectType = Image\nNDims = 3\n";
const std::string kPlaced =
    "TransformMatrix = 0 1 0 -1 0 0 0 0 1\nOffset = 5 6 7\nElementSpacing = 2 3 4\n";

template <class T> std::string bytes_of_samples(std::initializer_list<T> samples) {
  std::string text(samples.size() * sizeof(T), '\0');
  std::memcpy(text.data(), std::data(samples), text.size());
  return text;
}

Volume read(const std::string& text) {
  return read_volume(
      File{{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, "a.mha", kMaxVoxels});
}

std::string refusal_of(const std::string& text) {
  try {
    read(text);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "taken";
}

TEST(MetaImage, ReadsWhatTheHeaderSays) {
  const Volume volume = read(kStart + kPlaced + "DimSize = 3 2 1\nElementType = MET_SHORT\n" +
                             "ElementDataFile = LOCAL\n" +
                             bytes_of_samples<std::int16_t>({0, 1, -2, 3, 258, -32768}));
  EXPECT_THAT(values_of(volume), ElementsAre(0, 1, -2, 3, 258, -32768));
  EXPECT_EQ(volume.grid.size, (std::array<std::int64_t, 3>{3, 2, 1}));
  EXPECT_EQ(volume.type, SampleType::i16);
  EXPECT_EQ(volume.values.dtype, DType::f32);
  EXPECT_FALSE(volume.grid.is_flat);
  // x goes towards posterior in steps of 2, y towards right in steps of 3.
  EXPECT_EQ(volume.grid.voxel_to_world, (Affine{{{{0, 3, 0, -5}, {-2, 0, 0, -6}, {0, 0, 4, 7}}}}));
}

TEST(MetaImage, OfOtherByteOrdersTypesAndAxesIsRead) {
  EXPECT_THAT(values_of(read("NDims = 2\nDimSize = 2 1\nBinaryDataByteOrderMSB = True\n"
                             "ElementType = MET_USHORT\nElementDataFile = LOCAL\n" +
                             std::string("\x01\x02\xff\x00", 4))),
      ElementsAre(0x102, 0xff00));
  const Volume flat = read(
      "NDims = 2\nDimSize = 2 1\nElementSpacing = 0.5 0.25\n"
      "ElementType = MET_DOUBLE\nElementDataFile = LOCAL\n" +
      bytes_of_samples<double>({0.1, -3}));
  EXPECT_TRUE(flat.grid.is_flat);
  EXPECT_EQ(flat.values.dtype, DType::f64);
  EXPECT_EQ(flat.grid.spacing(), (Point{0.5, 0.25, 1}));
  const Volume vectors =
      read(kStart + "DimSize = 2 1 1\nElementNumberOfChannels = 3\n" +
           "ElementType = MET_UCHAR\nElementDataFile = LOCAL\n" + std::string("\1\2\3\4\5\6"));
  EXPECT_EQ(vectors.components, 3);
  EXPECT_THAT(values_of(vectors), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(MetaImage, MayBeCompressed) {
  const std::string samples = bytes_of_samples<float>({1.5f, -2, 3, 4});
  std::vector<std::uint8_t> packed(compressBound(samples.size()));
  uLongf size = packed.size();
  compress(packed.data(), &size, reinterpret_cast<const Bytef*>(samples.data()), samples.size());
  const std::string body(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
  const std::string header = kStart + "DimSize = 2 2 1\nCompressedData = True\n" +
                             "ElementType = MET_FLOAT\nElementDataFile = LOCAL\n";
  EXPECT_THAT(values_of(read(header + body)), ElementsAre(1.5, -2, 3, 4));
  EXPECT_THAT(refusal_of(header + body.substr(0, 4)), HasSubstr("it is cut off"));
  std::string damaged = body;
  damaged[0] = 'x';
  damaged[1] = 'x';
  EXPECT_EQ(refusal_of(header + damaged), "cannot read a.mha: its compressed samples are damaged");
}

TEST(MetaImage, MayHaveItsSamplesBesideIt) {
  const TestFolder folder;
  const std::string header = kStart + "DimSize = 2 1 1\nElementType = MET_UCHAR\n";
  const std::string path = folder.file("a.mhd");
  const auto write = [&](const std::string& name, const std::string& text) {
    write_content(folder.file(name), Buffer(text.begin(), text.end()));
  };
  write("a.raw", "--\7\10");
  write("a.mhd", header + "HeaderSize = -1\nElementDataFile = a.raw\n");
  EXPECT_THAT(values_of(read_volume(path)), ElementsAre(7, 8));
  write("a.mhd", header + "HeaderSize = 1\nElementDataFile = a.raw\n");
  EXPECT_THAT(values_of(read_volume(path)), ElementsAre('-', 7));
  EXPECT_EQ(refusal_of(header + "ElementDataFile = a.raw\n"),
      "cannot read a.mha: its samples are in a.raw; give the path of the header's file");
  write("a.mhd", header + "ElementDataFile = ../a.raw\n");
  EXPECT_THROW(read_volume(path), InvalidArgument);
  write("a.mhd", header + "ElementDataFile = none.raw\n");
  EXPECT_THROW(read_volume(path), InvalidArgument);
}

TEST(MetaImage, OfAnotherKindIsRefused) {
  const std::string sizes = "DimSize = 2 1 1\n", type = "ElementType = MET_UCHAR\n",
                    end = "ElementDataFile = LOCAL\n";
  const auto expect = [&](const std::string& text, const std::string& words) {
    EXPECT_EQ(refusal_of(text), "cannot read a.mha: " + words);
  };
  expect(kStart + sizes + type, "its header is damaged: it has no ElementDataFile");
  expect("ObjectType = Mesh\nNDims = 3\n" + sizes + type + end,
      "its ObjectType is \"Mesh\"; it must be Image");
  expect(kStart + "DimSize = 2 1\n" + type + end,
      "its header is damaged: NDims is \"3\" but DimSize has 2 numbers");
  expect(kStart + "DimSize = 2 x 1\n" + type + end, "its header is damaged: DimSize is \"2 x 1\"");
  expect(kStart + "DimSize = 2 0.5 1\n" + type + end,
      "its header is damaged: it has 0.5 voxels along an axis");
  expect(
      kStart + "DimSize = 2 1 1 4\n" + type + end, "it has 4 axes of space; it must have 2 or 3");
  expect(kStart + "DimSize = 60000000000 60000000000 60000000000\n" + type + end,
      "it has more samples than the limit of 68719476736");
  expect(kStart + sizes + "ElementType = MET_STRING\n" + end,
      "its ElementType is \"MET_STRING\"; it must be MET_UCHAR, MET_SHORT, MET_FLOAT or the like");
  expect(kStart + sizes + "BinaryData = False\n" + type + end,
      "its samples are text; write it with BinaryData = True");
  expect(kStart + sizes + "ElementSpacing = 1 0 1\n" + type + end + "ab",
      "its directions and spacings do not place the voxels in space");
  expect(kStart + sizes + type + end + "a",
      "it is cut off: its header promises 2 bytes of samples but it has 1");
  expect(kStart + sizes + type + "ElementDataFile = LIST\n",
      "its samples are in several files; write it as one .mha file");
}

}  // namespace
}  // namespace similis::media
