// SPDX-License-Identifier: Apache-2.0
#include "src/media/volume/nifti_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

namespace similis::media {
namespace {

enum class Kind : std::uint8_t { integer, real };

// One number, or the first of several, in a header.
struct Field {
  std::size_t offset;
  std::size_t bytes;
  Kind kind;
};

struct Layout {
  std::size_t header_bytes;
  std::size_t magic;
  Field dim, pixdim, intent_code, datatype, bits, samples_offset, slope, intercept, units;
  Field qform_code, sform_code, quaternion, qform_offset, sform_rows;
  std::size_t description;
};

constexpr Layout kNifti1 = {.header_bytes = 348,
    .magic = 344,
    .dim = {40, 2, Kind::integer},
    .pixdim = {76, 4, Kind::real},
    .intent_code = {68, 2, Kind::integer},
    .datatype = {70, 2, Kind::integer},
    .bits = {72, 2, Kind::integer},
    .samples_offset = {108, 4, Kind::real},
    .slope = {112, 4, Kind::real},
    .intercept = {116, 4, Kind::real},
    .units = {123, 1, Kind::integer},
    .qform_code = {252, 2, Kind::integer},
    .sform_code = {254, 2, Kind::integer},
    .quaternion = {256, 4, Kind::real},
    .qform_offset = {268, 4, Kind::real},
    .sform_rows = {280, 4, Kind::real},
    .description = 148};
constexpr Layout kNifti2 = {.header_bytes = 540,
    .magic = 4,
    .dim = {16, 8, Kind::integer},
    .pixdim = {104, 8, Kind::real},
    .intent_code = {504, 4, Kind::integer},
    .datatype = {12, 2, Kind::integer},
    .bits = {14, 2, Kind::integer},
    .samples_offset = {168, 8, Kind::integer},
    .slope = {176, 8, Kind::real},
    .intercept = {184, 8, Kind::real},
    .units = {500, 4, Kind::integer},
    .qform_code = {344, 4, Kind::integer},
    .sform_code = {348, 4, Kind::integer},
    .quaternion = {352, 8, Kind::real},
    .qform_offset = {376, 8, Kind::real},
    .sform_rows = {400, 8, Kind::real},
    .description = 240};

constexpr std::size_t kDescriptionBytes = 80;

const Layout& layout_of(int version) { return version == 1 ? kNifti1 : kNifti2; }

// The bytes of a number of `Bits`, of which the file has the first byte first or last.
template <class Bits> Bits load(const std::uint8_t* bytes, bool is_big_endian) {
  Bits value = 0;
  for (std::size_t i = 0; i < sizeof(Bits); ++i) {
    const std::size_t shift = 8 * (is_big_endian ? sizeof(Bits) - 1 - i : i);
    value = static_cast<Bits>(value | static_cast<Bits>(static_cast<Bits>(bytes[i]) << shift));
  }
  return value;
}

template <class Bits> void store(Bits value, std::uint8_t* bytes) {
  for (std::size_t i = 0; i < sizeof(Bits); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

class HeaderReader {
 public:
  HeaderReader(Bytes bytes, bool is_big_endian) : bytes_(bytes), is_big_endian_(is_big_endian) {}

  std::int64_t integer(const Field& field, std::size_t index = 0) const {
    const std::uint8_t* at = bytes_.data() + field.offset + index * field.bytes;
    switch (field.bytes) {
      case 1: return *at;
      case 2: return static_cast<std::int16_t>(load<std::uint16_t>(at, is_big_endian_));
      case 4: return static_cast<std::int32_t>(load<std::uint32_t>(at, is_big_endian_));
      default: return static_cast<std::int64_t>(load<std::uint64_t>(at, is_big_endian_));
    }
  }
  double real(const Field& field, std::size_t index = 0) const {
    if (field.kind == Kind::integer) return static_cast<double>(integer(field, index));
    const std::uint8_t* at = bytes_.data() + field.offset + index * field.bytes;
    if (field.bytes == 4) {
      return static_cast<double>(std::bit_cast<float>(load<std::uint32_t>(at, is_big_endian_)));
    }
    return std::bit_cast<double>(load<std::uint64_t>(at, is_big_endian_));
  }

 private:
  Bytes bytes_;
  bool is_big_endian_;
};

class HeaderWriter {
 public:
  explicit HeaderWriter(std::size_t bytes) : bytes_(bytes) {}

  void put(const Field& field, std::int64_t value, std::size_t index = 0) {
    std::uint8_t* at = bytes_.data() + field.offset + index * field.bytes;
    switch (field.bytes) {
      case 1: *at = static_cast<std::uint8_t>(value); break;
      case 2: store(static_cast<std::uint16_t>(value), at); break;
      case 4: store(static_cast<std::uint32_t>(value), at); break;
      default: store(static_cast<std::uint64_t>(value), at); break;
    }
  }
  void put(const Field& field, double value, std::size_t index = 0) {
    if (field.kind == Kind::integer) return put(field, static_cast<std::int64_t>(value), index);
    std::uint8_t* at = bytes_.data() + field.offset + index * field.bytes;
    if (field.bytes == 4) {
      store(std::bit_cast<std::uint32_t>(static_cast<float>(value)), at);
    } else {
      store(std::bit_cast<std::uint64_t>(value), at);
    }
  }
  void put(std::size_t offset, std::string_view text) {
    std::copy(text.begin(), text.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

struct Signature {
  int version;
  bool is_big_endian;
};

// By the header's own length, which comes first.
std::optional<Signature> signature_of(Bytes start) {
  if (start.size() < kNiftiLengthBytes) return std::nullopt;
  for (const int version : {1, 2}) {
    for (const bool is_big_endian : {false, true}) {
      if (load<std::uint32_t>(start.data(), is_big_endian) == layout_of(version).header_bytes) {
        return Signature{version, is_big_endian};
      }
    }
  }
  return std::nullopt;
}

// "n+1" with its zero, "n+2\0\r\n\x1a\n"; "ni1" and "ni2" where the samples are in another file.
std::string_view magic_of(int version, bool is_of_pair) {
  if (version == 1) return is_of_pair ? std::string_view("ni1\0", 4) : std::string_view("n+1\0", 4);
  return is_of_pair ? std::string_view("ni2\0\r\n\x1a\n", 8)
                    : std::string_view("n+2\0\r\n\x1a\n", 8);
}

bool has_magic(Bytes bytes, int version, bool is_of_pair) {
  const std::string_view magic = magic_of(version, is_of_pair);
  const std::size_t offset = layout_of(version).magic;
  return bytes.size() >= offset + magic.size() &&
         std::memcmp(bytes.data() + offset, magic.data(), magic.size()) == 0;
}

void parse_placement(const HeaderReader& reader, const Layout& layout, NiftiHeader& header) {
  header.qform_code = reader.integer(layout.qform_code);
  header.sform_code = reader.integer(layout.sform_code);
  for (std::size_t i = 0; i < 3; ++i) {
    header.quaternion[i] = reader.real(layout.quaternion, i);
    header.qform_offset[i] = reader.real(layout.qform_offset, i);
    for (std::size_t j = 0; j < 4; ++j) {
      header.sform_rows[i][j] = reader.real(layout.sform_rows, 4 * i + j);
    }
  }
}

}  // namespace

std::size_t nifti_header_length(Bytes start) {
  const std::optional<Signature> signature = signature_of(start);
  return signature ? layout_of(signature->version).header_bytes : 0;
}

bool begins_as_nifti(Bytes start) {
  const std::optional<Signature> signature = signature_of(start);
  return signature && (has_magic(start, signature->version, false) ||
                          has_magic(start, signature->version, true));
}

NiftiHeader parse_nifti_header(Bytes bytes, const File& file) {
  const std::optional<Signature> signature = signature_of(bytes);
  if (!signature) refuse(file, "it is not a NIfTI, MetaImage or NRRD file");
  const Layout& layout = layout_of(signature->version);
  if (bytes.size() < layout.header_bytes) {
    refuse(file, "it is cut off: it has {} of the {} bytes of its header", bytes.size(),
        layout.header_bytes);
  }
  NiftiHeader header{.version = signature->version, .is_big_endian = signature->is_big_endian};
  header.is_of_pair = has_magic(bytes, header.version, true);
  if (!header.is_of_pair && !has_magic(bytes, header.version, false)) {
    refuse(file, "ANALYZE does not say where its voxels are; convert the volume to NIfTI first");
  }
  const HeaderReader reader(bytes, header.is_big_endian);
  for (std::size_t i = 0; i < header.dim.size(); ++i) {
    header.dim[i] = reader.integer(layout.dim, i);
    header.pixdim[i] = reader.real(layout.pixdim, i);
  }
  header.intent_code = reader.integer(layout.intent_code);
  header.datatype = reader.integer(layout.datatype);
  header.bits = reader.integer(layout.bits);
  header.samples_offset = reader.real(layout.samples_offset);
  header.slope = reader.real(layout.slope);
  header.intercept = reader.real(layout.intercept);
  header.units = reader.integer(layout.units);
  parse_placement(reader, layout, header);
  const auto* text = reinterpret_cast<const char*>(bytes.data() + layout.description);
  header.description.assign(text, strnlen(text, kDescriptionBytes));
  return header;
}

std::vector<std::uint8_t> nifti_header_bytes(const NiftiHeader& header) {
  const Layout& layout = layout_of(header.version);
  HeaderWriter writer(layout.header_bytes);
  writer.put({0, 4, Kind::integer}, static_cast<std::int64_t>(layout.header_bytes));
  writer.put(layout.magic, magic_of(header.version, header.is_of_pair));
  for (std::size_t i = 0; i < header.dim.size(); ++i) {
    writer.put(layout.dim, header.dim[i], i);
    writer.put(layout.pixdim, header.pixdim[i], i);
  }
  writer.put(layout.intent_code, header.intent_code);
  writer.put(layout.datatype, header.datatype);
  writer.put(layout.bits, header.bits);
  writer.put(layout.samples_offset, header.samples_offset);
  writer.put(layout.slope, header.slope);
  writer.put(layout.intercept, header.intercept);
  writer.put(layout.units, header.units);
  writer.put(layout.qform_code, header.qform_code);
  writer.put(layout.sform_code, header.sform_code);
  for (std::size_t i = 0; i < 3; ++i) {
    writer.put(layout.quaternion, header.quaternion[i], i);
    writer.put(layout.qform_offset, header.qform_offset[i], i);
    for (std::size_t j = 0; j < 4; ++j) {
      writer.put(layout.sform_rows, header.sform_rows[i][j], 4 * i + j);
    }
  }
  writer.put(
      layout.description, std::string_view(header.description).substr(0, kDescriptionBytes - 1));
  return writer.take();
}

}  // namespace similis::media
