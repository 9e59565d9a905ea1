// SPDX-License-Identifier: Apache-2.0
#include "src/media/volume/samples.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "similis/execution.hpp"

namespace similis::media {
namespace {

constexpr std::size_t kMaxVolumeBytes = std::size_t{1} << 38;
constexpr double kLargestExact = 9007199254740992;  // 2^53: f64 holds every integer up to it

template <class T> T load_sample(const std::uint8_t* bytes, bool is_swapped) {
  std::array<std::uint8_t, sizeof(T)> copy;
  std::copy_n(bytes, sizeof(T), copy.begin());
  if (is_swapped) std::reverse(copy.begin(), copy.end());
  return std::bit_cast<T>(copy);
}

// False if a sample is not held exactly by f64.
template <class T, class Value>
bool convert(Bytes bytes, bool is_swapped, const std::optional<Scaling>& scale, Value* out) {
  bool is_exact = true;
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    const T sample = load_sample<T>(bytes.data() + i * sizeof(T), is_swapped);
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      is_exact = is_exact && std::abs(static_cast<double>(sample)) < kLargestExact;
    }
    out[i] = scale
                 ? static_cast<Value>(static_cast<double>(sample) * scale->slope + scale->intercept)
                 : static_cast<Value>(sample);
  }
  return is_exact;
}

}  // namespace

std::size_t bytes_of(SampleType type) {
  return visit(type, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

std::vector<std::uint8_t> read_volume_bytes(ByteStream& stream) {
  std::vector<std::uint8_t> bytes;
  if (stream.read_frame(bytes, kMaxVolumeBytes + 1) > kMaxVolumeBytes) {
    refuse({.bytes = {}, .name = stream.name()}, "it is larger than the limit of {} bytes",
        kMaxVolumeBytes);
  }
  return bytes;
}

Tensor values_of_samples(
    Bytes bytes, const SampleLayout& layout, const Extents& shape, const File& file) {
  const std::optional<Scaling>& scale = layout.scaling;
  const bool is_swapped = layout.is_big_endian != (std::endian::native == std::endian::big);
  const bool is_narrow = !scale && (bytes_of(layout.type) <= 2 || layout.type == SampleType::f32);
  const Tensor values = allocate(shape, is_narrow ? DType::f32 : DType::f64);
  const bool is_exact = visit(layout.type, [&]<class T>(std::type_identity<T>) {
    if (is_narrow) return convert<T>(bytes, is_swapped, scale, values.elements<float>());
    return convert<T>(bytes, is_swapped, scale, values.elements<double>());
  });
  if (!is_exact) {
    refuse(file, "it has an integer of magnitude 2^53 or more, which float64 cannot represent");
  }
  return values;
}

}  // namespace similis::media
