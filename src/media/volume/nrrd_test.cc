// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/gzip.h"
#include "src/media/volume/test_volumes.h"
#include "src/media/volume/text_volume.h"

namespace similis::media {
namespace {

using testing::ElementsAre;

const std::string kStart = "NRRD0004\n# a comment\ntype: unsigned char\n";
const std::string kRaw = "encoding: raw\nkey:=value: x\n\n";

Volume read(const std::string& text) {
  return read_volume(File{
      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, "a.nrrd", kMaxVoxels});
}

TEST(Nrrd, ReadsWhatTheHeaderSays) {
  const Volume volume = read(
      "NRRD0004\ntype: short\ndimension: 3\nspace: left-posterior-superior\nsizes: 3 2 1\n"
      "space directions: (0,2,0) (-3, 0, 0) (0,0,4)\nkinds: domain domain domain\nendian: big\n"
      "encoding: raw\nspace origin: (5,6,7)\n\n" +
      std::string("\0\0\0\1\xff\xfe\0\3\1\2\x80\0", 12));
  EXPECT_THAT(values_of(volume), ElementsAre(0, 1, -2, 3, 258, -32768));
  EXPECT_EQ(volume.grid.size, (std::array<std::int64_t, 3>{3, 2, 1}));
  EXPECT_EQ(volume.type, SampleType::i16);
  EXPECT_EQ(volume.grid.world_code, 1);
  EXPECT_EQ(volume.grid.voxel_to_world, (Affine{{{{0, 3, 0, -5}, {-2, 0, 0, -6}, {0, 0, 4, 7}}}}));
}

TEST(Nrrd, WorldsDifferInTheirAxes) {
  const std::string rest =
      "dimension: 3\nsizes: 2 1 1\nspace directions: (1,0,0) (0,2,0) (0,0,3)\n"
      "space origin: (4,5,6)\n" +
      kRaw + "ab";
  const auto world = [&](const std::string& space) {
    return read(kStart + space + rest).grid.voxel_to_world;
  };
  EXPECT_EQ(world("space: RAS\n"), (Affine{{{{1, 0, 0, 4}, {0, 2, 0, 5}, {0, 0, 3, 6}}}}));
  EXPECT_EQ(world("space: left-anterior-superior\n"),
      (Affine{{{{-1, 0, 0, -4}, {0, 2, 0, 5}, {0, 0, 3, 6}}}}));
  EXPECT_EQ(world("space: LPS\n"), (Affine{{{{-1, 0, 0, -4}, {0, -2, 0, -5}, {0, 0, 3, 6}}}}));
  const Volume plain =
      read(kStart + "dimension: 3\nsizes: 2 1 1\nspacings: 0.5 2 nan\n" + kRaw + "ab");
  EXPECT_EQ(plain.grid.world_code, 0);
  EXPECT_EQ(plain.grid.voxel_to_world, (Affine{{{{-0.5, 0, 0, 0}, {0, -2, 0, 0}, {0, 0, 1, 0}}}}));
}

TEST(Nrrd, AxesOutsideSpaceAreComponentsOrFrames) {
  const Volume vectors = read(kStart + "dimension: 3\nsizes: 3 2 1\nspace dimension: 2\n" +
                              "space directions: none (1,0) (0,1)\n" + kRaw + "\1\2\3\4\5\6");
  EXPECT_EQ(vectors.components, 3);
  EXPECT_TRUE(vectors.grid.is_flat);
  EXPECT_THAT(values_of(vectors), ElementsAre(1, 4, 2, 5, 3, 6));
  const Volume series = read(
      kStart + "dimension: 4\nsizes: 2 1 1 2\nkinds: space space space time\n" + kRaw + "\1\2\3\4");
  EXPECT_EQ(series.frames, 2);
  EXPECT_THAT(values_of(series), ElementsAre(1, 2, 3, 4));
}

TEST(Nrrd, MayBeCompressed) {
  const std::string header = kStart + "dimension: 2\nsizes: 2 2\nencoding: gzip\n\n";
  const Buffer packed = gzip(Buffer{9, 8, 7, 6});
  EXPECT_THAT(
      values_of(read(header + std::string(packed.begin(), packed.end()))), ElementsAre(9, 8, 7, 6));
}

TEST(Nrrd, MayHaveItsSamplesBesideIt) {
  const TestFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_content(folder.file(name), Buffer(text.begin(), text.end()));
  };
  write("a.raw", "--\7\10");
  write("a.nhdr",
      kStart + "dimension: 2\nsizes: 2 1\nencoding: raw\nbyte skip: -1\ndata file: a.raw");
  EXPECT_THAT(values_of(read_volume(folder.file("a.nhdr"))), ElementsAre(7, 8));
}

TEST(Nrrd, OfAnotherKindIsRefused) {
  const auto expect = [](const std::string& text, const std::string& words) {
    try {
      read(text);
      ADD_FAILURE() << "taken: " << text;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.what(), "cannot read a.nrrd: " + words);
    }
  };
  const std::string sizes = "dimension: 3\nsizes: 2 1 1\n";
  expect("NRRD0004\ntype: block\n" + sizes + kRaw,
      "its type is \"block\"; it must be an integer of up to 64 bits, float or double");
  expect(
      kStart + sizes + "encoding: bzip2\n\n", "its encoding is \"bzip2\"; it must be raw or gzip");
  expect(kStart + sizes + "space: scanner-xyz\n" + kRaw,
      "its space is \"scanner-xyz\"; it must be right-anterior-superior, left-anterior-superior "
      "or left-posterior-superior");
  expect(kStart + sizes + "space directions: (1,0,0) (0,1,0)\n" + kRaw,
      "its header is damaged: it has 2 space directions and 3 axes");
  expect(kStart + sizes + "space directions: (1,0) (0,1) (1,1)\n" + kRaw,
      "its header is damaged: a space direction has 2 numbers, and 3 axes lie in space");
  expect(kStart + sizes + "space directions: (1,0,0) (0,1,0) (1,1,0)\n" + kRaw,
      "its directions and spacings do not place the voxels in space");
  expect(kStart + "dimension: 4\nsizes: 2 1 1 2\n" + kRaw,
      "it has 4 axes of space; it must have 2 or 3");
  expect(kStart + sizes + "line skip: 2\n" + kRaw, "its line skip is 2; it must be 0");
  expect(
      kStart + "nonsense\n" + sizes + kRaw, "its header is damaged: it has the line \"nonsense\"");
  expect(kStart + sizes + kRaw + "a",
      "it is cut off: its header promises 2 bytes of samples but it has 1");
}

}  // namespace
}  // namespace similis::media
