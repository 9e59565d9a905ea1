// SPDX-License-Identifier: Apache-2.0
// Transforming images and composing transforms, with gradients, in 2D and 3D.
//
// Images are [N,C,Y,X] or [N,C,Z,Y,X]; vector fields [N,Y,X,2] or [N,Z,Y,X,3] with components in
// the order (x, y, z), x the fastest axis; affine maps [N,2,3] or [N,3,4] act on columns (x, y, z,
// 1). A transform maps a coordinate of the output to one of the image ("pull back"). Coordinates
// run from -1 to 1 along each axis: with align_corners voxel i of n is at -1 + 2i/(n-1), without at
// (2i+1)/n - 1; an axis of one voxel is at 0. min_coords and max_coords are the coordinates of the
// output's first and last voxel, by default those of the whole grid: another range computes a slab
// or a crop of a larger output, and slabs have the bits of the whole.
//
// Arrays may be cut along their first spatial axis, z or y in 2D, for several threads, GPUs or
// processes: `rows` says which rows of a longer output a call computes, `image_rows` which rows of
// a longer image it is given. Coordinates, padding and the cell of a voxel are the whole's, so that
// results have the whole's bits, and gradients to the field too. Rows of the image that are missing
// weigh nothing. A cell is the row at or before a coordinate, with the padding folded in: from -1,
// which stands for all before the first row, infinities and NaN, to the last row, which stands for
// all behind it. Only voxels whose cell is in `cells` get something, the others get 0: if an image
// comes in blocks that overlap by a row and the cells are divided among them, the results of all
// blocks add up, without rounding, to that of the whole; `accumulate` adds them up in place. A
// voxel whose coordinate is NaN yields NaN in every block. On a GPU blocks have the whole's bits if
// they have 3 rows or more, and both rows of each cell that counts.
//
// Every N may be 1 where another is larger: that operand then serves all, and its gradient is the
// sum over them. Each array may be f16, bf16, f32 or f64, with any strides. Coordinates are formed
// in f64; weights and sums in f32, or f64 for an f64 image; results are rounded once.
//
// A voxel whose coordinate is NaN yields NaN, and so are its gradients to field and matrices; it
// adds nothing to the image's gradient and changes no other voxel. (Its label is the background,
// with weight NaN.) An infinite coordinate is outside under every padding: it yields 0, or the
// background, and no gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "similis/api.h"
#include "similis/coordinates.hpp"
#include "similis/execution.hpp"
#include "similis/fields.hpp"
#include "similis/tensor.hpp"

namespace similis {

enum class Interpolation : std::uint8_t {
  linear,
  nearest,  ///< halves go to the even voxel; no gradient to the transform
  cubic,    ///< interpolating cubic B-spline, the image mirrored at its outermost voxels
};

/// The values outside the image, as in torch's grid_sample.
enum class Outside : std::uint8_t {
  zeros,       ///< zeros; linear weights fall to 0 within a voxel, a cubic spline ends at the edge
  border,      ///< the outermost voxel
  reflection,  ///< the image mirrored at its outermost voxels, or their edges without align_corners
};

/// Cells from `first` up to, not including, `end`; all if both are 0.
struct Cells {
  std::int64_t first = 0, end = 0;
};

struct SampleOptions {
  TensorView affine = {};        ///< A; empty: the identity
  TensorView displacement = {};  ///< u, a vector field shaped as the output
  TensorView grid = {};          ///< v, absolute coordinates; with affine or displacement an error
  TensorView grid_affine = {};   ///< S: [N,2,2] or [N,3,3]; multiplies u or v. Empty: the identity
  Extents out_shape = {};        ///< [Y,X] or [Z,Y,X]; empty: that of the field, or of the image
  Interpolation mode = Interpolation::linear;
  Outside padding_mode = Outside::zeros;
  bool align_corners = true;
  bool prefilter = true;  ///< read for mode cubic; false: the image holds B-spline coefficients
  std::optional<Coordinates> min_coords = {}, max_coords = {};  ///< of the whole output
  Rows rows = {};        ///< the rows of a longer output to compute
  Rows image_rows = {};  ///< the rows of a longer image that are given; for cubic with prefilter 28
                         ///< more than are needed before and behind, as it filters what it is given
  Cells cells = {};      ///< which voxels get something
};

/// The image at A·x + S·u(x), or at S·v(x): [N,C,…] in the image's dtype on its device.
/// Throws InvalidArgument if shapes, dtypes, devices or options do not fit.
/// Workspace: none; for cubic with prefilter the image in f32 (f64 for f64), on a GPU twice.
SIMILIS_API Tensor sample(
    const TensorView& image, const SampleOptions& options = {}, const Execution& exec = {});

/// The gradients to compute.
struct SampleGradientOf {
  bool image = false, affine = false, grid = false, grid_affine = false;
};
/// Dense, each shaped and typed as its operand; empty unless asked for.
struct SampleGradients {
  Tensor image, affine;
  Tensor grid;  ///< gradient of displacement or grid, whichever was given
  Tensor grid_affine;
};

/// Gradients of Σ upstream·sample(image); upstream is shaped as the output, of any float dtype.
/// The image's gradient is scattered: on a GPU in the order of arrival, in f32, where each addend
/// has an error of at most 2⁻¹⁸ of the largest upstream of four neighbours. `deterministic` avoids
/// both with a workspace of 8 B (16 B for f64) per voxel of the image. All other gradients, and all
/// on the CPU, have the same bits in every run.
SIMILIS_API SampleGradients sample_backward(const TensorView& image, const TensorView& upstream,
    const SampleGradientOf& wrt, const SampleOptions& options = {}, bool deterministic = false,
    const Execution& exec = {});

/// The results of one call, in memory of the caller; empty views are not computed.
struct SampleRequest {
  TensorView output = {};    ///< [N,C,…], any float dtype, any strides but 0; not the image's
  bool accumulate = false;   ///< adds to what output holds; without one, on GPUs, to grid_gradient
  TensorView upstream = {};  ///< needed for gradients; any float dtype, any strides
  TensorView image_gradient = {};  ///< gradients are overwritten; shaped and typed as their operand
  TensorView affine_gradient =
      {};  ///< those to matrices may be f64 too, as a part of a whole's sum
  TensorView grid_gradient = {};
  TensorView grid_affine_gradient = {};
  bool deterministic = false;
};

/// The call behind sample() and sample_backward(): for bindings and callers with their own memory.
SIMILIS_API void sample_into(const TensorView& image, const SampleRequest& request,
    const SampleOptions& options = {}, const Execution& exec = {});

struct ComposeOptions {
  TensorView affine = {};  ///< A; empty: the identity
  Outside padding_mode = Outside::zeros;
  bool align_corners = true;
  std::optional<Coordinates> min_coords = {}, max_coords = {};
  Rows rows = {};        ///< those of v and of the output
  Rows image_rows = {};  ///< those of u
  Cells cells = {};      ///< of u
};

/// u(A·x + v(x)), shaped as v with N the larger of both, in u's dtype. The displacement of "first
/// v, then u" is v + compose(u, v).
SIMILIS_API Tensor compose(const TensorView& u, const TensorView& v,
    const ComposeOptions& options = {}, const Execution& exec = {});

struct ComposeRequest {
  TensorView output = {};  ///< may be v's memory, not u's
  bool accumulate = false;
  TensorView upstream = {};
  TensorView u_gradient = {}, v_gradient = {}, affine_gradient = {};
  bool deterministic = false;  ///< applies to u_gradient
};
SIMILIS_API void compose_into(const TensorView& u, const TensorView& v,
    const ComposeRequest& request, const ComposeOptions& options = {}, const Execution& exec = {});

struct AffineGridOptions {
  TensorView displacement = {};  ///< u; empty: 0
  Extents out_shape = {};        ///< [Y,X] or [Z,Y,X]; needed without a displacement
  bool align_corners = true;
  std::optional<Coordinates> min_coords = {}, max_coords = {};
  Rows rows = {};
};

/// A·x + u(x): [N,Y,X,2] or [N,Z,Y,X,3], in the dtype of u, or of A without one.
SIMILIS_API Tensor affine_grid(
    const TensorView& affine, const AffineGridOptions& options = {}, const Execution& exec = {});

/// The gradient to u is upstream itself, summed over N where u serves all.
struct AffineGridRequest {
  TensorView output = {};
  bool accumulate = false;  ///< adds the result to the values in output
  TensorView upstream = {}, affine_gradient = {};
};
SIMILIS_API void affine_grid_into(const TensorView& affine, const AffineGridRequest& request,
    const AffineGridOptions& options = {}, const Execution& exec = {});

struct LabelOptions {
  double background = 0;  ///< the label where no voxel votes; the image's dtype holds it
  std::optional<double> smallest_label = {};  ///< labels below it do not vote; empty: all do
};
struct Labels {
  Tensor label;   ///< in the image's dtype
  Tensor weight;  ///< f32 (f64 for f64): the sum of the winner's weights, 0 where none votes
};

/// The label whose voxels around the coordinate have the largest sum of linear weights; the first
/// met, x fastest, of equals. The image is of any dtype, integers included (i16, i32 and boolean on
/// the CPU alone); mode is ignored.
SIMILIS_API Labels sample_labels(const TensorView& image, const SampleOptions& options = {},
    const LabelOptions& labels = {}, const Execution& exec = {});

struct LabelRequest {
  TensorView label = {}, weight = {};
  TensorView upstream = {};  ///< upstream gradient of weight
  TensorView affine_gradient = {}, grid_gradient = {}, grid_affine_gradient = {};
};
SIMILIS_API void sample_labels_into(const TensorView& image, const LabelRequest& request,
    const SampleOptions& options = {}, const LabelOptions& labels = {}, const Execution& exec = {});

}  // namespace similis
