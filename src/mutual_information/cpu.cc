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
#include <limits>
#include <vector>

#include "src/core/parallel.h"
#include "src/mutual_information/cpu_task-inl.h"
#include "src/mutual_information/cpu_types.h"
#include "src/mutual_information/information.h"
#include "src/mutual_information/mutual_information.h"

HWY_BEFORE_NAMESPACE();
namespace similis::mutual_information_internal::HWY_NAMESPACE {

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
  if (!pass.limits.empty()) {
    std::vector<Limits> given(results);
    const auto* numbers = static_cast<const double*>(pass.limits.data());
    for (Limits& each : given) {
      each = {numbers[0], numbers[1], numbers[2], numbers[3]};
      numbers += 4;
    }
    return given;
  }
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

// The number of each value's results that have voxels that count.
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
