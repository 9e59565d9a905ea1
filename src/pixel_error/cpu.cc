// SPDX-License-Identifier: Apache-2.0
// Errors of pixels on the CPU. Lines are cut into segments that fit the first-level cache: x - y
// goes into a buffer, from which the sum and the gradients are taken.
//
// Integers are added as integers and floats as doubles in 16 fixed lanes, so results have the same
// bits on every SIMD target and with any number of threads. The loops are plain: GCC and clang make
// each the vector code one would write by hand.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/pixel_error/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <type_traits>

#include "src/core/dispatch.h"
#include "src/core/memory.h"
#include "src/core/parallel.h"
#include "src/pixel_error/walk.h"

HWY_BEFORE_NAMESPACE();
namespace similis::pixel_error_internal::HWY_NAMESPACE {

template <class T>
using Difference = std::conditional_t<std::is_integral_v<T>, std::int32_t, double>;

// A sum of errors. A buffer ends in zeros up to a multiple of the lanes.
struct DoubleSum {
  static constexpr std::int64_t lanes = 16;
  std::array<double, lanes> sums{};

  void add_squares(const double* d, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) sums[k] += d[i + k] * d[i + k];
    }
  }
  void add_magnitudes(const double* d, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += lanes) {
      for (std::int64_t k = 0; k < lanes; ++k) sums[k] += std::fabs(d[i + k]);
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

template <class T> using Sum = std::conditional_t<std::is_integral_v<T>, IntegerSum, DoubleSum>;

// The elements themselves where they are neighbours, else a copy of them.
template <class T>
const T* as_neighbours(const T* elements, std::int64_t stride, std::int64_t count, T* buffer) {
  if (stride == 1) return elements;
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = elements[i * stride];
  return buffer;
}

template <class T>
void subtract(const T* x, const T* y, std::int64_t count, Difference<T>* difference) {
  for (std::int64_t i = 0; i < count; ++i) {
    difference[i] = static_cast<Difference<T>>(load(x[i])) - static_cast<Difference<T>>(load(y[i]));
  }
  for (std::int64_t i = count; i % Sum<T>::lanes != 0; ++i) difference[i] = 0;
}

template <class T>
void write_gradient(Error error, const double* difference, double scale, std::int64_t count,
    T* gradient, std::int64_t stride) {
  if (error == Error::squared) {
    for (std::int64_t i = 0; i < count; ++i)
      store(2 * difference[i] * scale, gradient + i * stride);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      const double sign = difference[i] > 0 ? 1 : difference[i] < 0 ? -1 : 0;
      store(sign * scale, gradient + i * stride);
    }
  }
}

double upstream_of(const Pass& pass, std::int64_t result) {
  const TensorView& upstream = pass.upstream;
  if (upstream.empty()) return 1;
  std::int64_t offset = 0;
  for (int axis = upstream.shape.rank() - 1; axis >= 0; --axis) {
    offset += result % upstream.shape[axis] * upstream.strides[axis];
    result /= upstream.shape[axis];
  }
  if (upstream.dtype == DType::f64) return static_cast<const double*>(upstream.data)[offset];
  return static_cast<const float*>(upstream.data)[offset];
}

template <class T> class Task {
 public:
  Task(const Pass& pass, std::int64_t result)
      : pass_(pass), scale_(upstream_of(pass, result) / pass.divisor) {}

  void run_segment(const Offsets& at, const Offsets& stride, std::int64_t count) {
    const T* x = as_neighbours(static_cast<const T*>(pass_.x.data) + at.x, stride.x, count, x_);
    const T* y = as_neighbours(static_cast<const T*>(pass_.y.data) + at.y, stride.y, count, y_);
    subtract(x, y, count, difference_);
    if (pass_.error == Error::squared) {
      sum_.add_squares(difference_, count);
    } else {
      sum_.add_magnitudes(difference_, count);
    }
    if constexpr (!std::is_integral_v<T>) {
      if (!pass_.x_gradient.empty()) {
        write_gradient(pass_.error, difference_, scale_, count,
            static_cast<T*>(pass_.x_gradient.data) + at.x_gradient, stride.x_gradient);
      }
      if (!pass_.y_gradient.empty()) {
        write_gradient(pass_.error, difference_, -scale_, count,
            static_cast<T*>(pass_.y_gradient.data) + at.y_gradient, stride.y_gradient);
      }
    }
  }

  double total() const { return sum_.total(); }

 private:
  const Pass& pass_;
  double scale_;
  Sum<T> sum_;
  T x_[kSegment], y_[kSegment];
  Difference<T> difference_[kSegment];
};

template <class T> double run_task_of(const Work& work, std::int64_t index) {
  const std::int64_t result = index / work.tasks_of_result;
  const std::int64_t first = index % work.tasks_of_result * work.segments_of_task;
  const std::int64_t end =
      std::min(first + work.segments_of_task, work.walk.lines() * work.segments_of_line);
  const Axis& line = work.walk.line();
  Task<T> task(work.pass, result);
  for (std::int64_t segment = first; segment < end; ++segment) {
    const std::int64_t start = segment % work.segments_of_line * kSegment;
    const Offsets offsets = work.walk.start_of_line(result, segment / work.segments_of_line);
    task.run_segment(
        offsets + line.stride * start, line.stride, std::min(kSegment, line.extent - start));
  }
  return task.total();
}

// The sum of the errors of a task's pixels; writes their gradients.
double run_task(const Work& work, std::int64_t index) {
  switch (work.pass.x.dtype) {
    case DType::u8: return run_task_of<std::uint8_t>(work, index);
    case DType::u16: return run_task_of<std::uint16_t>(work, index);
    case DType::f16: return run_task_of<F16>(work, index);
    case DType::bf16: return run_task_of<BF16>(work, index);
    case DType::f32: return run_task_of<float>(work, index);
    case DType::f64: break;
  }
  return run_task_of<double>(work, index);
}

}  // namespace similis::pixel_error_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::pixel_error_internal {
namespace {

HWY_EXPORT(run_task);

void write_values(const Work& work, const double* partials) {
  const TensorView& value = work.pass.value;
  for (std::int64_t result = 0; result < work.walk.results(); ++result) {
    double sum = 0;
    for (std::int64_t i = 0; i < work.tasks_of_result; ++i) {
      sum += partials[result * work.tasks_of_result + i];
    }
    if (value.dtype == DType::f64) {
      static_cast<double*>(value.data)[result] = sum / work.pass.divisor;
    } else {
      static_cast<float*>(value.data)[result] = static_cast<float>(sum / work.pass.divisor);
    }
  }
}

}  // namespace

void pixel_error_cpu(const Pass& pass, const Execution& exec) {
  const Work work(pass);
  const std::int64_t tasks = work.walk.results() * work.tasks_of_result;
  const std::shared_ptr<void> memory =
      allocate_bytes(static_cast<std::size_t>(tasks) * sizeof(double), pass.x.device, exec);
  double* partials = static_cast<double*>(memory.get());
  parallel_for(exec, tasks,
      [&](std::int64_t index) { partials[index] = HWY_DYNAMIC_DISPATCH(run_task)(work, index); });
  if (!pass.value.empty()) write_values(work, partials);
}

}  // namespace similis::pixel_error_internal
#endif
