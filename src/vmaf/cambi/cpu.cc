// SPDX-License-Identifier: Apache-2.0
// CAMBI on the CPU. Each scale:
//   image, mask ─> every second place ─> mode of three              in place
//   stripe      ─> counts of each value in the window of a column   a table a task, 4 MB of 1920
//   counts      ─> contrast of flat places ─> mean of the greatest  one float a place
// A row enters and leaves the table in runs of one value, each a trapezoid of columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/cambi/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/cambi/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// Counts of values in the windows of a row's columns.
class WindowCounts {
 public:
  WindowCounts(const CambiPlan& plan, std::int64_t width)
      : plan_(plan),
        width_(width),
        ramp_(static_cast<std::size_t>(2 * plan.window.radius + 2)),
        counts_(static_cast<std::size_t>((plan.largest_counted + 1) * width)) {
    std::iota(ramp_.begin(), ramp_.end(), std::uint16_t{0});
  }

  // sign: 1, or 2^16 - 1 to take the row out.
  void add_row(const std::uint16_t* HWY_RESTRICT values, const std::uint8_t* HWY_RESTRICT mask,
      std::uint16_t sign) {
    for (std::int64_t x = 0; x < width_;) {
      if (mask[x] == 0 || values[x] > plan_.largest_counted) {
        ++x;
        continue;
      }
      const std::int64_t first = x;
      const std::uint16_t value = values[x];
      while (x < width_ && mask[x] != 0 && values[x] == value) ++x;
      add_run(value, first, x, sign);
    }
  }

  int at(int value, std::int64_t column) const {
    if (value < 0 || value > plan_.largest_counted) return 0;
    return counts_[static_cast<std::size_t>(value * width_ + column)];
  }

 private:
  // Columns first to last of a row hold `value`: the count of column j grows by those in its
  // window.
  void add_run(int value, std::int64_t first, std::int64_t last, std::uint16_t sign) {
    const std::int64_t radius = plan_.window.radius, size = 2 * radius + 1;
    const std::int64_t top = std::min(last - first, size);
    std::uint16_t* HWY_RESTRICT counts = counts_.data() + value * width_;
    const std::int64_t begin = first - radius, end = last + radius;
    const std::int64_t left = std::max<std::int64_t>(0, begin), right = std::min(width_, end);
    const std::int64_t risen = std::clamp(begin + top, left, right);
    const std::int64_t falls = std::clamp(end - top, risen, right);
    const std::uint16_t* HWY_RESTRICT ramp = ramp_.data();
    for (std::int64_t j = left; j < risen; ++j) {
      counts[j] = static_cast<std::uint16_t>(counts[j] + sign * ramp[j - begin + 1]);
    }
    const auto plateau = static_cast<std::uint16_t>(sign * top);
    for (std::int64_t j = risen; j < falls; ++j) {
      counts[j] = static_cast<std::uint16_t>(counts[j] + plateau);
    }
    for (std::int64_t j = falls; j < right; ++j) {
      counts[j] = static_cast<std::uint16_t>(counts[j] + sign * (end - j));
    }
  }

  const CambiPlan& plan_;
  std::int64_t width_;
  std::vector<std::uint16_t> ramp_, counts_;
};

float contrast(const CambiPlan& plan, const WindowCounts& counts, int value, std::int64_t column) {
  std::uint32_t steps = plan.steps_of[static_cast<std::size_t>(value)];
  if (steps == 0) return 0;
  const int own = counts.at(value, column);
  float largest = 0;
  for (; steps != 0; steps &= steps - 1) {
    const int step = std::countr_zero(steps) + 1;
    const int other = std::max(counts.at(value + step, column), counts.at(value - step, column));
    const int weight = kCambiWeights[static_cast<std::size_t>(step - 1)];
    largest = std::max(largest, static_cast<float>(weight * own * other) *
                                    plan.inverses[static_cast<std::size_t>(own + other)]);
  }
  return largest;
}

void contrasts_of_rows(const CambiPlan& plan, const CambiImage& image, std::int64_t first,
    std::int64_t last, float* contrasts) {
  WindowCounts counts(plan, image.width);
  const std::int64_t radius = plan.window.radius;
  constexpr std::uint16_t in = 1, out = 0xffff;
  const auto add = [&](std::int64_t row, std::uint16_t sign) {
    if (row < 0 || row >= image.height) return;
    counts.add_row(image.row(row), image.mask_row(row), sign);
  };
  for (std::int64_t row = first - radius; row < first + radius; ++row) add(row, in);
  for (std::int64_t row = first; row < last; ++row) {
    add(row + radius, in);
    const std::uint16_t* values = image.row(row);
    const std::uint8_t* mask = image.mask_row(row);
    float* to = contrasts + row * image.width;
    for (std::int64_t x = 0; x < image.width; ++x) {
      to[x] = mask[x] != 0 ? contrast(plan, counts, values[x], x) : 0;
    }
    add(row - radius, out);
  }
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

// A stripe begins with its window's rows, which its neighbours count too.
constexpr std::int64_t kLeastRowsOfStripe = 128;

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

double mean_of_top(std::span<float> contrasts, double share) {
  const auto top = std::max<std::ptrdiff_t>(
      1, static_cast<std::ptrdiff_t>(share * static_cast<double>(contrasts.size())));
  std::nth_element(
      contrasts.begin(), contrasts.begin() + top - 1, contrasts.end(), std::greater<>());
  double sum = 0;
  for (const float value : contrasts.first(static_cast<std::size_t>(top))) {
    sum += static_cast<double>(value);
  }
  return sum / static_cast<double>(top);
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
    parallel_for(exec, stripes, [&](std::int64_t stripe) {
      HWY_DYNAMIC_DISPATCH(contrasts_of_rows)
      (plan, image, stripe * image.height / stripes, (stripe + 1) * image.height / stripes,
          contrasts.data());
    });
    const auto places = static_cast<std::size_t>(image.width * image.height);
    scores[scale] = mean_of_top(std::span(contrasts).first(places), setting.top_share);
  }
  return cambi_of_scales(scores, plan.window);
}

}  // namespace similis::vmaf_internal
#endif
