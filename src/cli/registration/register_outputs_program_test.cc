// SPDX-License-Identifier: Apache-2.0
// Names of the files that `similis register` writes, refused before any work.
#include "src/cli/test_program.h"
#include "src/media/volume/test_volumes.h"

namespace similis::cli {
namespace {

class RegisterOutputs : public ProgramTest {
 protected:
  RegisterOutputs() {
    const media::Volume volume =
        media::make_volume({8, 8, 8}, [](std::int64_t i) { return i % 7; });
    for (const char* name :
        {"fixed.nii", "moving.nii", "out_Labels.nii.gz", "Inverse.nii", "out_otherWarped.nii.gz"}) {
      media::write_volume(folder_.file(name), volume, "test");
    }
    write_text("other.nrrd", "");
  }
  void refused(std::vector<std::string> options, int status, const std::string& error) {
    options.insert(options.begin(), {"register", "fixed.nii"});
    options.insert(options.end(), {"-o", "out_"});
    const std::vector<std::string> before = files();
    expect_error(options, status, error);
    EXPECT_EQ(files(), before);
  }
};

TEST_F(RegisterOutputs, NoInputIsReplaced) {
  refused({"moving.nii", "--fixed-labels", "out_Labels.nii.gz", "--moving-labels", "moving.nii"}, 2,
      "-o out_: out_Labels.nii.gz is one of the inputs");
  refused({"moving.nii", "--channel", "fixed.nii", "out_Labels.nii.gz", "--moving-labels",
              "moving.nii"},
      2, "-o out_: out_Labels.nii.gz is one of the inputs");
  refused({"out_otherWarped.nii.gz", "--transform-also", "other.nrrd"}, 2,
      "-o out_: out_otherWarped.nii.gz is one of the inputs");
  run({"register", "fixed.nii", "moving.nii", "-o", "out_", "--stages", "rigid"});
  refused({"moving.nii", "--init", "out_0GenericAffine.mat"}, 2,
      "-o out_: out_0GenericAffine.mat is one of the inputs");
}

TEST_F(RegisterOutputs, NoTwoResultsHaveOneName) {
  refused({"moving.nii", "--transform-also", "Inverse.nii:label"}, 2,
      "--transform-also Inverse.nii would be written as out_InverseWarped.nii.gz, which is another "
      "result; rename the file");
  refused({"moving.nii", "--transform-also", "fixed.nii", "--transform-also", "./fixed.nii:label"},
      2, "--transform-also fixed.nii and ./fixed.nii would both be written as fixedWarped");
}

TEST_F(RegisterOutputs, DirectoriesInTheWayAreSeenBeforeAnyWork) {
  std::filesystem::create_directory(folder_.file("out_report.html"));
  // The image that does not exist would be found missing as it is read.
  refused({"none.nii"}, 1, "-o out_: out_report.html is a directory");
  refused({"none.nii", "--no-report"}, 1, "cannot read none.nii: No such file or directory");
}

// Commands that a reader copies from the page.
TEST_F(RegisterOutputs, PathsThatAShellWouldSplitAreQuotedOnThePage) {
  const Outcome outcome = run({"register", "fixed.nii", "moving.nii", "-o", "it's new/", "--levels",
      "1", "--iterations", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string page = text_of("it's new/report.html");
  EXPECT_THAT(page, testing::HasSubstr(R"(-t 'it'\\''s new/1Warp.nii.gz' -t 'it'\\''s)"));
  EXPECT_THAT(page, testing::HasSubstr(R"(-t '[it'\\''s new/0GenericAffine.mat,1]' -t)"));
  EXPECT_THAT(page, testing::HasSubstr(R"(sitk.ReadTransform(\"it's new/0GenericAffine.mat\"))"));
}

}  // namespace
}  // namespace similis::cli
