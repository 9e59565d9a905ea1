// SPDX-License-Identifier: Apache-2.0
// Reads JPEG with libjpeg-turbo's defaults (its accurate integer IDCT and fancy upsampling), since
// another decoder would change scores by more than encoders differ. A warning of libjpeg, such as a
// grey lower half in place of missing data, is an error here.
//
// libjpeg reports errors by longjmp: every call into it is in guarded(), whose callee holds nothing
// with a destructor.
#include <cstdio>  // before jpeglib.h, which needs it

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdlib>
#include <memory>

#include "src/media/picture/orientation.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1, kProfileMarker = JPEG_APP0 + 2;
constexpr unsigned kLongestMarker = 0xFFFF;
// Encoders write about 10; each scan decodes the whole picture again.
constexpr int kMaxScans = 100;
constexpr std::int64_t kRowsPerCall = 16;

class JpegFile {
 public:
  explicit JpegFile(const File& file) : file_(file) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_.client_data = this;
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    errors_.output_message = [](j_common_ptr) {};
  }
  ~JpegFile() { jpeg_destroy_decompress(&jpeg_); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  Image read();

 private:
  // Runs calls of libjpeg. `calls` must hold nothing with a destructor.
  template <class Calls> void guarded(const Calls& calls) {
    if (!returns(calls)) refuse_damaged(file_, message_.data());
  }
  template <class Calls> bool returns(const Calls& calls) {
    if (setjmp(give_up_)) return false;
    calls();
    return true;
  }
  static JpegFile& self(j_common_ptr jpeg) { return *static_cast<JpegFile*>(jpeg->client_data); }
  static void on_error(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, self(jpeg).message_.data());
    std::longjmp(self(jpeg).give_up_, 1);
  }
  static void on_message(j_common_ptr jpeg, int level);
  static void on_progress(j_common_ptr jpeg);

  void read_header();
  void read_rows(Image& image);
  ColorSpace color();
  int orientation() const;

  const File& file_;
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf give_up_{};
  std::array<char, JMSG_LENGTH_MAX> message_{};
  bool in_scans_ = false;
};

// Level -1 is a warning, others are messages. Stray bytes between the headers' markers and a new
// revision of JFIF change no pixel.
void JpegFile::on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  const int code = jpeg->err->msg_code;
  const bool is_harmless =
      code == JWRN_JFIF_MAJOR || (code == JWRN_EXTRANEOUS_DATA && !self(jpeg).in_scans_);
  if (!is_harmless) on_error(jpeg);
}

void JpegFile::on_progress(j_common_ptr jpeg) {
  const int scan = reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number;
  if (scan <= kMaxScans) return;
  std::snprintf(
      self(jpeg).message_.data(), JMSG_LENGTH_MAX, "it has more than %d scans", kMaxScans);
  std::longjmp(self(jpeg).give_up_, 1);
}

void JpegFile::read_header() {
  guarded([&] {
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    progress_.progress_monitor = on_progress;
    jpeg_mem_src(&jpeg_, file_.bytes.data(), file_.bytes.size());
    jpeg_save_markers(&jpeg_, kExifMarker, kLongestMarker);
    jpeg_save_markers(&jpeg_, kProfileMarker, kLongestMarker);
    jpeg_read_header(&jpeg_, TRUE);
  });
  switch (jpeg_.jpeg_color_space) {
    case JCS_GRAYSCALE: jpeg_.out_color_space = JCS_GRAYSCALE; break;
    case JCS_YCbCr:
    case JCS_RGB: jpeg_.out_color_space = JCS_RGB; break;
    case JCS_CMYK:
    case JCS_YCCK: refuse(file_, "CMYK is not supported; convert the picture to RGB first");
    default:
      refuse(file_, "its {} channels are neither grey nor RGB; convert the picture to RGB first",
          jpeg_.num_components);
  }
}

void JpegFile::read_rows(Image& image) {
  in_scans_ = true;
  guarded([&] { jpeg_start_decompress(&jpeg_); });
  const auto row_samples = static_cast<std::size_t>(image.width * image.channels);
  image.samples8.reserve(row_samples * static_cast<std::size_t>(image.height));
  while (jpeg_.output_scanline < jpeg_.output_height) {
    const std::int64_t rows =
        std::min<std::int64_t>(kRowsPerCall, jpeg_.output_height - jpeg_.output_scanline);
    const std::size_t filled = image.samples8.size();
    image.samples8.resize(filled + row_samples * static_cast<std::size_t>(rows));
    JSAMPROW row = image.samples8.data() + filled;
    guarded([&] {
      for (std::int64_t i = 0; i < rows; ++i, row += row_samples) {
        jpeg_read_scanlines(&jpeg_, &row, 1);
      }
    });
  }
  guarded([&] { jpeg_finish_decompress(&jpeg_); });
}

ColorSpace JpegFile::color() {
  JOCTET* profile = nullptr;
  unsigned length = 0;
  guarded([&] { jpeg_read_icc_profile(&jpeg_, &profile, &length); });
  const std::unique_ptr<JOCTET, decltype(&std::free)> owner(profile, &std::free);
  return profile ? ColorSpace{.icc_profile = {profile, profile + length}} : ColorSpace{};
}

int JpegFile::orientation() const {
  static constexpr std::string_view kExif("Exif\0\0", 6);
  for (const jpeg_marker_struct* marker = jpeg_.marker_list; marker; marker = marker->next) {
    const Bytes data(marker->data, marker->data_length);
    if (marker->marker != kExifMarker || data.size() < kExif.size()) continue;
    if (std::equal(kExif.begin(), kExif.end(), data.begin())) return exif_orientation(data);
  }
  return 1;
}

Image JpegFile::read() {
  read_header();
  if (jpeg_.data_precision != 8) {
    refuse(file_, "it has {} bits per sample; only 8-bit JPEG is supported", jpeg_.data_precision);
  }
  Image image{.width = jpeg_.image_width,
      .height = jpeg_.image_height,
      .channels = jpeg_.out_color_space == JCS_GRAYSCALE ? 1 : 3,
      .color = color(),
      .format = "JPEG"};
  require_size(file_, image.width, image.height);
  const int turn = orientation();
  read_rows(image);
  apply_orientation(image, turn);
  return image;
}

}  // namespace

Image read_jpeg(const File& file) { return JpegFile(file).read(); }

std::string jpeg_library() {
#ifdef LIBJPEG_TURBO_VERSION
#define SIMILIS_WORDS(x) #x
#define SIMILIS_EXPANDED(x) SIMILIS_WORDS(x)
  return "libjpeg-turbo " SIMILIS_EXPANDED(LIBJPEG_TURBO_VERSION);
#else
  return fmt::format("libjpeg {}", JPEG_LIB_VERSION);
#endif
}

}  // namespace similis::media
