// SPDX-License-Identifier: Apache-2.0
// CAMBI on the CPU. Each scale:
//   image, mask ─> every second place ─> mode of three              in place
//   stripe      ─> counts of each value in the window of a column   a table a thread, 4 MB of 1920
//   counts      ─> contrasts above 0 ─> mean of the greatest        one float a place
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/cambi/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <bit>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/cambi/counts-inl.h"
#include "src/vmaf/cambi/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// Writes the contrasts of rows first to last that are above 0, and some that are 0, row by row;
// returns their number. The table continues where it holds the windows of the row above.
std::int64_t contrasts_of_rows(const CambiPlan& plan, const CambiImage& image, std::int64_t first,
    std::int64_t last, CambiTable& table, float* contrasts) {
  WindowCounts counts(plan, image, table);
  std::vector<float> of_row(static_cast<std::size_t>(image.width) + HWY_MAX_BYTES);
  std::int64_t count = 0;
  for (std::int64_t row = first; row < last; ++row) {
    counts.move_to(row);
    const std::int64_t found = counts.contrasts(row, of_row.data());
    std::copy_n(of_row.data(), found, contrasts + count);
    count += found;
  }
  return count;
}

// Adds those of the numbers that are above a limit.
double sum_above(std::span<const float> numbers, float limit) {
  const hn::CappedTag<double, 4> d;
  const hn::Rebind<float, decltype(d)> df;
  const std::size_t lanes = hn::Lanes(d);
  const auto least = hn::Set(df, limit);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  const auto kept = [&](std::size_t i) HWY_ATTR {
    const auto x = hn::LoadU(df, numbers.data() + i);
    return hn::PromoteTo(d, hn::IfThenElseZero(hn::Gt(x, least), x));
  };
  std::size_t i = 0;
  for (; i + 2 * lanes <= numbers.size(); i += 2 * lanes) {
    even = hn::Add(even, kept(i));
    odd = hn::Add(odd, kept(i + lanes));
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < numbers.size(); ++i) sum += numbers[i] > limit ? static_cast<double>(numbers[i]) : 0;
  return sum;
}

template <class Sample>
void ten_bits(const Sample* HWY_RESTRICT from, std::int64_t width, int depth,
    std::uint16_t* HWY_RESTRICT to) {
  if (depth <= 10) {
    for (std::int64_t x = 0; x < width; ++x) {
      to[x] = static_cast<std::uint16_t>(std::min(from[x] << (10 - depth), kCambiLargest) + 1);
    }
  } else {
    const int half = 1 << (depth - 11);
    for (std::int64_t x = 0; x < width; ++x) {
      to[x] =
          static_cast<std::uint16_t>(std::min((from[x] + half) >> (depth - 10), kCambiLargest) + 1);
    }
  }
}

// Means of 2×2 places, of words as of values; `below` is the row itself in the last row.
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

// The mode of three values, with the mask of the second.
std::uint16_t mode(std::uint16_t word_a, std::uint16_t word_b, std::uint16_t word_c) {
  const auto value_of = [](std::uint16_t word) {
    return static_cast<std::uint16_t>(word & (kCambiLeftOut - 1));
  };
  const std::uint16_t a = value_of(word_a), b = value_of(word_b), c = value_of(word_c);
  const std::uint16_t least = std::min(std::min(a, b), c);
  const std::uint16_t of_others = b == c ? b : least;
  const bool is_twice = (a == b) | (a == c);  // without a branch: this becomes vector code
  const std::uint16_t value = is_twice ? a : of_others;
  return static_cast<std::uint16_t>(value | (word_b & kCambiLeftOut));
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

// Marks the places of a row whose windows hold no more than `least` flat places. `sums` are those
// of columns; it has three more on either side.
void mark_row(const std::uint8_t* HWY_RESTRICT sums, std::int64_t width, std::uint8_t least,
    std::uint16_t* HWY_RESTRICT row) {
  for (std::int64_t x = 0; x < width; ++x) {
    const auto count = static_cast<std::uint8_t>(sums[x - 3] + sums[x - 2] + sums[x - 1] + sums[x] +
                                                 sums[x + 1] + sums[x + 2] + sums[x + 3]);
    row[x] = static_cast<std::uint16_t>(row[x] | (count > least ? 0 : kCambiLeftOut));
  }
}

void add_row(
    const std::uint8_t* HWY_RESTRICT row, std::int64_t width, std::uint8_t* HWY_RESTRICT sums) {
  for (std::int64_t x = 0; x < width; ++x) sums[x] = static_cast<std::uint8_t>(sums[x] + row[x]);
}

void subtract_row(
    const std::uint8_t* HWY_RESTRICT row, std::int64_t width, std::uint8_t* HWY_RESTRICT sums) {
  for (std::int64_t x = 0; x < width; ++x) sums[x] = static_cast<std::uint8_t>(sums[x] - row[x]);
}

void find_mask(CambiImage& image) {
  constexpr std::int64_t reach = 3, rows_of_window = 2 * reach + 1;
  const std::int64_t width = image.width, height = image.height;
  const auto room = static_cast<std::size_t>(width);
  const auto least = static_cast<std::uint8_t>(cambi_least_flat(width, height));
  std::array<std::vector<std::uint8_t>, rows_of_window> flat;
  for (auto& row : flat) row.resize(room);
  std::vector<std::uint8_t> columns(room + 2 * reach);
  std::uint8_t* const sums = columns.data() + reach;
  const auto add = [&](std::int64_t y) {
    auto& row = flat[static_cast<std::size_t>(y % rows_of_window)];
    if (y >= rows_of_window) subtract_row(row.data(), width, sums);
    if (y < height) {
      flat_row(image.row(y), image.row(std::min(y + 1, height - 1)), width, row.data());
    } else {
      std::fill(row.begin(), row.end(), std::uint8_t{0});
    }
    add_row(row.data(), width, sums);
  };
  for (std::int64_t y = 0; y < reach; ++y) add(y);
  for (std::int64_t y = 0; y < height; ++y) {
    add(y + reach);  // which reads no row that is marked
    mark_row(sums, width, least, image.row(y));
  }
}

void halve_row(
    const std::uint16_t* HWY_RESTRICT from, std::int64_t width, std::uint16_t* HWY_RESTRICT to) {
  for (std::int64_t x = 0; x < width; ++x) to[x] = from[2 * x];
}

void halve(CambiImage& image) {
  const std::int64_t width = (image.width + 1) / 2, height = (image.height + 1) / 2;
  std::vector<std::uint16_t> halved(static_cast<std::size_t>(width));
  for (std::int64_t y = 0; y < height; ++y) {
    halve_row(image.row(2 * y), image.width / 2, halved.data());
    halved.back() = image.row(2 * y)[2 * (width - 1)];
    std::copy(halved.begin(), halved.end(), image.words.begin() + y * width);
  }
  image.width = width;
  image.height = height;
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
HWY_EXPORT(sum_above);
HWY_EXPORT(load);
HWY_EXPORT(find_mask);
HWY_EXPORT(halve);
HWY_EXPORT(smooth);

// A stripe begins with its window's rows, unless the same thread counted the stripe above.
constexpr std::int64_t kLeastRowsOfStripe = 256;

// The tables of threads that work at once.
class CambiTables {
 public:
  // A table that nobody uses, the one of the row above where there is one.
  CambiTable& take(std::int64_t row) {
    const std::lock_guard lock(mutex_);
    Entry* found = nullptr;
    for (Entry& entry : entries_) {
      if (entry.is_taken) continue;
      if (found == nullptr || entry.table.next_row == row) found = &entry;
    }
    if (found == nullptr) found = &entries_.emplace_back();
    found->is_taken = true;
    return found->table;
  }
  void give_back(const CambiTable& table) {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
      if (&entry.table == &table) entry.is_taken = false;
    }
  }
  // Lets no table continue.
  void begin_image() {
    for (Entry& entry : entries_) entry.table.next_row = -1;
  }

 private:
  struct Entry {
    CambiTable table;
    bool is_taken = false;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
};

using Segments = std::span<const std::span<const float>>;

// The mean of the greatest of so many places' contrasts; those that are not given are 0. They are
// counted by the upper half of their bits, and those that share the last one's by the lower half:
// floats that are not negative are in the order of their bits.
class TopMean {
 public:
  double operator()(Segments contrasts, std::int64_t places, double share) {
    const auto top =
        std::max<std::size_t>(1, static_cast<std::size_t>(share * static_cast<double>(places)));
    std::size_t given = 0;
    for (const auto& segment : contrasts) given += segment.size();
    if (given <= top) return sum_above(contrasts, 0) / static_cast<double>(top);
    count(contrasts, [](std::uint32_t bits) { return bits >> 16; });
    std::size_t left = top;  // of the greatest, to be found in and below the bin
    const std::uint32_t upper = last_bin(left);
    const float limit = std::bit_cast<float>(upper << 16 | 0xFFFF);
    double sum = sum_above(contrasts, limit);
    counts_.assign(kBins, 0);
    for (const auto& segment : contrasts) {
      for (const float contrast : segment) {
        const auto bits = std::bit_cast<std::uint32_t>(contrast);
        if (bits >> 16 == upper) ++counts_[bits & 0xFFFF];
      }
    }
    for (std::uint32_t lower = kBins; left > 0;) {
      --lower;
      const std::size_t taken = std::min<std::size_t>(left, counts_[lower]);
      sum += static_cast<double>(taken) *
             static_cast<double>(std::bit_cast<float>(upper << 16 | lower));
      left -= taken;
    }
    return sum / static_cast<double>(top);
  }

 private:
  static constexpr std::size_t kBins = 65536;

  static double sum_above(Segments contrasts, float limit) {
    double sum = 0;
    for (const auto& segment : contrasts) sum += HWY_DYNAMIC_DISPATCH(sum_above)(segment, limit);
    return sum;
  }
  template <class Bin> void count(Segments contrasts, const Bin& bin) {
    counts_.assign(kBins, 0);
    for (const auto& segment : contrasts) {
      for (const float contrast : segment) ++counts_[bin(std::bit_cast<std::uint32_t>(contrast))];
    }
  }
  // The bin that holds the last of the `left` greatest; those of greater bins are taken off.
  std::uint32_t last_bin(std::size_t& left) const {
    std::uint32_t bin = kBins - 1;
    for (; counts_[bin] < left; --bin) left -= counts_[bin];
    return bin;
  }

  std::vector<std::uint32_t> counts_;
};

}  // namespace

struct CambiMeter::Memory {
  Memory(const CambiSetting& setting, const Plane& plane)
      : plan(setting, plane),
        image(plane.width, plane.height),
        contrasts(static_cast<std::size_t>(plane.width * plane.height)) {}

  CambiPlan plan;
  CambiImage image;
  std::vector<float> contrasts;
  CambiTables tables;
  TopMean top_mean;
};

CambiMeter::CambiMeter(const CambiSetting& setting) : setting_(setting) {}
CambiMeter::~CambiMeter() = default;
CambiMeter::CambiMeter(CambiMeter&&) noexcept = default;

double CambiMeter::measure(const Plane& plane, const Execution& exec) {
  if (memory_ == nullptr || plane.width != width_ || plane.height != height_) {
    memory_.reset();
    memory_ = std::make_unique<Memory>(setting_, plane);
    width_ = plane.width;
    height_ = plane.height;
  }
  const CambiPlan& plan = memory_->plan;
  CambiImage& image = memory_->image;
  image.width = width_;
  image.height = height_;
  const int bits = setting_.encoded_bits == 0 ? plane.bit_depth : setting_.encoded_bits;
  HWY_DYNAMIC_DISPATCH(load)(plane, bits < 10, image);
  HWY_DYNAMIC_DISPATCH(find_mask)(image);
  std::array<double, kCambiScales> scores{};
  for (std::size_t scale = 0; scale < scores.size(); ++scale) {
    if (scale > 0 || plan.window.is_halved) HWY_DYNAMIC_DISPATCH(halve)(image);
    HWY_DYNAMIC_DISPATCH(smooth)(image);
    const std::int64_t stripes = std::max<std::int64_t>(1, image.height / kLeastRowsOfStripe);
    std::vector<std::span<const float>> segments(static_cast<std::size_t>(stripes));
    memory_->tables.begin_image();
    parallel_for(exec, stripes, [&](std::int64_t stripe) {
      const std::int64_t first = stripe * image.height / stripes;
      const std::int64_t last = (stripe + 1) * image.height / stripes;
      float* const to = memory_->contrasts.data() + first * image.width;
      CambiTable& table = memory_->tables.take(first);
      const std::int64_t count =
          HWY_DYNAMIC_DISPATCH(contrasts_of_rows)(plan, image, first, last, table, to);
      memory_->tables.give_back(table);
      segments[static_cast<std::size_t>(stripe)] = {to, static_cast<std::size_t>(count)};
    });
    scores[scale] = memory_->top_mean(segments, image.width * image.height, setting_.top_share);
  }
  return cambi_of_scales(scores, plan.window);
}

}  // namespace similis::vmaf_internal
#endif
