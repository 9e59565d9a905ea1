// SPDX-License-Identifier: Apache-2.0
// Mutual information on the CPU, in f64 whatever the images are. Voxels go by in batches that fit
// the first-level cache; a batch's weights are found in vectors, tap by tap, and a plain loop over
// its voxels adds their products to a histogram or looks slopes up.
//
// A result's voxels are cut into at most 256 tasks, each with a histogram of its own, which are
// then added up in their order. The cut depends on the arrays alone, and so do the bits. Neighbours
// of one value, such as a background, are counted and added once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/mutual_information/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/mutual_information/information.h"
#include "src/mutual_information/mutual_information.h"

#ifndef SIMILIS_MUTUAL_INFORMATION_CPU_TYPES
#define SIMILIS_MUTUAL_INFORMATION_CPU_TYPES
namespace similis::mutual_information_internal {

/// The smallest and largest value of each image.
struct Limits {
  double x_low = std::numeric_limits<double>::infinity(), x_high = -x_low;
  double y_low = x_low, y_high = x_high;

  Limits with(const Limits& o) const {
    return {std::min(x_low, o.x_low), std::max(x_high, o.x_high), std::min(y_low, o.y_low),
        std::max(y_high, o.y_high)};
  }
  Limits common() const {
    const double low = std::min(x_low, y_low), high = std::max(x_high, y_high);
    return {low, high, low, high};
  }
};

/// Voxels [first, last) of a result, which one task goes through.
struct Range {
  std::int64_t result, first, last;
};

/// The slopes of one result's voxels, and their factor.
struct Slopes {
  const double* table;
  double factor;
};

}  // namespace similis::mutual_information_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::mutual_information_internal::HWY_NAMESPACE {
namespace core = core_internal::HWY_NAMESPACE;

constexpr int kMostVoxels = 256;    // in a batch
constexpr int kMostWeights = 1024;  // weights of an image in a batch; 8 KB

// The weights of one image's voxels: value[tap·stride + voxel].
class Weights {
 public:
  Weights(int bins, int taps, int stride)
      : bins_(bins),
        taps_(taps),
        stride_(stride),
        value_(static_cast<std::size_t>(taps * stride)),
        slope_(value_.size()) {}

  const int* first() const { return first_; }
  const double* value() const { return value_.data(); }
  const double* slope() const { return slope_.data(); }

  void find(
      ParzenKernel kernel, double decay, const Scale<double>& scale, const double* v, int count) {
    if (kernel == ParzenKernel::delta) {
      for (int i = 0; i < count; ++i) first_[i] = holding_bin(v[i], scale, bins_);
      std::fill_n(value_.data(), count, 1.0);
      return;
    }
    for (int i = 0; i < count; ++i) {
      const double t = within(position(v[i], scale), bins_);
      first_[i] = first_bin(t, bins_, taps_);
      from_first_[i] = t - first_[i];
      value_sum_[i] = slope_sum_[i] = 0;
    }
    for (int k = 0; k < taps_; ++k) find_tap(kernel, decay, k, count);
    for (int i = 0; i < count; ++i) value_sum_[i] = 1 / value_sum_[i];
    for (int k = 0; k < taps_; ++k) normalize(k, count);
  }

 private:
  void find_tap(ParzenKernel kernel, double decay, int k, int count) {
    double* HWY_RESTRICT value = value_.data() + k * stride_;
    double* HWY_RESTRICT slope = slope_.data() + k * stride_;
    if (kernel == ParzenKernel::b_spline) {
      for (int i = 0; i < count; ++i) {
        const Weight<double> weight = b_spline_weight(from_first_[i] - k);
        value[i] = weight.value;
        slope[i] = weight.slope;
      }
    } else {
      for (int i = 0; i < count; ++i) {
        const Weight<double> weight = gaussian_weight(from_first_[i] - k, decay);
        value[i] = weight.value;
        slope[i] = weight.slope;
      }
    }
    for (int i = 0; i < count; ++i) {
      value_sum_[i] += value[i];
      slope_sum_[i] += slope[i];
    }
  }

  // value_sum_ is its inverse by now.
  void normalize(int k, int count) {
    double* HWY_RESTRICT value = value_.data() + k * stride_;
    double* HWY_RESTRICT slope = slope_.data() + k * stride_;
    for (int i = 0; i < count; ++i) {
      value[i] *= value_sum_[i];
      slope[i] = (slope[i] - value[i] * slope_sum_[i]) * value_sum_[i];
    }
  }

  int bins_, taps_, stride_;
  int first_[kMostVoxels];
  double from_first_[kMostVoxels], value_sum_[kMostVoxels], slope_sum_[kMostVoxels];
  AlignedVector<double> value_, slope_;
};

// Neighbours in a line, as doubles, and which of them count.
class Batch {
 public:
  Batch(const Pass& pass, std::int64_t result)
      : pass_(pass),
        start_(pass.voxels.start(result)),
        line_(pass.voxels.axes[pass.voxels.rank - 1]) {}

  // Those from `index` on, at most `most` and none from `last`. Returns how many.
  int load(std::int64_t index, std::int64_t last, int most) {
    const std::int64_t in_line = index % line_.extent;
    count_ = static_cast<int>(std::min({last - index, line_.extent - in_line, std::int64_t{most}}));
    at_ = start_ + pass_.voxels.at(index);
    core::load_row(pass_.x, at_.x, line_.stride.x, count_, x_);
    core::load_row(pass_.y, at_.y, line_.stride.y, count_, y_);
    has_exclusions_ = !pass_.mask.empty() || pass_.takes_samples;
    if (has_exclusions_) exclude(index);
    return count_;
  }

  const double* x() const { return x_; }
  const double* y() const { return y_; }
  bool counts(int i) const { return !has_exclusions_ || counts_[i]; }
  bool repeats(int i) const { return x_[i] == x_[i + 1] && y_[i] == y_[i + 1] && counts(i + 1); }

  // True if a voxel that counts has no place among the bins.
  bool has_nan(const Scale<double>& x, const Scale<double>& y) const {
    bool found = false;
    for (int i = 0; i < count_; ++i) {
      const double t = position(x_[i], x) + position(y_[i], y);
      found |= (t != t) & counts(i);
    }
    return found;
  }

  void store_gradients(const double* by_x, const double* by_y) const {
    store(by_x, pass_.x_gradient, at_.x_gradient, line_.stride.x_gradient);
    store(by_y, pass_.y_gradient, at_.y_gradient, line_.stride.y_gradient);
  }

 private:
  void exclude(std::int64_t index) {
    if (pass_.mask.empty()) {
      std::fill_n(counts_, count_, true);
    } else {
      double mask[kMostVoxels];
      core::load_row(pass_.mask, at_.mask, line_.stride.mask, count_, mask);
      for (int i = 0; i < count_; ++i) counts_[i] = mask[i] > 0;
    }
    if (!pass_.takes_samples) return;
    for (int i = 0; i < count_; ++i) {
      counts_[i] &= is_sampled(static_cast<std::uint64_t>(index + i), pass_.seed, pass_.threshold);
    }
  }

  void store(const double* slopes, const TensorView& gradient, std::int64_t offset,
      std::int64_t stride) const {
    if (!gradient.empty()) core::store_row(slopes, count_, gradient, offset, stride);
  }

  const Pass& pass_;
  Offsets start_, at_;
  Voxels::Axis line_;
  int count_ = 0;
  bool has_exclusions_ = false;
  bool counts_[kMostVoxels];
  alignas(64) double x_[kMostVoxels], y_[kMostVoxels];
};

// taps, or the pass's own where that is 0.
template <int kTaps> int taps_of(int taps) { return kTaps > 0 ? kTaps : taps; }

class Task {
 public:
  Task(const Pass& pass, const Range& range, const Limits& limits, ParzenKernel kernel)
      : pass_(pass),
        range_(range),
        kernel_(kernel),
        taps_(kernel == ParzenKernel::delta ? 1 : pass.taps),
        stride_(std::clamp(kMostWeights / taps_, 4, kMostVoxels)),
        decay_(1 / (2 * pass.sigma * pass.sigma)),
        x_scale_(scale_of<double>(limits.x_low, limits.x_high, pass.bins)),
        y_scale_(scale_of<double>(limits.y_low, limits.y_high, pass.bins)),
        batch_(pass, range.result),
        x_(pass.bins, taps_, stride_),
        y_(pass.bins, taps_, stride_) {}

  template <class Body> void for_each_batch(const Body& body) {
    for (std::int64_t index = range_.first; index < range_.last;) {
      const int count = batch_.load(index, range_.last, stride_);
      x_.find(kernel_, decay_, x_scale_, batch_.x(), count);
      y_.find(kernel_, decay_, y_scale_, batch_.y(), count);
      body(count);
      index += count;
    }
  }

  template <int kTaps> void add_to(double* histogram) {
    bool found_nan = false;
    for_each_batch([&](int count) {
      found_nan |= batch_.has_nan(x_scale_, y_scale_);
      add_batch<kTaps>(count, histogram);
    });
    if (found_nan) histogram[0] = std::numeric_limits<double>::quiet_NaN();
  }

  template <int kTaps> void write_gradients(const Slopes& slopes) {
    alignas(64) double by_x[kMostVoxels], by_y[kMostVoxels];
    const double x_factor = slopes.factor * x_scale_.bins_per_unit;
    const double y_factor = slopes.factor * y_scale_.bins_per_unit;
    for_each_batch([&](int count) {
      look_up<kTaps>(count, slopes.table, by_x, by_y);
      for (int i = 0; i < count; ++i) {
        by_x[i] *= x_factor * is_inside(batch_.x()[i], x_scale_);
        by_y[i] *= y_factor * is_inside(batch_.y()[i], y_scale_);
      }
      for (int i = 0; i < count; ++i) {
        if (!batch_.counts(i)) by_x[i] = by_y[i] = 0;
      }
      batch_.store_gradients(by_x, by_y);
    });
  }

 private:
  template <int kTaps> void add_batch(int count, double* histogram) const {
    const int taps = taps_of<kTaps>(taps_);
    const double *x = x_.value(), *y = y_.value();
    double times = 1;
    for (int i = 0; i < count; ++i) {
      if (!batch_.counts(i)) continue;
      if (i + 1 < count && batch_.repeats(i)) {
        ++times;
        continue;
      }
      double* row = histogram + x_.first()[i] * pass_.bins + y_.first()[i];
      for (int a = 0; a < taps; ++a, row += pass_.bins) {
        const double weight = x[a * stride_ + i] * times;
        for (int b = 0; b < taps; ++b) row[b] += weight * y[b * stride_ + i];
      }
      times = 1;
    }
  }

  // Σ_ab slope_a·weight_b·table[a][b], and the same with x and y exchanged.
  template <int kTaps>
  void look_up(int count, const double* table, double* by_x, double* by_y) const {
    const int taps = taps_of<kTaps>(taps_);
    for (int i = 0; i < count; ++i) {
      const double* row = table + x_.first()[i] * pass_.bins + y_.first()[i];
      double x_sum = 0, y_sum = 0;
      for (int a = 0; a < taps; ++a, row += pass_.bins) {
        double by_value = 0, by_slope = 0;
        for (int b = 0; b < taps; ++b) {
          by_value += row[b] * y_.value()[b * stride_ + i];
          by_slope += row[b] * y_.slope()[b * stride_ + i];
        }
        x_sum += x_.slope()[a * stride_ + i] * by_value;
        y_sum += x_.value()[a * stride_ + i] * by_slope;
      }
      by_x[i] = x_sum;
      by_y[i] = y_sum;
    }
  }

  const Pass& pass_;
  const Range range_;
  const ParzenKernel kernel_;
  const int taps_, stride_;
  const double decay_;
  const Scale<double> x_scale_, y_scale_;
  Batch batch_;
  Weights x_, y_;
};

// Adds the voxels of a range to a histogram; one with a NaN gets a NaN.
void add_voxels(const Pass& pass, const Range& range, const Limits& limits, double* histogram) {
  const ParzenKernel kernel = pass.is_binned ? ParzenKernel::delta : pass.kernel;
  Task task(pass, range, limits, kernel);
  if (kernel == ParzenKernel::delta) return task.add_to<1>(histogram);
  pass.taps == 4 ? task.add_to<4>(histogram) : task.add_to<0>(histogram);
}

void write_gradients(
    const Pass& pass, const Range& range, const Limits& limits, const Slopes& slopes) {
  Task task(pass, range, limits, pass.kernel);
  pass.taps == 4 ? task.write_gradients<4>(slopes) : task.write_gradients<0>(slopes);
}

// True if a voxel of the range counts.
bool has_voxel(const Pass& pass, const Range& range) {
  Batch batch(pass, range.result);
  for (std::int64_t index = range.first; index < range.last;) {
    const int count = batch.load(index, range.last, kMostVoxels);
    for (int i = 0; i < count; ++i) {
      if (batch.counts(i)) return true;
    }
    index += count;
  }
  return false;
}

Limits limits_of(const Pass& pass, const Range& range) {
  Batch batch(pass, range.result);
  constexpr int kLanes = 8;
  Limits lanes[kLanes];
  for (std::int64_t index = range.first; index < range.last;) {
    const int count = batch.load(index, range.last, kMostVoxels);
    for (int i = 0; i < count; ++i) {
      if (!batch.counts(i)) continue;
      const double x = batch.x()[i], y = batch.y()[i];
      Limits& found = lanes[i % kLanes];
      found.x_low = x < found.x_low ? x : found.x_low;
      found.x_high = x > found.x_high ? x : found.x_high;
      found.y_low = y < found.y_low ? y : found.y_low;
      found.y_high = y > found.y_high ? y : found.y_high;
    }
    index += count;
  }
  Limits all;
  for (const Limits& lane : lanes) all = all.with(lane);
  return all;
}

}  // namespace similis::mutual_information_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::mutual_information_internal {
namespace {
HWY_EXPORT(add_voxels);
HWY_EXPORT(write_gradients);
HWY_EXPORT(has_voxel);
HWY_EXPORT(limits_of);

constexpr std::int64_t kVoxelsOfTask = 65536;  // enough to hide the cost of starting a task
constexpr std::int64_t kMostTasks = 256;       // for a result
constexpr std::int64_t kMostEntries = std::int64_t{1} << 21;  // in histograms at a time: 16 MB

// The cut of each result's voxels into tasks.
class Work {
 public:
  explicit Work(const Pass& pass)
      : count_(pass.voxels.count),
        tasks_(std::clamp<std::int64_t>(count_ / std::max(kVoxelsOfTask, 4 * pass.entries()), 1,
            std::min(kMostTasks, kMostEntries / pass.entries()))) {}

  std::int64_t tasks() const { return tasks_; }
  Range range(std::int64_t result, std::int64_t task) const {
    const std::int64_t each = (count_ + tasks_ - 1) / tasks_;
    return {result, std::min(count_, task * each), std::min(count_, (task + 1) * each)};
  }

 private:
  std::int64_t count_, tasks_;
};

std::vector<Limits> limits_of_results(const Pass& pass, const Work& work, const Execution& exec) {
  const auto results = static_cast<std::size_t>(pass.results);
  if (pass.range == ValueRange::fixed) {
    return std::vector<Limits>(results, Limits{pass.low, pass.high, pass.low, pass.high});
  }
  const std::int64_t tasks = work.tasks();
  std::vector<Limits> parts(results * static_cast<std::size_t>(tasks));
  parallel_for(exec, pass.results * tasks, [&](std::int64_t i) {
    parts[static_cast<std::size_t>(i)] =
        HWY_DYNAMIC_DISPATCH(limits_of)(pass, work.range(i / tasks, i % tasks));
  });
  std::vector<Limits> limits(results);
  Limits all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Limits& own = limits[i / static_cast<std::size_t>(tasks)];
    own = own.with(parts[i]);
    all = all.with(parts[i]);
  }
  if (pass.range == ValueRange::per_image) return limits;
  all = all.common();
  if (all.x_low >= 0 && all.x_high <= 1) all = {0, 1, 0, 1};
  for (Limits& own : limits) own = pass.range == ValueRange::common ? own.common() : all;
  return limits;
}

// Histograms of the results from `first` on, [count][bins][bins].
std::vector<double> histograms_of(const Pass& pass, const Work& work,
    const std::vector<Limits>& limits, std::int64_t first, std::int64_t count,
    const Execution& exec) {
  const auto entries = static_cast<std::size_t>(pass.entries());
  const std::int64_t tasks = work.tasks();
  std::vector<double> parts(static_cast<std::size_t>(count * tasks) * entries, 0);
  parallel_for(exec, count * tasks, [&](std::int64_t i) {
    const std::int64_t result = first + i / tasks;
    HWY_DYNAMIC_DISPATCH(add_voxels)
    (pass, work.range(result, i % tasks), limits[static_cast<std::size_t>(result)],
        parts.data() + static_cast<std::size_t>(i) * entries);
  });
  if (tasks == 1) return parts;
  std::vector<double> sums(static_cast<std::size_t>(count) * entries, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sums[i / (static_cast<std::size_t>(tasks) * entries) * entries + i % entries] += parts[i];
  }
  return sums;
}

double upstream_of(const Pass& pass, std::int64_t result) {
  if (pass.upstream.empty()) return 1;
  std::int64_t index = result / pass.results_of_value(), offset = 0;
  for (int axis = pass.upstream.shape.rank() - 1; axis >= 0; --axis) {
    offset += index % pass.upstream.shape[axis] * pass.upstream.strides[axis];
    index /= pass.upstream.shape[axis];
  }
  return element(pass.upstream, offset);
}

// How many of each value's results have voxels that count.
std::vector<double> counted_results(const Pass& pass, const Work& work, const Execution& exec) {
  const std::int64_t each = pass.results_of_value(), entries = pass.entries();
  std::vector<double> counted(
      static_cast<std::size_t>(pass.results / each), static_cast<double>(each));
  if (!pass.has_exclusions()) return counted;
  std::vector<char> has_voxels(static_cast<std::size_t>(pass.results));  // bool packs them
  const auto* const given = static_cast<const double*>(pass.given_histogram.data());
  parallel_for(exec, pass.results, [&](std::int64_t result) {
    bool found = false;
    if (given != nullptr) {
      const double* const histogram = given + result * entries;
      found = std::any_of(histogram, histogram + entries, [](double n) { return n != 0; });
    }
    for (std::int64_t task = 0; given == nullptr && !found && task < work.tasks(); ++task) {
      found = HWY_DYNAMIC_DISPATCH(has_voxel)(pass, work.range(result, task));
    }
    has_voxels[static_cast<std::size_t>(result)] = found;
  });
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const auto first = has_voxels.begin() + static_cast<std::ptrdiff_t>(i) * each;
    counted[i] = static_cast<double>(std::count(first, first + each, 1));
  }
  return counted;
}

// values: 0 where no voxel counts.
void write_values(
    const Pass& pass, const std::vector<double>& values, const std::vector<double>& counted) {
  const std::int64_t each = pass.results_of_value();
  for (std::int64_t i = 0; i < pass.results / each; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < each; ++k) sum += values[static_cast<std::size_t>(i * each + k)];
    const double results = counted[static_cast<std::size_t>(i)];
    sum *= Pass::value_factor(pass.sign, pass.is_sum(), results);
    if (results == 0 && !pass.is_sum() && !pass.is_loss()) {
      sum = std::numeric_limits<double>::quiet_NaN();
    }
    if (pass.value.dtype == DType::f64) {
      static_cast<double*>(pass.value.data())[i] = sum;
    } else {
      static_cast<float*>(pass.value.data())[i] = static_cast<float>(sum);
    }
  }
}

void gradients_of(const Pass& pass, const Work& work, const std::vector<Limits>& limits,
    std::int64_t first, const std::vector<Information>& known, const std::vector<double>& counted,
    const Execution& exec) {
  const std::int64_t tasks = work.tasks();
  parallel_for(exec, static_cast<std::int64_t>(known.size()) * tasks, [&](std::int64_t i) {
    const Information& own = known[static_cast<std::size_t>(i / tasks)];
    const std::int64_t result = first + i / tasks;
    const double results = counted[static_cast<std::size_t>(result / pass.results_of_value())];
    const double factor = Pass::value_factor(pass.sign, pass.is_sum(), results);
    const double each = own.count == 0 ? 0 : factor / own.count;
    HWY_DYNAMIC_DISPATCH(write_gradients)
    (pass, work.range(result, i % tasks), limits[static_cast<std::size_t>(result)],
        {.table = own.table.data(), .factor = each * upstream_of(pass, result)});
  });
}

}  // namespace

void mutual_information_cpu(const Pass& pass, const Execution& exec) {
  const bool has_images = !pass.x.empty();
  const Work work(pass);
  const std::vector<Limits> limits =
      has_images ? limits_of_results(pass, work, exec) : std::vector<Limits>{};
  std::vector<double> values(static_cast<std::size_t>(pass.results)), counted;
  if (!pass.value.empty() || pass.has_gradient()) counted = counted_results(pass, work, exec);
  const std::int64_t entries = pass.entries();
  const std::int64_t group =
      std::clamp<std::int64_t>(kMostEntries / (entries * work.tasks()), 1, pass.results);
  for (std::int64_t first = 0; first < pass.results; first += group) {
    const std::int64_t count = std::min(group, pass.results - first);
    std::vector<double> own;
    const double* histograms = static_cast<const double*>(pass.given_histogram.data());
    if (histograms != nullptr) {
      histograms += first * entries;
    } else {
      own = histograms_of(pass, work, limits, first, count, exec);
      histograms = own.data();
    }
    if (!pass.histogram.empty()) {
      std::copy_n(histograms, count * entries,
          static_cast<double*>(pass.histogram.data()) + first * entries);
    }
    if (pass.value.empty() && !pass.has_gradient()) continue;
    std::vector<Information> known(static_cast<std::size_t>(count));
    parallel_for(exec, count, [&](std::int64_t i) {
      Information& result = known[static_cast<std::size_t>(i)];
      result = information_of(pass, histograms + i * entries, pass.has_gradient());
      values[static_cast<std::size_t>(first + i)] = result.value;
    });
    if (pass.has_gradient()) gradients_of(pass, work, limits, first, known, counted, exec);
  }
  if (!pass.value.empty()) write_values(pass, values, counted);
}

}  // namespace similis::mutual_information_internal
#endif
