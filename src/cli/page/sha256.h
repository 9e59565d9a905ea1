// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), by which a report names the files that it is of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace similis::cli {

class Sha256 {
 public:
  void add(std::string_view bytes);
  /// 64 hexadecimal digits. Nothing can be added after it.
  std::string finish();

 private:
  void add_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
      0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::uint64_t bytes_ = 0;
};

}  // namespace similis::cli
