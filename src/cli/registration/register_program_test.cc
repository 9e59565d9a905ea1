// SPDX-License-Identifier: Apache-2.0
// `similis register` end to end: its files, read by `similis warp`, its report and its refusals.
#include <signal.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "src/cli/registration/register_progress.h"
#include "src/cli/test_program.h"
#include "src/core/number_text.h"
#include "src/media/volume/test_volumes.h"

namespace similis::cli {
namespace {

using media::Volume;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::array<std::int64_t, 3> kSize = {30, 28, 26};

// Soft shapes about the world's origin, moved by `shift` mm towards the right.
Volume shapes(const std::array<std::int64_t, 3>& size, double shift, double wave) {
  Volume volume = media::make_volume(size, [&](std::int64_t i) {
    const double z = size[2] == 1 ? 0 : static_cast<double>(i / size[0] / size[1]) - 12.5;
    const double y = static_cast<double>(i / size[0] % size[1]) - 13.5;
    const double x = static_cast<double>(i % size[0]) - 14.5 - shift / 4 + wave * std::sin(y / 5);
    const double body = 1 / (1 + std::exp((std::hypot(x / 10, y / 9, z / 9) - 1) * 8));
    return 1000 * body * (0.6 + 0.4 * std::sin(x / 2.5 + 1) * std::cos(y / 3) * std::cos(z / 3.5));
  });
  volume.grid.voxel_to_world = {{{{4, 0, 0, -58}, {0, 4, 0, -54}, {0, 0, 4, -50}}}};
  return volume;
}

class RegisterProgram : public ProgramTest {
 protected:
  RegisterProgram() {
    put("fixed.nii", shapes(kSize, 0, 0));
    put("moving.nii", shapes(kSize, 9, 0.8));
  }
  void put(const std::string& name, const Volume& volume) {
    media::write_volume(folder_.file(name), volume, "test");
  }
  Volume get(const std::string& name) { return media::read_volume(folder_.file(name)); }
  Json register_json(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "register");
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return Json::parse(outcome.out);
  }
  void refused(std::vector<std::string> options, int status, const std::string& error) {
    options.insert(options.begin(), {"register", "fixed.nii", "moving.nii", "-o", "out_"});
    const std::vector<std::string> before = files();
    expect_error(options, status, error);
    EXPECT_EQ(files(), before);
  }
  // This is moving.nii, whose values are no labels.
  std::string labels_refusal() {
    return "moving.nii: a voxel is " +
           shortest(static_cast<double>(get("moving.nii").values.elements<float>()[0])) +
           "; labels are integers";
  }
  // The brighter part of an image as one label.
  void put_labels(const std::string& name, Volume image) {
    for (std::int64_t i = 0; i < image.values.shape.count(); ++i) {
      float& value = image.values.elements<float>()[i];
      value = value > 400 ? 7 : 0;
    }
    image.type = media::SampleType::u8;
    put(name, image);
  }
  // The largest difference of two volumes, as a share of the first one's largest value.
  double apart(const std::string& one, const std::string& other) {
    const std::vector<double> a = media::values_of(get(one)), b = media::values_of(get(other));
    double most = 0, largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      most = std::max(most, std::abs(a[i] - b.at(i)));
      largest = std::max(largest, std::abs(a[i]));
    }
    return most / largest;
  }
};

const std::vector<std::string> kShort = {"--levels", "2x1", "--iterations", "15x10"};

TEST_F(RegisterProgram, WritesFilesThatWarpAppliesAndAReport) {
  std::vector<std::string> arguments = {
      "fixed.nii", "moving.nii", "-o", "out/", "--jacobian", "--no-compress"};
  arguments.insert(arguments.end(), kShort.begin(), kShort.end());
  const Json report = register_json(arguments);
  for (const char* name : {"0GenericAffine.mat", "1Warp.nii", "1InverseWarp.nii", "Warped.nii",
           "InverseWarped.nii", "Jacobian.nii", "report.json", "report.html"}) {
    EXPECT_TRUE(exists(std::string("out/") + name)) << name;
  }
  EXPECT_EQ(text_of("out/report.json"), json_text(report));
  EXPECT_GT(report["similarity"]["ncc"]["after"].get<double>(), 0.995);
  EXPECT_LT(report["similarity"]["ncc"]["before"].get<double>(), 0.95);
  EXPECT_EQ(report["folds"], 0);
  EXPECT_GE(report["corner_jacobian_min"].get<double>(), 0.1);
  EXPECT_EQ(report["stages"].size(), 3u);
  EXPECT_EQ(report["stages"][2]["levels"][0]["loss"].size(),
      report["stages"][2]["levels"][0]["iterations"].get<std::size_t>());

  const Outcome there = run({"warp", "moving.nii", "-r", "fixed.nii", "-t", "out/1Warp.nii", "-t",
      "out/0GenericAffine.mat", "-o", "there.nii"});
  EXPECT_EQ(there.status, 0) << there.err;
  EXPECT_LT(apart("out/Warped.nii", "there.nii"), 1e-5);
  const Outcome back = run({"warp", "fixed.nii", "-r", "moving.nii", "-t",
      "[out/0GenericAffine.mat,1]", "-t", "out/1InverseWarp.nii", "-o", "back.nii"});
  EXPECT_EQ(back.status, 0) << back.err;
  EXPECT_LT(apart("out/InverseWarped.nii", "back.nii"), 1e-5);
  const Volume jacobian = get("out/Jacobian.nii");
  for (const double value : media::values_of(jacobian)) EXPECT_GT(value, 0);
}

TEST_F(RegisterProgram, PrintsATableAndWarpsFurtherImages) {
  put_labels("labels.nii.gz", shapes(kSize, 9, 0.8));
  const Outcome outcome = run({"register", "fixed.nii", "moving.nii", "-o", "r_", "--stages",
      "translation", "--transform-also", "labels.nii.gz:label", "--threads", "2"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("stage        seconds  iterations     loss\ntranslation"));
  EXPECT_THAT(outcome.out, HasSubstr("\nncc "));
  EXPECT_FALSE(exists("r_1Warp.nii.gz"));
  const Volume warped = get("r_labelsWarped.nii.gz");
  EXPECT_EQ(warped.type, media::SampleType::u8);
  const std::vector<double> values = media::values_of(warped);
  EXPECT_GT(std::count(values.begin(), values.end(), 7.0), 500);
  EXPECT_EQ(
      std::count(values.begin(), values.end(), 7.0) + std::count(values.begin(), values.end(), 0.0),
      static_cast<std::ptrdiff_t>(values.size()));
}

TEST_F(RegisterProgram, ComparesLabelsBeforeAndAfter) {
  put_labels("own.nii", shapes(kSize, 0, 0));
  put_labels("other.nii", shapes(kSize, 9, 0.8));
  std::vector<std::string> arguments = {"fixed.nii", "moving.nii", "-o", "l_", "--fixed-labels",
      "own.nii", "--moving-labels", "other.nii", "--no-report"};
  arguments.insert(arguments.end(), kShort.begin(), kShort.end());
  const Json report = register_json(arguments);
  ASSERT_EQ(report["dice"].size(), 1u);
  const Json& dice = report["dice"]["7"];
  EXPECT_LT(dice["before"].get<double>(), 0.85);
  EXPECT_GT(dice["after"].get<double>(), 0.95);
  // The overlap counted here, of the labels that were written.
  const std::vector<double> own = media::values_of(get("own.nii")),
                            warped = media::values_of(get("l_Labels.nii.gz"));
  double both = 0, each = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    both += own[i] == 7 && warped[i] == 7 ? 2 : 0;
    each += (own[i] == 7 ? 1 : 0) + (warped[i] == 7 ? 1 : 0);
  }
  EXPECT_DOUBLE_EQ(dice["after"].get<double>(), both / each);
  EXPECT_FALSE(exists("l_report.html"));
  arguments.insert(arguments.end(), {"--stages", "deformable", "-m", "dice", "-m", "lncc"});
  const Json by_labels = register_json(arguments);
  EXPECT_EQ(by_labels["settings"]["metrics"][0]["name"], "dice");
  EXPECT_GT(by_labels["dice"]["7"]["after"].get<double>(), 0.95);
}

// The first channels are noise, so that only the second ones can show the shift.
TEST_F(RegisterProgram, RegistersByFurtherChannels) {
  std::uint32_t state = 1;
  for (const char* name : {"blank_fixed.nii", "blank_moving.nii"}) {
    Volume noise = shapes(kSize, 0, 0);
    for (std::int64_t i = 0; i < noise.values.shape.count(); ++i) {
      state = state * 1664525 + 1013904223;
      noise.values.elements<float>()[i] = static_cast<float>(state >> 24);
    }
    put(name, noise);
  }
  const Json report =
      register_json({"blank_fixed.nii", "blank_moving.nii", "-o", "c_", "--channel", "fixed.nii",
          "moving.nii", "--stages", "translation", "--linear-metric", "ncc", "--no-report"});
  EXPECT_TRUE(report["warnings"].is_array());
  const Outcome moved =
      run({"warp", "moving.nii", "-r", "fixed.nii", "-t", "c_0GenericAffine.mat", "-o", "m.nii"});
  EXPECT_EQ(moved.status, 0) << moved.err;
  EXPECT_LT(apart("fixed.nii", "m.nii"), 0.7 * apart("fixed.nii", "moving.nii"));
}

TEST_F(RegisterProgram, SeedsTheSamplingOfMutualInformation) {
  const auto warp = [&](const std::string& prefix, const std::string& seed) {
    register_json({"fixed.nii", "moving.nii", "-o", prefix, "--stages", "deformable", "--levels",
        "2", "--iterations", "5", "-m", "mi=sampling=0.3", "--seed", seed, "--no-report"});
    return media::values_of(get(prefix + "1Warp.nii.gz"));
  };
  const std::vector<double> first = warp("a_", "1");
  EXPECT_EQ(warp("b_", "1"), first);
  EXPECT_NE(warp("c_", "2"), first);
}

TEST(RegisterProgressLine, SaysWhatIsLeft) {
  const RegisterProgress rigid{RegisterStage::rigid, 0, 4, 60, -0.71234};
  EXPECT_EQ(register_progress_line(rigid, {}), "rigid: 5/60, loss -0.7123");
  const registration_internal::DeformableSettings settings{
      .levels = {4, 2, 1}, .iterations = {50, 40, 20}};
  EXPECT_EQ(register_seconds_left(rigid, 1, settings, 3), std::nullopt);
  const RegisterProgress at{RegisterStage::deformable, 2, 29, 40, -1.5, 0.4321};
  // 10 iterations at this level and 20 of eight times as many voxels.
  EXPECT_DOUBLE_EQ(*register_seconds_left(at, 0.5, settings, 3), 5 + 80);
  EXPECT_EQ(register_progress_line(at, 85),
      "deformable 1/2: 30/40, loss -1.5000, smallest determinant 0.432, 1 min 25 s left");
}

TEST_F(RegisterProgram, RegistersSlices) {
  put("f.nii", shapes({30, 28, 1}, 0, 0));
  Volume higher = shapes({30, 28, 1}, 9, 0.8);
  higher.grid.voxel_to_world.rows[2][3] += 3;
  put("m.nii", higher);
  std::vector<std::string> arguments = {"f.nii", "m.nii", "-o", "s_", "--no-compress"};
  arguments.insert(arguments.end(), kShort.begin(), kShort.end());
  const Json report = register_json(arguments);
  EXPECT_GT(report["similarity"]["ncc"]["after"].get<double>(), 0.99);
  EXPECT_EQ(get("s_1Warp.nii").components, 2);
  const Outcome there = run({"warp", "m.nii", "-r", "f.nii", "-t", "s_1Warp.nii", "-t",
      "s_0GenericAffine.mat", "-o", "there.nii"});
  EXPECT_EQ(there.status, 0) << there.err;
  EXPECT_LT(apart("s_Warped.nii", "there.nii"), 1e-5);
}

TEST_F(RegisterProgram, StartsFromAFileAndMasks) {
  register_json({"fixed.nii", "moving.nii", "-o", "a_", "--stages", "rigid"});
  Volume mask = shapes(kSize, 0, 0);
  for (std::int64_t i = 0; i < mask.values.shape.count(); ++i) {
    mask.values.elements<float>()[i] = i % 30 < 26 ? 1 : 0;
  }
  put("mask.nii", mask);
  Volume broken = get("fixed.nii");
  for (std::int64_t i = 29; i < broken.values.shape.count(); i += 30) {
    broken.values.elements<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  }
  put("fixed.nii", broken);
  const Json report = register_json(
      {"fixed.nii", "moving.nii", "-o", "b_", "--init", "a_0GenericAffine.mat", "--stages",
          "deformable", "--levels", "2", "--iterations", "3", "--fixed-mask", "mask.nii"});
  EXPECT_EQ(report["settings"]["init"], "a_0GenericAffine.mat");
  EXPECT_EQ(text_of("a_0GenericAffine.mat"), text_of("b_0GenericAffine.mat"));
}

TEST_F(RegisterProgram, RefusesInOneLineAndWritesNothing) {
  refused({"--stages", "rigid,elastic"}, 2,
      "--stages is \"elastic\"; it must be translation, rigid, similarity, affine, deformable or "
      "symmetric");
  refused({"--stages", "affine,rigid"}, 2,
      "--stages is \"affine,rigid\"; each stage may stand once, in the order translation, rigid, "
      "similarity, affine, deformable, symmetric");
  refused({"--preset", "fast"}, 2, "--preset is \"fast\"; it must be quick, balanced or accurate");
  refused({"-m", "lncc=bins=4"}, 2,
      "--metric is \"lncc=bins=4\"; its options are weight=NUMBER, of lncc window_size=N and of mi "
      "bins=N and sampling=SHARE");
  refused({"--linear-metric", "lncc"}, 2, "--linear-metric is \"lncc\"; it must be mi, ncc or mse");
  refused({"--iterations", "5x0"}, 2,
      "--iterations is \"5x0\"; it must be whole numbers above 0, as 50x40x20");
  refused({"--iterations", "5x5", "--levels", "2"}, 2,
      "--iterations has 2 numbers and --levels 1; give as many");
  refused({"--step", "much"}, 2, "--step is \"much\"; it must be a number");
  refused({"--step", "2"}, 2, "--step is 2; it must be above 0 and up to 1");
  refused({"--min-jacobian", "1"}, 2, "--min-jacobian is 1; it must be above 0 and below 1");
  refused({"--fluid", "-1"}, 2, "--fluid is -1; it must be from 0 to 1000");
  refused({"--levels", "1x2"}, 2, "--levels holds 2 after 1; they must fall, from coarse to fine");
  refused({"-m", "lncc=window_size=4"}, 2,
      "--metric: window_size is 4; it must be an odd number from 3 to 255");
  refused({"-m", "mi=sampling=2"}, 2,
      "--metric: sampling is 2; it must be a number above 0 and up to 1");
  refused({"-m", "mi=bins=2"}, 2, "--metric: bins is 2; it must be from 4 to 256");
  refused(
      {"--linear-metric", "mi=bins=2"}, 2, "--linear-metric: bins is 2; it must be from 4 to 256");
  refused({"--seed", "-1"}, 2, "--seed is \"-1\"; it must be a whole number of 0 or more");
  refused({"--fixed-labels", "fixed.nii"}, 2,
      "--fixed-labels: give --moving-labels too, with which they are compared");
  refused({"-m", "dice"}, 2,
      "--metric dice: give --fixed-labels and --moving-labels, which it compares");
  refused({"--moving-labels", "moving.nii"}, 1, labels_refusal());
  refused({"--nan", "skip"}, 2, "--nan is \"skip\"; it must be error or mask");
  refused({"--init", "none.mat"}, 1, "cannot read none.mat: No such file or directory");
  refused({"--init", "a.mat"}, 1, "cannot read a.mat: No such file or directory");
  expect_error({"register", "fixed.nii", "moving.nii", "-o", "no/where/x_"}, 1,
      "-o no/where/x_: no/where is not a directory");
  put("series.nii", media::make_volume(
                        {4, 4, 4}, [](std::int64_t i) { return i; }, 1, 3));
  expect_error({"register", "fixed.nii", "series.nii", "-o", "out_"}, 1,
      "series.nii has 3 frames with 1 component per voxel; similis register takes 1 frame with 1 "
      "component");
  write_text("picture.pgm", "P2\n2 2\n255\n1 2 3 4\n");
  write_text("words.txt", "no voxels here\n");
  const std::string picture =
      "cannot read picture.pgm: it is a picture (Netpbm), and similis register takes volumes: "
      "NIfTI, MetaImage or NRRD, also of one slice. similis.register() in Python and "
      "register_images() in C++ register pictures, as arrays";
  const std::string words = "cannot read words.txt: it is not a NIfTI, MetaImage or NRRD file";
  expect_error({"register", "picture.pgm", "picture.pgm", "-o", "out_"}, 1, picture);
  expect_error({"register", "fixed.nii", "words.txt", "-o", "out_"}, 1, words);
  refused({"--fixed-mask", "picture.pgm"}, 1, picture);
  refused({"--transform-also", "picture.pgm"}, 1, picture);
  put("slice.nii", shapes({30, 28, 1}, 0, 0));
  expect_error({"register", "fixed.nii", "slice.nii", "-o", "out_"}, 1,
      "fixed.nii is a volume but slice.nii is a slice; register two of one kind");
  put("small.nii", media::make_volume({4, 4, 4}, [](std::int64_t i) { return i; }));
  refused({"--channel", "small.nii", "moving.nii"}, 1,
      "small.nii has 4 × 4 × 4 voxels but fixed.nii has 30 × 28 × 26; a further channel lies on "
      "its "
      "image's grid");
  refused({"--fixed-mask", "small.nii"}, 1,
      "small.nii has 4 × 4 × 4 voxels but fixed.nii has 30 × 28 × 26; a mask lies on its image's "
      "grid");
  Volume broken = get("moving.nii");
  broken.values.elements<float>()[5] = std::numeric_limits<float>::infinity();
  put("broken.nii", broken);
  expect_error({"register", "fixed.nii", "broken.nii", "-o", "out_"}, 1,
      "register: broken.nii has values that are not finite in 1 voxel; mask them, or let "
      "nan=mask leave them out");
}

TEST_F(RegisterProgram, RefusesImagesAndPlacesThatDoNotFit) {
  const auto pair_refused = [&](const std::string& fixed, const std::string& moving,
                                const std::string& error) {
    const std::vector<std::string> before = files();
    expect_error({"register", fixed, moving, "-o", "out/"}, 1, error);
    EXPECT_EQ(files(), before);
  };
  put("blank.nii", media::make_volume(kSize, [](std::int64_t) { return 3; }));
  pair_refused("fixed.nii", "blank.nii",
      "register: blank.nii is 3 everywhere; it must have more than one value");
  put("sagittal.nii", media::make_volume({1, 28, 26}, [](std::int64_t i) { return i; }));
  pair_refused("sagittal.nii", "moving.nii",
      "sagittal.nii has one voxel along x; similis register takes volumes, and slices of one voxel "
      "along z");
  Volume away = shapes(kSize, 9, 0.8);
  away.grid.voxel_to_world.rows[0][3] += 400;
  put("away.nii", away);
  expect_error({"register", "fixed.nii", "away.nii", "-o", "out/", "--init", "identity"}, 1,
      "register: the start lays 0.0 % of the fixed voxels over the moving grid; it must be 5 % or "
      "more: choose another start");
  put("vectors.nii", media::make_volume(
                         kSize, [](std::int64_t i) { return i; }, 3));
  pair_refused("vectors.nii", "moving.nii",
      "vectors.nii has 1 frame with 3 components per voxel; similis register takes 1 frame with 1 "
      "component");

  Volume beside = shapes(kSize, 0, 0);
  beside.grid.voxel_to_world.rows[1][3] += 2;
  put("beside.nii", beside);
  for (const char* option : {"--fixed-mask", "--fixed-labels"}) {
    const bool is_mask = option == std::string("--fixed-mask");
    put_labels("labels.nii", shapes(kSize, 9, 0.8));
    refused({option, "beside.nii", "--moving-labels", "labels.nii"}, 1,
        "beside.nii lies 0.5 voxels beside fixed.nii; " +
            std::string(is_mask ? "a mask" : "a map of labels") + " lies on its image's grid");
  }
  put("empty.nii", media::make_volume(kSize, [](std::int64_t) { return 0; }));
  Volume empty = get("empty.nii");
  empty.grid = shapes(kSize, 0, 0).grid;
  put("empty.nii", empty);
  refused({"--fixed-mask", "empty.nii"}, 1, "register: fixed.nii's mask counts no voxel");
  refused({"--moving-mask", "empty.nii"}, 1, "register: moving.nii's mask counts no voxel");

  write_text("singular.txt",
      "#Insight Transform File V1.0\n#Transform 0\nTransform: AffineTransform_double_3_3\n"
      "Parameters: 1 0 0 0 1 0 0 0 0 0 0 0\nFixedParameters: 0 0 0\n");
  refused({"--init", "singular.txt"}, 1, "register: initial is singular: its determinant is 0");
  put("field.nii.gz", media::make_volume(
                          kSize, [](std::int64_t) { return 0; }, 3));
  refused({"--init", "field.nii.gz"}, 1,
      "field.nii.gz has a displacement field; --init takes an affine map");
  Volume flat = shapes(kSize, 0, 0);
  flat.grid.voxel_to_world.rows[2] = {0, 0, 0, 0};
  write_bytes("flat.nii", media::encode_nifti(flat, ""));
  pair_refused("flat.nii", "moving.nii",
      "cannot read flat.nii: its sform does not place the voxels in space: its numbers are those "
      "of "
      "a plane, a line or a point");
}

TEST_F(RegisterProgram, NotesThatAFileHasNoPlace) {
  Volume placeless = shapes(kSize, 0, 0);
  placeless.grid.world_code = 0;
  put("fixed.nii", placeless);
  const Outcome outcome = run({"register", "fixed.nii", "moving.nii", "-o", "n_", "--stages",
      "translation", "--init", "centers", "--no-report"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err,
      "similis: note: fixed.nii: it does not say where its voxels lie; the first is taken as the "
      "world's origin, and its axes as those to the left, back and top\n");
}

// Voxels outside the masks are NaN, or far too large, and change no bit of the maps and of the
// similarities that are reported.
TEST_F(RegisterProgram, MaskedVoxelsNeverEnter) {
  const auto index = [](std::int64_t x, std::int64_t y, std::int64_t z) {
    return x + kSize[0] * (y + kSize[1] * z);
  };
  const std::array<std::string, 2> sides = {"fixed", "moving"};
  const auto register_both = [&] {
    std::vector<std::string> arguments = {"fixed.nii", "moving.nii", "-o", "m_", "--no-report",
        "--no-compress", "--fixed-mask", "fixed_mask.nii", "--moving-mask", "moving_mask.nii"};
    arguments.insert(arguments.end(), kShort.begin(), kShort.end());
    const Json report = register_json(arguments);
    EXPECT_GT(report["similarity"]["ncc"]["after"].get<double>(),
        report["similarity"]["ncc"]["before"].get<double>());
    return text_of("m_0GenericAffine.mat") + text_of("m_1Warp.nii") +
           text_of("m_1InverseWarp.nii") + report["similarity"].dump();
  };
  for (const std::string& side : sides) {
    Volume mask = get(side + ".nii");
    for (std::int64_t i = 0; i < mask.values.shape.count(); ++i)
      mask.values.elements<float>()[i] = 1;
    for (std::int64_t z = 8; z < 15; ++z) {
      for (std::int64_t y = 9; y < 16; ++y) {
        for (std::int64_t x = 11; x < 18; ++x) mask.values.elements<float>()[index(x, y, z)] = 0;
      }
    }
    put(side + "_mask.nii", mask);
  }
  const std::string plain = register_both();
  for (const std::string& side : sides) {
    Volume broken = get(side + ".nii");
    const Volume mask = get(side + "_mask.nii");
    for (std::int64_t i = 0; i < broken.values.shape.count(); ++i) {
      if (mask.values.elements<float>()[i] == 0) {
        broken.values.elements<float>()[i] =
            i % kSize[0] < 14 ? std::numeric_limits<float>::quiet_NaN() : 1e6f;
      }
    }
    put(side + ".nii", broken);
  }
  EXPECT_TRUE(register_both() == plain);
}

// A limit on the size of files fails as a full disk does: at write(), after files that fit.
TEST_F(RegisterProgram, LeavesNothingBehindWhereAFileDoesNotFit) {
  const std::vector<std::string> before = files();
  const Outcome outcome = spawn(folder_,
      {"sh", "-c",
          "ulimit -f 16; " + std::string(SIMILIS_PROGRAM) +
              " register fixed.nii moving.nii -o out/ --levels 2 --iterations 2 --no-report"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "similis: cannot write out/1Warp.nii.gz: File too large\n");
  EXPECT_EQ(files(), before);
}

TEST_F(RegisterProgram, LeavesNothingBehindWhenItIsInterrupted) {
  const std::vector<std::string> before = files();
  const Outcome outcome =
      spawn(folder_, {"/bin/sh", "-c",
                         std::string(SIMILIS_PROGRAM) +
                             " register fixed.nii moving.nii -o gone/ "
                             "--iterations 100000 --levels 1 --tolerance 0 --step 0.002 & "
                             "pid=$!; sleep 1; kill -TERM $pid; wait $pid"});
  EXPECT_EQ(outcome.status, 128 + SIGTERM);
  EXPECT_EQ(outcome.err, "similis: interrupted by SIGTERM\n");
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace similis::cli
