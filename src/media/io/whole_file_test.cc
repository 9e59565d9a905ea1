// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/whole_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

namespace fs = std::filesystem;

std::size_t count_files(const TestFolder& folder) {
  const fs::directory_iterator files(fs::path(folder.file("x")).parent_path());
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(WholeFile, ReplacesAnOlderFileAndKeepsItsPermissions) {
  const TestFolder folder;
  const std::string path = folder.file("out.png");
  write_whole_file(path, Buffer{1, 2, 3});
  chmod(path.c_str(), 0600);
  write_whole_file(path, Buffer{4, 5});
  EXPECT_EQ(content(path), (Buffer{4, 5}));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(count_files(folder), 1u);
}

TEST(WholeFiles, AppearTogetherOrNotAtAll) {
  const TestFolder folder;
  const std::string one = folder.file("one"), two = folder.file("two");
  write_whole_file(one, Buffer{9});
  {
    WholeFiles files;
    files.add(one, Buffer{1});
    files.add(two, Buffer{2});
    EXPECT_EQ(content(one), Buffer{9});
    EXPECT_FALSE(fs::exists(two));
  }
  EXPECT_EQ(content(one), Buffer{9});
  EXPECT_EQ(count_files(folder), 1u);
  WholeFiles files;
  files.add(one, Buffer{1});
  files.add(two, Buffer{2});
  files.commit();
  EXPECT_EQ(content(one), Buffer{1});
  EXPECT_EQ(content(two), Buffer{2});
  EXPECT_EQ(count_files(folder), 2u);
}

TEST(WholeFile, OlderFileSurvivesADiskThatIsFull) {
  const TestFolder folder;
  const std::string path = folder.file("out.png");
  write_whole_file(path, Buffer{1, 2, 3});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_whole_file(path, Buffer(5000)), InvalidArgument);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(content(path), (Buffer{1, 2, 3}));
  EXPECT_EQ(count_files(folder), 1u) << "nothing is left behind";
}

TEST(WholeFile, WritesThroughASymbolicLink) {
  const TestFolder folder;
  write_whole_file(folder.file("real"), Buffer{1});
  fs::create_symlink("real", folder.file("link"));
  write_whole_file(folder.file("link"), Buffer{2});
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(content(folder.file("real")), Buffer{2});
}

TEST(WholeFile, DeviceIsWrittenToAsItIs) {
  write_whole_file("/dev/null", Buffer{1, 2, 3});
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(WholeFile, AnOpenFileOfThisProcessIsWrittenToWhereItStands) {
  const TestFolder folder;
  const int descriptor = open(folder.file("log").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(descriptor, "ab", 2), 2);
  const std::string name = std::to_string(descriptor);
  write_whole_file("/dev/fd/" + name, Buffer{'c'});
  fs::create_symlink("/proc/self/fd/" + name, folder.file("link"));
  write_whole_file(folder.file("link"), Buffer{'d'});
  ASSERT_EQ(write(descriptor, "e", 1), 1);
  EXPECT_EQ(content(folder.file("log")), (Buffer{'a', 'b', 'c', 'd', 'e'}));
  close(descriptor);
}

TEST(WholeFile, APipeIsWrittenToThroughItsName) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  write_whole_file("/proc/self/fd/" + std::to_string(ends[1]), Buffer{'x'});
  char read_back = 0;
  EXPECT_EQ(read(ends[0], &read_back, 1), 1);
  EXPECT_EQ(read_back, 'x');
  close(ends[0]);
  close(ends[1]);
}

TEST(WholeFile, SaysWhyItCannot) {
  const TestFolder folder;
  const auto refusal_of = [](const std::string& path) {
    try {
      write_whole_file(path, Buffer{1});
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      refusal_of("/nowhere/out.png"), "cannot write /nowhere/out.png: No such file or directory");
  EXPECT_EQ(refusal_of("/tmp"), "cannot write /tmp: Is a directory");
}

}  // namespace
}  // namespace similis::media
