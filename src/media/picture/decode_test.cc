// SPDX-License-Identifier: Apache-2.0
#include "src/media/picture/decode.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "src/media/picture/formats/png_writer.h"
#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string refusal_of_path(const std::string& path) {
  try {
    read_image(path);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

TEST(ReadImage, ContentDecidesNotTheName) {
  const TestFolder folder;
  const Image image = noise(5, 4, 3, 8);
  write_png(folder.file("photo.jpg"), image);
  const Image read = read_image(folder.file("photo.jpg"));
  expect_pixels(read, image);
  EXPECT_EQ(read.format, "PNG");
}

TEST(ReadImage, FirstBytesNameTheFormat) {
  const auto format_of = [](std::string_view start) {
    return known_format({reinterpret_cast<const std::uint8_t*>(start.data()), start.size()});
  };
  EXPECT_EQ(format_of("\x89PNG\r\n\x1a\n"), "PNG");
  EXPECT_EQ(format_of("\xff\xd8\xff\xe0"), "JPEG");
  EXPECT_EQ(format_of("RIFF....WEBPVP8 "), "WebP");
  EXPECT_EQ(format_of({"\0\0\0\x14"
                       "ftypmif1\0\0\0\0avif",
                20}),
      "AVIF")
      << "a compatible brand";
  EXPECT_EQ(format_of("\xff\x0a"), "JXL");
  EXPECT_EQ(format_of({"\0\0\0\x0cJXL \r\n\x87\n", 12}), "JXL");
  EXPECT_EQ(format_of({"MM\0*", 4}), "TIFF");
  EXPECT_EQ(format_of("\x76\x2f\x31\x01\x02"), "EXR");
  EXPECT_EQ(format_of("P1 "), "Netpbm");
  EXPECT_EQ(format_of("P6#a comment"), "Netpbm");
  EXPECT_EQ(format_of("P7\n"), "Netpbm");
  EXPECT_EQ(format_of("P8\n"), "");
  EXPECT_EQ(format_of("P60"), "");
  EXPECT_EQ(format_of("PF\n"), "PFM");
  EXPECT_EQ(format_of("Pf "), "PFM");
  EXPECT_EQ(format_of({"BM............\x28\0\0\0", 18}), "BMP");
  EXPECT_EQ(format_of("BM has a long history"), "");
  EXPECT_EQ(format_of("qoif"), "QOI");
  EXPECT_EQ(format_of({"\0\0\0\x10"
                       "ftypmif1\0\0\0\0avif",
                20}),
      "")
      << "beyond the box";
  EXPECT_EQ(format_of("RIFF....WAVEfmt "), "");
  EXPECT_EQ(format_of(""), "");
}

TEST(ReadImage, WhatIsNoReadableFileIsNamed) {
  const TestFolder folder;
  const std::string missing = folder.file("missing.png"), empty = folder.file("empty.png");
  EXPECT_EQ(refusal_of_path(missing), "cannot read " + missing + ": No such file or directory");
  write_content(empty, {});
  EXPECT_EQ(refusal_of_path(empty), "cannot read " + empty + ": it is empty");
  EXPECT_EQ(refusal_of_path("/tmp"), "cannot read /tmp: it is a directory; it must be a file");
  if (geteuid() != 0) {
    chmod(empty.c_str(), 0);
    EXPECT_EQ(refusal_of_path(empty), "cannot read " + empty + ": Permission denied");
  }
}

TEST(ReadImage, LargerThanAnyPictureIsRefusedUnread) {
  const TestFolder folder;
  const std::string huge = folder.file("huge.png");
  const int descriptor = open(huge.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(descriptor, off_t{1} << 40), 0);
  close(descriptor);
  EXPECT_EQ(refusal_of_path(huge),
      "cannot read " + huge + ": it is larger than the limit of 1073741824 bytes");
}

TEST(ReadImage, FifoIsReadToItsEnd) {
  const TestFolder folder;
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const Image image = noise(200, 100, 3, 16);
  std::thread writer([&] { write_content(fifo, encode_png(image)); });
  expect_pixels(read_image(fifo), image);
  writer.join();
}

TEST(ReadImage, ADashIsStandardInput) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Image image = noise(5, 4, 1, 8);
  const Buffer bytes = encode_png(image);
  ASSERT_EQ(write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(ends[1]);
  const int before = dup(STDIN_FILENO);
  ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  expect_pixels(read_image("-"), image);
  EXPECT_EQ(refusal_of_path("-"), "cannot read standard input: it is empty");
  dup2(before, STDIN_FILENO);
  close(before);
  close(ends[0]);
}

TEST(ReadImage, TextIsNoPicture) {
  const std::string text = "Dear reader, this is no picture.\n";
  EXPECT_THAT(refusal(Buffer(text.begin(), text.end()), "letter.png"),
      StartsWith("cannot read letter.png: "));
}

#if !SIMILIS_WITH_WEBP
TEST(ReadImage, WebpWithoutItsLibrarySaysWhatToInstall) {
  const std::string_view start = "RIFF....WEBPVP8 ";
  EXPECT_EQ(refusal(Buffer(start.begin(), start.end()), "a.webp"),
      "cannot read a.webp: it is WebP, but this similis was built without libwebp; install "
      "libwebp (on Debian: apt install libwebp-dev) and build again");
}
#endif

#if !SIMILIS_WITH_TIFF
TEST(ReadImage, TiffWithoutItsLibrarySaysWhatToInstall) {
  EXPECT_EQ(refusal(Buffer{'I', 'I', '*', 0}, "a.tif"),
      "cannot read a.tif: it is TIFF, but this similis was built without libtiff; install "
      "libtiff (on Debian: apt install libtiff-dev) and build again");
}
#endif

#if !SIMILIS_WITH_EXR
TEST(ReadImage, ExrWithoutItsLibrarySaysWhatToInstall) {
  EXPECT_EQ(refusal(Buffer{0x76, 0x2f, 0x31, 1}, "a.exr"),
      "cannot read a.exr: it is EXR, but this similis was built without OpenEXR; install OpenEXR "
      "(on Debian: apt install libopenexr-dev) and build again");
}
#endif

TEST(Refusal, IsOneLineWhateverTheLibrarySays) {
  try {
    refuse_damaged({.name = "a.tif"}, "Tag InkNames:\n  Value 1\r\nof\x7f\tNumberOfInks");
    FAIL() << "nothing was refused";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
        "cannot read a.tif: it is cut off or damaged (Tag InkNames: Value 1 of NumberOfInks)");
  }
}

TEST(ReadImage, SaysWhatReadsEachFormat) {
  const std::vector<FormatReader> readers = format_readers();
  ASSERT_EQ(readers.size(), 13u);
  EXPECT_EQ(readers[7].format, "Netpbm");
  EXPECT_EQ(readers[7].reader, "built in");
  EXPECT_EQ(readers[0].format, "PNG");
  EXPECT_THAT(readers[0].reader, StartsWith("libpng 1."));
  EXPECT_THAT(readers[1].reader, StartsWith("libjpeg-turbo "));
  EXPECT_EQ(readers.back().format, "others");
}

// The folder of the test data: SIMILIS_TEST_DATA, or beside the source tree; empty if there is
// none.
std::filesystem::path test_data() {
  const char* folder = std::getenv("SIMILIS_TEST_DATA");
  const std::filesystem::path data = folder ? folder : SIMILIS_SOURCE_DIR "/../shared/data";
  return std::filesystem::exists(data) ? data : std::filesystem::path();
}

std::uint64_t fnv1a(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

// The hashes are those of what djpeg 2.1.5 (JPEG) and ffmpeg 5.1.9 (PNG) decode the same files to.
TEST(ReadImage, RealFilesHaveThePixelsThatOtherProgramsSee) {
  const std::filesystem::path data = test_data();
  if (data.empty()) GTEST_SKIP() << "no ../shared/data, and SIMILIS_TEST_DATA names no folder";
  const struct {
    const char* name;
    std::int64_t width, height;
    int channels;
    std::uint64_t hash;
  } kFiles[] = {{"q45.jpg", 256, 256, 3, 0x5712255d51509faeu},
      {"q70.jpg", 256, 256, 3, 0x050db2d69851cb7eu},
      {"source.png", 256, 256, 3, 0x271627e299672477u},
      {"al_ref.png", 512, 384, 4, 0xfd93d742cf60a6ebu},
      {"c_16x16_ref.png", 16, 16, 3, 0xada99b3f9a954e24u}};
  for (const auto& file : kFiles) {
    const Image image = read_image((data / "images" / file.name).string());
    EXPECT_EQ(image.width, file.width) << file.name;
    EXPECT_EQ(image.height, file.height) << file.name;
    EXPECT_EQ(image.channels, file.channels) << file.name;
    EXPECT_EQ(fnv1a(image.samples8), file.hash) << file.name;
  }
}

}  // namespace
}  // namespace similis::media
