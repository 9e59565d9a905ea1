// SPDX-License-Identifier: Apache-2.0
// Decides which calls take the fast path, and launches them.
#include "src/warp/cuda/fast_path.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/vendor.h"
#include "src/warp/cuda/pass.h"

namespace similis::warp_internal {
namespace {

bool is_half(const TensorView& image) {
  return image.dtype == DType::f16 || image.dtype == DType::bf16;
}

bool fits_32_bits(std::int64_t stride) {
  return stride > -(std::int64_t{1} << 31) && stride < std::int64_t{1} << 31;
}

FastLayout layout_of(const Pass& pass) {
  const Extents& s = pass.image.strides;
  if (pass.rank == 2) return FastLayout::picture;
  return pass.channels == 3 && s[1] == 1 && s[4] == 3 ? FastLayout::vectors : FastLayout::volume;
}

bool has_fast_strides(const TensorView& image) {
  const Extents& s = image.strides;
  return fits_32_bits(s[4]) && fits_32_bits(s[3]) && fits_32_bits(s[2]);
}

// Returns whether the fast path takes an image [N,C,Z,Y,X], or writes to it: voxels are neighbours
// along x, or vectors are.
bool is_fast(const TensorView& image, FastLayout layout) {
  const Extents& s = image.strides;
  const bool is_packed = layout == FastLayout::vectors ? s[4] == 3 && s[1] == 1 : s[4] == 1;
  return is_packed && has_fast_strides(image);
}

// Returns whether kernels can gather from an image, or scatter to it, by offsets of 32 bits, and
// whether it has two voxels along each axis.
bool has_short_places(const TensorView& image, int rank) {
  std::int64_t span = 3;
  for (int axis = 5 - rank; axis < 5; ++axis) {
    if (image.shape[axis] < 2 || image.shape[axis] > kMostFastVoxels) return false;
    span += (image.shape[axis] - 1) * std::abs(image.strides[axis]);
  }
  return fits_32_bits(span);
}

// Returns whether the fast path takes a field [N,Z,Y,X,d]: components lie beside each other, and so
// do voxels along x.
bool is_fast_field(const TensorView& field, int rank) {
  const Extents& s = field.strides;
  return field.dtype == DType::f32 && s[4] == 1 && s[3] == rank && fits_32_bits(s[2]) &&
         fits_32_bits(s[1]);
}

constexpr std::int64_t kMostBlocksAcross = 65535;
constexpr int kLeastDepth = 4;  // of a column
// Depth of a column if rows without a note are left out. A block that finds no note costs 1.7 ns,
// and columns of 8 rows 0.45 ms of 512×1024×1024 voxels. A column's voxels have 32 bits.
constexpr int kNotedDepth = 32;

// Returns whether no launch needs more blocks than a launch may have.
bool fits_launches(const Pass& pass) {
  const Axis* axes = pass.axes;
  const std::int64_t rows = axes[pass.rank - 1].out_extent;
  return axes[0].out_extent < INT32_MAX && axes[1].out_extent <= kMostBlocksAcross &&
         rows < INT32_MAX &&
         (rows / kLeastDepth + 1) * pass.batch * pass.channels <= kMostBlocksAcross;
}

// The first row at which a cell begins that counts and has all its corners in the image, and the
// one behind the last of these.
struct CellRows {
  std::int64_t first, end;

  explicit CellRows(const Pass& pass) {
    const Axis& axis = pass.axes[pass.rank - 1];
    first = std::max(axis.start, axis.first_cell);
    end = std::min(axis.start + axis.extent - 1, axis.end_cell);
  }
  bool is_empty() const { return end <= first; }
};

// Returns whether cells that count have all their corners in the image, but for those at the ends
// of the whole axis. If padding moves voxels, the last one counts as the cell before it does.
bool has_cells(const Pass& pass) {
  const Axis& axis = pass.axes[pass.rank - 1];
  const std::int64_t end = axis.start + axis.extent;
  return !CellRows(pass).is_empty() && (axis.start == 0 || axis.first_cell >= axis.start) &&
         (end == axis.whole || axis.end_cell < end) &&
         (pass.padding == Outside::zeros || axis.end_cell != axis.whole - 1);
}

// Returns whether the fast path takes a pass, whatever its mode.
bool is_fast_in_any_mode(const Pass& pass) {
  const DType dtype = pass.image.dtype;
  const FastLayout layout = layout_of(pass);
  return pass.form == Form::image && pass.grid_affine.empty() &&
         (pass.field.empty() || is_fast_field(pass.field, pass.rank)) &&
         (dtype == DType::f32 || is_half(pass.image)) &&
         (layout != FastLayout::vectors ||
             (dtype == DType::f32 && pass.padding == Outside::zeros)) &&
         is_fast(pass.image, layout) && has_short_places(pass.image, pass.rank) &&
         pass.axes[pass.rank - 1].whole <= kMostFastVoxels && has_cells(pass) &&
         fits_launches(pass);
}

bool is_fast(const Pass& pass) {
  return pass.mode == Interpolation::linear && is_fast_in_any_mode(pass);
}

// Returns whether values are elements of the image.
bool copies_voxels(const Pass& pass) {
  return pass.mode == Interpolation::nearest && pass.factor == 1 && pass.addend.empty() &&
         layout_of(pass) != FastLayout::vectors && is_fast_in_any_mode(pass) &&
         !pass.axes[pass.rank - 1].is_part();
}

FastStrides strides_of(const TensorView& image, int rank) {
  const Extents& s = image.strides;
  const auto x = static_cast<int>(s[4]), y = static_cast<int>(s[3]), z = static_cast<int>(s[2]);
  return rank == 3 ? FastStrides{s[0], x, y, z} : FastStrides{s[0], x, 0, y};
}

FastStrides field_strides_of(const TensorView& field, int rank) {
  const Extents& s = field.strides;
  const auto x = static_cast<int>(s[3]), y = static_cast<int>(s[2]), z = static_cast<int>(s[1]);
  return rank == 3 ? FastStrides{s[0], x, y, z} : FastStrides{s[0], x, 0, y};
}

// Number of elements of an image before its first row at which a cell begins that counts.
std::int64_t elements_before(const Axis& axis, const CellRows& cells, const FastStrides& strides) {
  return (cells.first - axis.start) * strides.z;
}

// Counts rows of the image from the first whose cell counts; p->image is the whole's address.
void set_rows(const Pass& pass, FastPass* p) {
  const Axis& axis = pass.axes[pass.rank - 1];
  const CellRows cells(pass);
  const auto from_first = [&](std::int64_t row) { return static_cast<int>(row - cells.first); };
  p->last[pass.rank - 1] = from_first(cells.end);
  p->rows = {.counter = kCounterWord + static_cast<int>(cells.first),
      .whole_last = static_cast<int>(axis.whole - 1),
      .first_cell = from_first(axis.first_cell),
      .cells = static_cast<unsigned>(axis.end_cell - axis.first_cell)};
  p->image = static_cast<const char*>(p->image) +
             elements_before(axis, cells, p->image_strides) * size_bytes(p->dtype);
}

struct Identity {
  SIMILIS_HOST_DEVICE double operator()(int i, int j) const { return i == j ? 1 : 0; }
};

FastPass fast_pass(const Pass& pass, const Transform* transforms) {
  FastPass p{};
  const int rank = pass.rank;
  for (int a = 0; a < rank; ++a) {
    p.last[a] = static_cast<int>(pass.axes[a].extent - 1);
    p.first[a] = pass.axes[a].first;
  }
  p.out[0] = static_cast<int>(pass.axes[0].out_extent);
  p.out[1] = rank == 3 ? static_cast<int>(pass.axes[1].out_extent) : 1;
  p.out[2] = static_cast<int>(pass.axes[rank - 1].out_extent);
  p.channels = layout_of(pass) == FastLayout::vectors ? 1 : static_cast<int>(pass.channels);
  p.block_channels = 1;
  p.group = p.channels;
  p.factor = static_cast<float>(pass.factor);
  p.field_factor = static_cast<float>(pass.field_factor);
  p.dtype = pass.image.dtype;
  p.padding = pass.padding;
  p.align_corners = pass.align_corners;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Axis& cut = pass.axes[rank - 1];
  const bool is_padded = pass.padding != Outside::zeros;
  // Padding moves what is beyond the image's ends to the cells there.
  const std::int64_t least = is_padded ? 0 : -1, most = is_padded ? cut.whole - 1 : cut.whole;
  const bool has_limits = pass.reached.end != 0;
  constexpr double kSlack = 1e-5;  // above the rounding of an index
  p.reached_first = has_limits && pass.reached.first > least
                        ? static_cast<double>(pass.reached.first) - kSlack
                        : -kInfinity;
  p.reached_end = has_limits && pass.reached.end < most
                      ? static_cast<double>(pass.reached.end) + kSlack
                      : kInfinity;
  p.has_other_rows = pass.axes[rank - 1].is_part() && pass.elsewhere.empty();
  p.transforms = transforms;
  p.transform =
      make_transform(pass.axes, rank, pass.is_grid, pass.field_factor, Identity(), Identity());
  for (int a = 0; a < 3; ++a) p.slopes[a] = static_cast<float>(p.transform.s[a][a]);
  p.image = pass.image.data();
  p.image_strides = strides_of(pass.image, rank);
  p.image_channel = pass.image.strides[1];
  if (!pass.field.empty()) {
    p.field = static_cast<const float*>(pass.field.data());
    p.field_strides = field_strides_of(pass.field, rank);
  }
  set_rows(pass, &p);
  return p;
}

int tiles(int extent, int tile) { return (extent + tile - 1) / tile; }

// The planes of a tile: in 2D warps take rows behind each other.
int planes_of_tile(const FastPass& p, int rank) { return rank == 3 ? p.depth : p.depth * kTileY; }

dim3 blocks_of(int rank, std::int64_t images, FastPass* p, int depth) {
  p->depth = depth;
  p->tiles_z = tiles(p->out[2], planes_of_tile(*p, rank));
  return {static_cast<unsigned>(tiles(p->out[0], kTileX)),
      static_cast<unsigned>(tiles(p->out[1], kTileY)),
      static_cast<unsigned>(p->tiles_z * images * p->block_channels)};
}

// Returns whether a launch has too few blocks for the GPU.
bool is_short(const dim3& blocks, Device device) {
  return blocks.x * blocks.y * blocks.z <
         8u * static_cast<unsigned>(gpu::limits(device).multiprocessors);
}
constexpr int kLeastGroup = 4;  // channels that share their indices

// Launches a kernel on some images, with blocks of fewer channels if it `may_split_channels`.
void launch(const Pass& pass, std::int64_t images, FastPass p, const FastKernel& kernel,
    bool may_split_channels, const Execution& exec) {
  const Device device = pass.image.device;
  const int depth = p.noted == nullptr ? kernel.depth : kNotedDepth;
  dim3 blocks = blocks_of(pass.rank, images, &p, depth);
  while (kernel.box_bytes == 0 && p.matrix_sums == nullptr && p.depth > kLeastDepth &&
         is_short(blocks, device)) {
    blocks = blocks_of(pass.rank, images, &p, p.depth / 2);
  }
  const auto split_channels = [&](int group) {
    p.group = group;
    p.block_channels = tiles(p.channels, group);
    blocks = blocks_of(pass.rank, images, &p, p.depth);
  };
  // Blocks that run together read the rims of each other's cells from the L2 cache, which holds
  // some 4 channels of their volumes: with 16 channels a block 1.7 times the image came from
  // memory.
  if (may_split_channels && pass.rank == 3 && kernel.box_bytes == 0 && p.group > kLeastGroup) {
    split_channels(tiles(p.channels, tiles(p.channels, kLeastGroup)));
  }
  while (may_split_channels && p.group > kLeastGroup && is_short(blocks, device)) {
    split_channels((p.group + 1) / 2);
  }
  std::size_t bytes = 0;
  if (kernel.box_bytes > 0) {
    constexpr std::size_t kStatic = 64;
    bytes = std::min(kernel.box_bytes,
        static_cast<std::size_t>(gpu::limits(device).shared_bytes_a_block) - kStatic);
    p.box_floats = static_cast<int>(bytes / sizeof(float));
    gpu::allow_shared_bytes(kernel.function, bytes);
  }
  gpu::launch(pass.operation, exec.queue.handle, blocks, kThreads, bytes, kernel.function, p);
}

// Returns whether warps of a block share voxels for the gradient to the field, and take channels,
// so that the GPU has enough blocks. The rule knows the pass and its whole axes alone, so that a
// gradient has the same bits whatever else is asked for, and in parts.
bool shares_voxels(const Pass& pass, FastPass p) {
  if (p.channels < kTileY || p.transforms != nullptr || p.field_gradient == nullptr) return false;
  p.out[2] = static_cast<int>(pass.axes[pass.rank - 1].out_whole);
  return is_short(blocks_of(pass.rank, pass.batch, &p, kLeastDepth), pass.image.device);
}

void launch_field_gradient(
    const Pass& pass, FastPass p, bool with_sums, bool is_part, const Execution& exec) {
  const FastLayout layout = layout_of(pass);
  const bool is_padded = pass.padding != Outside::zeros;
  if (!shares_voxels(pass, p)) {
    const bool is_one_batch = layout == FastLayout::volume && p.channels >= kLeastGroup &&
                              !is_padded && !with_sums && !is_part;
    const FastKernel kernel =
        is_one_batch ? fast_gradients_one_batch(is_half(pass.image))
                     : fast_gradients(layout, is_half(pass.image), is_padded, with_sums, is_part);
    return launch(pass, pass.batch, p, kernel, false, exec);
  }
  const FastKernel kernel = fast_gradients_channels(layout, is_half(pass.image), is_padded);
  p.depth = kernel.depth;
  p.tiles_z = tiles(p.out[2], p.depth);
  const dim3 blocks(static_cast<unsigned>(tiles(p.out[0], kTileX)), static_cast<unsigned>(p.out[1]),
      static_cast<unsigned>(p.tiles_z * pass.batch));
  gpu::launch(pass.operation, exec.queue.handle, blocks, kThreads, 0, kernel.function, p);
}

// Returns whether many voxels may lie in rows that the image lacks: a map turns them there, where a
// field moves few. Kernels of parts skip them, but take a tenth longer for others.
bool has_many_elsewhere(const Pass& pass) {
  return pass.axes[pass.rank - 1].is_part() && !pass.affine.empty();
}

bool has_matrix_gradient(const Pass& pass) {
  return !pass.affine_gradient.empty() || !pass.grid_affine_gradient.empty();
}

}  // namespace

bool takes_fast_values(const Pass& pass) {
  const bool marks = is_fast(pass) && layout_of(pass) != FastLayout::vectors;
  return (is_fast(pass) || copies_voxels(pass)) && !pass.output.empty() &&
         (pass.reached.end == 0 || marks) && pass.output.dtype == pass.image.dtype &&
         is_fast(pass.output, layout_of(pass)) &&
         (pass.addend.empty() || (pass.addend.dtype == pass.output.dtype &&
                                     pass.addend.strides == pass.output.strides));
}

bool takes_fast_gradients(const Pass& pass, const TensorView& sums) {
  const FastLayout layout = layout_of(pass);
  const TensorView& by_field = pass.field_gradient;
  return is_fast(pass) && !(pass.adds_to_field_gradient && layout == FastLayout::vectors) &&
         !pass.deterministic && pass.upstream.dtype == pass.image.dtype &&
         has_fast_strides(pass.upstream) && fits_32_bits(pass.upstream.strides[1]) &&
         (by_field.empty() ||
             (is_fast_field(by_field, pass.rank) && pass.images_of_field() == 1)) &&
         (!has_matrix_gradient(pass) || layout != FastLayout::vectors) &&
         (sums.empty() || (is_fast(sums, layout) && has_short_places(sums, pass.rank)));
}

bool clears_fast_sums(const Pass& pass, const TensorView& sums) {
  const Axis& cut = pass.axes[pass.rank - 1];
  bool is_alike = sums.shape[0] == pass.batch;
  for (int a = 0; a < pass.rank; ++a) is_alike &= sums.shape[4 - a] == pass.axes[a].out_extent;
  // Stores to the volumes of many channels hold up the loads by more than a memset takes.
  const bool is_light = pass.rank == 2 || pass.channels == 1;
  return is_alike && is_light && layout_of(pass) != FastLayout::vectors && !cut.is_part() &&
         cut.out_extent == cut.out_whole && !pass.adds_to_field_gradient &&
         (!pass.field_gradient.empty() || has_matrix_gradient(pass));
}

unsigned fast_sum_blocks(const Pass& pass) {
  FastPass p = fast_pass(pass, nullptr);
  const FastKernel kernel =
      fast_gradients(layout_of(pass), is_half(pass.image), pass.padding != Outside::zeros, true);
  const dim3 blocks = blocks_of(pass.rank, pass.batch, &p, kernel.depth);
  return blocks.x * blocks.y * static_cast<unsigned>(p.tiles_z);
}

void run_fast_values(const Pass& pass, const Transform* transforms, const Execution& exec) {
  FastPass p = fast_pass(pass, transforms);
  p.addend = pass.addend.data();
  p.output = pass.output.data();
  p.elsewhere = static_cast<float*>(pass.elsewhere.data());
  p.keeps = pass.axes[pass.rank - 1].is_part() && p.addend != nullptr && p.addend == p.output &&
            pass.field_factor == 1;
  if (p.keeps) p.noted = static_cast<const float*>(pass.noted.data());
  p.output_strides = strides_of(pass.output, pass.rank);
  p.output_channel = pass.output.strides[1];
  const FastLayout layout = layout_of(pass);
  const FastKernel kernel =
      pass.mode == Interpolation::nearest
          ? fast_nearest(layout, is_half(pass.image))
          : fast_values(layout, is_half(pass.image), pass.padding != Outside::zeros,
                p.keeps || !pass.elsewhere.empty() || has_many_elsewhere(pass), p.channels > 1);
  launch(pass, pass.batch, p, kernel, layout != FastLayout::vectors, exec);
}

void run_fast_gradients(const Pass& pass, const Transform* transforms, const TensorView& sums,
    double* matrix_sums, const Execution& exec) {
  FastPass p = fast_pass(pass, transforms);
  const FastLayout layout = layout_of(pass);
  const TensorView& by_field = pass.field_gradient;
  const bool is_padded = pass.padding != Outside::zeros;
  p.upstream = pass.upstream.data();
  p.upstream_strides = strides_of(pass.upstream, pass.rank);
  p.upstream_channel = pass.upstream.strides[1];
  p.upstream_component = static_cast<int>(pass.upstream.strides[1]);
  if (!by_field.empty() || matrix_sums != nullptr) {
    FastPass to_field = p;
    to_field.keeps = pass.adds_to_field_gradient;
    if (to_field.keeps) to_field.noted = static_cast<const float*>(pass.noted.data());
    if (!by_field.empty()) {
      to_field.field_gradient = static_cast<float*>(by_field.data());
      to_field.gradient_strides = field_strides_of(by_field, pass.rank);
    }
    to_field.matrix_sums = matrix_sums;
    if (!sums.empty() && clears_fast_sums(pass, sums)) {
      to_field.sums = static_cast<float*>(sums.data());
      to_field.sums_strides = strides_of(sums, pass.rank);
      to_field.sums_channel = sums.strides[1];
    }
    const bool is_part = to_field.keeps || has_many_elsewhere(pass);
    if (to_field.keeps && matrix_sums != nullptr) {  // no kernel does both
      FastPass to_matrices = to_field;
      to_matrices.keeps = false;
      to_matrices.noted = nullptr;
      to_matrices.field_gradient = nullptr;
      launch_field_gradient(pass, to_matrices, true, false, exec);
      to_field.matrix_sums = nullptr;
    }
    launch_field_gradient(pass, to_field, to_field.matrix_sums != nullptr, is_part, exec);
  }
  if (!sums.empty()) {
    p.sums_strides = strides_of(sums, pass.rank);
    p.sums = static_cast<float*>(sums.data()) +
             elements_before(pass.axes[pass.rank - 1], CellRows(pass), p.sums_strides);
    if (sums.shape[0] < pass.batch) p.sums_strides.image = 0;
    p.sums_channel = sums.strides[1];
    const bool is_half_image = is_half(pass.image);
    if (layout == FastLayout::volume && p.channels > 1) {
      return launch(
          pass, pass.batch, p, fast_scatter_channels(is_half_image, is_padded), true, exec);
    }
    p.block_channels = p.channels;
    p.group = 1;
    launch(pass, pass.batch, p, fast_scatter(layout, is_half_image, is_padded), false, exec);
  }
}

}  // namespace similis::warp_internal
