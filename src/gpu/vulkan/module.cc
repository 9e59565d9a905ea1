// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/module.h"

#include <fmt/core.h>

#include <stdexcept>

namespace similis::gpu::vulkan {
namespace {

// A number in bytes of 7 bits, the lowest first.
std::uint32_t next_number(const unsigned char*& at) {
  std::uint32_t number = 0;
  for (int shift = 0;; shift += 7) {
    const unsigned char byte = *at++;
    number |= static_cast<std::uint32_t>(byte & 127) << shift;
    if (byte < 128) return number;
  }
}

// A difference of words: 0, -1, 1, -2, …
std::uint32_t next_difference(const unsigned char*& at) {
  const std::uint32_t number = next_number(at);
  return (number >> 1) ^ (0 - (number & 1));
}

std::vector<std::uint32_t> unpacked(const EmbeddedModule& module) {
  auto [heads, types, results, others] = module.streams;
  std::vector<std::uint32_t> words;
  words.reserve(module.words);
  constexpr int kHeader = 5;
  for (int i = 0; i < kHeader; ++i) words.push_back(next_number(others));
  for (std::uint32_t latest = 0; words.size() < module.words;) {
    const std::uint32_t head = next_number(heads), operands = next_number(heads);
    const std::uint32_t place = head & 3;  // of the result
    words.push_back((operands + 1) << 16 | head >> 2);
    for (std::uint32_t k = 1; k <= operands; ++k) {
      if (k == place) latest += 1 + next_difference(results);
      words.push_back(k < place    ? next_number(types)
                      : k == place ? latest
                                   : latest - next_difference(others));
    }
  }
  return words;
}

}  // namespace

std::vector<std::uint32_t> module_words(std::string_view name) {
  for (const EmbeddedModule& module : embedded_modules()) {
    if (name == module.name) return unpacked(module);
  }
  throw std::logic_error(fmt::format("similis has no Vulkan module {}", name));
}

}  // namespace similis::gpu::vulkan
