// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/frames_ahead.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "src/media/open.h"
#include "src/media/video/test_video.h"

namespace similis::media {
namespace {

// Frames of one byte, as many as wanted; then it ends, or breaks off.
class CountedSource : public FrameSource {
 public:
  CountedSource(std::int64_t frames, bool breaks, std::atomic<std::int64_t>& read)
      : FrameSource({.width = 1, .height = 1, .pixels = {.color_planes = 1}}, "counted"),
        frames_(frames),
        breaks_(breaks),
        read_(read) {}
  void cancel() override {}

 private:
  bool read_bytes(std::vector<std::uint8_t>& bytes) override {
    if (read_ == frames_ && breaks_) throw InvalidArgument("broken");
    if (read_ == frames_) return false;
    bytes = {static_cast<std::uint8_t>(read_++)};
    return true;
  }
  std::int64_t frames_;
  bool breaks_;
  std::atomic<std::int64_t>& read_;
};

TEST(FramesAhead, KeepsOrderNumbersAndErrors) {
  for (const bool on_thread : {false, true}) {
    std::atomic<std::int64_t> read = 0;
    FramesAhead ahead(
        std::make_unique<CountedSource>(50, true, read), [](std::int64_t n) { return n % 3 == 1; },
        on_thread);
    VideoFrame frame;
    for (std::int64_t expected = 1; expected < 50; expected += 3) {
      ASSERT_TRUE(ahead.next(frame));
      EXPECT_EQ(frame.number, expected);
      EXPECT_EQ(frame.bytes, Buffer(1, static_cast<std::uint8_t>(expected)));
    }
    EXPECT_THROW(ahead.next(frame), InvalidArgument);
    EXPECT_EQ(ahead.frames_read(), 50);
  }
}

TEST(FramesAhead, ReadsAFewFramesAheadAndNoMore) {
  std::atomic<std::int64_t> read = 0;
  FramesAhead ahead(
      std::make_unique<CountedSource>(200, false, read), [](std::int64_t) { return true; });
  VideoFrame frame;
  for (std::int64_t taken = 1; ahead.next(frame); ++taken) {
    EXPECT_LE(read, taken + 9);
    if (taken == 100) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(ahead.frames_read(), 200);
  EXPECT_FALSE(ahead.next(frame));
}

// Otherwise this test never ends.
TEST(FramesAhead, StopsWhileAPipeIsSilent) {
  const TestFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int writer = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const Buffer bytes = y4m_noise({.width = 6, .height = 4}, "", 1);
  ASSERT_EQ(write(writer, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  {
    FramesAhead ahead(open_media(path).video, [](std::int64_t) { return true; });
    VideoFrame frame;
    EXPECT_TRUE(ahead.next(frame));
  }
  close(writer);
}

}  // namespace
}  // namespace similis::media
