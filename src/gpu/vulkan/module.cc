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

std::vector<std::uint32_t> unpacked(const EmbeddedModule& module) {
  std::vector<std::uint32_t> words;
  words.reserve(module.words);
  const unsigned char* at = module.packed;
  while (true) {
    for (std::uint32_t fresh = next_number(at); fresh > 0; --fresh)
      words.push_back(next_number(at));
    std::uint32_t copied = next_number(at);
    if (copied == 0) return words;
    for (const std::size_t back = next_number(at); copied > 0; --copied) {
      words.push_back(words[words.size() - back]);
    }
  }
}

}  // namespace

std::vector<std::uint32_t> module_words(std::string_view name) {
  for (const EmbeddedModule& module : embedded_modules()) {
    if (name == module.name) return unpacked(module);
  }
  throw std::logic_error(fmt::format("similis has no Vulkan module {}", name));
}

}  // namespace similis::gpu::vulkan
