// SPDX-License-Identifier: Apache-2.0
// The blur across and down, of a product that is multiplied where it is read. The recursion runs
// along rows, so kLanes rows are filtered together, a column of them at a time; down, columns are
// neighbours in memory anyway. The loops over lanes are plain: GCC and clang make them vector code,
// or calls of fmaf where a target has no such instruction. Included once per SIMD target.
#if defined(SIMILIS_SSIMULACRA2_CPU_BLUR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_SSIMULACRA2_CPU_BLUR_INL_H
#undef SIMILIS_SSIMULACRA2_CPU_BLUR_INL_H
#else
#define SIMILIS_SSIMULACRA2_CPU_BLUR_INL_H
#endif

#include <algorithm>
#include <array>

#include "hwy/highway.h"
#include "src/ssimulacra2/blur.h"
#include "src/ssimulacra2/cpu_plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::ssimulacra2_internal::HWY_NAMESPACE {

template <int product> HWY_INLINE float product_of(float x, float y) {
  if constexpr (product == kMeanX) return x;
  if constexpr (product == kMeanY) return y;
  if constexpr (product == kSquareX) return x * x;
  if constexpr (product == kSquareY) return y * y;
  return x * y;
}

template <class Function> void visit_product(int product, const Function& function) {
  switch (product) {
    case kMeanX: return function.template operator()<kMeanX>();
    case kMeanY: return function.template operator()<kMeanY>();
    case kSquareX: return function.template operator()<kSquareX>();
    case kSquareY: return function.template operator()<kSquareY>();
    default: return function.template operator()<kProductXY>();
  }
}

// Columns of kLanes values, with columns of zeros on both sides.
struct LaneColumns {
  static constexpr std::int64_t kBefore = kBehind + kAhead, kAfter = kAhead;
  AlignedVector<float> memory;

  explicit LaneColumns(std::int64_t width)
      : memory(static_cast<std::size_t>((kBefore + width + kAfter) * kLanes)) {}
  float* column(std::int64_t index) { return memory.data() + (kBefore + index) * kLanes; }
};

// Rows become lanes; lanes without a row are 0.
void to_columns(const Rows& rows, std::int64_t first, std::int64_t count, std::int64_t width,
    LaneColumns& columns) {
  constexpr std::int64_t kAtOnce = 16;
  float* HWY_RESTRICT out = columns.column(0);
  for (std::int64_t x = 0; x < width; x += kAtOnce) {
    const std::int64_t end = std::min(x + kAtOnce, width);
    for (std::int64_t lane = 0; lane < count; ++lane) {
      const float* HWY_RESTRICT row = rows.row(first + lane);
      for (std::int64_t i = x; i < end; ++i) out[i * kLanes + lane] = row[i];
    }
  }
}

void to_rows(LaneColumns& columns, std::int64_t width, const Rows& rows, std::int64_t first,
    std::int64_t count) {
  constexpr std::int64_t kAtOnce = 16;
  const float* HWY_RESTRICT in = columns.column(0);
  for (std::int64_t x = 0; x < width; x += kAtOnce) {
    const std::int64_t end = std::min(x + kAtOnce, width);
    for (std::int64_t lane = 0; lane < count; ++lane) {
      float* HWY_RESTRICT row = rows.row(first + lane);
      for (std::int64_t i = x; i < end; ++i) row[i] = in[i * kLanes + lane];
    }
  }
}

struct alignas(64) Lanes : std::array<float, static_cast<std::size_t>(kLanes)> {};

// The recursion across kLanes rows of one product.
template <int product> class AcrossRows {
 public:
  AcrossRows(const Recursion& recursion, LaneColumns& x, LaneColumns& y, LaneColumns& out)
      : recursion_(recursion), x_(x.column(0)), y_(y.column(0)), out_(out.column(0)) {}

  void run(std::int64_t width) {
    const Blocks blocks = blocks_of(width);
    std::int64_t n = -kAhead;
    for (; n < std::min(blocks.begin, width); ++n) step(n);
    for (; n >= blocks.begin && n < blocks.end; n += 4) block(n);  // a short row ends before
    for (; n < width; ++n) step(n);
  }

 private:
  HWY_INLINE float sum(std::int64_t n, std::int64_t lane) const {
    const std::int64_t left = (n - kBehind) * kLanes + lane, right = (n + kAhead) * kLanes + lane;
    return product_of<product>(x_[left], y_[left]) + product_of<product>(x_[right], y_[right]);
  }

  void step(std::int64_t n) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const float s = sum(n, static_cast<std::int64_t>(l));
      float y[kSections];
      for (std::size_t k = 0; k < kSections; ++k) {
        y[k] = step_across(recursion_.sections[k], s, y1_[k][l], y2_[k][l]);
      }
      if (n >= 0)
        out_[n * kLanes + static_cast<std::int64_t>(l)] = sum_of_sections(y[0], y[1], y[2]);
    }
  }

  HWY_INLINE void block(std::int64_t n) {
    Lanes s0, s1, s2, s3;
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto l = static_cast<std::size_t>(lane);
      s0[l] = sum(n, lane);
      s1[l] = sum(n + 1, lane);
      s2[l] = sum(n + 2, lane);
      s3[l] = sum(n + 3, lane);
    }
    float* HWY_RESTRICT out = out_ + n * kLanes;
    // The sum of sections is y_1 + (y_3 + y_5), so the first comes last.
    Lanes third[4];
    for (std::size_t l = 0; l < kLanes; ++l) {
      float v0 = s0[l], v1 = s1[l], v2 = s2[l], v3 = s3[l];
      block_across(recursion_.sections[2], v0, v1, v2, v3, y1_[2][l], y2_[2][l]);
      third[0][l] = v0;
      third[1][l] = v1;
      third[2][l] = v2;
      third[3][l] = v3;
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      float v0 = s0[l], v1 = s1[l], v2 = s2[l], v3 = s3[l];
      block_across(recursion_.sections[1], v0, v1, v2, v3, y1_[1][l], y2_[1][l]);
      third[0][l] = v0 + third[0][l];
      third[1][l] = v1 + third[1][l];
      third[2][l] = v2 + third[2][l];
      third[3][l] = v3 + third[3][l];
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      float v0 = s0[l], v1 = s1[l], v2 = s2[l], v3 = s3[l];
      block_across(recursion_.sections[0], v0, v1, v2, v3, y1_[0][l], y2_[0][l]);
      out[l] = v0 + third[0][l];
      out[kLanes + l] = v1 + third[1][l];
      out[2 * kLanes + l] = v2 + third[2][l];
      out[3 * kLanes + l] = v3 + third[3][l];
    }
  }

  const Recursion& recursion_;
  const float *x_, *y_;
  float* out_;
  Lanes y1_[kSections] = {}, y2_[kSections] = {};
};

void recurse_across(const ScalePlan& plan, int channel, std::int64_t first, std::int64_t count) {
  const auto c = static_cast<std::size_t>(channel);
  const std::int64_t width = plan.extent.width;
  const unsigned products = plan.products[c];
  LaneColumns x(width), y(width), out(width);
  if (products & ~(bit(kMeanY) | bit(kSquareY)))
    to_columns(plan.xyb[kX][c], first, count, width, x);
  if (products & ~kOfX) to_columns(plan.xyb[kY][c], first, count, width, y);
  for (int product = 0; product < kProducts; ++product) {
    if (!(products & bit(product))) continue;
    visit_product(product, [&]<int p>() { AcrossRows<p>(plan.recursion, x, y, out).run(width); });
    to_rows(out, width, plan.across[c][static_cast<std::size_t>(product)], first, count);
  }
}

// Mode fast: a row of the product with zeros on both sides, and the taps over it.
void filter_across(const ScalePlan& plan, int channel, std::int64_t row) {
  const auto c = static_cast<std::size_t>(channel);
  const std::int64_t width = plan.extent.width;
  const float* HWY_RESTRICT x = plan.xyb[kX][c] ? plan.xyb[kX][c].row(row) : plan.zeros;
  const float* HWY_RESTRICT y = plan.xyb[kY][c] ? plan.xyb[kY][c].row(row) : plan.zeros;
  AlignedVector<float> padded(static_cast<std::size_t>(width + 2 * LaneColumns::kBefore));
  float* HWY_RESTRICT in = padded.data() + LaneColumns::kBefore;
  const Taps taps;
  for (int product = 0; product < kProducts; ++product) {
    if (!(plan.products[c] & bit(product))) continue;
    visit_product(product, [&]<int p>() {
      for (std::int64_t i = 0; i < width; ++i) in[i] = product_of<p>(x[i], y[i]);
    });
    float* HWY_RESTRICT out = plan.across[c][static_cast<std::size_t>(product)].row(row);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = filtered(taps, in[i - 4], in[i - 3], in[i - 2], in[i - 1], in[i], in[i + 1],
          in[i + 2], in[i + 3], in[i + 4]);
    }
  }
}

/// Rows [first, first + count) of a channel, at most kLanes.
void blur_across(const ScalePlan& plan, int channel, std::int64_t first, std::int64_t count) {
  if (plan.mode == Ssimulacra2Mode::exact) return recurse_across(plan, channel, first, count);
  for (std::int64_t row = first; row < first + count; ++row) filter_across(plan, channel, row);
}

// A row of the product blurred across, or zeros outside the picture.
HWY_INLINE const float* blurred_row(
    const ScalePlan& plan, const Rows& rows, std::int64_t row, std::int64_t column) {
  return row < 0 || row >= plan.extent.height ? plan.zeros : rows.row(row) + column;
}

struct alignas(64) TileRow : std::array<float, static_cast<std::size_t>(kTileColumns)> {};

// The recursion down a tile of columns, from row `first` on, whose states are in the plan.
void recurse_down(const ScalePlan& plan, const Rows& rows, const Rows& states, std::int64_t column,
    std::int64_t first, std::int64_t end, const Rows& out) {
  TileRow y1[kSections], y2[kSections];
  for (std::size_t k = 0; k < kSections; ++k) {
    const auto of = static_cast<std::int64_t>(k);
    std::copy_n(states.row(2 * of) + column, kTileColumns, y1[k].data());
    std::copy_n(states.row(2 * of + 1) + column, kTileColumns, y2[k].data());
  }
  const auto& s = plan.recursion.sections;
  const float n1 = s[0].n2, n3 = s[1].n2, n5 = s[2].n2, d1 = s[0].d1, d3 = s[1].d1, d5 = s[2].d1;
  TileRow unused;
  for (std::int64_t n = first == 0 ? -kAhead : first; n < end; ++n) {
    const float* HWY_RESTRICT top = blurred_row(plan, rows, n - kBehind, column);
    const float* HWY_RESTRICT bottom = blurred_row(plan, rows, n + kAhead, column);
    float* HWY_RESTRICT to = n < 0 ? unused.data() : out.row(n);
    for (std::size_t i = 0; i < kTileColumns; ++i) {
      const float sum = top[i] + bottom[i];
      const float y_1 = step_down(n1, d1, sum, y1[0][i], y2[0][i]);
      const float y_3 = step_down(n3, d3, sum, y1[1][i], y2[1][i]);
      const float y_5 = step_down(n5, d5, sum, y1[2][i], y2[2][i]);
      to[i] = sum_of_sections(y_1, y_3, y_5);
    }
  }
  for (std::size_t k = 0; k < kSections; ++k) {
    const auto of = static_cast<std::int64_t>(k);
    std::copy_n(y1[k].data(), kTileColumns, states.row(2 * of) + column);
    std::copy_n(y2[k].data(), kTileColumns, states.row(2 * of + 1) + column);
  }
}

void filter_down(const ScalePlan& plan, const Rows& rows, std::int64_t column, std::int64_t first,
    std::int64_t end, const Rows& out) {
  const Taps taps;
  for (std::int64_t n = first; n < end; ++n) {
    const auto row = [&](std::int64_t away) { return blurred_row(plan, rows, n + away, column); };
    const float *a4 = row(-4), *a3 = row(-3), *a2 = row(-2), *a1 = row(-1), *middle = row(0);
    const float *b1 = row(1), *b2 = row(2), *b3 = row(3), *b4 = row(4);
    float* HWY_RESTRICT to = out.row(n);
    for (std::size_t i = 0; i < kTileColumns; ++i) {
      to[i] = filtered(taps, a4[i], a3[i], a2[i], a1[i], middle[i], b1[i], b2[i], b3[i], b4[i]);
    }
  }
}

/// Rows [first, end) of one product, a tile of columns of it, into out.
void blur_down(const ScalePlan& plan, int channel, int product, std::int64_t column,
    std::int64_t first, std::int64_t end, const Rows& out) {
  const auto c = static_cast<std::size_t>(channel), p = static_cast<std::size_t>(product);
  if (plan.mode == Ssimulacra2Mode::exact) {
    recurse_down(plan, plan.across[c][p], plan.states[p][c], column, first, end, out);
  } else {
    filter_down(plan, plan.across[c][p], column, first, end, out);
  }
}

}  // namespace similis::ssimulacra2_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
