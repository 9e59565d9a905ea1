// SPDX-License-Identifier: Apache-2.0
// The program end to end on volumes.
#include <cmath>
#include <cstring>

#include "similis/similis.hpp"
#include "src/cli/test_program.h"
#include "src/media/picture/decode.h"
#include "src/media/volume/test_volumes.h"

namespace similis::cli {
namespace {

using media::Volume;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::array<std::int64_t, 3> kSize = {18, 15, 13};

double smooth(std::int64_t i) {
  const auto x = static_cast<double>(i % 18), y = static_cast<double>(i / 18 % 15);
  const auto z = static_cast<double>(i / 270 % 13);
  return 100 + 80 * std::sin(x / 3) * std::cos(y / 4) + 5 * z;
}

class VolumeProgram : public ProgramTest {
 protected:
  VolumeProgram() {
    put("a.nii.gz", fixed_);
    put("b.nii", moved_);
  }
  void put(const std::string& name, const Volume& volume) {
    media::write_volume(folder_.file(name), volume, "test");
  }
  Volume fixed_ = media::make_volume(kSize, smooth);
  Volume moved_ =
      media::make_volume(kSize, [](std::int64_t i) { return smooth(i) + (i % 3 ? 1 : 4); });
};

TEST_F(VolumeProgram, ScoresThemAsTheLibraryDoes) {
  const Json document = json({"a.nii.gz", "b.nii", "-m", "ssim", "-m", "mse", "-m", "mae", "-m",
      "psnr", "-m", "ssim=window_size=3,5,7"});
  const Extents shape = {1, 1, kSize[2], kSize[1], kSize[0]};
  const TensorView x(fixed_.values.data(), shape, DType::f32);
  const TensorView y(moved_.values.data(), shape, DType::f32);
  const std::vector<double> values = media::values_of(fixed_);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = *high - *low;
  const Json& frame = document["frames"][0];
  EXPECT_NEAR(frame["ssim"].get<double>(), item(ssim(x, y, {.data_range = range})), 1e-7);
  EXPECT_NEAR(frame["ssim=window_size=3,5,7"].get<double>(),
      item(ssim(x, y, {.data_range = range, .window_size = {3, 5, 7}})), 1e-7);
  EXPECT_NEAR(frame["mse"].get<double>(), 6, 1e-5);  // of 1, 1 and 16
  EXPECT_NEAR(frame["mae"].get<double>(), 2, 1e-5);
  EXPECT_NEAR(frame["psnr"].get<double>(), 10 * std::log10(range * range / 6), 1e-6);
  EXPECT_EQ(document["settings"]["voxels"], Json({18, 15, 13}));
  EXPECT_DOUBLE_EQ(document["settings"]["metrics"]["psnr"]["data_range"], range);
  EXPECT_EQ(
      document["settings"]["metrics"]["ssim=window_size=3,5,7"]["window_size"], Json({3, 5, 7}));
}

TEST_F(VolumeProgram, TheRangeOfBinsMayBeGiven) {
  const Extents shape = {1, 1, kSize[2], kSize[1], kSize[0]};
  const TensorView x(fixed_.values.data(), shape, DType::f32);
  const TensorView y(moved_.values.data(), shape, DType::f32);
  const Json document = json({"a.nii.gz", "b.nii", "-m", "mi=range=-2,30.5"});
  EXPECT_NEAR(document["frames"][0]["mi"].get<double>(),
      item(mutual_information(x, y, {.range = ValueRange::fixed, .low = -2, .high = 30.5})), 1e-6);
  EXPECT_EQ(document["settings"]["metrics"]["mi"]["range"], Json({-2, 30.5}));
  for (const char* range : {"3", "3,3", "1,2,3", "2,x"}) {
    expect_error({"compare", "a.nii.gz", "b.nii", "-m", fmt::format("mi=range={}", range)}, 2,
        fmt::format("-m mi=range={}: range is \"{}\"; it must be per_image, common, "
                    "unit_or_common, or two numbers: "
                    "LOW,HIGH",
            range, range));
  }
}

TEST_F(VolumeProgram, AReferenceMayHaveNoRange) {
  put("flat.nii", media::make_volume(kSize, [](std::int64_t) { return 3; }));
  expect_error({"compare", "flat.nii", "b.nii", "-m", "psnr"}, 1,
      "b.nii: the reference's values span 0; give data_range");
  put("infinite.nii",
      media::make_volume(kSize, [](std::int64_t i) { return i == 5 ? HUGE_VAL : 3; }));
  expect_error({"compare", "infinite.nii", "b.nii", "-m", "mse"}, 1,
      "infinite.nii has 1 value that is not finite, the first at x 5, y 0, z 0");
  EXPECT_EQ(compare({"flat.nii", "b.nii", "-m", "psnr=data_range=100"}).status, 0);
  const Outcome outcome = compare({"flat.nii", "b.nii"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
      testing::EndsWith(
          "similis: none of the default metrics can score b.nii; choose metrics with -m\n"));
}

TEST_F(VolumeProgram, OneMayComeOnStandardInputCompressedOrNot) {
  for (const char* name : {"a.nii.gz", "b.nii"}) {
    const Outcome outcome =
        compare({"-", name, "-m", "mae", "--format", "csv"}, media::content(folder_.file(name)));
    EXPECT_EQ(outcome.out, "frame,mae\n0,0\n") << outcome.err;
  }
}

TEST_F(VolumeProgram, AMapsValuesLieOnTheReferencesGrid) {
  const Json document = json({"a.nii.gz", "b.nii", "-m", "ssim=padding=same", "--map",
      "ssim=" + folder_.file("map.nii.gz"), "--map", "ssim=" + folder_.file("map.npy")});
  const media::Volume map = media::read_volume(folder_.file("map.nii.gz"));
  const media::Volume reference = media::read_volume(folder_.file("a.nii.gz"));
  EXPECT_EQ(map.grid.size, reference.grid.size);
  EXPECT_LT(media::grid_distance(map.grid, reference.grid), 1e-4);
  ASSERT_EQ(map.values.dtype, DType::f32);
  double sum = 0;
  const std::int64_t count = map.values.shape.count();
  for (std::int64_t i = 0; i < count; ++i) sum += map.values.elements<float>()[i];
  EXPECT_NEAR(sum / static_cast<double>(count), document["frames"][0]["ssim"].get<double>(), 1e-6);
  const media::Buffer npy = media::content(folder_.file("map.npy"));
  EXPECT_EQ(npy.size() % 64, static_cast<std::size_t>(count) * sizeof(float) % 64);
  EXPECT_EQ(std::memcmp(npy.data() + npy.size() - static_cast<std::size_t>(count) * sizeof(float),
                map.values.data(), static_cast<std::size_t>(count) * sizeof(float)),
      0);
  const Outcome outcome = compare({"a.nii.gz", "b.nii", "-m", "ssim", "--map", "ssim=map.pfm"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "similis: b.nii: map.pfm: the map has slices; write .nii.gz or .npy\n");
}

TEST_F(VolumeProgram, ASeriesIsScoredFrameByFrame) {
  put("c.nii", media::make_volume(
                   kSize, [](std::int64_t i) { return i % 7; }, 1, 3));
  put("d.nii",
      media::make_volume(
          kSize, [](std::int64_t i) { return i % 7 + i / (18 * 15 * 13); }, 1, 4, DType::f64));
  const Outcome outcome = compare({"c.nii", "d.nii", "-m", "mae", "--format", "csv"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "similis: note: d.nii: has 4 frames but c.nii has 3; scored 3 frames\n");
  // The value of frame f lies (f·3510) % 7 = 3f % 7 further in the cycle; both have the same cycle.
  EXPECT_EQ(outcome.out, "frame,mae\n0,0\n1,1\n2,2\n");
  EXPECT_EQ(compare({"c.nii", "d.nii", "-m", "mae", "--format", "csv", "--frames", "1:2"}).out,
      "frame,mae\n1,1\n");
}

TEST_F(VolumeProgram, OneSliceIsAPicture) {
  put("c.nii", media::make_volume({18, 15, 1}, smooth));
  const Json document = json({"c.nii", "c.nii", "-m", "ssim=padding=same", "-m", "mse"});
  EXPECT_EQ(document["frames"][0]["ssim"], 1);
}

TEST_F(VolumeProgram, GridsThatDifferAreRefusedInAWordThatHelps) {
  const std::string hint =
      "; to bring both onto one grid, run `similis warp c.nii --reference a.nii.gz -o OUT.nii.gz`";
  put("c.nii", media::make_volume({18, 15, 12}, smooth));
  expect_error({"compare", "a.nii.gz", "c.nii"}, 1,
      "a.nii.gz has 18×15×13 voxels but c.nii has 18×15×12" + hint);
  Volume shifted = moved_;
  shifted.grid.voxel_to_world.rows[1][3] = 0.02;
  put("c.nii", shifted);
  expect_error({"compare", "a.nii.gz", "c.nii"}, 1,
      "the voxels of c.nii lie up to 0.02 voxels away from those of a.nii.gz" + hint);
  shifted.grid.voxel_to_world.rows[1][3] = 0.005;
  put("c.nii", shifted);
  EXPECT_EQ(compare({"a.nii.gz", "c.nii"}).status, 0);
  put("c.nii", media::make_volume(kSize, smooth, 3));
  expect_error({"compare", "a.nii.gz", "c.nii"}, 1,
      "a.nii.gz has 1 component per voxel but c.nii has 3; components must match");
}

TEST_F(VolumeProgram, SaysWhatItCannotDo) {
  write("p.png", reference_picture());
  expect_error({"compare", "a.nii.gz", "p.png"}, 1,
      "a.nii.gz is a volume but p.png is a picture; compare two pictures, two videos or two "
      "volumes");
  expect_error({"compare", "a.nii.gz", "b.nii", "-m", "integer-ssim"}, 1,
      "b.nii: integer-ssim takes the luma of video; pictures and volumes have none");
  expect_error({"compare", "a.nii.gz", "b.nii", "-m", "ssimulacra2"}, 1,
      "b.nii: ssimulacra2: volumes have no colours; compare pictures or video");
  EXPECT_EQ(compare({"a.nii.gz", "b.nii", "--map", "ssimulacra2=map.png"}).status, 1);
  media::Buffer cut = media::content(folder_.file("a.nii.gz"));
  cut.resize(cut.size() / 2);
  write_bytes("cut.nii.gz", cut);
  expect_error({"compare", "a.nii.gz", "cut.nii.gz"}, 1,
      "cannot read cut.nii.gz: it is cut off: its gzip data end in the middle");
  write_text("damaged.nii", "nothing of NIfTI");
  expect_error({"compare", "a.nii.gz", "damaged.nii"}, 1,
      "cannot read damaged.nii: it is not a NIfTI, MetaImage or NRRD file");
  expect_error({"compare", "a.nii.gz", "b.nii", "-m", "ssim=window_size=3,5"}, 1,
      "b.nii: ssim: window_size has 2 numbers; it takes one, or one for each of the 3 axes");
}

TEST_F(VolumeProgram, AMapIsThreeSlices) {
  EXPECT_EQ(compare({"a.nii.gz", "b.nii", "--map", "ssim=map.png"}).status, 0);
  const media::Image image = media::read_image(folder_.file("map.png"));
  EXPECT_GE(image.width, 600);
  EXPECT_GT(image.height, 15);
}

TEST_F(VolumeProgram, AMapHasTheShapeOfTheVolumeInMillimetres) {
  const auto height_of = [&](double z_mm) {
    Volume fixed = fixed_, moved = moved_;
    fixed.grid.voxel_to_world.rows[2][2] = moved.grid.voxel_to_world.rows[2][2] = z_mm;
    put("tall_a.nii", fixed);
    put("tall_b.nii", moved);
    EXPECT_EQ(compare({"tall_a.nii", "tall_b.nii", "--map", "ssim=tall.png"}).status, 0);
    return media::read_image(folder_.file("tall.png")).height;
  };
  const std::int64_t flat = height_of(1), tall = height_of(4);  // 13 slices against 15 rows
  EXPECT_GT(tall - flat, 2 * 13 * 10) << "at least 10 pixels a millimetre";
}

TEST_F(VolumeProgram, TwoFormsThatDifferAreTold) {
  media::Buffer bytes = media::content(folder_.file("b.nii"));
  const float elsewhere = 3;
  std::memcpy(bytes.data() + 268, &elsewhere, sizeof elsewhere);  // qoffset_x
  write_bytes("c.nii", bytes);
  const Outcome outcome = compare({"a.nii.gz", "c.nii", "-m", "mse"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "similis: note: c.nii: qform and sform differ; the sform is used\n");
}

}  // namespace
}  // namespace similis::cli
