// SPDX-License-Identifier: Apache-2.0
// Animations through ffmpeg; those that libraries read are in these formats' tests.
#include "src/media/io/child_process.h"
#include "src/media/picture/pictures_ahead.h"
#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

// An animation of ffmpeg's test pattern: `frames` frames, of 24×16.
Buffer encoded(const std::string& name, int frames, const std::vector<std::string>& coding) {
  const TestFolder folder;
  std::vector<std::string> arguments = {"ffmpeg", "-v", "error", "-f", "lavfi", "-i",
      "testsrc=s=24x16:r=5", "-frames:v", std::to_string(frames)};
  arguments.insert(arguments.end(), coding.begin(), coding.end());
  arguments.push_back(folder.file(name));
  const auto result = run_program(arguments, {}, {.output_bytes = 1000});
  EXPECT_TRUE(result && result->succeeded) << (result ? result->errors : "no ffmpeg");
  return content(folder.file(name));
}

class Animation : public testing::Test {
 protected:
  void SetUp() override {
    if (ffmpeg_program().empty()) GTEST_SKIP() << "there is no ffmpeg";
  }
};

TEST_F(Animation, GifAndApngFramesComeInOrder) {
  for (const auto& [name, coding] : {std::pair<std::string, std::vector<std::string>>{"a.gif", {}},
           {"a.png", {"-f", "apng", "-plays", "0"}}}) {
    const Buffer bytes = encoded(name, 4, coding);
    const std::vector<Image> pictures = all_pictures(bytes);
    ASSERT_EQ(pictures.size(), 4u) << name;
    const Image first = read_image(bytes, name);
    EXPECT_EQ(first.frames, 4);
    expect_pixels(pictures[0], first);
    EXPECT_EQ(pictures[3].frames, 4);
    EXPECT_NE(pictures[3].samples8, pictures[0].samples8) << name;
  }
}

TEST_F(Animation, StillPicturesAreOne) {
  const Buffer bytes = encoded("a.dpx", 1, {});
  const std::vector<Image> pictures = all_pictures(bytes);
  ASSERT_EQ(pictures.size(), 1u);
  expect_pixels(pictures[0], read_image(bytes, "a.dpx"));
}

TEST_F(Animation, AheadEndsEarlyAndPassesErrorsOn) {
  Buffer bytes = encoded("a.gif", 5, {});
  {
    PicturesAhead ahead([&](const TakePicture& take) { read_pictures(bytes, "a.gif", take); });
    EXPECT_TRUE(ahead.next());
  }  // ends although four frames are left
  bytes.resize(bytes.size() * 3 / 4);
  EXPECT_THROW(
      {
        PicturesAhead ahead([&](const TakePicture& take) { read_pictures(bytes, "a.gif", take); });
        while (ahead.next()) {
        }
      },
      InvalidArgument);
}

}  // namespace
}  // namespace similis::media
