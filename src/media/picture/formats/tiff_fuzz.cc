// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  similis::media::read_any_bytes(similis::media::read_tiff_pages, {bytes, size});
  return 0;
}
