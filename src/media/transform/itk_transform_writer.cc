// SPDX-License-Identifier: Apache-2.0
#include "src/media/transform/itk_transform_writer.h"

#include <array>
#include <bit>
#include <string>

namespace similis::media {
namespace {

template <class Bits> void append(Bits bits, std::vector<std::uint8_t>& bytes) {
  for (std::size_t i = 0; i < sizeof(Bits); ++i) {
    bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
}

// A column of doubles in little-endian order, whose type is 0.
void append_matrix(
    const std::string& name, const std::vector<double>& numbers, std::vector<std::uint8_t>& bytes) {
  for (const std::size_t field :
      {std::size_t{0}, numbers.size(), std::size_t{1}, std::size_t{0}, name.size() + 1}) {
    append(static_cast<std::uint32_t>(field), bytes);
  }
  bytes.insert(bytes.end(), name.begin(), name.end());
  bytes.push_back(0);
  for (const double number : numbers) append(std::bit_cast<std::uint64_t>(number), bytes);
}

}  // namespace

std::vector<std::uint8_t> encode_itk_affine(const Affine& map, std::size_t dimensions) {
  std::vector<double> parameters;
  for (std::size_t r = 0; r < dimensions; ++r) {
    for (std::size_t c = 0; c < dimensions; ++c) parameters.push_back(map.rows[r][c]);
  }
  for (std::size_t r = 0; r < dimensions; ++r) parameters.push_back(map.rows[r][3]);
  std::vector<std::uint8_t> bytes;
  append_matrix(dimensions == 3 ? "AffineTransform_double_3_3" : "AffineTransform_double_2_2",
      parameters, bytes);
  append_matrix("fixed", std::vector<double>(dimensions), bytes);
  return bytes;
}

}  // namespace similis::media
