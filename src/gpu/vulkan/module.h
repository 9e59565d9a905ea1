// SPDX-License-Identifier: Apache-2.0
// The SPIR-V modules that scripts/seal.py put into the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace similis::gpu::vulkan {

struct EmbeddedModule {
  const char* name;                             ///< the room and the file: "libvmaf_ssim/terms"
  std::array<const unsigned char*, 4> streams;  ///< as seal.py's packed() leaves them
  std::size_t words;
};

std::span<const EmbeddedModule> embedded_modules();

/// The words of the module of that name, which must exist.
std::vector<std::uint32_t> module_words(std::string_view name);

}  // namespace similis::gpu::vulkan
