// SPDX-License-Identifier: Apache-2.0
// Errors of pixels on the CPU. Lines are cut into segments that fit the first-level cache. One loop
// over a segment adds errors and writes a gradient; of integers and under a mask x - y goes into a
// buffer first.
//
// Integers are added as integers and floats as doubles in 16 fixed lanes, so results have the same
// bits on every SIMD target and with any number of threads. The loops are plain: GCC and clang make
// each the vector code one would write by hand.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/pixel_error/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "src/core/pixel_pass.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/elements-inl.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/pixel_error/pixel_error.h"

HWY_BEFORE_NAMESPACE();
namespace similis::pixel_error_internal::HWY_NAMESPACE {
using core_internal::HWY_NAMESPACE::load_row;
using core_internal::HWY_NAMESPACE::narrow;
using core_internal::HWY_NAMESPACE::widen;

// Differences of at most 16 bits are exact in integers, as their sums are.
template <class T> inline constexpr bool kIsInteger = std::is_integral_v<T> && sizeof(T) <= 2;
// Halves are computed with as f32, which holds them.
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;
template <class T> using Number = std::conditional_t<kIsHalf<T>, float, T>;

// A sum of errors. A buffer ends in zeros up to a multiple of the lanes.
struct DoubleSum {
  static constexpr std::int64_t lanes = 16;
  std::array<double, lanes> sums{};

  // Adds term(i) for i < count.
  template <class Term> void add_each(std::int64_t count, const Term& term) {
    std::array<double, lanes> lane = sums;  // a copy, which stays in registers
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) lane[k] += term(i + k);
    }
    for (std::int64_t k = 0; i + k < count; ++k) lane[k] += term(i + k);
    sums = lane;
  }
  void add(const double* numbers, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) sums[k] += numbers[i + k];
    }
  }
  double total() const {
    double sum = 0;
    for (const double lane : sums) sum += lane;
    return sum;
  }
};

struct IntegerSum {
  static constexpr std::int64_t lanes = 1;
  std::uint64_t sum = 0;

  void add_squares(const std::int32_t* d, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto u = static_cast<std::uint32_t>(d[i]);
      sum += u * u;  // at most 65535², which is below 2³²; modulo 2³² the sign does not matter
    }
  }
  void add_magnitudes(const std::int32_t* d, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<std::uint32_t>(std::abs(d[i]));
  }
  double total() const { return static_cast<double>(sum); }  // a task's is below 2⁴⁸
};

template <class T> using Sum = std::conditional_t<kIsInteger<T>, IntegerSum, DoubleSum>;

// The elements themselves where they are neighbours, else a copy of them; of halves their values.
template <class T>
const Number<T>* as_neighbours(
    const T* elements, std::int64_t stride, std::int64_t count, Number<T>* buffer) {
  if constexpr (kIsHalf<T>) {
    widen(elements, stride, count, buffer);
    return buffer;
  } else {
    if (stride == 1) return elements;
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = elements[i * stride];
    return buffer;
  }
}

template <class T>
void subtract(const T* x, const T* y, std::int64_t count, std::int32_t* difference) {
  for (std::int64_t i = 0; i < count; ++i) {
    difference[i] = static_cast<std::int32_t>(x[i]) - static_cast<std::int32_t>(y[i]);
  }
}

// Adds errors and writes their gradients by x, in one loop. slope: that of an error by |x - y|, or
// by its square half of that by the difference.
template <Error error, class N>
void add_and_differentiate(const N* HWY_RESTRICT x, const N* HWY_RESTRICT y, std::int64_t count,
    double slope, N* HWY_RESTRICT gradient, DoubleSum* sum) {
  constexpr std::int64_t kLanes = DoubleSum::lanes;
  std::array<double, kLanes> lane = sum->sums;  // a copy, which stays in registers
  const auto add = [&](std::int64_t i, std::int64_t k) HWY_ATTR {
    const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    if constexpr (error == Error::squared) {
      lane[k] += d * d;
      gradient[i] = static_cast<N>(2 * d * slope);
    } else {
      lane[k] += std::fabs(d);
      const double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
      gradient[i] = static_cast<N>(sign * slope);
    }
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) add(i + k, k);
  }
  for (std::int64_t k = 0; i + k < count; ++k) add(i + k, k);
  sum->sums = lane;
}

template <class T> class Task {
 public:
  Task(Error error, const PixelPass& pass, std::int64_t result)
      : error_(error), pass_(pass), scale_(gradient_scale(pass, result)) {}

  void run_segment(const Offsets& at, const Offsets& stride, std::int64_t count) {
    const N* x = as_neighbours(static_cast<const T*>(pass_.x.data()) + at.x, stride.x, count, x_);
    const N* y = as_neighbours(static_cast<const T*>(pass_.y.data()) + at.y, stride.y, count, y_);
    if constexpr (kIsInteger<T>) {
      subtract(x, y, count, buffer_);
      if (error_ == Error::squared) {
        sum_.add_squares(buffer_, count);
      } else {
        sum_.add_magnitudes(buffer_, count);
      }
    } else if constexpr (std::is_integral_v<T>) {
      add_errors(x, y, count);
    } else {
      T* const to_x = static_cast<T*>(pass_.x_gradient.data());
      T* const to_y = static_cast<T*>(pass_.y_gradient.data());
      if (to_x == nullptr && to_y == nullptr) return add_errors(x, y, count);
      // Halves and elements that are no neighbours go through the buffer.
      N* gradient = buffer_;
      if constexpr (!kIsHalf<T>) {
        if (to_x != nullptr && stride.x_gradient == 1) gradient = to_x + at.x_gradient;
      }
      if (error_ == Error::squared) {
        add_and_differentiate<Error::squared>(x, y, count, scale_, gradient, &sum_);
      } else {
        add_and_differentiate<Error::absolute>(x, y, count, scale_, gradient, &sum_);
      }
      if (to_x != nullptr && gradient == buffer_) {
        write(gradient, count, to_x + at.x_gradient, stride.x_gradient);
      }
      if (to_y == nullptr) return;
      for (std::int64_t i = 0; i < count; ++i) buffer_[i] = -gradient[i];
      write(buffer_, count, to_y + at.y_gradient, stride.y_gradient);
    }
  }

  double total() const { return sum_.total(); }

 private:
  using N = Number<T>;

  static void write(const N* from, std::int64_t count, T* to, std::int64_t stride) {
    if constexpr (kIsHalf<T>) {
      narrow(from, count, to, stride);
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i * stride] = from[i];
    }
  }

  // Adds the errors without keeping the differences.
  void add_errors(const N* x, const N* y, std::int64_t count) {
    const auto difference = [=](std::int64_t i) HWY_ATTR {
      return static_cast<double>(x[i]) - static_cast<double>(y[i]);
    };
    if (error_ == Error::squared) {
      sum_.add_each(count, [=](std::int64_t i) HWY_ATTR {
        const double d = difference(i);
        return d * d;
      });
    } else {
      sum_.add_each(count, [=](std::int64_t i) HWY_ATTR { return std::fabs(difference(i)); });
    }
  }

  const Error error_;
  const PixelPass& pass_;
  double scale_;
  Sum<N> sum_;
  alignas(64) N x_[kSegment], y_[kSegment];
  alignas(64) std::conditional_t<kIsInteger<T>, std::int32_t, N> buffer_[kSegment];
};

// The weights of a segment's pixels, and zeros up to a multiple of the lanes.
void load_weights(const PixelPass& pass, const Offsets& at, const Offsets& stride,
    std::int64_t count, double* weights) {
  load_row(pass.mask, at.mask, stride.mask, count, weights);
  for (std::int64_t i = count; i % DoubleSum::lanes != 0; ++i) weights[i] = 0;
}

// Task under a mask. Integers are weighted as doubles.
template <class T> class WeightedTask {
 public:
  WeightedTask(Error error, const PixelPass& pass, std::int64_t result)
      : error_(error), pass_(pass), scale_(gradient_scale(pass, result)) {}

  void run_segment(const Offsets& at, const Offsets& stride, std::int64_t count) {
    const Number<T>* x =
        as_neighbours(static_cast<const T*>(pass_.x.data()) + at.x, stride.x, count, x_);
    const Number<T>* y =
        as_neighbours(static_cast<const T*>(pass_.y.data()) + at.y, stride.y, count, y_);
    load_weights(pass_, at, stride, count, weight_);
    for (std::int64_t i = 0; i < count; ++i) {
      const double difference = static_cast<double>(load(x[i])) - static_cast<double>(load(y[i]));
      difference_[i] = weight_[i] > 0 ? difference : 0;  // a pixel left out may hold anything
    }
    if (error_ == Error::squared) {
      for (std::int64_t i = 0; i < count; ++i) {
        weighted_[i] = weight_[i] * (difference_[i] * difference_[i]);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        weighted_[i] = weight_[i] * std::fabs(difference_[i]);
      }
    }
    for (std::int64_t i = count; i % DoubleSum::lanes != 0; ++i) weighted_[i] = 0;
    sum_.add(weighted_, count);
    if constexpr (!std::is_integral_v<T>) {
      write(static_cast<T*>(pass_.x_gradient.data()), at.x_gradient, stride.x_gradient, scale_,
          count);
      write(static_cast<T*>(pass_.y_gradient.data()), at.y_gradient, stride.y_gradient, -scale_,
          count);
    }
  }

  double total() const { return sum_.total(); }

 private:
  void write(
      T* gradient, std::int64_t at, std::int64_t stride, double scale, std::int64_t count) const {
    if (gradient == nullptr) return;
    for (std::int64_t i = 0; i < count; ++i) {
      const double d = difference_[i];
      const double slope = error_ == Error::squared ? 2 * d : d > 0 ? 1 : d < 0 ? -1 : 0;
      store(weight_[i] * slope * scale, gradient + at + i * stride);
    }
  }

  const Error error_;
  const PixelPass& pass_;
  double scale_;
  DoubleSum sum_;
  alignas(64) Number<T> x_[kSegment], y_[kSegment];
  alignas(64) double difference_[kSegment], weight_[kSegment], weighted_[kSegment];
};

template <class Task> double run_task_as(Error error, const PixelWork& work, std::int64_t index) {
  Task task(error, work.pass, work.result_of(index));
  const auto [first, end] = work.segments_of(index);
  for (std::int64_t i = first; i < end; ++i) {
    const PixelSegment segment = work.segment(index, i);
    task.run_segment(segment.start, segment.stride, segment.count);
  }
  return task.total();
}

template <class T> double run_task_of(Error error, const PixelWork& work, std::int64_t index) {
  return work.pass.mask.empty() ? run_task_as<Task<T>>(error, work, index)
                                : run_task_as<WeightedTask<T>>(error, work, index);
}

// The sum of the weights of a task's pixels.
double weigh_task(const PixelWork& work, std::int64_t index) {
  alignas(64) double weights[kSegment];
  DoubleSum sum;
  const auto [first, end] = work.segments_of(index);
  for (std::int64_t i = first; i < end; ++i) {
    const PixelSegment segment = work.segment(index, i);
    load_weights(work.pass, segment.start, segment.stride, segment.count, weights);
    sum.add(weights, segment.count);
  }
  return sum.total();
}

// The sum of the errors of a task's pixels; writes their gradients.
double run_task(Error error, const PixelWork& work, std::int64_t index) {
  return visit_dtype(work.pass.x.dtype,
      [&]<class T>(std::type_identity<T>) { return run_task_of<T>(error, work, index); });
}

}  // namespace similis::pixel_error_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::pixel_error_internal {
HWY_EXPORT(run_task);
HWY_EXPORT(weigh_task);

void pixel_error_cpu(Error error, const PixelPass& pass, const Execution& exec) {
  PixelPass own = pass;
  std::vector<double> weights;
  if (!pass.mask.empty() && !pass.is_sum) {
    weights.resize(static_cast<std::size_t>(pass.result_shape.count()));
    own.divisor = 1;
    own.value = TensorView(weights.data(), pass.result_shape, DType::f64);
    own.x_gradient = own.y_gradient = {};
    run_pixel_pass(own, exec, [](const PixelWork& work, std::int64_t index) {
      return HWY_DYNAMIC_DISPATCH(weigh_task)(work, index);
    });
    own = pass;
    own.divisors = weights.data();
  }
  run_pixel_pass(own, exec, [&](const PixelWork& work, std::int64_t index) {
    return HWY_DYNAMIC_DISPATCH(run_task)(error, work, index);
  });
}

}  // namespace similis::pixel_error_internal
#endif
