// SPDX-License-Identifier: Apache-2.0
// Says why a driver does not serve; apart from the driver, so that tests reach it.
#pragma once

#include <string>

namespace similis::gpu {

/// Returns why the driver does not serve, or nothing if it does. Versions are counted as the CUDA
/// runtime does, 13000 for 13.0: of_driver is the newest that the driver knows, 0 without a driver,
/// and of_runtime that of the runtime in this library, which needs it.
inline std::string why_driver_is_unfit(int of_driver, int of_runtime) {
  if (of_driver >= of_runtime) return {};
  if (of_driver == 0) return "there is no NVIDIA driver";
  const auto version = [](int number) {
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  };
  return "the NVIDIA driver knows CUDA " + version(of_driver) + ", and similis needs " +
         version(of_runtime) + (of_runtime / 1000 == 13 ? ": driver 580 or newer" : "");
}

}  // namespace similis::gpu
