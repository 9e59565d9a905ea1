// SPDX-License-Identifier: Apache-2.0
// Motion on the CPU, in tasks of rows. A row's difference is filtered down and then across in plain
// loops of 32-bit integers, which the compiler makes vectors of. What 16 bits of depth and a filter
// make too wide for 32 bits is kept as multiples of 256 and the rest.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/motion/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/motion/motion.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

constexpr int kRadius = 2;
constexpr std::int32_t kOuter = 3571, kInner = 16004, kCentre = 26386;

// Differences of two rows of samples.
template <class Sample>
void subtract(const Sample* HWY_RESTRICT earlier, const Sample* HWY_RESTRICT later,
    std::int64_t width, std::int32_t* HWY_RESTRICT to) {
  for (std::int64_t x = 0; x < width; ++x) to[x] = earlier[x] - later[x];
}

// Five taps over rows or columns, over 2^shift, rounded. Differences have up to 17 bits and so have
// the results: multiples of 256 and rests are filtered apart, each within 32 bits.
HWY_INLINE std::int32_t filtered(
    std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d, std::int32_t e, int shift) {
  const std::int32_t outer = a + e, inner = b + d;
  const std::int32_t upper = kOuter * (outer >> 8) + kInner * (inner >> 8) + kCentre * (c >> 8);
  const std::int32_t lower = kOuter * (outer & 255) + kInner * (inner & 255) + kCentre * (c & 255) +
                             (std::int32_t{1} << (shift - 1));
  return (upper + (lower >> 8)) >> (shift - 8);
}

template <class Sample>
std::int64_t sad_of_rows(
    const Plane& earlier, const Plane& later, std::int64_t first, std::int64_t last) {
  const std::int64_t width = later.width, height = later.height;
  const auto room = static_cast<std::size_t>(width) + 2 * kRadius;
  std::array<std::vector<std::int32_t>, 2 * kRadius + 1> ring;
  for (auto& row : ring) row.resize(room);
  std::vector<std::int32_t> down(room);
  const auto load = [&](std::int64_t row) {
    const std::int64_t at = reflected(row, height);
    subtract(earlier.row<Sample>(at), later.row<Sample>(at), width,
        ring[static_cast<std::size_t>(row + 5) % ring.size()].data());
  };
  for (std::int64_t row = first - kRadius; row < first + kRadius; ++row) load(row);
  const int shift = later.bit_depth;
  std::int64_t sad = 0;
  for (std::int64_t row = first; row < last; ++row) {
    load(row + kRadius);
    const std::int32_t* HWY_RESTRICT rows[5];
    for (int k = 0; k < 5; ++k) {
      rows[k] = ring[static_cast<std::size_t>(row - kRadius + k + 5) % ring.size()].data();
    }
    std::int32_t* HWY_RESTRICT to = down.data() + kRadius;
    for (std::int64_t x = 0; x < width; ++x) {
      to[x] = filtered(rows[0][x], rows[1][x], rows[2][x], rows[3][x], rows[4][x], shift);
    }
    for (std::int64_t k = 1; k <= kRadius; ++k) {
      to[-k] = to[k];
      to[width - 1 + k] = to[width - 1 - k];
    }
    // Windows of 2^12 columns: their sum has 29 bits.
    for (std::int64_t begin = 0; begin < width; begin += 4096) {
      const std::int64_t end = std::min(width, begin + 4096);
      std::int32_t sum = 0;
      for (std::int64_t x = begin; x < end; ++x) {
        sum += std::abs(filtered(to[x - 2], to[x - 1], to[x], to[x + 1], to[x + 2], 16));
      }
      sad += sum;
    }
  }
  return sad;
}

std::int64_t sad(const Plane& earlier, const Plane& later, std::int64_t first, std::int64_t last) {
  return later.is_words ? sad_of_rows<std::uint16_t>(earlier, later, first, last)
                        : sad_of_rows<std::uint8_t>(earlier, later, first, last);
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::vmaf_internal {
namespace {

HWY_EXPORT(sad);

constexpr std::int64_t kRowsOfTask = 64;

}  // namespace

std::int64_t motion_sad_cpu(const Plane& earlier, const Plane& later, const Execution& exec) {
  std::atomic<std::int64_t> sum = 0;
  const std::int64_t tasks = (later.height + kRowsOfTask - 1) / kRowsOfTask;
  parallel_for(exec, tasks, [&](std::int64_t task) {
    const std::int64_t first = task * kRowsOfTask;
    const std::int64_t last = std::min(later.height, first + kRowsOfTask);
    sum += HWY_DYNAMIC_DISPATCH(sad)(earlier, later, first, last);
  });
  return sum;
}

}  // namespace similis::vmaf_internal
#endif
