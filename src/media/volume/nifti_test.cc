// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <cmath>
#include <limits>
#include <utility>

#include "similis/execution.hpp"
#include "src/media/io/gzip.h"
#include "src/media/volume/nifti_header.h"
#include "src/media/volume/test_volumes.h"

namespace similis::media {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Affine kTurned = {{{{0, -2, 0, 5}, {3, 0, 0, 6}, {0, 0, 4, 7}}}};
const double kNan = std::numeric_limits<double>::quiet_NaN();

void expect_near(const Affine& a, const Affine& b, double tolerance = 1e-5) {
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(a.rows[i / 4][i % 4], b.rows[i / 4][i % 4], tolerance) << i;
  }
}

HandMadeNifti small(int version = 1, bool is_big_endian = false) {
  HandMadeNifti file(version, is_big_endian);
  return file.dimensions({3, 3, 2, 1}).type(4, 16).codes(0, 2).sform(kTurned);
}

class Nifti : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(Nifti, ReadsWhatAHandMadeHeaderSays) {
  const auto [version, is_big_endian] = GetParam();
  HandMadeNifti file = small(version, is_big_endian);
  file.units(2).extension().scaling(0.5, -1).samples<std::int16_t>({0, 1, -2, 3, 258, -32768});
  for (const bool is_compressed : {false, true}) {
    const Buffer bytes = is_compressed ? gzip(file.bytes()) : file.bytes();
    EXPECT_TRUE(is_nifti(Bytes(bytes).first(std::min(bytes.size(), kNiftiStartBytes))));
    const Volume volume = read_volume({bytes, "a.nii", kMaxVoxels});
    EXPECT_THAT(values_of(volume), ElementsAre(-1, -0.5, -2, 0.5, 128, -16385));
    EXPECT_EQ(volume.grid.size, (std::array<std::int64_t, 3>{3, 2, 1}));
    EXPECT_EQ(volume.grid.voxel_to_world, kTurned);
    EXPECT_EQ(volume.grid.world_code, 2);
    EXPECT_EQ(volume.grid.spacing(), (Point{3, 2, 4}));
    EXPECT_EQ(volume.type, SampleType::i16);
    EXPECT_TRUE(volume.is_scaled);
    EXPECT_EQ(volume.values.dtype, DType::f64);
    EXPECT_EQ(volume.values.shape, (Extents{1, 1, 1, 2, 3}));
  }
}
INSTANTIATE_TEST_SUITE_P(
    VersionsAndByteOrders, Nifti, testing::Combine(testing::Values(1, 2), testing::Bool()));

TEST(NiftiPlacement, TheQuaternionTurnsAndPixdimMirrors) {
  HandMadeNifti file = small();
  const double half = std::sqrt(0.5);
  file.codes(1, 0).quaternion({0, 0, half}, {5, 6, 7}).steps({-1, 3, 2, 4});
  file.samples<std::int16_t>({0, 0, 0, 0, 0, 0});
  Affine mirrored = kTurned;
  mirrored.rows[2][2] = -4;
  expect_near(file.read().grid.voxel_to_world, mirrored, 1e-5);
  file.steps({1, 3, 2, 4});
  expect_near(file.read().grid.voxel_to_world, kTurned, 1e-5);
  EXPECT_FALSE(file.read().forms_differ);
  // Both: the sform counts; that they differ is told.
  file.codes(1, 2);
  EXPECT_FALSE(file.read().forms_differ);
  file.quaternion({0, 0, half}, {5, 6, 7.1});
  EXPECT_TRUE(file.read().forms_differ);
  EXPECT_EQ(file.read().grid.voxel_to_world, kTurned);
}

// Half a turn exchanges y and z: the float nearest to √½ leaves 3e-8 for the square of a.
TEST(NiftiPlacement, RoundingDoesNotTurnAnImage) {
  HandMadeNifti file = small();
  const double half = static_cast<double>(std::sqrt(0.5f));
  file.codes(1, 0).quaternion({0, half, half}, {5, 6, 7}).steps({1, 3, 2, 4});
  file.samples<std::int16_t>({0, 0, 0, 0, 0, 0});
  expect_near(
      file.read().grid.voxel_to_world, {{{{-3, 0, 0, 5}, {0, 0, 4, 6}, {0, 2, 0, 7}}}}, 1e-6);
}

TEST(NiftiPlacement, WithoutAFormItIsAsItkTakesIt) {
  HandMadeNifti file = small();
  file.codes(0, 0).steps({1, 3, 2, 4}).samples<std::int16_t>({0, 0, 0, 0, 0, 0});
  EXPECT_EQ(
      file.read().grid.voxel_to_world, (Affine{{{{-3, 0, 0, 0}, {0, -2, 0, 0}, {0, 0, 4, 0}}}}));
  EXPECT_EQ(file.read().grid.world_code, 0);
}

TEST(NiftiPlacement, MetresAndMicrometresBecomeMillimetres) {
  HandMadeNifti file = small();
  file.samples<std::int16_t>({0, 0, 0, 0, 0, 0});
  EXPECT_EQ(file.units(1).read().grid.spacing(), (Point{3000, 2000, 4000}));
  expect_near({{file.units(3).read().grid.voxel_to_world.rows}},
      {{{{0, -0.002, 0, 0.005}, {0.003, 0, 0, 0.006}, {0, 0, 0.004, 0.007}}}}, 1e-9);
}

TEST(NiftiPlacement, WhatIsNoPlaceInSpaceIsRefused) {
  HandMadeNifti file = small();
  file.samples<std::int16_t>({0, 0, 0, 0, 0, 0});
  Affine flat = kTurned;
  flat.rows[2] = {0, 0, 0, 7};
  EXPECT_EQ(volume_refusal(file.sform(flat).bytes()),
      "cannot read a.nii: its sform does not place the voxels in space: its numbers are those "
      "of a plane, a line or a point");
  flat.rows[2][2] = kNan;
  EXPECT_THAT(volume_refusal(file.sform(flat).bytes()), HasSubstr("not all finite"));
}

// Rotations for each of the four ways to a quaternion, mirrored and not.
TEST(NiftiPlacement, WrittenFormsSayTheSame) {
  for (const Affine& turn : {Affine{}, Affine{{{{1, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, -1, 0}}}},
           Affine{{{{-1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, -1, 0}}}},
           Affine{{{{-1, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, 1, 0}}}},
           Affine{{{{0, 0, 1, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}}}}}) {
    for (const double handedness : {1.0, -1.0}) {
      const double c = std::cos(0.3), s = std::sin(0.3);
      const Affine tilt = {{{{c, -s, 0, 0}, {s, c, 0, 0}, {0, 0, 1, 0}}}};
      const Affine scale = {{{{2, 0, 0, -9}, {0, 0.5, 0, 8}, {0, 0, 3 * handedness, 1.5}}}};
      Volume volume = make_volume({4, 3, 2}, [](std::int64_t i) { return i; });
      volume.grid.voxel_to_world = tilt * turn * scale;
      Buffer bytes = encode_nifti(volume, "a test");
      expect_near(
          read_volume({bytes, "a", kMaxVoxels}).grid.voxel_to_world, volume.grid.voxel_to_world);
      EXPECT_FALSE(read_volume({bytes, "a", kMaxVoxels}).forms_differ);
      bytes[254] = 0;  // without the sform's code
      expect_near(read_volume({bytes, "a", kMaxVoxels}).grid.voxel_to_world,
          volume.grid.voxel_to_world, 1e-4);
    }
  }
}

TEST(NiftiPlacement, AShearHasNoQform) {
  Volume volume = make_volume({4, 3, 2}, [](std::int64_t i) { return i; });
  volume.grid.voxel_to_world.rows[0][1] = 0.1;
  const Buffer bytes = encode_nifti(volume, "a test");
  const NiftiHeader header = parse_nifti_header(Bytes(bytes).first(348), {bytes, "a"});
  EXPECT_EQ(header.qform_code, 0);
  EXPECT_EQ(header.sform_code, 1);
  EXPECT_EQ(header.description, "a test");
  EXPECT_EQ(header.units, 2);
}

// Every type holds its limits, or what f64 holds of them.
TEST(NiftiWriter, EveryTypeComesBack) {
  const auto expect_back = [](SampleType type, std::vector<double> values, DType dtype) {
    Volume volume = make_volume(
        {static_cast<std::int64_t>(values.size()), 1, 1},
        [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }, 1, 1, DType::f64);
    volume.type = type;
    const Buffer bytes = encode_nifti(volume, "");
    const Volume back = read_volume({bytes, "a", kMaxVoxels});
    EXPECT_EQ(values_of(back), values) << name(type);
    EXPECT_EQ(back.type, type);
    EXPECT_EQ(back.values.dtype, dtype) << name(type);
    EXPECT_FALSE(back.is_scaled);
  };
  expect_back(SampleType::u8, {0, 255}, DType::f32);
  expect_back(SampleType::i8, {-128, 127}, DType::f32);
  expect_back(SampleType::u16, {0, 65535}, DType::f32);
  expect_back(SampleType::i16, {-32768, 32767}, DType::f32);
  expect_back(SampleType::u32, {0, 4294967295}, DType::f64);
  expect_back(SampleType::i32, {-2147483648, 2147483647}, DType::f64);
  expect_back(SampleType::u64, {0, 9007199254740991}, DType::f64);
  expect_back(SampleType::i64, {-9007199254740991, 9007199254740991}, DType::f64);
  expect_back(SampleType::f32, {-1.5, 1073741824}, DType::f32);
  expect_back(SampleType::f64, {-0.1, 1e300}, DType::f64);
}

TEST(NiftiWriter, RefusesWhatTheTypeDoesNotHold) {
  for (const double value : {-1.0, 256.0, 0.5, kNan}) {
    Volume volume = make_volume({1, 1, 1}, [&](std::int64_t) { return value; });
    volume.type = SampleType::u8;
    EXPECT_THROW(encode_nifti(volume, ""), InvalidArgument) << value;
    EXPECT_FALSE(holds(SampleType::u8, value)) << value;
  }
  EXPECT_FALSE(holds(SampleType::i64, 9223372036854775808.0));
  EXPECT_TRUE(holds(SampleType::i64, -9223372036854775808.0));
}

TEST(NiftiWriter, FramesVectorsAndLongSides) {
  Volume volume = make_volume(
      {3, 2, 2}, [](std::int64_t i) { return i; }, 3, 4);
  volume.frame_seconds = 1.5;
  volume.intent = Intent::vector;
  const Buffer bytes = encode_nifti(volume, "");
  const Volume back = read_volume({bytes, "a", kMaxVoxels});
  EXPECT_EQ(back.values.shape, (Extents{3, 4, 2, 2, 3}));
  EXPECT_EQ(values_of(back), values_of(volume));
  EXPECT_EQ(back.frame_seconds, 1.5);
  EXPECT_EQ(back.intent, Intent::vector);
  for (const auto& [unit, seconds] : {std::pair(0, 1.5), {8, 1.5}, {16, 0.0015}, {32, 0.0}}) {
    Buffer other = bytes;
    other[123] = static_cast<std::uint8_t>(unit);  // xyzt_units
    EXPECT_DOUBLE_EQ(read_volume({other, "a", kMaxVoxels}).frame_seconds, seconds) << unit;
  }
  const Volume line = make_volume({40000, 1, 1}, [](std::int64_t i) { return i; });
  const Buffer long_bytes = encode_nifti(line, "");
  EXPECT_EQ(long_bytes[0] + 256 * long_bytes[1], 540) << "NIfTI-2";
  EXPECT_EQ(values_of(read_volume({long_bytes, "a", kMaxVoxels})), values_of(line));
}

TEST(NiftiWriter, WritesByName) {
  const TestFolder folder;
  const Volume volume = make_volume({3, 2, 2}, [](std::int64_t i) { return i; });
  for (const char* name : {"a.nii", "a.nii.gz"}) {
    write_volume(folder.file(name), volume, "");
    EXPECT_EQ(values_of(read_volume(folder.file(name))), values_of(volume));
  }
  EXPECT_FALSE(is_gzip(content(folder.file("a.nii"))));
  EXPECT_TRUE(is_gzip(content(folder.file("a.nii.gz"))));
  EXPECT_THROW(write_volume(folder.file("a.png"), volume, ""), InvalidArgument);
}

TEST(NiftiReader, ReadsThePairOfHeaderAndImage) {
  const TestFolder folder;
  HandMadeNifti file = small();
  file.samples<std::int16_t>({1, 2, 3, 4, 5, 6});
  Buffer header(file.bytes().begin(), file.bytes().begin() + 348);
  header[345] = 'i';  // "ni1"
  for (std::size_t i = 108; i < 112; ++i) header[i] = 0;
  const Buffer image(file.bytes().begin() + 352, file.bytes().end());
  write_content(folder.file("a.hdr"), header);
  write_content(folder.file("a.img"), image);
  EXPECT_THAT(values_of(read_volume(folder.file("a.hdr"))), ElementsAre(1, 2, 3, 4, 5, 6));
  write_content(folder.file("b.hdr.gz"), gzip(header));
  write_content(folder.file("b.img.gz"), gzip(image));
  EXPECT_THAT(values_of(read_volume(folder.file("b.hdr.gz"))), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(volume_refusal(header),
      "cannot read a.nii: its samples are in a separate .img file; give the path of the .hdr "
      "file");
}

TEST(NiftiReader, EveryCutIsRefused) {
  HandMadeNifti file = small();
  file.extension().samples<std::int16_t>({1, 2, 3, 4, 5, 6});
  for (const bool is_compressed : {false, true}) {
    const Buffer whole = is_compressed ? gzip(file.bytes()) : file.bytes();
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::string words = volume_refusal({whole.begin(), whole.begin() + length});
      ASSERT_THAT(words, StartsWith("cannot read a.nii: ")) << length;
    }
    EXPECT_EQ(volume_refusal(whole), "");
  }
}

TEST(NiftiReader, DamageInTheCompressedDataIsFound) {
  HandMadeNifti file = small();
  file.samples<std::int16_t>({1, 2, 3, 4, 5, 6});
  Buffer bytes = gzip(file.bytes());
  bytes[bytes.size() - 6] ^= 1;  // of the checksum
  EXPECT_THAT(volume_refusal(bytes), StartsWith("cannot read a.nii: it is cut off or damaged ("));
}

TEST(NiftiReader, SaysWhatItDoesNotTake) {
  const auto refusal_of = [](HandMadeNifti file) { return volume_refusal(file.bytes()); };
  const std::string start = "cannot read a.nii: ";
  const std::string takes = "; its samples must be integers of up to 64 bits, float32 or float64";
  EXPECT_EQ(refusal_of(small().type(32, 64)),
      start + "complex numbers (complex64) are not supported" + takes);
  EXPECT_EQ(refusal_of(small().type(128, 24)), start + "colours (RGB24) are not supported" + takes);
  EXPECT_EQ(
      refusal_of(small().type(7, 16)), start + "its datatype is 7, which NIfTI does not define");
  EXPECT_EQ(
      refusal_of(small().dimensions({9})), start + "its header is damaged: it has 9 dimensions");
  EXPECT_EQ(refusal_of(small().dimensions({3, 3, -2, 1})),
      start + "its header is damaged: dimension 2 is -2");
  EXPECT_EQ(refusal_of(small().dimensions({6, 1, 1, 1, 1, 1, 2})),
      start + "it has 6 dimensions; it must have at most 5: x, y, z, time, vector");
  EXPECT_EQ(refusal_of(small().put<float>(108, 352.5f)),
      start + "its header is damaged: the samples begin at byte 352.5");
  EXPECT_EQ(refusal_of(small().scaling(2, kNan)),
      start + "its scl_slope is 2 but its scl_inter is not a finite number");
  EXPECT_EQ(refusal_of(small().put<std::uint8_t>(344, 0)),
      start + "ANALYZE does not say where its voxels are; convert the volume to NIfTI first");
  EXPECT_EQ(volume_refusal(Buffer(500)), start + "it is not a NIfTI, MetaImage or NRRD file");
  HandMadeNifti large = small();
  large.type(1024, 64).dimensions({3, 1, 1, 1}).samples<std::int64_t>({std::int64_t{1} << 53});
  EXPECT_EQ(refusal_of(large),
      start + "it has an integer of magnitude 2^53 or more, which float64 cannot represent");
}

// No memory is claimed for samples that a header promises and the file does not have.
TEST(NiftiReader, AHugeHeaderIsRefusedForWhatTheFileHolds) {
  EXPECT_EQ(volume_refusal(small().dimensions({3, 30000, 30000, 70}).bytes()),
      "cannot read a.nii: it is cut off: its header promises 126000000000 bytes of samples but it "
      "has 0");
  EXPECT_THAT(volume_refusal(gzip(small().dimensions({3, 30000, 30000, 70}).bytes())),
      HasSubstr("it is cut off: its header promises 126000000000 bytes"));
  EXPECT_EQ(volume_refusal(small().dimensions({3, 30000, 30000, 30000}).bytes()),
      "cannot read a.nii: it has more samples than the limit of 68719476736");
}

TEST(NiftiReader, WithoutASlopeSamplesAreValues) {
  for (const double slope : {0.0, kNan, 1.0}) {
    HandMadeNifti file = small();
    file.scaling(slope, slope == 1 ? 0 : 7).samples<std::int16_t>({1, 2, 3, 4, 5, 6});
    EXPECT_THAT(values_of(file.read()), ElementsAre(1, 2, 3, 4, 5, 6)) << slope;
    EXPECT_FALSE(file.read().is_scaled);
  }
}

// Content of a compressed file by zlib's own reader of one member, and what is left behind it.
std::pair<Buffer, std::size_t> one_member(const Buffer& compressed, std::size_t size) {
  Buffer content(size + 1);
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = const_cast<Bytef*>(compressed.data());
  stream.avail_in = static_cast<uInt>(compressed.size());
  stream.next_out = content.data();
  stream.avail_out = static_cast<uInt>(content.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  content.resize(content.size() - stream.avail_out);
  inflateEnd(&stream);
  return {content, stream.avail_in};
}

TEST(Gzip, GivesOneMemberWithTheSameBytesForAnyNumberOfThreads) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  for (const std::size_t size :
      {std::size_t{0}, std::size_t{1}, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock + 12345}) {
    Buffer bytes(size);
    std::uint32_t state = 7;
    for (std::size_t i = 0; i < size; ++i) {
      state = state * 1664525 + 1013904223;
      bytes[i] = static_cast<std::uint8_t>(i % 5 == 0 ? state >> 24 : i / 1000);
    }
    ThreadPool one(1), three(3);
    const Buffer compressed = gzip(bytes, {.runner = one.runner()});
    EXPECT_EQ(gzip(bytes, {.runner = three.runner()}), compressed) << size;
    EXPECT_EQ(one_member(compressed, size), std::pair(bytes, std::size_t{0})) << size;
  }
}

TEST(Gzip, SeveralMembersAreOneFile) {
  HandMadeNifti file = small();
  file.samples<std::int16_t>({1, 2, 3, 4, 5, 6});
  const Bytes bytes = file.bytes();
  Buffer members = gzip(bytes.first(100));
  const Buffer second = gzip(bytes.subspan(100));
  members.insert(members.end(), second.begin(), second.end());
  EXPECT_THAT(values_of(read_volume({members, "a", kMaxVoxels})), ElementsAre(1, 2, 3, 4, 5, 6));
}

}  // namespace
}  // namespace similis::media
