// SPDX-License-Identifier: Apache-2.0
// One call, checked and resolved, as warp.cc hands it to a backend. Images of 2D are volumes of one
// plane: every array has its three spatial axes, and `rank` says how many have coordinates.
#pragma once

#include <cstdint>

#include "similis/execution.hpp"
#include "similis/warp.hpp"
#include "src/core/operation.h"

namespace similis::warp_internal {

/// One axis, of the output's grid and of the image. All of it is computed once, in f64.
struct Axis {
  std::int64_t out_extent = 1;                 ///< voxels of the output
  std::int64_t out_whole = 1;                  ///< voxels of the axis that the output is a part of
  std::int64_t extent = 1;                     ///< voxels of the image
  std::int64_t whole = 1;                      ///< voxels of the axis that the image is a part of
  std::int64_t start = 0;                      ///< the image's first voxel on that axis
  std::int64_t first_cell = -1, end_cell = 1;  ///< cells that count, of -1 … whole - 1
  /// The coordinate of output voxel i is origin + step·(first + i). A slab of a whole grid has the
  /// whole's origin and step and an integer first, so that its coordinates have the whole's bits.
  double origin = 0, step = 0, first = 0;
  /// The index of an image voxel, on the whole axis, is scale·coordinate + shift.
  double scale = 0, shift = 0;

  bool is_part() const { return extent != whole || first_cell > -1 || end_cell < whole; }
};

enum class Form : std::uint8_t { image, labels };

/// Operands of a matrix: [N,d,d+1] or [N,d,d]. Empty: the identity.
struct Pass {
  const char* operation = "sample";
  Form form = Form::image;
  int rank = 3;
  std::int64_t batch = 1, channels = 1;
  Axis axes[3];  ///< x, y, z
  Interpolation mode = Interpolation::linear;
  Outside padding = Outside::zeros;
  bool align_corners = true;
  bool is_grid = false;  ///< the field holds absolute coordinates

  // [N,C,Z,Y,X] with stride 0 along N where one serves all.
  TensorView image, upstream;
  TensorView field;                ///< [N,Z,Y,X,d] likewise; empty: none
  TensorView affine, grid_affine;  ///< [N,d,d+1], [N,d,d], stride 0 likewise

  /// output = addend + factor·result; the addend is shaped as the output, which it may be. The
  /// field, and the addend, are first multiplied by field_factor.
  TensorView output, addend;
  double factor = 1, field_factor = 1;
  TensorView weight;  ///< for labels; shaped as the output

  // An operand that the whole batch shares has extent 1 along N here.
  TensorView image_gradient, field_gradient, affine_gradient, grid_affine_gradient;
  bool deterministic = false;
  double background = 0, smallest_label = 0;  ///< for labels; the latter is -infinity if all vote

  bool adds_to_field_gradient = false;  ///< field_gradient is added to what it holds
  TensorView elsewhere, noted;          ///< as c/warp.h describes them, or empty
  Cells reached;                        ///< likewise; 0 and 0: all

  bool has_coordinate_gradient() const {
    return !field_gradient.empty() || !affine_gradient.empty() || !grid_affine_gradient.empty();
  }
  /// Number of images summed into one gradient element of the field or a matrix.
  std::int64_t images_of_field() const { return field.shape[0] < batch ? batch : 1; }
};

void sample_cpu(const Pass& pass, const Execution& exec);
void sample_cuda(const Pass& pass, const Execution& exec);

/// B-spline coefficients of an image [N,C,Z,Y,X] along the axes that `rank` counts; in place, f32
/// or f64, dense. A gradient to coefficients passes through the transposed filter.
enum class Filter : std::uint8_t { forward, transposed };
void spline_filter_cpu(const TensorView& image, int rank, Filter filter, const Execution& exec);
void spline_filter_cuda(const TensorView& image, int rank, Filter filter, const Execution& exec);

/// to = from, converted; alike in shape.
void copy_cpu(const TensorView& from, const TensorView& to, const Execution& exec);
void copy_cuda(const TensorView& from, const TensorView& to, const Execution& exec);

/// output = A·x + u(x), and the gradient to A: the pass's field is u, its output and upstream are
/// [N,Z,Y,X,d].
void affine_grid_cpu(const Pass& pass, const Execution& exec);
void affine_grid_cuda(const Pass& pass, const Execution& exec);

/// sample_into() for C, which can ask what is elsewhere.
struct NotedRequest : SampleRequest {
  TensorView elsewhere = {}, noted = {};
  Cells reached = {};
};
void sample_noting(const TensorView& image, const NotedRequest& request,
    const SampleOptions& options, const Execution& exec);

/// The operations, whose passes run by the steps below.
extern const OperationTable kSampleTable, kSampleLabelsTable, kComposeTable, kAffineGridTable;

// The functions above by device.
extern const Step<decltype(sample_cpu)> kSample;
extern const Step<decltype(spline_filter_cpu)> kSplineFilter;
extern const Step<decltype(copy_cpu)> kCopy;
extern const Step<decltype(affine_grid_cpu)> kAffineGrid;

/// Run the pass, or copy, on the backend that holds the data.
void run(const Pass& pass, const Execution& exec);
void copy(const TensorView& from, const TensorView& to, const Execution& exec);

}  // namespace similis::warp_internal
