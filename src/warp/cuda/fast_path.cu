// SPDX-License-Identifier: Apache-2.0
// Decides which calls take the fast path, and launches them.
#include "src/warp/cuda/fast_path.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "src/core/tensor/memory.h"
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
// whether it has `least` voxels along each axis.
bool has_short_places(const TensorView& image, int rank, std::int64_t least = 2) {
  std::int64_t span = 3;
  for (int axis = 5 - rank; axis < 5; ++axis) {
    if (image.shape[axis] < least || image.shape[axis] > kMostFastVoxels) return false;
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
// Of a column whose rows without a note are left out. A block that finds no note costs 1.7 ns, and
// columns of 8 rows 0.45 ms of 512×1024×1024 voxels. A column's voxels have 32 bits.
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

  CellRows(const Pass& pass, std::int64_t low) {
    const Axis& axis = pass.axes[pass.rank - 1];
    first = std::max({axis.start, axis.first_cell, low});
    end = std::min(axis.start + axis.extent - 1, axis.end_cell);
  }
  bool is_empty() const { return end <= first; }
};

// Returns whether cells that count have all their corners in the image, but for those at the ends
// of the whole axis. Where padding moves voxels the last one counts as the cell before it does.
bool has_cells(const Pass& pass) {
  const Axis& axis = pass.axes[pass.rank - 1];
  const std::int64_t end = axis.start + axis.extent;
  return !CellRows(pass, 0).is_empty() && (axis.start == 0 || axis.first_cell >= axis.start) &&
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
void set_rows(const Pass& pass, int low, FastPass* p) {
  const Axis& axis = pass.axes[pass.rank - 1];
  const CellRows cells(pass, low);
  const auto from_first = [&](std::int64_t row) { return static_cast<int>(row - cells.first); };
  p->last[pass.rank - 1] = from_first(cells.end);
  p->rows = {.counter = kCounterWord + static_cast<int>(cells.first - low),
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
  if (transforms == nullptr) {
    p.transform =
        make_transform(pass.axes, rank, pass.is_grid, pass.field_factor, Identity(), Identity());
  }
  p.image = pass.image.data();
  p.image_strides = strides_of(pass.image, rank);
  p.image_channel = pass.image.strides[1];
  if (!pass.field.empty()) {
    p.field = static_cast<const float*>(pass.field.data());
    p.field_strides = field_strides_of(pass.field, rank);
  }
  set_rows(pass, 0, &p);
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
  if (may_split_channels && pass.rank == 3 && p.group > kLeastGroup) {
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

// Returns into how many groups of channels the gradient to the field is cut, so that the GPU has
// enough blocks: groups are images of one field, whose gradients are added up afterwards. The rule
// knows the pass and its whole axes alone, so that a gradient has the same bits whatever else is
// asked for, and in parts.
int field_groups(const Pass& pass, FastPass p) {
  if (pass.batch != 1 || p.transforms != nullptr || p.field_gradient == nullptr) return 1;
  p.out[2] = static_cast<int>(pass.axes[pass.rank - 1].out_whole);
  int groups = 1;
  while (p.channels % (2 * groups) == 0 && p.channels / (2 * groups) >= kLeastGroup &&
         is_short(blocks_of(pass.rank, groups, &p, kLeastDepth), pass.image.device)) {
    groups *= 2;
  }
  return groups;
}

void launch_field_gradient(
    const Pass& pass, FastPass p, const FastKernel& kernel, const Execution& exec) {
  const int groups = field_groups(pass, p);
  if (groups == 1) return launch(pass, pass.batch, p, kernel, false, exec);
  float* const sum = p.field_gradient;
  const FastStrides strides = p.gradient_strides;
  const int row = p.out[0] * pass.rank, plane = p.out[1] * row;
  p.channels = p.group = p.channels / groups;
  p.image_strides.image = p.channels * p.image_channel;
  p.upstream_strides.image = p.channels * p.upstream_channel;
  p.field_strides.image = 0;
  p.gradient_strides = {std::int64_t{plane} * p.out[2], pass.rank, row, plane};
  const auto floats = static_cast<std::size_t>(groups * p.gradient_strides.image);
  const auto memory = allocate_bytes(floats * sizeof(float), pass.image.device, exec);
  p.field_gradient = static_cast<float*>(memory.get());
  p.keeps = false;
  p.noted = nullptr;
  launch(pass, groups, p, kernel, false, exec);
  p.keeps = pass.adds_to_field_gradient;
  add_groups(p, groups, row, sum, strides, pass.operation, exec);
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
  // run_fast_gradients() leaves out the first voxels of padded images, and a cell has two.
  const std::int64_t least = pass.padding == Outside::zeros ? 2 : 3;
  return is_fast(pass) && !(pass.adds_to_field_gradient && layout == FastLayout::vectors) &&
         has_short_places(pass.image, pass.rank, least) && !CellRows(pass, least - 2).is_empty() &&
         !pass.deterministic && pass.upstream.dtype == pass.image.dtype &&
         has_fast_strides(pass.upstream) && fits_32_bits(pass.upstream.strides[1]) &&
         (by_field.empty() ||
             (is_fast_field(by_field, pass.rank) && pass.images_of_field() == 1)) &&
         (!has_matrix_gradient(pass) || layout != FastLayout::vectors) &&
         (sums.empty() || (is_fast(sums, layout) && has_short_places(sums, pass.rank)));
}

unsigned fast_sum_blocks(const Pass& pass) {
  FastPass p = fast_pass(pass, nullptr);
  const FastKernel kernel = fast_gradients(layout_of(pass), is_half(pass.image), true);
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
          : fast_values(layout, is_half(pass.image),
                p.keeps || !pass.elsewhere.empty() || has_many_elsewhere(pass));
  launch(pass, pass.batch, p, kernel, layout != FastLayout::vectors, exec);
}

void run_fast_gradients(const Pass& pass, const Transform* transforms, const TensorView& sums,
    double* matrix_sums, const Execution& exec) {
  FastPass p = fast_pass(pass, transforms);
  const FastLayout layout = layout_of(pass);
  const TensorView& by_field = pass.field_gradient;
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
    if (pass.padding != Outside::zeros) {
      // There is no slope at the border itself, and so the first cell needs a look.
      const FastStrides& s = p.image_strides;
      to_field.low = 1;
      for (int a = 0; a < pass.rank - 1; ++a) --to_field.last[a];
      const std::int64_t cell = std::int64_t{s.x} + s.y;
      to_field.image = static_cast<const char*>(pass.image.data()) + cell * size_bytes(p.dtype);
      set_rows(pass, 1, &to_field);
    }
    const bool is_part = to_field.keeps || has_many_elsewhere(pass);
    if (to_field.keeps && matrix_sums != nullptr) {  // no kernel does both
      FastPass to_matrices = to_field;
      to_matrices.keeps = false;
      to_matrices.noted = nullptr;
      to_matrices.field_gradient = nullptr;
      launch_field_gradient(
          pass, to_matrices, fast_gradients(layout, is_half(pass.image), true), exec);
      to_field.matrix_sums = nullptr;
    }
    const bool with_sums = to_field.matrix_sums != nullptr;
    launch_field_gradient(
        pass, to_field, fast_gradients(layout, is_half(pass.image), with_sums, is_part), exec);
  }
  if (!sums.empty()) {
    p.sums_strides = strides_of(sums, pass.rank);
    p.sums = static_cast<float*>(sums.data()) +
             elements_before(pass.axes[pass.rank - 1], CellRows(pass, 0), p.sums_strides);
    if (sums.shape[0] < pass.batch) p.sums_strides.image = 0;
    p.sums_channel = sums.strides[1];
    p.block_channels = p.channels;
    p.group = 1;
    const bool is_padded = pass.padding != Outside::zeros;
    launch(pass, pass.batch, p, fast_scatter(layout, is_half(pass.image), is_padded), false, exec);
  }
}

}  // namespace similis::warp_internal
