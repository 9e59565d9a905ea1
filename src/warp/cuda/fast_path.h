// SPDX-License-Identifier: Apache-2.0
// The fast path on the GPU: linear interpolation and nearest voxels of images and volumes of f32,
// f16 or bf16, at A·x + u(x) or at v(x) with u and v in f32, under any padding. Decisions that
// values.cu and gradients.cu make for each voxel are made for the launch here, and offsets in an
// image have 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/warp/formula.h"

namespace similis::warp_internal {

/// Returns whether the fast path computes the pass's values, or its gradients.
bool takes_fast_values(const Pass& pass);
/// `sums` is the array that the image's gradient is added to, or empty.
bool takes_fast_gradients(const Pass& pass, const TensorView& sums);

/// Returns whether run_fast_gradients() clears `sums` before it adds to them: the kernel of the
/// gradient to the field does, where it has a thread for each voxel of the image.
bool clears_fast_sums(const Pass& pass, const TensorView& sums);

/// Run the pass. `transforms` is in the device's memory, one for each image, or null if there are
/// no matrices.
void run_fast_values(const Pass& pass, const Transform* transforms, const Execution& exec);
/// The sums of the gradients to matrices go to `matrix_sums`, as GpuPass::sums has them with
/// fast_sum_blocks() for each image; null if they are not wanted.
void run_fast_gradients(const Pass& pass, const Transform* transforms, const TensorView& sums,
    double* matrix_sums, const Execution& exec);
unsigned fast_sum_blocks(const Pass& pass);

/// Strides count elements. Those along x, y, z and the distance between an image's first and last
/// element fit 32 bits. In 2D z is the stride along the image's y, and y is 0: a thread takes
/// voxels behind each other along the last axis but x.
struct FastStrides {
  std::int64_t image = 0;
  int x = 0, y = 0, z = 0;
};

/// The high word of the counter that split() in fast_path.cuh adds to an index.
constexpr int kCounterWord = 0x41380000;

/// The part of the axis along z, or y in 2D, that the image has. Rows count from row `first` of the
/// whole axis, the first at which a cell begins that counts.
struct FastRows {
  int counter;     // kCounterWord + first
  int whole_last;  // last voxel of the whole axis
  int first_cell;  // the first cell that counts
  unsigned cells;  // number of these
};

struct FastPass {
  int out[3];              // number of voxels of the output along x, y, z; x, 1, y in 2D
  int last[3];             // the image's last voxel along x, y, z, at least 1
  double first[3];         // Axis::first
  FastRows rows;           // its last row is last[2], or last[1] in 2D
  int tiles_z, depth;      // number of tiles of an image along z, and of their voxels there
  int block_channels;      // number of groups of channels that have blocks of their own, or 1
  int channels;            // number of all channels; 1 if components are channels
  int group;               // number of channels of a group
  int box_floats;          // number of floats of shared memory
  int upstream_component;  // the stride of components that are channels
  float factor, field_factor;
  DType dtype;  // of the image, output, addend and upstream
  Outside padding;
  bool align_corners;
  const Transform* transforms;            // null: all are `transform`
  Transform transform;                    // its s is that of all
  const void *image, *addend, *upstream;  // addend is null if there is none
  const float* field;                     // null if there is none
  void* output;
  float *field_gradient, *sums;
  double* matrix_sums;
  float* elsewhere;  // what c/warp.h describes, or null
  const float* noted;
  double reached_first, reached_end;  // indices that are not below and above them become NaN
  // Results are added to what there is, and those of voxels without a cell here stay as they are.
  bool keeps;
  bool has_other_rows;  // cells may lie in rows of the whole axis that are skipped here
  FastStrides image_strides, field_strides, output_strides, upstream_strides, gradient_strides,
      sums_strides;
  std::int64_t image_channel, output_channel, upstream_channel, sums_channel;
  float slopes[3];  // derivatives of indices by u: the diagonal of transform.s
};

/// The largest extent along each axis of the image: see split() in fast_path.cuh.
constexpr std::int64_t kMostFastVoxels = std::int64_t{1} << 19;

/// A kernel, and the shape of its launch: blocks take up to `depth` planes.
struct FastKernel {
  void (*function)(FastPass);
  int depth;
  std::size_t box_bytes;  // wanted bytes of shared memory
};

/// The layout of an image: `step` is the distance of voxels along x, 1, or 3 if components lie
/// between.
enum class FastLayout : std::uint8_t { volume, vectors, picture };

/// is_part: of a call that takes what Part in fast_path.cuh serves.
FastKernel fast_values(
    FastLayout layout, bool is_half, bool is_padded, bool is_part, bool has_channels);
/// Values of the nearest voxels, for layouts but vectors.
FastKernel fast_nearest(FastLayout layout, bool is_half);
/// To the field and the matrices.
FastKernel fast_gradients(
    FastLayout layout, bool is_half, bool is_padded, bool with_sums, bool is_part = false);
/// To the field, for volumes of several channels with zeros outside.
FastKernel fast_gradients_one_batch(bool is_half);
/// To the field of few voxels with many channels, for layouts but vectors: blocks take a row of
/// columns, and their warps take channels.
FastKernel fast_gradients_channels(FastLayout layout, bool is_half, bool is_padded);
/// To the image.
FastKernel fast_scatter(FastLayout layout, bool is_half, bool is_padded);
/// The same for volumes of several channels.
FastKernel fast_scatter_channels(bool is_half, bool is_padded);

}  // namespace similis::warp_internal
