// SPDX-License-Identifier: Apache-2.0
// The terms of a tile of columns over a stripe of rows: sums by column, and, for a map, what each
// pixel adds to the score's sum. Included once per SIMD target.
#if defined(SIMILIS_SSIMULACRA2_CPU_TERMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_SSIMULACRA2_CPU_TERMS_INL_H
#undef SIMILIS_SSIMULACRA2_CPU_TERMS_INL_H
#else
#define SIMILIS_SSIMULACRA2_CPU_TERMS_INL_H
#endif

#include <algorithm>
#include <array>

#include "hwy/highway.h"
#include "src/ssimulacra2/cpu_blur-inl.h"
#include "src/ssimulacra2/cpu_plan.h"
#include "src/ssimulacra2/formula.h"

HWY_BEFORE_NAMESPACE();
namespace similis::ssimulacra2_internal::HWY_NAMESPACE {

struct alignas(64) Doubles : std::array<double, static_cast<std::size_t>(kTileColumns)> {};
struct ColumnSums {
  Doubles of[kTerms][kNorms] = {};
};

// A row of one channel's pixels and their windows' averages.
struct TermRow {
  const float *x, *y, *averages[kProducts];
};

void dissimilarities(const TermRow& row, double* HWY_RESTRICT terms) {
  const float *mean_x = row.averages[kMeanX], *mean_y = row.averages[kMeanY];
  const float *square_x = row.averages[kSquareX], *square_y = row.averages[kSquareY];
  const float* product = row.averages[kProductXY];
  for (std::size_t i = 0; i < kTileColumns; ++i) {
    terms[i] = dissimilarity(mean_x[i], mean_y[i], square_x[i], square_y[i], product[i]);
  }
}

void edge_changes(const TermRow& row, double* HWY_RESTRICT terms) {
  const float *mean_x = row.averages[kMeanX], *mean_y = row.averages[kMeanY];
  for (std::size_t i = 0; i < kTileColumns; ++i) {
    terms[i] = edge_change(row.x[i], mean_x[i], row.y[i], mean_y[i]);
  }
}

void add(const Doubles& terms, Doubles* sums) {
  double* HWY_RESTRICT first = sums[kFirst].data();
  double* HWY_RESTRICT fourth = sums[kFourth].data();
  for (std::size_t i = 0; i < kTileColumns; ++i) {
    first[i] += terms[i];
    fourth[i] += fourth_power(terms[i]);
  }
}

// The terms of a row that count, one after the other.
template <class Use> void for_each_term(const TermRow& row, unsigned terms, const Use& use) {
  Doubles changes, values;
  if (terms & bit(kDissimilarity)) {
    dissimilarities(row, values.data());
    use(kDissimilarity, values);
  }
  if (!(terms & (bit(kRinging) | bit(kBlurring)))) return;
  edge_changes(row, changes.data());
  if (terms & bit(kRinging)) {
    for (std::size_t i = 0; i < kTileColumns; ++i) values[i] = ringing(changes[i]);
    use(kRinging, values);
  }
  if (terms & bit(kBlurring)) {
    for (std::size_t i = 0; i < kTileColumns; ++i) values[i] = blurring(changes[i]);
    use(kBlurring, values);
  }
}

// Groups of 32 columns by halves; columns outside the picture count as 0.
void write_partials(const ScalePlan& plan, std::int64_t stripe, std::int64_t column, int channel,
    ColumnSums& sums) {
  for (std::int64_t group = 0; group < kTileColumns / kGroup; ++group) {
    double* partial = plan.partial(stripe, column / kGroup + group, channel);
    for (int i = 0; i < kTerms * kNorms; ++i) {
      double* values = sums.of[i / kNorms][i % kNorms].data() + group * kGroup;
      const std::int64_t inside = plan.extent.width - column - group * kGroup;
      for (std::int64_t k = std::max<std::int64_t>(inside, 0); k < kGroup; ++k) values[k] = 0;
      for (int half = kGroup / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; ++k) values[k] += values[k + half];
      }
      *partial++ = values[0];
    }
  }
}

// Adds a row of terms' share of the score's sum to each pixel's.
void add_losses(const ScalePlan& plan, int channel, int term, std::int64_t row, std::int64_t column,
    const Doubles& terms) {
  const auto& weights = plan.loss->of[plan.scale][channel][term];
  const std::int64_t count = std::min(kTileColumns, plan.extent.width - column);
  float* const losses = plan.losses.row(row) + column;
  for (std::int64_t i = 0; i < count; ++i) {
    const double t = terms[static_cast<std::size_t>(i)];
    losses[i] += static_cast<float>(weights.linear * t + weights.fourth * fourth_power(t));
  }
}

// One channel of a tile. Averages that are not kept are in `tile`.
void score_channel(
    const ScalePlan& plan, int channel, std::int64_t stripe, std::int64_t column, float* tile) {
  const auto c = static_cast<std::size_t>(channel);
  const std::int64_t first = stripe * kStripe, end = std::min(first + kStripe, plan.extent.height);
  std::array<Rows, kProducts> averages = plan.averages[c];
  for (int product = 0; product < kProducts; ++product) {
    Rows& rows = averages[static_cast<std::size_t>(product)];
    if (rows) {
      rows.memory += column;
    } else {
      rows = {tile + product * kStripe * kTileColumns, kTileColumns, kStripe};
    }
    if (plan.products[c] & bit(product))
      blur_down(plan, channel, product, column, first, end, rows);
  }
  if (plan.terms[c] == 0 || !plan.partials) return;
  ColumnSums sums;
  for (std::int64_t y = first; y < end; ++y) {
    TermRow row{plan.xyb[kX][c].row(y) + column, plan.xyb[kY][c].row(y) + column, {}};
    for (std::size_t p = 0; p < kProducts; ++p) row.averages[p] = averages[p].row(y);
    for_each_term(row, plan.terms[c], [&](Term term, const Doubles& values) {
      add(values, sums.of[term]);
      if (plan.loss) add_losses(plan, channel, term, y, column, values);
    });
  }
  write_partials(plan, stripe, column, channel, sums);
}

/// A tile of columns of a stripe, all channels.
void score_tile(const ScalePlan& plan, std::int64_t stripe, std::int64_t column) {
  alignas(64) float tile[kProducts * kStripe * kTileColumns];
  for (int channel = 0; channel < kChannels; ++channel) {
    score_channel(plan, channel, stripe, column, tile);
  }
}

}  // namespace similis::ssimulacra2_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
