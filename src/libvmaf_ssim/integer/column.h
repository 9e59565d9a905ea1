// SPDX-License-Identifier: Apache-2.0
// A column of integer SSIM as a GPU thread computes it, also run by a test on the CPU: each row's
// products go into nine running sums down, the oldest of which is then complete; sums across add
// neighbouring columns' complete ones. All in integers that hold the sums.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"
#include "src/libvmaf_ssim/integer/formula.h"

namespace similis::libvmaf_ssim_internal {

/// Samples of up to 10 bits, as CentredMoments. Across sums of 8 bits are at most 2³⁰.
template <class AcrossSum> struct Centred {
  using Down = std::int32_t;
  using Across = AcrossSum;
  static constexpr int products = 4;
  static constexpr int blocks = 3;  // on a GPU's multiprocessor, of 256 threads: bounds registers

  SIMILIS_HOST_DEVICE static void multiply(int x, int y, int middle, Down (&to)[products]) {
    const int a = x - middle, b = y - middle;
    to[0] = a;
    to[1] = b;
    to[2] = a * a + b * b - middle * middle;
    to[3] = a * b;
  }
  SIMILIS_HOST_DEVICE static double term(
      const Across (&sums)[products], const Weight& weight, int middle) {
    const CentredMoments moments{static_cast<double>(sums[0]), static_cast<double>(sums[1]),
        static_cast<double>(sums[2]), static_cast<double>(sums[3])};
    return term_of(moments, weight, middle);
  }
};
using Centred8 = Centred<std::int32_t>;
using Centred10 = Centred<std::int64_t>;

/// Samples of up to 16 bits, as Moments.
struct Whole {
  using Down = std::int64_t;
  using Across = std::int64_t;
  static constexpr int products = 5;
  static constexpr int blocks = 1;

  SIMILIS_HOST_DEVICE static void multiply(int x, int y, int, Down (&to)[products]) {
    const std::int64_t a = x, b = y;
    to[0] = a;
    to[1] = b;
    to[2] = a * a;
    to[3] = b * b;
    to[4] = a * b;
  }
  SIMILIS_HOST_DEVICE static double term(
      const Across (&sums)[products], const Weight& weight, int) {
    const Moments moments{static_cast<double>(sums[0]), static_cast<double>(sums[1]),
        static_cast<double>(sums[2]), static_cast<double>(sums[3]), static_cast<double>(sums[4])};
    return term_of(moments, weight);
  }
};

/// The sums down a column that rows are still to come to.
template <class Sums> class ColumnSums {
 public:
  using Down = typename Sums::Down;

  /// Takes the next row; a row outside the plane has products of 0. complete(p) is then the sum
  /// about the row kRadius before it.
  SIMILIS_HOST_DEVICE void feed(const Down (&products)[Sums::products]) {
    for (int p = 0; p < Sums::products; ++p) {
      for (int i = 0; i < kWindow - 1; ++i) {
        sums_[p][i] = sums_[p][i + 1] + products[p] * tap_at(i - kRadius);
      }
      sums_[p][kWindow - 1] = products[p] * tap_at(kRadius);
    }
  }
  SIMILIS_HOST_DEVICE Down complete(int p) const { return sums_[p][0]; }

 private:
  Down sums_[Sums::products][kWindow] = {};
};

/// The sum across about down[0].
template <class Across, class Down> SIMILIS_HOST_DEVICE Across sum_across(const Down* down) {
  Across sum = static_cast<Across>(down[0]) * tap_at(0);
  for (int k = 1; k <= kRadius; ++k) {
    sum += (static_cast<Across>(down[-k]) + static_cast<Across>(down[k])) * tap_at(k);
  }
  return sum;
}

}  // namespace similis::libvmaf_ssim_internal
