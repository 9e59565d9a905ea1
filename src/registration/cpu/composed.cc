// SPDX-License-Identifier: Apache-2.0
// Composes two fields of a volume, smooths the sum by three taps along each axis and rounds it:
//
//   d, u ─> rows of d + u(x + d) ─ along x ─> rows of a plane ─ along y ─> three planes ─ along z
//
// A task is a block of rows and planes with a voxel around it, whose planes fit the second-level
// cache, so that memory sees d and u read once and the result written once. A cell's vectors are
// loaded whole, four numbers of which the last belongs to the next vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/registration/cpu/composed.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include "src/registration/cpu/composed.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>

#include "hwy/aligned_allocator.h"
#include "hwy/cache_control.h"
#include "src/core/parallel.h"
#include "src/registration/passes.h"

#ifndef SIMILIS_REGISTRATION_COMPOSED
#define SIMILIS_REGISTRATION_COMPOSED
namespace similis::registration_internal {

template <class T> struct ComposePass {
  std::array<std::int64_t, 3> size;  // x, y, z
  const T *along, *u;
  T* to;
  T factor, middle, beside, unit;  // the smoothing's taps; beside: 0 without one
};

// Rows [first_y, end_y) of planes [first_z, end_z).
struct ComposeBlock {
  std::int64_t first_y, end_y, first_z, end_z;
};

template <class T> using ComposeFunction = void (*)(const ComposePass<T>&, const ComposeBlock&);
using ComposeFunctions = std::tuple<ComposeFunction<float>, ComposeFunction<double>>;

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kAtOnce = 128;  // voxels whose cells lie on the stack
constexpr std::int64_t kRowPadding = 64;

// d + u(x + d) of one row; writes one number more.
template <class T> class RowComposer {
 public:
  explicit RowComposer(const ComposePass<T>& pass) : pass_(pass) {
    const auto& n = pass.size;
    by_[0] = 3;
    by_[1] = static_cast<std::int32_t>(3 * n[0]);
    by_[2] = static_cast<std::int32_t>(3 * n[0] * n[1]);
    for (int a = 0; a < 3; ++a) last_offset_ += static_cast<std::int32_t>(n[a] - 2) * by_[a];
  }

  void run(std::int64_t y, std::int64_t z, T* HWY_RESTRICT out) {
    const std::int64_t width = pass_.size[0], row = (z * pass_.size[1] + y) * width;
    for (std::int64_t x = 0; x < width; x += kAtOnce) {
      const std::int64_t count = std::min(kAtOnce, width - x);
      place_cells(pass_.along + 3 * (row + x), {x, y, z}, count);
      for (std::int64_t i = 0; i < count; ++i) compose(i, out + 3 * (x + i));
    }
  }

 private:
  static constexpr std::int64_t kAhead = 512 / sizeof(T);
  static constexpr bool kHasFour = hn::MaxLanes(hn::ScalableTag<T>()) >= 4;

  // Beyond the border cells end at the outermost voxel. A step that is no number stays one.
  void place_cells(
      const T* HWY_RESTRICT along, const std::array<std::int64_t, 3>& at, std::int64_t count) {
    const T factor = pass_.factor;
    constexpr std::int64_t kLine = 64 / sizeof(T);
    for (std::int64_t i = 0; i < 3 * count; i += kLine)
      hwy::Prefetch(along + 3 * pass_.size[0] + i);
    for (std::int64_t i = 0; i < 3 * count; ++i) step_[i] = factor * along[i];
    for (std::int64_t i = 0; i < count; ++i) offset_[i] = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const auto begin = static_cast<T>(at[a]), most = static_cast<T>(pass_.size[a] - 2);
      const auto first = static_cast<std::int32_t>(at[a]),
                 last = static_cast<std::int32_t>(pass_.size[a] - 2), by = by_[a];
      const T by_lane = a == 0 ? T(1) : T(0);
      const std::int32_t cell_by_lane = a == 0 ? 1 : 0;
      T* HWY_RESTRICT fraction = fraction_[a];
      const T* HWY_RESTRICT step = step_ + a;
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(count); ++i) {
        const T x = begin + by_lane * static_cast<T>(i), low = T(-1) - x, high = most + T(2) - x;
        T d = step[3 * i];
        d = d > low ? d : low;
        d = d < high ? d : high;
        const T whole = std::floor(d);
        const std::int32_t cell = first + cell_by_lane * i + static_cast<std::int32_t>(whole);
        const T inside = d - whole;
        fraction[i] = cell < 0 ? T(0) : cell > last ? T(1) : inside;
        offset_[i] += by * (cell < 0 ? 0 : cell > last ? last : cell);
      }
    }
  }

  HWY_INLINE void compose(std::int64_t i, T* HWY_RESTRICT out) const {
    const T* const cell = pass_.u + offset_[i];
    if constexpr (kHasFour) {
      // The last cell of the volume has no number behind its last vector.
      if (HWY_LIKELY(offset_[i] != last_offset_)) return compose_vector(i, cell, out);
    }
    for (int c = 0; c < 3; ++c) {
      const auto edge = [&](int at) HWY_ATTR {
        return mix(cell[at + c], cell[at + 3 + c], fraction_[0][i]);
      };
      const T low = mix(edge(0), edge(by_[1]), fraction_[1][i]),
              high = mix(edge(by_[2]), edge(by_[2] + by_[1]), fraction_[1][i]);
      out[c] = step_[3 * i + c] + mix(low, high, fraction_[2][i]);
    }
  }
  static T mix(T first, T second, T share) { return first + share * (second - first); }

  HWY_INLINE void compose_vector(std::int64_t i, const T* cell, T* HWY_RESTRICT out) const {
    const hn::FixedTag<T, 4> d;
    const auto fx = hn::Set(d, fraction_[0][i]), fy = hn::Set(d, fraction_[1][i]),
               fz = hn::Set(d, fraction_[2][i]);
    const auto lerp = [](auto first, auto second, auto share)
                          HWY_ATTR { return hn::MulAdd(share, hn::Sub(second, first), first); };
    const auto edge = [&](const T* at)
                          HWY_ATTR { return lerp(hn::LoadU(d, at), hn::LoadU(d, at + 3), fx); };
    const T* const behind = cell + by_[2];
    hwy::Prefetch(behind + by_[1] + kAhead);  // that no row before has touched
    const auto low = lerp(edge(cell), edge(cell + by_[1]), fy),
               high = lerp(edge(behind), edge(behind + by_[1]), fy);
    hn::StoreU(hn::Add(hn::LoadU(d, step_ + 3 * i), lerp(low, high, fz)), d, out);
  }

  const ComposePass<T>& pass_;
  std::int32_t by_[3], last_offset_ = 0;
  alignas(64) T step_[3 * kAtOnce + 1] = {};
  alignas(64) T fraction_[3][kAtOnce];
  alignas(64) std::int32_t offset_[kAtOnce];
};

// out = middle·b + beside·(a + c).
template <class T>
void sum_three(T middle, T beside, const T* a, const T* b, const T* c, std::int64_t count,
    T* HWY_RESTRICT out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = middle * b[i] + beside * (a[i] + c[i]);
}

template <class T> void round_row(T unit, std::int64_t count, T* HWY_RESTRICT row) {
  if constexpr (sizeof(T) == 8) {
    constexpr T kWhole = 0x1.8p52;  // a sum with it has no fraction
    const T by = 1 / unit;
    for (std::int64_t i = 0; i < count; ++i) row[i] = ((row[i] * by + kWhole) - kWhole) * unit;
  }
}

template <class T> void compose_block(const ComposePass<T>& pass, const ComposeBlock& block) {
  const std::int64_t height = pass.size[1], depth = pass.size[2], width = 3 * pass.size[0];
  const std::int64_t reach = pass.beside != 0 ? 1 : 0;
  const std::int64_t low_y = std::max<std::int64_t>(block.first_y - reach, 0),
                     high_y = std::min(block.end_y + reach, height);
  const std::int64_t low_z = std::max<std::int64_t>(block.first_z - reach, 0),
                     high_z = std::min(block.end_z + reach, depth);
  const std::int64_t rows = block.end_y - block.first_y;
  const std::int64_t pitch = (width + kRowPadding - 1) / kRowPadding * kRowPadding + kRowPadding;
  const auto memory = hwy::AllocateAligned<T>(
      static_cast<std::size_t>((1 + reach * (high_y - low_y + 3 * rows)) * pitch));
  T* const composed = memory.get() + kRowPadding / 2;  // with a voxel before and behind it
  const auto along_x = [&](std::int64_t y) { return memory.get() + (1 + y - low_y) * pitch; };
  const auto in_plane = [&](std::int64_t z, std::int64_t y) {
    return memory.get() + (1 + high_y - low_y + z % 3 * rows + y - block.first_y) * pitch;
  };
  const auto result = [&](std::int64_t z, std::int64_t y) {
    return pass.to + (z * height + y) * width;
  };
  const auto finish = [&](std::int64_t z) {
    const std::int64_t before = std::max<std::int64_t>(z - 1, 0),
                       after = std::min(z + 1, depth - 1);
    for (std::int64_t y = block.first_y; y < block.end_y; ++y) {
      sum_three(pass.middle, pass.beside, in_plane(before, y), in_plane(z, y), in_plane(after, y),
          width, result(z, y));
      if (pass.unit != 0) round_row(pass.unit, width, result(z, y));
    }
  };
  RowComposer<T> composer(pass);
  for (std::int64_t z = low_z; z < high_z; ++z) {
    for (std::int64_t y = low_y; y < high_y; ++y) {
      composer.run(y, z, composed);
      if (reach == 0) {
        std::copy_n(composed, width, result(z, y));
        if (pass.unit != 0) round_row(pass.unit, width, result(z, y));
        continue;
      }
      std::copy_n(composed, 3, composed - 3);
      std::copy_n(composed + width - 3, 3, composed + width);
      sum_three(pass.middle, pass.beside, composed - 3, composed, composed + 3, width, along_x(y));
    }
    if (reach == 0) continue;
    for (std::int64_t y = block.first_y; y < block.end_y; ++y) {
      sum_three(pass.middle, pass.beside, along_x(std::max<std::int64_t>(y - 1, 0)), along_x(y),
          along_x(std::min(y + 1, height - 1)), width, in_plane(z, y));
    }
    if (z > block.first_z) finish(z - 1);
    if (z == depth - 1 && z < block.end_z) finish(z);
  }
}

ComposeFunctions compose_functions() { return {compose_block<float>, compose_block<double>}; }

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(compose_functions);

namespace {

constexpr double kTruncate = 3;  // as smooth()'s default

struct ThreeTaps {
  double middle = 1, beside = 0;
};
ThreeTaps taps_of(double sigma) {
  if (std::round(kTruncate * sigma) < 1) return {};
  const double beside = std::exp(-0.5 / (sigma * sigma)), sum = 1 + 2 * beside;
  return {1 / sum, beside / sum};
}

}  // namespace

bool can_compose_cpu(const Grid& grid, const Composition& how) {
  return grid.device.kind == DeviceKind::cpu && grid.rank == 3 &&
         std::round(kTruncate * how.smoothing) <= 1 &&
         *std::min_element(grid.size.begin(), grid.size.end()) > 1 &&
         3 * grid.voxels() < std::numeric_limits<std::int32_t>::max();
}

void compose_cpu(const Grid& grid, const Tensor& along, const Tensor& u, const Composition& how,
    const Tensor& to, const Execution& exec) {
  constexpr std::int64_t kRows = 32, kLeastPlanes = 4, kMostPlanes = 16, kTasks = 24;
  const ThreeTaps taps = taps_of(how.smoothing);
  const std::int64_t height = grid.size[1], depth = grid.size[2],
                     across = (height + kRows - 1) / kRows;
  const std::int64_t planes = std::clamp(depth * across / kTasks, kLeastPlanes, kMostPlanes);
  with_type(to, [&]<class T>(T) {
    const ComposePass<T> pass{.size = grid.size,
        .along = along.elements<T>(),
        .u = u.elements<T>(),
        .to = to.elements<T>(),
        .factor = static_cast<T>(how.factor),
        .middle = static_cast<T>(taps.middle),
        .beside = static_cast<T>(taps.beside),
        .unit = static_cast<T>(how.unit)};
    const auto run = std::get<ComposeFunction<T>>(HWY_DYNAMIC_DISPATCH(compose_functions)());
    parallel_for(exec, across * ((depth + planes - 1) / planes), [&](std::int64_t task) {
      const std::int64_t y = task % across * kRows, z = task / across * planes;
      run(pass, {y, std::min(y + kRows, height), z, std::min(z + planes, depth)});
    });
  });
}

}  // namespace similis::registration_internal
#endif
