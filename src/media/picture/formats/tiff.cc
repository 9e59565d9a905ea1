// SPDX-License-Identifier: Apache-2.0
// Reads TIFF with libtiff: pages, grey, RGB or palette of 1 to 16 bits, with or without alpha, or
// grey or RGB of floats of 16, 32 or 64 bits, in strips or tiles. The picture is read in bands, one
// strip or one row of tiles high, so that memory is claimed as pixels arrive. A warning by libtiff
// while it decodes pixels, such as of a truncated JPEG or fax strip, is an error here.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "src/core/counted.h"
#include "src/media/picture/formats/tiff_functions.h"
#include "src/media/picture/orientation.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

constexpr std::int64_t kMaxPages = 65535;
constexpr std::int64_t kMaxPixelBytes = 24;  // RGB of 64 bits
constexpr std::size_t kPaletteColors = 3;

// No tag, strip or tile needs more than the largest picture does.
std::int64_t max_band_bytes(const File& file) { return file.max_pixels * kMaxPixelBytes; }

// libtiff's view of the bytes, and its first error.
struct Stream {
  Bytes bytes;
  std::uint64_t position = 0;
  bool in_pixels = false;
  char words[256] = "";
};

tmsize_t read_bytes(thandle_t handle, void* out, tmsize_t count) {
  auto& stream = *static_cast<Stream*>(handle);
  if (stream.position >= stream.bytes.size()) return 0;
  const std::size_t left = stream.bytes.size() - stream.position;
  const std::size_t taken = std::min(left, static_cast<std::size_t>(count));
  std::memcpy(out, stream.bytes.data() + stream.position, taken);
  stream.position += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return -1; }

toff_t seek_bytes(thandle_t handle, toff_t offset, int whence) {
  auto& stream = *static_cast<Stream*>(handle);
  if (whence == SEEK_CUR) offset += stream.position;
  if (whence == SEEK_END) offset += stream.bytes.size();
  return stream.position = offset;
}

int close_nothing(thandle_t) { return 0; }

toff_t count_bytes(thandle_t handle) { return static_cast<Stream*>(handle)->bytes.size(); }

int take_error(TIFF*, void* data, const char*, const char* format, va_list arguments) {
  auto& stream = *static_cast<Stream*>(data);
  if (!stream.words[0]) std::vsnprintf(stream.words, sizeof stream.words, format, arguments);
  return 1;
}

int take_warning(
    TIFF* tiff, void* data, const char* module, const char* format, va_list arguments) {
  if (!static_cast<Stream*>(data)->in_pixels) return 1;
  return take_error(tiff, data, module, format, arguments);
}

// A PhotometricInterpretation that is not read, with its name: "5 (CMYK)".
std::string photometric_text(std::uint16_t photometric) {
  using Name = std::pair<std::uint16_t, const char*>;
  static constexpr std::array kNames = {Name{PHOTOMETRIC_MASK, "transparency mask"},
      Name{PHOTOMETRIC_SEPARATED, "CMYK"}, Name{PHOTOMETRIC_YCBCR, "YCbCr"},
      Name{PHOTOMETRIC_CIELAB, "CIELAB"}, Name{PHOTOMETRIC_ICCLAB, "ICC LAB"},
      Name{PHOTOMETRIC_ITULAB, "ITU LAB"}, Name{PHOTOMETRIC_CFA, "colour filter array"},
      Name{PHOTOMETRIC_LOGL, "LogL"}, Name{PHOTOMETRIC_LOGLUV, "LogLuv"}};
  for (const auto& [code, name] : kNames) {
    if (code == photometric) return fmt::format("{} ({})", code, name);
  }
  return std::to_string(photometric);
}

using Handle = std::unique_ptr<TIFF, decltype(&TIFFClose)>;

Handle open_tiff(const File& file, Stream& stream) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      libtiff().TIFFOpenOptionsAlloc(), libtiff().TIFFOpenOptionsFree);
  if (!options) throw std::bad_alloc();
  libtiff().TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), max_band_bytes(file));
  libtiff().TIFFOpenOptionsSetErrorHandlerExtR(options.get(), take_error, &stream);
  libtiff().TIFFOpenOptionsSetWarningHandlerExtR(options.get(), take_warning, &stream);
  return {libtiff().TIFFClientOpenExt("TIFF", "rm", &stream, read_bytes, write_nothing, seek_bytes,
              close_nothing, count_bytes, nullptr, nullptr, options.get()),
      libtiff().TIFFClose};
}

enum class Alpha { none, straight, premultiplied };

// A page's tags.
struct Layout {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, samples = 1, colors = 1;
  std::uint16_t photometric = 0, planar = PLANARCONFIG_CONTIG, orientation = 1;
  Alpha alpha = Alpha::none;

  bool is_float = false;

  bool is_palette() const { return photometric == PHOTOMETRIC_PALETTE; }
  std::uint16_t planes() const { return planar == PLANARCONFIG_SEPARATE ? samples : 1; }
  std::uint16_t samples_per_plane() const { return planar == PLANARCONFIG_SEPARATE ? 1 : samples; }
};

// A palette's colours, red, green and blue in turn, and their depth.
struct Palette {
  std::vector<std::uint16_t> colors;
  int bit_depth = 8;
};

class TiffPage {
 public:
  TiffPage(const File& file, Stream& stream, TIFF* tiff);
  Image read();

 private:
  void take_samples();
  void take_alpha();
  void take_palette();
  void take_profile(ColorSpace& color) const;

  // Rows of pixels as stored, samples interleaved: of std::uint16_t or float.
  template <class Sample> using Band = std::vector<Sample>;
  std::size_t packed_row_bytes(std::uint64_t bytes, std::size_t columns) const;
  void unpack(const std::uint8_t* packed, std::size_t count, std::uint16_t* out) const;
  void unpack(const std::uint8_t* packed, std::size_t count, float* out) const;
  template <class Sample>
  void read_strip(std::uint32_t first_row, std::uint32_t rows, Band<Sample>& band);
  template <class Sample>
  void read_tiles(std::uint32_t first_row, std::uint32_t rows, Band<Sample>& band);
  void append(const Band<std::uint16_t>& band, Image& image) const;
  void append(const Band<float>& band, Image& image) const;
  template <class Sample> void read_bands(std::uint32_t band_rows, Image& image);
  [[noreturn]] void refuse_pixels() const { refuse_damaged(file_, stream_.words); }

  const File& file_;
  Stream& stream_;
  TIFF* tiff_;
  Layout layout_;
  Palette palette_;
};

TiffPage::TiffPage(const File& file, Stream& stream, TIFF* tiff)
    : file_(file), stream_(stream), tiff_(tiff) {
  libtiff().TIFFGetField(tiff_, TIFFTAG_IMAGEWIDTH, &layout_.width);
  libtiff().TIFFGetField(tiff_, TIFFTAG_IMAGELENGTH, &layout_.height);
  require_size(file, layout_.width, layout_.height);
  libtiff().TIFFGetFieldDefaulted(tiff_, TIFFTAG_PLANARCONFIG, &layout_.planar);
  libtiff().TIFFGetFieldDefaulted(tiff_, TIFFTAG_ORIENTATION, &layout_.orientation);
  take_samples();
  take_alpha();
  if (layout_.is_palette()) take_palette();
}

void TiffPage::take_samples() {
  std::uint16_t format = SAMPLEFORMAT_UINT, compression = COMPRESSION_NONE;
  libtiff().TIFFGetFieldDefaulted(tiff_, TIFFTAG_BITSPERSAMPLE, &layout_.bits);
  libtiff().TIFFGetFieldDefaulted(tiff_, TIFFTAG_SAMPLESPERPIXEL, &layout_.samples);
  libtiff().TIFFGetFieldDefaulted(tiff_, TIFFTAG_SAMPLEFORMAT, &format);
  libtiff().TIFFGetFieldDefaulted(tiff_, TIFFTAG_COMPRESSION, &compression);
  const bool has_meaning =
      libtiff().TIFFGetField(tiff_, TIFFTAG_PHOTOMETRIC, &layout_.photometric) != 0;
  layout_.is_float = format == SAMPLEFORMAT_IEEEFP;
  const bool is_depth = layout_.is_float
                            ? layout_.bits == 16 || layout_.bits == 32 || layout_.bits == 64
                            : layout_.bits >= 1 && layout_.bits <= 16;
  if (!is_depth || format == SAMPLEFORMAT_INT) {
    refuse(file_,
        "it has {}-bit {} samples; they must be unsigned integers of at most 16 bits, or floats of "
        "16, 32 or 64 bits",
        layout_.bits,
        layout_.is_float             ? "floating-point"
        : format == SAMPLEFORMAT_INT ? "signed"
                                     : "unsigned");
  }
  const bool is_jpeg_color =
      layout_.photometric == PHOTOMETRIC_YCBCR && compression == COMPRESSION_JPEG;
  if (is_jpeg_color) libtiff().TIFFSetField(tiff_, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  const bool is_grey = layout_.photometric == PHOTOMETRIC_MINISBLACK ||
                       (layout_.photometric == PHOTOMETRIC_MINISWHITE && !layout_.is_float);
  if (layout_.photometric == PHOTOMETRIC_RGB || is_jpeg_color) {
    layout_.colors = 3;
  } else if (!has_meaning) {
    refuse(file_, "its PhotometricInterpretation is missing");
  } else if (!is_grey && (!layout_.is_palette() || layout_.is_float)) {
    refuse(file_,
        "PhotometricInterpretation {} is not supported; convert the picture to grey or RGB first",
        photometric_text(layout_.photometric));
  }
}

void TiffPage::take_alpha() {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  libtiff().TIFFGetFieldDefaulted(tiff_, TIFFTAG_EXTRASAMPLES, &count, &kinds);
  const bool has_alpha =
      count == 1 && (kinds[0] == EXTRASAMPLE_UNASSALPHA || kinds[0] == EXTRASAMPLE_ASSOCALPHA);
  if (layout_.samples != layout_.colors + has_alpha || (has_alpha && layout_.is_palette())) {
    refuse(file_, "it has {}; only {}, or {} with alpha, are supported",
        counted(layout_.samples, "channel"), layout_.colors, layout_.colors + 1);
  }
  if (!has_alpha) return;
  if (layout_.is_float) refuse(file_, "it has floats with alpha; remove the alpha channel first");
  layout_.alpha = kinds[0] == EXTRASAMPLE_ASSOCALPHA ? Alpha::premultiplied : Alpha::straight;
}

// A palette holds 16-bit colours, which come from 8-bit ones where both bytes agree or the low one
// is 0, or where, as some writers have it, nothing exceeds 255.
void TiffPage::take_palette() {
  std::uint16_t* channels[3] = {};
  if (layout_.bits > 8 ||
      !libtiff().TIFFGetField(tiff_, TIFFTAG_COLORMAP, &channels[0], &channels[1], &channels[2])) {
    refuse_damaged(file_, "its palette is missing");
  }
  bool fits_low = true, fits_high = true;
  for (std::size_t i = 0; i < std::size_t{1} << layout_.bits; ++i) {
    for (const std::uint16_t* channel : channels) {
      const int high = channel[i] >> 8, low = channel[i] & 255;
      fits_low = fits_low && high == 0;
      fits_high = fits_high && (low == 0 || low == high);
      palette_.colors.push_back(channel[i]);
    }
  }
  palette_.bit_depth = fits_low || fits_high ? 8 : 16;
  if (!fits_low && fits_high) {
    for (std::uint16_t& color : palette_.colors) color >>= 8;
  }
}

// Samples of 16 bits come in the machine's byte order; others are strings of bits, the first
// highest.
void TiffPage::unpack(const std::uint8_t* packed, std::size_t count, std::uint16_t* out) const {
  const std::size_t bits = layout_.bits;
  if (bits == 16) {
    std::memcpy(out, packed, count * sizeof(std::uint16_t));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = i * bits, end = first + bits;
    std::uint32_t window = 0;
    for (std::size_t byte = first / 8; byte <= (end - 1) / 8; ++byte) {
      window = window << 8 | packed[byte];
    }
    out[i] = static_cast<std::uint16_t>(window >> ((8 - end % 8) % 8) & ((1u << bits) - 1));
  }
}

// A half-precision float's value, exactly.
float half_value(std::uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  float value = 0;
  if (exponent == 31) {
    value = mantissa == 0 ? std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return half & 0x8000 ? -value : value;
}

template <class Stored, class Convert>
void convert_each(const std::uint8_t* packed, std::size_t count, float* out, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, packed + i * sizeof stored, sizeof stored);
    out[i] = convert(stored);
  }
}

// Floats come in the machine's byte order.
void TiffPage::unpack(const std::uint8_t* packed, std::size_t count, float* out) const {
  if (layout_.bits == 32) {
    std::memcpy(out, packed, count * sizeof(float));
  } else if (layout_.bits == 16) {
    convert_each<std::uint16_t>(packed, count, out, half_value);
  } else {
    convert_each<double>(packed, count, out, [](double v) { return static_cast<float>(v); });
  }
}

// Copies `samples` samples a pixel to where the plane's samples belong in each pixel of the band.
template <class Sample>
void spread(const Sample* from, std::size_t pixels, std::size_t samples, Sample* to,
    std::size_t to_samples) {
  for (std::size_t i = 0; i < pixels; ++i) {
    std::copy_n(from + i * samples, samples, to + i * to_samples);
  }
}

// Requires a row as libtiff sizes it to have all that unpack will read.
std::size_t TiffPage::packed_row_bytes(std::uint64_t bytes, std::size_t columns) const {
  const std::uint64_t bits = std::uint64_t{columns} * layout_.samples_per_plane() * layout_.bits;
  if (bytes < (bits + 7) / 8) refuse_damaged(file_, "its rows have no sensible size");
  return bytes;
}

template <class Sample>
void TiffPage::read_strip(std::uint32_t first_row, std::uint32_t rows, Band<Sample>& band) {
  const std::size_t samples = layout_.samples_per_plane(), width = layout_.width;
  const std::size_t row_bytes = packed_row_bytes(libtiff().TIFFScanlineSize64(tiff_), width);
  const auto packed = std::make_unique_for_overwrite<std::uint8_t[]>(row_bytes * rows);
  Band<Sample> row(width * samples);
  for (std::uint16_t plane = 0; plane < layout_.planes(); ++plane) {
    const auto bytes = static_cast<tmsize_t>(row_bytes * rows);
    const std::uint32_t strip = libtiff().TIFFComputeStrip(tiff_, first_row, plane);
    if (libtiff().TIFFReadEncodedStrip(tiff_, strip, packed.get(), bytes) != bytes ||
        stream_.words[0]) {
      refuse_pixels();
    }
    band.resize(width * rows * layout_.samples);
    for (std::uint32_t y = 0; y < rows; ++y) {
      unpack(packed.get() + y * row_bytes, row.size(), row.data());
      spread(row.data(), width, samples, band.data() + y * width * layout_.samples + plane,
          layout_.samples);
    }
  }
}

template <class Sample>
void TiffPage::read_tiles(std::uint32_t first_row, std::uint32_t rows, Band<Sample>& band) {
  std::uint32_t tile_width = 0;
  libtiff().TIFFGetField(tiff_, TIFFTAG_TILEWIDTH, &tile_width);
  const std::size_t samples = layout_.samples_per_plane();
  const std::size_t row_bytes = packed_row_bytes(libtiff().TIFFTileRowSize64(tiff_), tile_width);
  const tmsize_t bytes = libtiff().TIFFTileSize(tiff_);
  if (tile_width == 0 || tile_width > kMaxSide || bytes > max_band_bytes(file_) ||
      static_cast<std::size_t>(bytes) < row_bytes * rows) {
    refuse_damaged(file_, "its tiles have no sensible size");
  }
  const auto packed =
      std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(bytes));
  Band<Sample> row(tile_width * samples);
  for (std::uint16_t plane = 0; plane < layout_.planes(); ++plane) {
    for (std::uint32_t x = 0; x < layout_.width; x += tile_width) {
      const std::uint32_t tile = libtiff().TIFFComputeTile(tiff_, x, first_row, 0, plane);
      if (libtiff().TIFFReadEncodedTile(tiff_, tile, packed.get(), bytes) != bytes ||
          stream_.words[0]) {
        refuse_pixels();
      }
      band.resize(std::size_t{layout_.width} * rows * layout_.samples);
      const std::uint32_t columns = std::min(tile_width, layout_.width - x);
      for (std::uint32_t y = 0; y < rows; ++y) {
        unpack(packed.get() + y * row_bytes, columns * samples, row.data());
        spread(row.data(), columns, samples,
            band.data() + (std::size_t{y} * layout_.width + x) * layout_.samples + plane,
            layout_.samples);
      }
    }
  }
}

// Colours divided by alpha, rounded to nearest; black where alpha is 0.
void make_straight(std::uint16_t* pixel, std::size_t colors, std::uint32_t top) {
  const std::uint32_t alpha = pixel[colors];
  for (std::size_t i = 0; i < colors; ++i) {
    const std::uint64_t scaled = std::uint64_t{pixel[i]} * top + alpha / 2;
    pixel[i] = static_cast<std::uint16_t>(alpha ? std::min<std::uint64_t>(scaled / alpha, top) : 0);
  }
}

void TiffPage::append(const Band<float>& band, Image& image) const {
  image.samples_float.insert(image.samples_float.end(), band.begin(), band.end());
}

void TiffPage::append(const Band<std::uint16_t>& band, Image& image) const {
  const std::uint32_t top = (1u << layout_.bits) - 1;
  const auto keep = [&](std::uint32_t code, int depth) {
    if (image.bit_depth == 8) {
      image.samples8.push_back(static_cast<std::uint8_t>(rescale_code(code, depth, 8)));
    } else {
      image.samples16.push_back(rescale_code(code, depth, 16));
    }
  };
  std::uint16_t pixel[4];
  for (std::size_t at = 0; at < band.size(); at += layout_.samples) {
    std::copy_n(band.data() + at, layout_.samples, pixel);
    if (layout_.is_palette()) {
      const std::uint16_t* color = palette_.colors.data() + kPaletteColors * pixel[0];
      for (std::size_t i = 0; i < kPaletteColors; ++i) keep(color[i], palette_.bit_depth);
      continue;
    }
    if (layout_.photometric == PHOTOMETRIC_MINISWHITE) {
      pixel[0] = static_cast<std::uint16_t>(top - pixel[0]);
    }
    if (layout_.alpha == Alpha::premultiplied) make_straight(pixel, layout_.colors, top);
    for (std::size_t i = 0; i < layout_.samples; ++i) keep(pixel[i], layout_.bits);
  }
}

void TiffPage::take_profile(ColorSpace& color) const {
  std::uint32_t length = 0;
  const std::uint8_t* profile = nullptr;
  if (libtiff().TIFFGetField(tiff_, TIFFTAG_ICCPROFILE, &length, &profile)) {
    color.icc_profile.assign(profile, profile + length);
  }
}

template <class Sample> void TiffPage::read_bands(std::uint32_t band_rows, Image& image) {
  for (std::uint32_t row = 0; row < layout_.height;) {
    const std::uint32_t rows = std::min(band_rows, layout_.height - row);
    Band<Sample> band;
    libtiff().TIFFIsTiled(tiff_) ? read_tiles(row, rows, band) : read_strip(row, rows, band);
    append(band, image);
    row += rows;
  }
}

Image TiffPage::read() {
  const int depth = layout_.is_float       ? kFloatBits
                    : layout_.is_palette() ? palette_.bit_depth
                                           : layout_.bits;
  Image image{.width = layout_.width,
      .height = layout_.height,
      .channels = layout_.is_palette() ? 3 : layout_.samples,
      .bit_depth = layout_.is_float ? kFloatBits
                   : depth > 8      ? 16
                                    : 8,
      .source_bit_depth = depth,
      .format = "TIFF"};
  take_profile(image.color);
  std::uint32_t band_rows = layout_.height;
  libtiff().TIFFGetFieldDefaulted(
      tiff_, libtiff().TIFFIsTiled(tiff_) ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &band_rows);
  if (band_rows == 0) refuse_damaged(file_, "its strips have no rows");
  const auto count = static_cast<std::size_t>(image.width * image.height * image.channels);
  if (layout_.is_float) image.samples_float.reserve(count);
  if (image.bit_depth == 8) image.samples8.reserve(count);
  if (image.bit_depth == 16) image.samples16.reserve(count);
  stream_.in_pixels = true;
  layout_.is_float ? read_bands<float>(band_rows, image)
                   : read_bands<std::uint16_t>(band_rows, image);
  apply_orientation(image, layout_.orientation);
  return image;
}

// The pages that are no thumbnail or mask of another; the first, if all are.
std::vector<tdir_t> find_pages(const File& file, const Stream& stream, TIFF* tiff) {
  constexpr std::uint32_t kOfAnother = FILETYPE_REDUCEDIMAGE | FILETYPE_MASK;
  std::vector<tdir_t> pages;
  do {
    std::uint32_t kind = 0;
    libtiff().TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind);
    if (kind & kOfAnother) continue;
    if (pages.size() == kMaxPages) refuse(file, "it has more than {} pages", kMaxPages);
    pages.push_back(libtiff().TIFFCurrentDirectory(tiff));
  } while (libtiff().TIFFReadDirectory(tiff));
  if (stream.words[0]) refuse_damaged(file, stream.words);
  if (pages.empty()) pages.push_back(0);
  return pages;
}

}  // namespace

void read_tiff_pages(const File& file, const TakePicture& take) {
  libtiff().require_loaded(file.name);
  Stream stream{.bytes = file.bytes};
  const Handle tiff = open_tiff(file, stream);
  if (!tiff) refuse_damaged(file, stream.words);
  const std::vector<tdir_t> pages = find_pages(file, stream, tiff.get());
  for (const tdir_t page : pages) {
    stream.in_pixels = false;
    if (!libtiff().TIFFSetDirectory(tiff.get(), page)) refuse_damaged(file, stream.words);
    Image image = TiffPage(file, stream, tiff.get()).read();
    image.frames = static_cast<std::int64_t>(pages.size());
    if (!take(std::move(image))) return;
  }
}

Image read_tiff(const File& file) { return first_picture(file, read_tiff_pages); }

std::string tiff_library() {
  if (!libtiff().problem.empty()) return libtiff().problem;
  const std::string version = libtiff().TIFFGetVersion();  // "LIBTIFF, Version 4.5.0\nCopyright …"
  const std::size_t number = version.find("Version ") + 8;
  return "libtiff " + version.substr(number, version.find('\n') - number);
}

}  // namespace similis::media
