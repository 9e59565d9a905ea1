// SPDX-License-Identifier: Apache-2.0
// One task of mutual information on the CPU: its voxels go by in batches that fit the first-level
// cache. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_MUTUAL_INFORMATION_CPU_TASK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_MUTUAL_INFORMATION_CPU_TASK_INL_H
#undef SIMILIS_MUTUAL_INFORMATION_CPU_TASK_INL_H
#else
#define SIMILIS_MUTUAL_INFORMATION_CPU_TASK_INL_H
#endif

#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/mutual_information/cpu_types.h"
#include "src/mutual_information/mutual_information.h"

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

}  // namespace similis::mutual_information_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
