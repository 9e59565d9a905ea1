// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/sequence.h"

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

class Sequences : public testing::Test {
 protected:
  void touch(const std::vector<std::string>& names) {
    for (const std::string& name : names) write_content(folder_.file(name), {1});
  }
  // The names that a pattern stands for, or why it stands for none.
  std::vector<std::string> names_of(const std::string& pattern) {
    try {
      std::vector<std::string> names = sequence_files(folder_.file(pattern));
      for (std::string& name : names) name = std::filesystem::path(name).filename().string();
      return names;
    } catch (const InvalidArgument& error) {
      return {error.what()};
    }
  }
  using Names = std::vector<std::string>;
  TestFolder folder_;
};

TEST_F(Sequences, NumbersAreInOrderAndOfTheirWidth) {
  touch({"f010.png", "f009.png", "f011.png", "f1000.png", "f12.png", "g012.png", "f012.jpg"});
  EXPECT_EQ(names_of("f%03d.png"), Names{"cannot read " + folder_.file("f%03d.png") +
                                         ": number 12 is missing between 9 and 1000"});
  std::filesystem::remove(folder_.file("f1000.png"));
  EXPECT_EQ(names_of("f%03d.png"), (Names{"f009.png", "f010.png", "f011.png"}));
  EXPECT_EQ(names_of("f%d.png"), Names{"f12.png"});
}

TEST_F(Sequences, WildcardsTakeNumbersByTheirValue) {
  touch({"a10.png", "a9.png", "a9b.png", "b1.png", ".a1.png"});
  EXPECT_EQ(names_of("a*.png"), (Names{"a9.png", "a9b.png", "a10.png"}));
  EXPECT_EQ(names_of("?1.png"), Names{"b1.png"});
  EXPECT_EQ(names_of("[ab]1*.png"), (Names{"a10.png", "b1.png"}));
}

TEST_F(Sequences, AFileOfJustThisNameIsNone) {
  touch({"star*[1]?.png", "100%.png", "p%03d.png", "p001.png"});
  EXPECT_EQ(names_of("star*[1]?.png"), Names{});
  EXPECT_EQ(names_of("100%.png"), Names{});
  EXPECT_EQ(names_of("p%03d.png"), Names{});
  EXPECT_EQ(names_of("missing.png"), Names{}) << "opening it gives the error";
  EXPECT_EQ(names_of("missing[2.png"), Names{});
}

TEST_F(Sequences, APatternWithoutFilesIsNamed) {
  EXPECT_EQ(names_of("f%d.png"),
      Names{"cannot read " + folder_.file("f%d.png") + ": no file has such a name"});
  EXPECT_EQ(names_of("*.exr"),
      Names{"cannot read " + folder_.file("*.exr") + ": no file has such a name"});
}

}  // namespace
}  // namespace similis::media
