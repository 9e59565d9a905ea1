// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const similis::media::Bytes file(bytes, size);
  if (similis::media::known_format(file) != "Netpbm") return 0;
  similis::media::read_any_bytes(similis::media::read_netpbm_pictures, file);
  return 0;
}
