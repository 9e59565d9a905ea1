// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/fused_products.h"

namespace similis::vmaf_internal {

bool& fuses_products() {
#if defined(__x86_64__)
  static bool fuses = __builtin_cpu_supports("avx512vnni") != 0;
#else
  static bool fuses = false;
#endif
  return fuses;
}

}  // namespace similis::vmaf_internal
