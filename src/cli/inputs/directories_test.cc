// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/directories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "src/media/picture/test_pictures.h"
#include "tests/refusal.h"

namespace similis::cli {
namespace {

class MatchDirectories : public testing::Test {
 protected:
  void fill(const std::string& directory, const std::vector<std::string>& names) {
    std::filesystem::create_directory(folder_.file(directory));
    for (const std::string& name : names) {
      media::write_content(folder_.file(directory + "/" + name), {});
    }
  }
  // "a.png b.png" for a pair, "reference c.png" for a file without one.
  std::vector<std::string> matches() {
    const MatchedDirectories found = match_directories(folder_.file("r"), folder_.file("d"));
    std::vector<std::string> lines;
    for (const FilePair& pair : found.pairs) {
      lines.push_back(inside(pair.reference, "r") + " " + inside(pair.distorted, "d"));
    }
    for (const UnmatchedFile& file : found.unmatched) {
      lines.push_back(file.side + " " + inside(file.path, file.side.substr(0, 1)));
    }
    return lines;
  }
  media::TestFolder folder_;

 private:
  std::string inside(const std::string& path, const std::string& directory) const {
    const std::string prefix = folder_.file(directory) + "/";
    EXPECT_EQ(path.substr(0, prefix.size()), prefix);
    return path.substr(prefix.size());
  }
};

TEST_F(MatchDirectories, ByNameAndSortedByIt) {
  fill("r", {"b.png", "a.png", "C.png"});
  fill("d", {"a.png", "C.png", "b.png"});
  EXPECT_THAT(matches(), testing::ElementsAre("C.png C.png", "a.png a.png", "b.png b.png"));
}

TEST_F(MatchDirectories, ByStemWhereThatIsUnambiguous) {
  fill("r", {"a.png", "b.png", "c.png", "c.webp", "d.x.png"});
  fill("d", {"a.jpg", "b.jpg", "b.webp", "c.jpg", "d.x.jpg"});
  EXPECT_THAT(matches(),
      testing::ElementsAre("a.png a.jpg", "d.x.png d.x.jpg", "distorted b.jpg", "reference b.png",
          "distorted b.webp", "distorted c.jpg", "reference c.png", "reference c.webp"));
}

TEST_F(MatchDirectories, TheSameNameGoesBeforeTheSameStem) {
  fill("r", {"a.png"});
  fill("d", {"a.png", "a.jpg"});
  EXPECT_THAT(matches(), testing::ElementsAre("a.png a.png", "distorted a.jpg"));
}

TEST_F(MatchDirectories, PassesOverHiddenFilesAndDirectories) {
  fill("r", {".hidden", "a.png"});
  fill("d", {".hidden", "a.png"});
  fill("r/inside", {});
  fill("d/inside", {});
  EXPECT_THAT(matches(), testing::ElementsAre("a.png a.png"));
}

TEST_F(MatchDirectories, SaysWhichCannotBeListed) {
  fill("r", {});
  test::expect_refusal([&] { match_directories(folder_.file("r"), folder_.file("none")); },
      "cannot list " + folder_.file("none") + ": No such file or directory");
}

}  // namespace
}  // namespace similis::cli
