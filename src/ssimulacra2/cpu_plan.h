// SPDX-License-Identifier: Apache-2.0
// The computation of one pair on the CPU. A scale is done in stripes of kStripe rows from the top,
// each in three passes over rows in the cache, so that no plane of the picture's size is kept but
// the next scale's light:
//   convert   rows ─> light ─> X, Y, B                 a ring of rows; and a row of the next scale
//   across    X, Y, B and their products ─> blurred    a ring of rows each, never the products
//   down      those ─> windows' averages ─> terms      a tile of columns; sums
// A pass is cut into tasks for the threads; tasks are the same for any number of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/core/tensor/aligned_vector.h"
#include "src/ssimulacra2/blur.h"
#include "src/ssimulacra2/ssimulacra2.h"

namespace similis::ssimulacra2_internal {

constexpr std::int64_t kTileColumns =
    64;                              ///< whole groups; their averages fit the first-level cache
constexpr std::int64_t kLanes = 16;  ///< rows that are filtered across together
/// A stripe reads from 6 rows above it to 4 below, converted in pairs: 42 rows.
constexpr std::int64_t kRingRows = 48;

/// The products averaged under the window.
enum Product : int { kMeanX, kMeanY, kSquareX, kSquareY, kProductXY };
constexpr int kProducts = 5;
constexpr unsigned bit(int index) { return 1u << index; }
constexpr unsigned kOfX = bit(kMeanX) | bit(kSquareX);  ///< known from the reference alone

/// Rows of a plane: all of it, or the last ones in a ring.
struct Rows {
  float* memory = nullptr;
  std::int64_t stride = 0, kept = 1;

  float* row(std::int64_t index) const { return memory + index % kept * stride; }
  explicit operator bool() const { return memory != nullptr; }
};
using ThreeRows = std::array<Rows, 3>;

/// The reference and the distorted picture.
enum Side : int { kX, kY };

/// The source of light at the first scale.
struct Samples {
  const void* data = nullptr;
  DType dtype = DType::u8;
  int channels = 3;
  std::int64_t channel_stride = 0, row_stride = 0, column_stride = 0;
  bool is_linear = false;
  Background background = 0;
};

/// One scale of a pair. Memory that is not needed is null.
struct ScalePlan {
  Extent extent{};
  std::int64_t stride = 0;              ///< distance of rows: whole tiles
  std::array<bool, 2> is_read{};        ///< sides that are to be converted
  std::array<Samples, 2> samples;       ///< read at the first scale
  std::array<ThreeRows, 2> light;       ///< read at the other scales
  std::array<ThreeRows, 2> next_light;  ///< empty at the last scale
  std::array<ThreeRows, 2> xyb;
  std::array<std::array<Rows, kProducts>, kChannels> across;
  std::array<Rows, kChannels> states[kProducts];  ///< states of recursions down: 2·kSections rows
  std::array<std::array<Rows, kProducts>, kChannels> averages;  ///< kept, or known before
  std::array<unsigned, kChannels> terms{};                      ///< bit t: term t counts
  std::array<unsigned, kChannels> products{};  ///< bit p: product p is to be computed
  Ssimulacra2Mode mode = Ssimulacra2Mode::exact;
  Recursion recursion{};
  int scale = 0;
  const LossWeights* loss = nullptr;
  Rows losses;                   ///< of each of the scale's pixels, for the map
  double* partials = nullptr;    ///< [stripe][group][channel][term][norm]
  const float* zeros = nullptr;  ///< a row of them

  std::int64_t groups() const { return stride / kGroup; }
  double* partial(std::int64_t stripe, std::int64_t group, int channel) const {
    return partials + ((stripe * groups() + group) * kChannels + channel) * kTerms * kNorms;
  }
};

/// The light of the 256 values of a byte.
struct LightOfBytes {
  std::array<float, 256> of;
};

}  // namespace similis::ssimulacra2_internal
