// SPDX-License-Identifier: Apache-2.0
// CAMBI on the CPU. Each scale:
//   image, mask ─> every second place ─> mode of three              in place
//   stripe      ─> counts of each value in the window of a column   a table a task, 4 MB of 1920
//   counts      ─> contrasts above 0 ─> mean of the greatest        one float a place
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/cambi/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/cambi/counts-inl.h"
#include "src/vmaf/cambi/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// Writes the contrasts above 0 of rows first to last, row by row; returns how many there are.
std::int64_t contrasts_of_rows(const CambiPlan& plan, const CambiImage& image, std::int64_t first,
    std::int64_t last, float* contrasts) {
  WindowCounts counts(plan, image.width);
  const std::int64_t radius = plan.window.radius;
  const auto room = static_cast<std::size_t>(image.width) + HWY_MAX_BYTES;
  std::vector<std::uint16_t> keys(room);
  std::vector<float> of_row(room);
  std::vector<std::vector<Run>> runs(static_cast<std::size_t>(2 * radius + 1));  // of the window
  const auto runs_of = [&](std::int64_t row) -> std::vector<Run>& {
    return runs[static_cast<std::size_t>(row) % runs.size()];
  };
  const auto enter = [&](std::int64_t row) {
    if (row < 0 || row >= image.height) return;
    find_runs(plan, image, row, keys.data(), runs_of(row));
    for (const Run& run : runs_of(row)) counts.add<Change::enter>(run);
  };
  std::int64_t count = 0;
  for (std::int64_t row = first - radius; row < first + radius; ++row) enter(row);
  for (std::int64_t row = first; row < last; ++row) {
    enter(row + radius);
    std::int64_t found = 0;
    for (const Run& run : runs_of(row)) found += counts.contrasts(run, of_row.data() + found);
    std::copy_n(of_row.data(), found, contrasts + count);
    count += found;
    if (row < radius) continue;
    for (const Run& run : runs_of(row - radius)) counts.add<Change::leave>(run);
  }
  return count;
}

template <class Sample>
void ten_bits(const Sample* HWY_RESTRICT from, std::int64_t width, int depth,
    std::uint16_t* HWY_RESTRICT to) {
  if (depth <= 10) {
    for (std::int64_t x = 0; x < width; ++x) {
      to[x] = static_cast<std::uint16_t>(std::min(from[x] << (10 - depth), kCambiLargest));
    }
  } else {
    const int half = 1 << (depth - 11);
    for (std::int64_t x = 0; x < width; ++x) {
      to[x] = static_cast<std::uint16_t>(std::min((from[x] + half) >> (depth - 10), kCambiLargest));
    }
  }
}

// Means of 2×2 places; `below` is the row itself in the last row.
void blur_row(std::uint16_t* HWY_RESTRICT row, const std::uint16_t* HWY_RESTRICT below,
    std::int64_t width, bool is_last) {
  const std::int64_t end = width - 1;
  if (is_last) {
    for (std::int64_t x = 0; x < end; ++x) {
      row[x] = static_cast<std::uint16_t>((row[x] + row[x + 1]) >> 1);
    }
    return;
  }
  for (std::int64_t x = 0; x < end; ++x) {
    row[x] = static_cast<std::uint16_t>((row[x] + row[x + 1] + below[x] + below[x + 1]) >> 2);
  }
  row[end] = static_cast<std::uint16_t>((row[end] + below[end]) >> 1);
}

// 1 where a place equals those to its right and below.
void flat_row(const std::uint16_t* HWY_RESTRICT row, const std::uint16_t* HWY_RESTRICT below,
    std::int64_t width, std::uint8_t* HWY_RESTRICT to) {
  for (std::int64_t x = 0; x + 1 < width; ++x) {
    to[x] = static_cast<std::uint8_t>((row[x] == row[x + 1]) & (row[x] == below[x]));
  }
  to[width - 1] = row[width - 1] == below[width - 1] ? 1 : 0;
}

std::uint16_t mode(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const std::uint16_t least = std::min(std::min(a, b), c);
  const std::uint16_t of_others = b == c ? b : least;
  const bool is_twice = (a == b) | (a == c);  // without a branch: this becomes vector code
  return is_twice ? a : of_others;
}

void mode_across(
    const std::uint16_t* HWY_RESTRICT row, std::int64_t width, std::uint16_t* HWY_RESTRICT to) {
  to[0] = row[0];
  for (std::int64_t x = 1; x + 1 < width; ++x) to[x] = mode(row[x - 1], row[x], row[x + 1]);
  to[width - 1] = row[width - 1];
}

void mode_down(const std::uint16_t* HWY_RESTRICT a, const std::uint16_t* HWY_RESTRICT b,
    const std::uint16_t* HWY_RESTRICT c, std::int64_t width, std::uint16_t* HWY_RESTRICT to) {
  for (std::int64_t x = 0; x < width; ++x) to[x] = mode(a[x], b[x], c[x]);
}

void load(const Plane& plane, bool is_blurred, CambiImage& image) {
  for (std::int64_t y = 0; y < plane.height; ++y) {
    if (plane.is_words) {
      ten_bits(plane.row<std::uint16_t>(y), plane.width, plane.bit_depth, image.row(y));
    } else {
      ten_bits(plane.row<std::uint8_t>(y), plane.width, plane.bit_depth, image.row(y));
    }
    if (is_blurred && y > 0) blur_row(image.row(y - 1), image.row(y), plane.width, false);
  }
  const std::int64_t last = plane.height - 1;
  if (is_blurred) blur_row(image.row(last), image.row(last), plane.width, true);
}

void find_mask(CambiImage& image) {
  constexpr std::int64_t reach = 3, rows_of_window = 2 * reach + 1;
  const std::int64_t width = image.width, height = image.height;
  const auto room = static_cast<std::size_t>(width);
  const int least = cambi_least_flat(width, height);
  std::array<std::vector<std::uint8_t>, rows_of_window> flat;
  for (auto& row : flat) row.resize(room);
  // Counts of the columns of the window's rows; zeros beside them.
  std::vector<std::uint8_t> columns(room + 2 * reach);
  std::uint8_t* HWY_RESTRICT sums = columns.data() + reach;
  const auto add = [&](std::int64_t y) {
    auto& row = flat[static_cast<std::size_t>(y % rows_of_window)];
    if (y >= rows_of_window) {
      for (std::int64_t x = 0; x < width; ++x)
        sums[x] = static_cast<std::uint8_t>(sums[x] - row[static_cast<std::size_t>(x)]);
    }
    if (y < height) {
      flat_row(image.row(y), image.row(std::min(y + 1, height - 1)), width, row.data());
    } else {
      std::fill(row.begin(), row.end(), std::uint8_t{0});
    }
    for (std::int64_t x = 0; x < width; ++x)
      sums[x] = static_cast<std::uint8_t>(sums[x] + row[static_cast<std::size_t>(x)]);
  };
  for (std::int64_t y = 0; y < reach; ++y) add(y);
  for (std::int64_t y = 0; y < height; ++y) {
    add(y + reach);
    std::uint8_t* HWY_RESTRICT mask = image.mask_row(y);
    for (std::int64_t x = 0; x < width; ++x) {
      const int count = sums[x - 3] + sums[x - 2] + sums[x - 1] + sums[x] + sums[x + 1] +
                        sums[x + 2] + sums[x + 3];
      mask[x] = count > least ? 1 : 0;
    }
  }
}

void smooth(CambiImage& image) {
  const auto room = static_cast<std::size_t>(image.width);
  std::array<std::vector<std::uint16_t>, 3> across;
  for (auto& row : across) row.resize(room);
  const auto at = [&](std::int64_t y) { return across[static_cast<std::size_t>(y % 3)].data(); };
  for (std::int64_t y = 0; y < image.height; ++y) {
    mode_across(image.row(y), image.width, at(y));
    if (y < 2) continue;
    mode_down(at(y - 2), at(y - 1), at(y), image.width, image.row(y - 1));
  }
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::vmaf_internal {
namespace {

HWY_EXPORT(contrasts_of_rows);
HWY_EXPORT(load);
HWY_EXPORT(find_mask);
HWY_EXPORT(smooth);

// A stripe begins with its window's rows, which its neighbours count too, and with an empty table.
constexpr std::int64_t kLeastRowsOfStripe = 256;

void halve(CambiImage& image) {
  const std::int64_t width = (image.width + 1) / 2, height = (image.height + 1) / 2;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      image.values[static_cast<std::size_t>(y * width + x)] = image.row(2 * y)[2 * x];
      image.mask[static_cast<std::size_t>(y * width + x)] = image.mask_row(2 * y)[2 * x];
    }
  }
  image.width = width;
  image.height = height;
}

// The mean of the greatest contrasts of so many places; those that are not given are 0.
double mean_of_top(std::span<float> contrasts, std::int64_t places, double share) {
  const auto top =
      std::max<std::size_t>(1, static_cast<std::size_t>(share * static_cast<double>(places)));
  if (contrasts.size() > top) {
    std::nth_element(contrasts.begin(), contrasts.begin() + static_cast<std::ptrdiff_t>(top) - 1,
        contrasts.end(), std::greater<>());
    contrasts = contrasts.first(top);
  }
  // Eight sums side by side: one would wait for each addition.
  std::array<double, 8> sums{};
  for (std::size_t i = 0; i < contrasts.size(); ++i) {
    sums[i % sums.size()] += static_cast<double>(contrasts[i]);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(top);
}

}  // namespace

double cambi_cpu(const Plane& plane, const CambiSetting& setting, const Execution& exec) {
  const CambiPlan plan(setting, plane);
  CambiImage image{plane.width, plane.height, {}, {}};
  const auto pixels = static_cast<std::size_t>(plane.width * plane.height);
  image.values.resize(pixels);
  image.mask.resize(pixels);
  const int bits = setting.encoded_bits == 0 ? plane.bit_depth : setting.encoded_bits;
  HWY_DYNAMIC_DISPATCH(load)(plane, bits < 10, image);
  HWY_DYNAMIC_DISPATCH(find_mask)(image);
  std::vector<float> contrasts(pixels);
  std::array<double, kCambiScales> scores{};
  for (std::size_t scale = 0; scale < scores.size(); ++scale) {
    if (scale > 0 || plan.window.is_halved) halve(image);
    HWY_DYNAMIC_DISPATCH(smooth)(image);
    const std::int64_t stripes = std::max<std::int64_t>(1, image.height / kLeastRowsOfStripe);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(stripes));
    const auto first_row = [&](std::int64_t stripe) { return stripe * image.height / stripes; };
    parallel_for(exec, stripes, [&](std::int64_t stripe) {
      const std::int64_t first = first_row(stripe), last = first_row(stripe + 1);
      counts[static_cast<std::size_t>(stripe)] = HWY_DYNAMIC_DISPATCH(contrasts_of_rows)(
          plan, image, first, last, contrasts.data() + first * image.width);
    });
    std::int64_t count = counts[0];
    for (std::int64_t stripe = 1; stripe < stripes; ++stripe) {
      const std::int64_t more = counts[static_cast<std::size_t>(stripe)];
      const float* from = contrasts.data() + first_row(stripe) * image.width;
      std::copy(from, from + more, contrasts.data() + count);
      count += more;
    }
    scores[scale] = mean_of_top(std::span(contrasts).first(static_cast<std::size_t>(count)),
        image.width * image.height, setting.top_share);
  }
  return cambi_of_scales(scores, plan.window);
}

}  // namespace similis::vmaf_internal
#endif
