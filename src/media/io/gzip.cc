// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "src/core/parallel.h"
#if SIMILIS_WITH_ISAL
#include "src/media/io/gzip_isal.h"
#endif

namespace similis::media {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 20;
constexpr std::size_t kMostPerByte = 1032;  // deflate's best: 258 bytes from two bits
constexpr int kGzipOnly = 16;               // added to zlib's window bits
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // zlib counts in 32 bits

// Blocks of this size are compressed side by side. Each ends at a byte's border and takes its
// matches from the window before it, as if the member were compressed at once.
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kWindowBytes = std::size_t{1} << MAX_WBITS;
#if !SIMILIS_WITH_ISAL
constexpr std::size_t kFlushBytes = 16;  // an empty stored block, which ends a part, and some
#endif
// Deflate, no name, no time, the fastest level, Unix.
constexpr std::array<std::uint8_t, 10> kGzipHeader = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3};
constexpr std::size_t kGzipTrailerBytes = 8;

// zlib takes its input as bytes that are not const, and does not write to them.
Bytef* without_const(const std::uint8_t* bytes) { return const_cast<Bytef*>(bytes); }

struct Block {
  std::vector<std::uint8_t> deflated = {};
  std::size_t size = 0;  // of its bytes before compression
  uLong checksum = 0;
};

// The deflated bytes of a block, whose matches may lie in the window too.
std::vector<std::uint8_t> deflated(Bytes window, Bytes bytes, bool is_last) {
#if SIMILIS_WITH_ISAL
  return deflated_by_isal(window, bytes, is_last);
#else
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
          Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, deflateEnd);
  if (!window.empty()) {
    deflateSetDictionary(&stream, window.data(), static_cast<uInt>(window.size()));
  }
  const std::size_t room = deflateBound(&stream, static_cast<uLong>(bytes.size())) + kFlushBytes;
  std::vector<std::uint8_t> out(room);
  stream.next_in = without_const(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(room);
  deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);  // in one step, as there is room
  return {out.begin(), out.end() - static_cast<std::ptrdiff_t>(stream.avail_out)};
#endif
}

Block compressed_block(Bytes all, std::size_t first, bool is_last) {
  const Bytes bytes = all.subspan(first, std::min(kBlockBytes, all.size() - first));
  const std::size_t window = std::min(first, kWindowBytes);
  return {.deflated = deflated(all.subspan(first - window, window), bytes, is_last),
      .size = bytes.size(),
      .checksum = crc32(0, bytes.data(), static_cast<uInt>(bytes.size()))};
}

void append_little_endian(std::uint32_t number, std::vector<std::uint8_t>& bytes) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<std::uint8_t>(number >> shift));
  }
}

}  // namespace

bool is_gzip(Bytes start) { return start.size() >= 2 && start[0] == 0x1f && start[1] == 0x8b; }

class Content::Inflater {
 public:
  explicit Inflater(const File& file) : file_(file) {
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // At least one byte unless the file ends.
  std::size_t read_some(std::uint8_t* out, std::size_t count) {
    const std::size_t wanted = std::min(count, kMostAtOnce);
    stream_.next_out = out;
    stream_.avail_out = static_cast<uInt>(wanted);
    while (!is_done_ && stream_.avail_out == wanted) step();
    return wanted - stream_.avail_out;
  }

 private:
  void step() {
    const std::size_t offered = std::min(file_.bytes.size() - taken_, kMostAtOnce);
    stream_.next_in = without_const(file_.bytes.data() + taken_);
    stream_.avail_in = static_cast<uInt>(offered);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    taken_ += offered - stream_.avail_in;
    if (status == Z_STREAM_END) return end_member();
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_BUF_ERROR || (status == Z_OK && taken_ == file_.bytes.size() &&
                                     stream_.avail_out != 0 && offered == 0)) {
      refuse(file_, "it is cut off: its gzip data end in the middle");
    }
    if (status != Z_OK) refuse_damaged(file_, stream_.msg ? stream_.msg : "gzip");
  }

  // Bytes after a member that begin no other member are padding, as gzip treats them.
  void end_member() {
    is_done_ = !is_gzip(file_.bytes.subspan(taken_));
    if (!is_done_ && inflateReset(&stream_) != Z_OK) throw std::bad_alloc();
  }

  File file_;
  z_stream stream_{};
  std::size_t taken_ = 0;
  bool is_done_ = false;
};

Content::Content(const File& file) : file_(file) {
  if (is_gzip(file.bytes)) inflater_ = std::make_unique<Inflater>(file);
}

Content::~Content() = default;

std::size_t Content::most_bytes() const {
  return file_.bytes.size() * (inflater_ ? kMostPerByte : 1);
}

std::size_t Content::read_some(std::uint8_t* out, std::size_t count) {
  if (inflater_) return inflater_->read_some(out, count);
  const std::size_t taken = std::min(count, file_.bytes.size() - at_);
  std::copy_n(file_.bytes.begin() + static_cast<std::ptrdiff_t>(at_), taken, out);
  at_ += taken;
  return taken;
}

std::vector<std::uint8_t> Content::read(std::size_t count) {
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < count) {
    const std::size_t filled = bytes.size();
    bytes.resize(std::min(count, filled + kStep));
    const std::size_t taken = read_some(bytes.data() + filled, bytes.size() - filled);
    bytes.resize(filled + taken);
    if (taken == 0) break;
  }
  return bytes;
}

void Content::skip(std::size_t count) {
  std::array<std::uint8_t, 1 << 14> passed;
  while (count > 0) {
    const std::size_t taken = read_some(passed.data(), std::min(count, passed.size()));
    if (taken == 0) return;
    count -= taken;
  }
}

void Content::finish() {
  if (inflater_) skip(std::numeric_limits<std::size_t>::max());
}

std::vector<std::uint8_t> content_start(Bytes start, std::size_t count) {
  if (!is_gzip(start)) return {start.begin(), start.begin() + std::min(start.size(), count)};
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  std::vector<std::uint8_t> bytes(count);
  stream.next_in = without_const(start.data());
  stream.avail_in = static_cast<uInt>(start.size());
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(count);
  inflate(&stream, Z_SYNC_FLUSH);  // its status does not matter: only the output does
  bytes.resize(count - stream.avail_out);
  inflateEnd(&stream);
  return bytes;
}

std::string gzip_library() {
  const std::string reader = fmt::format("zlib {}", zlibVersion());
#if SIMILIS_WITH_ISAL
  return fmt::format("{}, written by {}", reader, isal_version());
#else
  return reader;
#endif
}

std::vector<std::uint8_t> gzip(Bytes bytes, const Execution& exec) {
  const std::size_t count =
      std::max<std::size_t>(1, (bytes.size() + kBlockBytes - 1) / kBlockBytes);
  std::vector<Block> blocks(count);
  parallel_for(exec, static_cast<std::int64_t>(count), [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    blocks[i] = compressed_block(bytes, i * kBlockBytes, i + 1 == count);
  });
  std::size_t total = kGzipHeader.size() + kGzipTrailerBytes;
  for (const Block& block : blocks) total += block.deflated.size();
  std::vector<std::uint8_t> out(kGzipHeader.begin(), kGzipHeader.end());
  out.reserve(total);
  uLong checksum = crc32(0, nullptr, 0);
  for (Block& block : blocks) {
    out.insert(out.end(), block.deflated.begin(), block.deflated.end());
    block.deflated = {};  // so that the parts and the whole are not in memory together
    checksum = crc32_combine(checksum, block.checksum, static_cast<z_off_t>(block.size));
  }
  append_little_endian(static_cast<std::uint32_t>(checksum), out);
  append_little_endian(static_cast<std::uint32_t>(bytes.size()), out);  // modulo 2^32
  return out;
}

}  // namespace similis::media
