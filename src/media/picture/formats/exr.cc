// SPDX-License-Identifier: Apache-2.0
// Reads OpenEXR with its library: grey (Y) or RGB of half, float or unsigned samples, in scan lines
// or tiles, as floats, which are as stored. The picture is the display window; what of it lies
// outside the data window is 0. Rows are read a few at a time, so that memory is claimed as pixels
// arrive.
#include <OpenEXR/ImfChannelList.h>
#include <OpenEXR/ImfFrameBuffer.h>
#include <OpenEXR/ImfHeader.h>
#include <OpenEXR/ImfIO.h>
#include <OpenEXR/ImfInputFile.h>
#include <OpenEXR/OpenEXRConfig.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

// Rows are read together, since most compressions store up to 32 rows together.
constexpr std::int64_t kRowsAtOnce = 64, kPixelsAtOnce = 1 << 22;
constexpr int kMaxTileSide = 1 << 13;

// The library's view of the bytes.
class Stream : public Imf::IStream {
 public:
  explicit Stream(Bytes bytes) : IStream("EXR"), bytes_(bytes) {}
  bool read(char out[], int count) override {
    const auto wanted = static_cast<std::size_t>(count);
    if (count < 0 || position_ > bytes_.size() || wanted > bytes_.size() - position_) {
      throw Iex::InputExc("the file ends early");
    }
    std::memcpy(out, bytes_.data() + position_, wanted);
    position_ += wanted;
    return position_ < bytes_.size();
  }
  std::uint64_t tellg() override { return position_; }
  void seekg(std::uint64_t position) override { position_ = position; }

 private:
  Bytes bytes_;
  std::uint64_t position_ = 0;
};

// Corners included.
struct Window {
  std::int64_t left, top, right, bottom;
  std::int64_t width() const { return right - left + 1; }
  std::int64_t height() const { return bottom - top + 1; }
};

Window window_of(const Imath::Box2i& box) { return {box.min.x, box.min.y, box.max.x, box.max.y}; }

// The names of the channels to read: Y or R, G, B, and A where there is one.
std::vector<const char*> channels_of(const File& file, const Imf::ChannelList& list) {
  std::vector<const char*> names;
  const auto has = [&](const char* name) { return list.findChannel(name) != nullptr; };
  if (has("R") && has("G") && has("B")) {
    names = {"R", "G", "B"};
  } else if (has("Y") && !has("RY") && !has("BY")) {
    names = {"Y"};
  } else {
    std::string found;
    for (auto channel = list.begin(); channel != list.end(); ++channel) {
      found += (found.empty() ? "" : ", ") + one_line(channel.name());
    }
    refuse(file, "its channels are {}; only R, G and B, or Y alone, are supported", found);
  }
  if (has("A")) names.push_back("A");
  for (const char* name : names) {
    const Imf::Channel& channel = list[name];
    if (channel.xSampling == 1 && channel.ySampling == 1) continue;
    refuse(file, "its channel {} has fewer samples than pixels, which is not supported", name);
  }
  return names;
}

class ExrPicture {
 public:
  ExrPicture(const File& file, Imf::InputFile& input)
      : file_(file),
        input_(input),
        data_(window_of(input.header().dataWindow())),
        shown_(window_of(input.header().displayWindow())) {
    require_size(file, shown_.width(), shown_.height());
    require_size(file, data_.width(), data_.height());
    names_ = channels_of(file, input.header().channels());
    has_alpha_ = names_.size() % 2 == 0;
  }

  Image read() {
    const std::size_t colors = names_.size() - has_alpha_;
    Image image{.width = shown_.width(),
        .height = shown_.height(),
        .channels = static_cast<int>(colors),
        .bit_depth = kFloatBits,
        .source_bit_depth = kFloatBits,
        .format = "EXR"};
    image.samples_float.reserve(static_cast<std::size_t>(image.width * image.height) * colors);
    for (std::int64_t y = shown_.top; y <= shown_.bottom; ++y) append_row(y, colors, image);
    return image;
  }

 private:
  // Reads the rows from `first` on into the band, pixels interleaved.
  void read_band(std::int64_t first) {
    band_first_ = first;
    const std::int64_t rows =
        std::clamp<std::int64_t>(kPixelsAtOnce / data_.width(), 1, kRowsAtOnce);
    band_end_ = std::min(first + rows, data_.bottom + 1);
    const std::size_t pixel_bytes = names_.size() * sizeof(float);
    const std::size_t row_bytes = static_cast<std::size_t>(data_.width()) * pixel_bytes;
    band_.resize(static_cast<std::size_t>(band_end_ - first) * row_bytes / sizeof(float));
    Imf::FrameBuffer buffer;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      // The library adds y·row_bytes + x·pixel_bytes to the address of a pixel at 0, 0.
      const auto at = reinterpret_cast<std::intptr_t>(band_.data() + i) -
                      first * static_cast<std::int64_t>(row_bytes) -
                      data_.left * static_cast<std::int64_t>(pixel_bytes);
      buffer.insert(
          names_[i], Imf::Slice(Imf::FLOAT, reinterpret_cast<char*>(at), pixel_bytes, row_bytes));
    }
    input_.setFrameBuffer(buffer);
    input_.readPixels(static_cast<int>(first), static_cast<int>(band_end_ - 1));
  }

  void append_row(std::int64_t y, std::size_t colors, Image& image) {
    std::vector<float>& samples = image.samples_float;
    const bool is_stored = y >= data_.top && y <= data_.bottom;
    if (is_stored && (y < band_first_ || y >= band_end_)) read_band(y);
    for (std::int64_t x = shown_.left; x <= shown_.right; ++x) {
      if (!is_stored || x < data_.left || x > data_.right) {
        samples.insert(samples.end(), colors, 0);
        continue;
      }
      const std::int64_t pixel = (y - band_first_) * data_.width() + x - data_.left;
      const float* const from = band_.data() + static_cast<std::size_t>(pixel) * names_.size();
      if (has_alpha_ && from[colors] != 1) {
        refuse(file_, "it has transparent pixels; an EXR picture must be opaque");
      }
      samples.insert(samples.end(), from, from + colors);
    }
  }

  const File& file_;
  Imf::InputFile& input_;
  Window data_, shown_;
  std::vector<const char*> names_;
  bool has_alpha_ = false;
  std::vector<float> band_;
  std::int64_t band_first_ = 0, band_end_ = 0;  // no rows yet
};

}  // namespace

Image read_exr(const File& file) {
  [[maybe_unused]] static const bool has_limits = [] {
    Imf::Header::setMaxImageSize(kMaxSide, kMaxSide);
    Imf::Header::setMaxTileSize(kMaxTileSide, kMaxTileSide);
    return true;
  }();
  try {
    Stream stream(file.bytes);
    Imf::InputFile input(stream, 0);
    return ExrPicture(file, input).read();
  } catch (const InvalidArgument&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    refuse_damaged(file, error.what());
  }
}

std::string exr_library() { return "OpenEXR " OPENEXR_VERSION_STRING; }

}  // namespace similis::media
