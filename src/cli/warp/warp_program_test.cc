// SPDX-License-Identifier: Apache-2.0
// `similis warp` end to end. tests/simple_itk_test.py compares it with ITK.
#include <cmath>

#include "src/cli/test_program.h"
#include "src/cli/warp/spatial_transform.h"
#include "src/gpu/device.h"
#include "src/media/volume/test_volumes.h"

namespace similis::cli {
namespace {

using media::Affine;
using media::Volume;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::array<std::int64_t, 3> kSize = {6, 5, 4};
constexpr std::int64_t kVoxels = 6 * 5 * 4;

// Voxels of 2 mm, in NIfTI's axes.
media::Grid grid_at(const media::Point& origin, const std::array<std::int64_t, 3>& size = kSize) {
  return {.size = size,
      .voxel_to_world = {{{{2, 0, 0, origin[0]}, {0, 2, 0, origin[1]}, {0, 0, 2, origin[2]}}}}};
}

class WarpProgram : public ProgramTest {
 protected:
  WarpProgram() {
    put("a.nii", ramp_);
    put("r.nii.gz", ramp_);
  }
  void put(const std::string& name, const Volume& volume) {
    media::write_volume(folder_.file(name), volume, "test");
  }
  // An ITK translation of points by so many mm to the left, back and top.
  void put_shift(const std::string& name, const std::string& parameters) {
    write_text(name,
        "#Insight Transform File V1.0\n#Transform 0\n"
        "Transform: TranslationTransform_double_3_3\nParameters: " +
            parameters + "\nFixedParameters:\n");
  }
  Volume warp(std::vector<std::string> arguments) {
    const std::vector<std::string> rest = {"-r", "r.nii.gz", "-o", "out.nii.gz"};
    arguments.insert(arguments.begin(), "warp");
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    out_ = outcome.err;
    return media::read_volume(folder_.file("out.nii.gz"));
  }
  std::vector<double> warped(const std::vector<std::string>& arguments) {
    return media::values_of(warp(arguments));
  }
  // The values x + 10y + 100z at voxels that are (x, y, z) further, 0 outside.
  static std::vector<double> shifted(int dx, int dy, int dz, double outside = 0) {
    std::vector<double> values;
    for (int z = dz; z < kSize[2] + dz; ++z) {
      for (int y = dy; y < kSize[1] + dy; ++y) {
        for (int x = dx; x < kSize[0] + dx; ++x) {
          const bool is_inside =
              x >= 0 && x < kSize[0] && y >= 0 && y < kSize[1] && z >= 0 && z < kSize[2];
          values.push_back(is_inside ? x + 10 * y + 100 * z : outside);
        }
      }
    }
    return values;
  }
  static Volume make_ramp() {
    Volume volume = media::make_volume(
        kSize, [](std::int64_t i) { return i % 6 + 10 * (i / 6 % 5) + 100 * (i / 30); });
    volume.grid = grid_at({-5, 3, 8});
    return volume;
  }
  Volume ramp_ = make_ramp();
  std::string out_;
};

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4) << i;
}

TEST_F(WarpProgram, WithoutATransformItResamples) {
  expect_near(warped({"a.nii"}), shifted(0, 0, 0));
  EXPECT_THAT(out_, StartsWith("output      out.nii.gz\n"
                               "grid        6 × 5 × 4 voxels of 2 × 2 × 2 mm\n"
                               "values      float32, linear, 0 % outside the image\n"
                               "transforms  none (identity)\n"
                               "device      cpu\n"
                               "time        "));
  Volume elsewhere = make_ramp();
  elsewhere.grid = grid_at({-3, 3, 8});  // one voxel further to the right
  put("r.nii.gz", elsewhere);
  const Volume out = warp({"a.nii"});
  expect_near(media::values_of(out), shifted(1, 0, 0));
  EXPECT_EQ(out.grid.voxel_to_world, elsewhere.grid.voxel_to_world);
}

// 2 mm to the left in ITK's axes is a voxel of smaller x in NIfTI's.
TEST_F(WarpProgram, PointsHaveItksAxes) {
  put_shift("t.txt", "2 0 0");
  expect_near(warped({"a.nii", "-t", "t.txt"}), shifted(-1, 0, 0));
  put_shift("t.txt", "0 -4 2");
  expect_near(warped({"a.nii", "-t", "t.txt"}), shifted(0, 2, 1));
  expect_near(warped({"a.nii", "-t", "[t.txt,1]"}), shifted(0, -2, -1));
  expect_near(warped({"a.nii", "-t", "[t.txt,0]"}), shifted(0, 2, 1));
}

TEST_F(WarpProgram, AnInverseIsAskedForInBrackets) {
  for (const char* text : {"t.txt", "[t.txt,1]", "[t.txt,0]", "[ t.txt , 1 ]"}) {
    const TransformFile file = transform_file(text);
    EXPECT_EQ(file.path, "t.txt");
    EXPECT_EQ(file.is_inverse, std::string_view(text).find('1') != std::string_view::npos) << text;
  }
  for (const char* text : {"[t.txt]", "[t.txt,2]", "[,1]", "[]", "["}) {
    EXPECT_EQ(transform_file(text).path, text);
  }
}

TEST_F(WarpProgram, OfSeveralTransformsTheFirstComesFirst) {
  // A turn by 180° about z through ITK's origin, after a shift.
  write_text("turn.tfm",
      "#Insight Transform File V1.0\n#Transform 0\n"
      "Transform: AffineTransform_double_3_3\n"
      "Parameters: -1 0 0 0 -1 0 0 0 1 0 0 0\nFixedParameters: 0 -7 0\n");
  put_shift("t.txt", "2 0 0");
  // A point at left l becomes -(l + 2): r = -l, so the voxel r = -5 + 2x becomes 5 - 2x + 2.
  const std::vector<double> turned = warped({"a.nii", "-t", "t.txt", "-t", "turn.tfm"});
  // x ↦ 6 - x along the row, y ↦ 4 - y.
  for (std::int64_t i = 0; i < kVoxels; ++i) {
    const std::int64_t x = 6 - i % 6, y = 4 - i / 6 % 5, z = i / 30;
    const double expected = x < 6 ? static_cast<double>(x + 10 * y + 100 * z) : 0;
    EXPECT_NEAR(turned[static_cast<std::size_t>(i)], expected, 1e-4) << i;
  }
}

// On a GPU where there is one, which samples as the CPU does; else in words why not.
TEST_F(WarpProgram, SamplesOnTheDeviceThatIsAskedFor) {
  const std::vector<std::string> refused = {
      "warp", "a.nii", "-r", "r.nii.gz", "-o", "out.nii.gz", "--device", "cuda"};
  if (gpu::device_count(DeviceKind::cuda) == 0) {
    return expect_error(refused, 1, "--device cuda: " + gpu::describe(DeviceKind::cuda));
  }
  Volume field = media::make_volume(
      kSize, [](std::int64_t i) { return 0.01 * (i % 37); }, 3);
  field.grid = ramp_.grid;
  field.intent = media::Intent::vector;
  put("f.nii.gz", field);
  put_shift("t.txt", "1 -3 0.5");
  for (const char* mode : {"linear", "nearest", "cubic", "label"}) {
    const std::vector<std::string> arguments = {
        "a.nii", "-t", "t.txt", "-t", "f.nii.gz", "--mode", mode, "--background", "7"};
    std::vector<std::string> on_gpu = arguments;
    on_gpu.insert(on_gpu.end(), {"--device", "cuda"});
    expect_near(warped(on_gpu), warped(arguments));
  }
  warped({"a.nii", "--device", "cuda"});
  EXPECT_THAT(out_, HasSubstr("device      cuda:0\n"));
}

TEST_F(WarpProgram, ADisplacementFieldMovesPointsInsideIt) {
  Volume field = media::make_volume(
      {2, 5, 4}, [](std::int64_t i) { return i < 40 ? -2 : 0; }, 3);
  field.grid = grid_at({-5, 3, 8}, {2, 5, 4});
  field.intent = media::Intent::vector;
  put("f.nii.gz", field);
  std::vector<double> expected = shifted(0, 0, 0);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += i % 6 < 2 ? 1 : 0;
  expect_near(warped({"a.nii", "-t", "f.nii.gz"}), expected);
  EXPECT_THAT(out_, HasSubstr("transforms  f.nii.gz (displacement)\n"));
  // NIfTI's own vectors point the other way along x.
  field.intent = media::Intent::displacement_vector;
  for (std::int64_t i = 0; i < 40; ++i) field.values.elements<float>()[i] = 2;
  put("f.nii.gz", field);
  expect_near(warped({"a.nii", "-t", "f.nii.gz"}), expected);
}

TEST_F(WarpProgram, OutsideIsHalfAVoxelFromTheOutermostCentres) {
  put_shift("t.txt", "0.99 0 0");  // 0.495 voxels towards smaller x
  const std::vector<double> inside = warped({"a.nii", "-t", "t.txt", "--background", "-7"});
  EXPECT_NEAR(inside[0], 0, 1e-4) << "the outermost voxel's value";
  EXPECT_NEAR(inside[1], 0.505, 1e-4);
  put_shift("t.txt", "1.01 0 0");
  EXPECT_EQ(warped({"a.nii", "-t", "t.txt", "--background", "-7"})[0], -7);
  EXPECT_THAT(out_, HasSubstr(", 16.7 % outside the image\n"));
  put_shift("t.txt", "4 0 0");
  EXPECT_NEAR(warped({"a.nii", "-t", "t.txt", "--padding", "border"})[0], 0, 1e-4);
  EXPECT_NEAR(warped({"a.nii", "-t", "t.txt", "--padding", "reflection"})[0], 2, 1e-4);
}

TEST_F(WarpProgram, NearestAndLabelKeepTheTypeAndLinearDoesNot) {
  Volume labels = make_ramp();
  for (std::int64_t i = 0; i < kVoxels; ++i) {
    labels.values.elements<float>()[i] = static_cast<float>(i % 2 == 0 ? 200 : 3);
  }
  labels.type = media::SampleType::u8;
  put("a.nii", labels);
  put_shift("t.txt", "0.4 0 0");
  for (const char* mode : {"nearest", "label"}) {
    const Volume out = warp({"a.nii", "-t", "t.txt", "--mode", mode});
    EXPECT_EQ(out.type, media::SampleType::u8);
    EXPECT_EQ(media::values_of(out), media::values_of(labels)) << mode;
  }
  EXPECT_EQ(warp({"a.nii", "-t", "t.txt"}).type, media::SampleType::f32);
  expect_error(
      {"warp", "a.nii", "-r", "a.nii", "-o", "o.nii", "--mode", "label", "--background", "-1"}, 1,
      "--background is -1, which the uint8 samples of a.nii cannot represent");
}

TEST_F(WarpProgram, OnAGridWithoutZTheOutputHasNone) {
  for (const bool is_flat : {true, false}) {
    Volume picture = media::make_volume({6, 5, 1}, [](std::int64_t i) { return i; });
    picture.grid.is_flat = is_flat;
    put("p.nii", picture);
    EXPECT_EQ(run({"warp", "p.nii", "-r", "p.nii", "-o", "o.nii"}).status, 0);
    EXPECT_EQ(media::content(folder_.file("o.nii"))[40], is_flat ? 2 : 3);  // dim[0]
    expect_near(
        media::values_of(media::read_volume(folder_.file("o.nii"))), media::values_of(picture));
  }
}

TEST_F(WarpProgram, TakesWhatUsersOfAntsType) {
  put_shift("t.txt", "0.7 0.3 -0.9");
  for (const auto& [theirs, ours] : std::vector<std::pair<const char*, const char*>>{
           {"Linear", "linear"}, {"NearestNeighbor", "nearest"}, {"BSpline", "cubic"},
           {"BSpline[3]", "cubic"}, {"GenericLabel", "label"}, {"GenericLabel[Linear]", "label"}}) {
    EXPECT_EQ(warped({"-d", "3", "-i", "a.nii", "-t", "t.txt", "-n", theirs}),
        warped({"a.nii", "-t", "t.txt", "--mode", ours}));
  }
  put("p.nii", media::make_volume({6, 5, 1}, [](std::int64_t i) { return i; }));
  EXPECT_EQ(run({"warp", "-d", "2", "-i", "p.nii", "-r", "p.nii", "-o", "o.nii"}).status, 0);
  const std::vector<std::string> rest = {"-r", "r.nii.gz", "-o", "none.nii"};
  const auto refused = [&](std::vector<std::string> arguments, const char* error) {
    arguments.insert(arguments.begin(), "warp");
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    expect_error(arguments, 2, error);
  };
  refused({}, "IMAGE is missing; similis warp --help shows how to call it");
  refused(
      {"a.nii", "-i", "p.nii"}, "the volume to warp is given twice, as a.nii and as --input p.nii");
  refused({"a.nii", "-d", "4"}, "--dimensions is \"4\"; it must be 2 or 3");
  refused(
      {"a.nii", "-d", "2"}, "--dimensions is 2 but r.nii.gz has 4 slices; leave --dimensions out");
  refused({"a.nii", "-n", "MultiLabel"},
      "--mode is \"MultiLabel\"; it must be linear, nearest, cubic or label");
  EXPECT_FALSE(exists("none.nii"));
}

TEST_F(WarpProgram, CubicGoesThroughTheVoxels) {
  expect_near(warped({"a.nii", "--mode", "cubic"}), shifted(0, 0, 0));
}

TEST_F(WarpProgram, EveryFrameAndComponentIsWarped) {
  Volume series = media::make_volume(
      kSize, [](std::int64_t i) { return i; }, 2, 3);
  series.grid = ramp_.grid;
  series.frame_seconds = 2;
  put("a.nii", series);
  put_shift("t.txt", "0 0 2");
  const Volume out = warp({"a.nii", "-t", "t.txt"});
  EXPECT_EQ(out.values.shape, (Extents{2, 3, 4, 5, 6}));
  EXPECT_EQ(out.frame_seconds, 2);
  const std::vector<double> values = media::values_of(out);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], i % 120 < 90 ? static_cast<double>(i + 30) : 0, 1e-3) << i;
  }
}

TEST_F(WarpProgram, SaysWhatItCannotDo) {
  put_shift("t.txt", "1 2 3");
  put("f.nii.gz", media::make_volume(
                      kSize, [](std::int64_t) { return 1; }, 3));
  const std::vector<std::string> start = {"warp", "a.nii", "-r", "r.nii.gz", "-o"};
  const auto refused = [&](std::vector<std::string> arguments, int status, const char* error) {
    arguments.insert(arguments.begin(), start.begin(), start.end());
    expect_error(arguments, status, error);
  };
  refused({"o.png"}, 2, "-o o.png: its name must end in .nii or .nii.gz");
  refused({"a.nii"}, 2, "-o a.nii is one of the inputs");
  refused({"f.nii.gz", "-t", "f.nii.gz"}, 2, "-o f.nii.gz is one of the inputs");
  refused({"o.nii", "-t", "-", "-t", "[-,1]"}, 2,
      "only one of IMAGE, --reference and --transform can be standard input");
  refused({"o.nii", "-t", ""}, 2, "--transform is empty; write --transform FILE");
  refused({"none/o.nii"}, 1, "-o none/o.nii: none is not a directory");
  refused({"o.nii", "--mode", "quick"}, 2,
      "--mode is \"quick\"; it must be linear, nearest, cubic or label");
  refused({"o.nii", "--padding", "border", "--background", "3"}, 2,
      "--background is only for --padding zeros; leave one of them out");
  refused({"o.nii", "-t", "none.mat"}, 1, "cannot read none.mat: No such file or directory");
  refused({"o.nii", "-t", "[f.nii.gz,1]"}, 1,
      "f.nii.gz is a displacement field, which similis cannot invert; give the inverse field that "
      "ANTs writes");
  refused({"o.nii", "-t", "a.nii"}, 1,
      "cannot read a.nii: it has 1 frame with 1 component per voxel; a displacement field has 1 "
      "frame with 3 (or 2) components, as its fifth dimension");
  write_text("bad.mat", "1 0 0 0\n");
  refused({"o.nii", "-t", "bad.mat"}, 1,
      "cannot read bad.mat: it is neither an ITK transform (MATLAB 4, text or HDF5) nor a "
      "displacement field (NIfTI), or it is cut off");
  ramp_.values.elements<float>()[3] = 0.5f;
  put("a.nii", ramp_);
  refused({"o.nii", "--mode", "label"}, 1,
      "a.nii has values that are not integers; --mode label takes an image of labels");
  expect_error({"warp", "a.nii", "-r", "r.nii.gz"}, 2,
      "--output is missing; similis warp --help shows how to call it");
  EXPECT_FALSE(exists("o.nii"));
}

// A limit on the size of files fails as a full disk does: at write().
TEST_F(WarpProgram, WhatCannotBeWrittenWholeIsNotThere) {
  put("o.nii", ramp_);
  const media::Buffer older = media::content(folder_.file("o.nii"));
  media::Volume large = media::make_volume({40, 40, 40}, [](std::int64_t i) { return i; });
  put("large.nii", large);
  const Outcome outcome = spawn(folder_, {"sh", "-c",
                                             "ulimit -f 16; " + std::string(SIMILIS_PROGRAM) +
                                                 " warp large.nii -r large.nii -o o.nii"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "similis: cannot write o.nii: File too large\n");
  EXPECT_EQ(media::content(folder_.file("o.nii")), older);
  EXPECT_THAT(files(), testing::Not(testing::Contains(testing::HasSubstr("partial"))));
}

TEST_F(WarpProgram, ResultsAreTheSameForAnyNumberOfThreads) {
  put_shift("t.txt", "0.7 0.3 -0.9");
  const std::vector<double> one = warped({"a.nii", "-t", "t.txt", "--threads", "1"});
  EXPECT_EQ(warped({"a.nii", "-t", "t.txt", "--threads", "3"}), one);
}

}  // namespace
}  // namespace similis::cli
