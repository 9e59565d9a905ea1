// SPDX-License-Identifier: Apache-2.0
// Any bytes as the beginning of a file: which format it names.
#include "src/media/io/reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::size_t kSignatureBytes = 18;  // the longest, but for AVIF's list of brands
  const similis::media::Bytes file(bytes, size);
  const std::string_view name = similis::media::known_format(file);
  if (name.empty() || name == "AVIF" || size < kSignatureBytes) return 0;
  similis::media::must(similis::media::known_format(file.first(kSignatureBytes)) == name,
      "a signature is all that counts");
  return 0;
}
