// SPDX-License-Identifier: Apache-2.0
// Passes over dense images and fields on the device of their grid, in f32 or, where they take
// Reals, in f64 too: all arrays of a call are of one type. On the CPU sums are of rows or pieces,
// on a GPU of blocks, added in their order: bits do not depend on threads. A mask and weights of
// one voxel may be null: all voxels count. Passes that return numbers wait for a GPU.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "similis/execution.hpp"
#include "src/core/host_device.h"
#include "src/registration/geometry.h"

namespace similis::registration_internal {

/// Dense elements of f32 or f64, or none. Full resolution is in f32; coarse levels are in f64, so
/// that what two devices differ in can be rounded away (greedy.cc).
class Reals {
 public:
  Reals(std::nullptr_t) {}
  Reals(const float* elements) : data_(const_cast<float*>(elements)) {}
  Reals(const double* elements) : data_(const_cast<double*>(elements)), is_f64_(true) {}
  Reals(const TensorView& dense) : data_(dense.data()), is_f64_(dense.dtype == DType::f64) {}

  bool is_f64() const { return is_f64_; }
  SIMILIS_HOST_DEVICE bool empty() const { return data_ == nullptr; }
  /// T: the type of the elements.
  template <class T> T* as() const { return static_cast<T*>(data_); }
  /// A factor as precise as the elements.
  double rounded(double factor) const {
    return is_f64_ ? factor : static_cast<double>(static_cast<float>(factor));
  }

  SIMILIS_HOST_DEVICE double operator[](std::int64_t i) const {
    return is_f64_ ? static_cast<const double*>(data_)[i]
                   : static_cast<double>(static_cast<const float*>(data_)[i]);
  }
  SIMILIS_HOST_DEVICE void set(std::int64_t i, double value) const {
    if (is_f64_) {
      static_cast<double*>(data_)[i] = value;
    } else {
      static_cast<float*>(data_)[i] = static_cast<float>(value);
    }
  }

 private:
  void* data_ = nullptr;
  bool is_f64_ = false;
};

/// function(T()) with T the type of the elements.
template <class Function> auto with_type(const Reals& elements, const Function& function) {
  return elements.is_f64() ? function(double()) : function(float());
}

/// The rows of a grid, x fastest.
struct GridRows {
  std::array<std::int64_t, 3> size = {1, 1, 1};
  int rank = 3;
  Device device = {};

  explicit GridRows(const Grid& grid) : size(grid.size), rank(grid.rank), device(grid.device) {}
  std::int64_t count() const { return size[1] * size[2]; }
  std::int64_t voxels() const { return size[0] * count(); }
};

/// A part of a grid.
struct Box {
  std::array<std::int64_t, 3> first = {0, 0, 0}, size = {1, 1, 1};
};

/// weights[i] = 1 where the voxel map moves voxel i + u(i) into `size_to` and mask is not 0, else
/// 0. Returns their number. u: null for 0; mask: null for 1.
std::int64_t weigh_inside(const GridRows& rows, const Map& voxels, const Grid& to, Reals u,
    Reals mask, Reals weights, const Execution& exec);

/// weights[i] is set to 0 where value[i] < least. Returns how many are left.
std::int64_t drop_below(
    const GridRows& rows, Reals value, double least, Reals weights, const Execution& exec);

/// Returns the number of elements that are not 0.
std::int64_t count_nonzero(const GridRows& rows, Reals mask, const Execution& exec);

struct Moments {
  double count = 0, f = 0, j = 0, ff = 0, jj = 0, fj = 0;
};
/// Sums over the voxels that count.
Moments moments(const GridRows& rows, Reals f, Reals j, Reals weights, const Execution& exec);

/// gradient += w·(by_f·(f - mean_f) + by_j·(j - mean_j)).
struct LinearGradient {
  double by_f, mean_f, by_j, mean_j;
};
void add_gradient(const GridRows& rows, Reals f, Reals j, Reals weights, const LinearGradient& by,
    Reals gradient, const Execution& exec);

/// a += factor·b, of `count` elements.
void add_scaled(
    Device device, std::int64_t count, double factor, Reals b, Reals a, const Execution& exec);

/// out = factor·in, of `count` elements; in may be out, or of the other type.
void scale(
    Device device, std::int64_t count, double factor, Reals in, Reals out, const Execution& exec);

void fill(Device device, std::int64_t count, double value, Reals out, const Execution& exec);

/// u += m·(b - u) in the box; m and b are dense over the box, b and u vectors.
void blend(const GridRows& rows, const Box& box, Reals m, Reals b, Reals u, const Execution& exec);

/// The largest squared norm of a vector; NaN if one is.
double largest_square(const GridRows& rows, Reals field, const Execution& exec);

/// out = m·in for each vector, in f64, rounded once; in may be out.
void turn(const GridRows& rows, const Matrix& m, Reals in, Reals out, const Execution& exec);

/// A field of f64, whose vectors are about as long as `largest` at most, is rounded to multiples of
/// this unit, so that devices which differ in the last digits of their sums go on from the same
/// bits; and a number likewise, to 30 bits.
SIMILIS_HOST_DEVICE double rounding_unit(double largest) {
  constexpr int kBits = 16;
  return ::ldexp(1.0, ::ilogb(largest) - kBits);
}
SIMILIS_HOST_DEVICE double without_last_digits(double number) {
  constexpr int kBits = 30;
  int exponent = 0;
  const double mantissa = ::frexp(number, &exponent);
  return ::ldexp(::rint(::ldexp(mantissa, kBits)), exponent - kBits);
}

/// Rounds elements to multiples of `unit`.
void round_to(
    Device device, std::int64_t count, double unit, Reals elements, const Execution& exec);

/// The least of the 2ⁿ determinants of one-sided differences of x + u(x) at each voxel of the box;
/// at the border the difference that is missing is that to the other side.
struct Determinants {
  double least = 0;      ///< NaN if one is
  std::int64_t bad = 0;  ///< number that is not `accepted` or more
  Box around;            ///< the bad ones; read if there are any
};
/// flags: 1 at bad voxels of the box, 0 at others; dense over the box; may be null.
Determinants corner_determinants(const GridRows& rows, Reals u, const Box& box, double accepted,
    Reals flags, const Execution& exec);

/// flags, dense over the box: 1 at voxels of it that have a bad one within `by` voxels along each
/// axis, in the box, 0 at others.
void mark_folds(const GridRows& rows, Reals u, const Box& box, double accepted, std::int64_t by,
    Reals flags, const Execution& exec);

/// Elements of any dtype and strides as dense f32. view: on `device`.
void to_floats(const TensorView& view, float* out, const Execution& exec);

/// Elements become 1 where they are `least` or more, else 0; NaN becomes 0.
void threshold(
    Device device, std::int64_t count, double least, Reals elements, const Execution& exec);
/// Elements become 1 where they are neither 0 nor NaN.
void normalize_mask(Device device, std::int64_t count, float* elements, const Execution& exec);

/// Counts the values of one channel that are not finite where the mask is not 0. With `drops` the
/// mask, which must be there, becomes 0 at them.
std::int64_t look_for_gaps(
    const GridRows& rows, const float* values, float* mask, bool drops, const Execution& exec);

/// The values where the mask is not 0.
struct Spread {
  std::int64_t count = 0;
  std::int64_t lowest = 0;  ///< how many have the least value
  float least = 0, most = 0;
};
Spread spread(const GridRows& rows, const float* values, const float* mask, const Execution& exec);
/// Among the values above `least` where the mask is not 0: the one with so many before it in
/// ascending order, and its successor (itself for the last).
struct Neighbours {
  float value = 0, next = 0;
};
Neighbours nth_above(const GridRows& rows, const float* values, const float* mask, float least,
    std::int64_t before, const Execution& exec);

/// values ← (values - low)·by, cut to [0, 1]; 0 where the mask is.
void rescale(const GridRows& rows, float low, float by, const float* mask, float* values,
    const Execution& exec);

/// values ← values / share where share is above `least`, else 0.
void divide(const GridRows& rows, Reals share, double least, Reals values, const Execution& exec);

/// a *= b, of `count` elements.
void multiply(Device device, std::int64_t count, const float* b, float* a, const Execution& exec);

/// One channel of a volume, and the averages of it and of its square about each voxel.
struct Averages {
  const float *values, *mean, *square, *mask;
};
/// The product of the derivatives along axes a and b (central; to one side at a border) over the
/// variance about the voxel, which is what a voxel adds to the curvature of LNCC. 0 where the mask
/// leaves the voxel or a neighbour out.
void edge_products(
    const GridRows& rows, const Averages& of, int a, int b, float* out, const Execution& exec);

/// Fields of symmetric matrices that change slowly lie on every so many-th voxel of a volume.
constexpr std::int64_t kCurvatureStride = 4;
inline std::array<std::int64_t, 3> curvature_size(const std::array<std::int64_t, 3>& size) {
  std::array<std::int64_t, 3> result = size;
  for (std::int64_t& n : result) n = (n + kCurvatureStride - 2) / kCurvatureStride + 1;
  return result;
}
/// field ← (1 + Q)⁻¹·field in a volume. q: symmetric matrices, positive semidefinite, as maps xx,
/// yy, zz, xy, xz and yz of curvature_size(), between which they are linear.
void precondition(const GridRows& rows, const float* q, float* field, const Execution& exec);

/// The sum of the values, and of values times voxel numbers.
struct Mass {
  double sum = 0;
  Point first = {0, 0, 0};
};
Mass mass(const GridRows& rows, const float* values, const Execution& exec);

/// Lengths of vectors.
RegisterSummary lengths(const GridRows& rows, const float* field, const Execution& exec);

/// A few numbers on a device, without waiting.
Tensor upload(
    Device device, const Extents& shape, const std::vector<double>& numbers, const Execution& exec);

/// Copies a dense f32 array to one on the same device or on the CPU, and waits.
void copy_floats(const TensorView& from, const TensorView& to, const Execution& exec);
/// A dense array on the CPU: itself if it is there. Waits.
Tensor on_cpu(const Tensor& tensor, const Execution& exec);

/// All passes that depend on the device, by their names above.
struct Passes {
  decltype(&registration_internal::weigh_inside) weigh_inside;
  decltype(&registration_internal::drop_below) drop_below;
  decltype(&registration_internal::count_nonzero) count_nonzero;
  decltype(&registration_internal::moments) moments;
  decltype(&registration_internal::add_gradient) add_gradient;
  decltype(&registration_internal::add_scaled) add_scaled;
  decltype(&registration_internal::scale) scale;
  decltype(&registration_internal::fill) fill;
  decltype(&registration_internal::blend) blend;
  decltype(&registration_internal::largest_square) largest_square;
  decltype(&registration_internal::turn) turn;
  decltype(&registration_internal::round_to) round_to;
  decltype(&registration_internal::corner_determinants) corner_determinants;
  decltype(&registration_internal::mark_folds) mark_folds;
  decltype(&registration_internal::to_floats) to_floats;
  decltype(&registration_internal::threshold) threshold;
  decltype(&registration_internal::normalize_mask) normalize_mask;
  decltype(&registration_internal::look_for_gaps) look_for_gaps;
  decltype(&registration_internal::spread) spread;
  decltype(&registration_internal::nth_above) nth_above;
  decltype(&registration_internal::rescale) rescale;
  decltype(&registration_internal::divide) divide;
  decltype(&registration_internal::multiply) multiply;
  decltype(&registration_internal::edge_products) edge_products;
  decltype(&registration_internal::precondition) precondition;
  decltype(&registration_internal::mass) mass;
  decltype(&registration_internal::lengths) lengths;
  decltype(&registration_internal::upload) upload;
};
const Passes& cpu_passes();
const Passes& cuda_passes();

}  // namespace similis::registration_internal
