// SPDX-License-Identifier: Apache-2.0
// LNCC on the GPU under boxes: which passes the march takes, and how it deals them out. Fields
// stand in a workspace for a slab of planes of a strip of rows at a time; a ring, so that no plane
// is looked at twice. Small volumes go several at once.
#include "src/lncc/cuda_march.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "src/core/memory.h"

namespace similis::lncc_internal {
namespace {

constexpr std::int64_t kFieldBytes = std::int64_t{64} << 20;
constexpr int kFewestPlanes = 8;  // of a slab; fewer would not fill the GPU

template <class T> T pieces(T extent, T length) { return (extent + length - 1) / length; }

Range centres(const Geometry& g, int axis) {
  return {static_cast<int>(g.first_centre[axis]), static_cast<int>(g.last_centre[axis])};
}
int extent(const Geometry& g, int axis) { return static_cast<int>(g.extent[axis]); }
Range around(const Range& range, int radius, const Range& bounds) {
  return {std::max(bounds.first, range.first - radius), std::min(bounds.last, range.last + radius)};
}

bool is_f32(const Pass& pass) {
  const auto fits = [](const TensorView& view) {
    return view.empty() ||
           std::abs(view.strides[3]) * view.shape[3] + std::abs(view.strides[4]) * view.shape[4] <
               (std::int64_t{1} << 31);
  };
  return pass.x.dtype == DType::f32 && fits(pass.x) && fits(pass.y) && fits(pass.x_gradient) &&
         fits(pass.y_gradient);
}

int images_of(const Pass& pass) {
  if (!pass.has_gradient() || pass.gradient == LnccGradient::ants) return 0;
  return (pass.x_gradient.empty() ? 0 : 1) + (pass.y_gradient.empty() ? 0 : 1);
}

// What one kernel has to do: `lanes` places of an axis, of which a tile sees `halo` more, `eights`
// of another, planes, and volumes.
struct Work {
  int lanes, halo, eights, planes, volumes;
  double begin;  // what a chunk's first plane costs more than any other
};

// What a multiprocessor holds of a kernel.
struct Room {
  int multiprocessors, threads_a_block, threads;
  std::int64_t bytes;
};

// Cuts the planes into as many chunks as fill the device once, twice or three times; what the best
// of these costs. Each multiprocessor takes block after block, and is the faster the more warps are
// there to wait for one another.
double cut(Tiles& tiles, const Work& work, const Room& room, std::int64_t bytes) {
  const std::int64_t columns = std::int64_t{tiles.across} * tiles.down * tiles.volumes;
  const std::int64_t fit =
      std::min<std::int64_t>(room.threads / tiles.threads(), room.bytes / bytes);
  const double rim =
      1 + 0.25 * work.halo / (tiles.eights * kEight);  // what neighbours load as well
  const double alone = fit == 1 ? 1.15 : 1;  // none works while the block waits for itself
  double least = 0;
  for (int times = 1; times <= 3; ++times) {
    const std::int64_t chunks =
        std::clamp<std::int64_t>(times * fit * room.multiprocessors / columns, 1, work.planes);
    const int length = pieces(work.planes, static_cast<int>(chunks));
    const std::int64_t turns =
        pieces<std::int64_t>(columns * pieces(work.planes, length), room.multiprocessors);
    const double warps = static_cast<double>(std::min(turns, fit) * tiles.threads()) / 32;
    const double cost = static_cast<double>(turns * tiles.threads()) * (length + work.begin) *
                        (1 + 8 / warps) * rim * alone;
    if (least > 0 && cost >= least) continue;
    least = cost;
    tiles.chunk_planes = length;
    tiles.chunks = pieces(work.planes, length);
  }
  return least;
}

// The tiles and chunks that cost the least; lanes == 0 if no tile fits.
template <class Bytes> Tiles best_tiles(const Work& work, const Room& room, const Bytes& bytes_of) {
  Tiles best;
  double least = 0;
  for (int lanes = 32; lanes <= room.threads_a_block; lanes += 32) {
    if (lanes <= work.halo) continue;
    for (int eights = 1; lanes * eights <= room.threads_a_block; ++eights) {
      Tiles tiles;
      tiles.lanes = lanes;
      tiles.eights = eights;
      tiles.across = pieces(work.lanes, lanes - work.halo);
      tiles.down = pieces(work.eights, eights * kEight);
      tiles.volumes = work.volumes;
      const std::int64_t bytes = bytes_of(tiles);
      if (bytes > room.bytes) break;
      const double cost = cut(tiles, work, room, bytes);
      if (best.lanes != 0 && cost >= least) continue;
      least = cost;
      best = tiles;
    }
  }
  return best;
}

// The tiles of the last slab, as most slabs are alike.
class Memory {
 public:
  using Slab = std::array<int, 3>;
  template <class Find> Tiles find(const Slab& slab, const Find& find) {
    if (slab != slab_) tiles_ = find();
    slab_ = slab;
    return tiles_;
  }

 private:
  Slab slab_ = {};
  Tiles tiles_;
};

// How a pass is dealt out.
class Schedule {
 public:
  explicit Schedule(const CudaPlan& plan)
      : plan_(plan),
        g_(plan.measure.geometry),
        is_f32_(is_f32(plan.pass)),
        images_(images_of(plan.pass)),
        depth_(centres(g_, 0).length()) {
    const gpu::Limits& limits = gpu::limits(plan.device);
    window_room_ = {
        limits.multiprocessors, kWindowThreads, kWindowThreads, limits.shared_bytes_a_block};
    gradient_room_ = {limits.multiprocessors, kGradientThreads, 2 * kGradientThreads,
        limits.shared_bytes_a_block};
    if (images_ > 0) {
      size_ring();
    } else {
      strip_rows_ = extent(g_, 1);
      slab_planes_ = std::max(1, depth_);
      volumes_ = static_cast<int>(std::min<std::int64_t>(g_.planes, 1 << 12));
    }
  }

  bool fits() const {
    const std::int64_t plane = std::int64_t{extent(g_, 2)} * field_rows();
    if (images_ > 0 && plane >= std::int64_t{1} << 31) return false;
    return window_tiles(1, 1, 1).lanes != 0 && gradient_tiles(1, 1, 1).lanes != 0;
  }

  // Calls the kernels in order. Without a ring nothing is launched: what a volume's values take.
  template <class Windows, class Gradient>
  void visit(const Windows& windows, const Gradient& gradient) const {
    for (std::int64_t volume = 0; volume < g_.planes; volume += volumes_) {
      const int volumes = static_cast<int>(std::min<std::int64_t>(volumes_, g_.planes - volume));
      int slot = 0;
      for (int row = 0; row < extent(g_, 1); row += strip_rows_) {
        visit_strip({row, std::min(row + strip_rows_, extent(g_, 1))}, volume, volumes, slot,
            windows, gradient);
      }
    }
  }

  // Sums that a volume's values have.
  int slots() const {
    int count = 0;
    visit(
        [&](const WindowMarch& march) {
          count = std::max(count, march.first_slot + slots_of(march.tiles));
        },
        [](const GradientMarch&) {});
    return count;
  }

  void run() const {
    const std::int64_t plane = std::int64_t{extent(g_, 2)} * field_rows();
    const std::int64_t elements = plane * ring_ * images_ * volumes_;
    std::shared_ptr<void> memory;
    if (images_ > 0) {
      memory = allocate_bytes(
          static_cast<std::size_t>(elements * field_bytes()), plan_.device, plan_.exec);
    }
    void* const rests = memory.get();
    void* const pairs = images_ > 0 ? static_cast<double*>(rests) + elements : nullptr;
    const auto with_memory = [&](Fields& fields) {
      fields.rests = static_cast<double*>(rests);
      fields.pairs = pairs;
    };
    visit(
        [&](WindowMarch march) {
          with_memory(march.fields);
          launch_windows(plan_, march, is_f32_);
        },
        [&](GradientMarch march) {
          with_memory(march.fields);
          launch_gradient(plan_, march, is_f32_);
        });
    if (images_ == 0) clear_rim(plan_);
  }

 private:
  std::int64_t field_bytes() const {
    return static_cast<std::int64_t>(sizeof(double)) +
           (is_f32_ ? sizeof(FieldPair<float>) : sizeof(FieldPair<double>));
  }
  int field_rows() const {
    return std::min(centres(g_, 1).length(), strip_rows_ + 2 * g_.radius[1]);
  }

  void size_ring() {
    const int reach = 2 * g_.radius[0];
    const int fewest = std::min(depth_, kFewestPlanes + reach);
    const std::int64_t row_bytes = field_bytes() * images_ * extent(g_, 2);
    const std::int64_t rows = kFieldBytes / (row_bytes * fewest) - 2 * g_.radius[1];
    const bool is_whole = centres(g_, 1).length() - 2 * g_.radius[1] <= rows;
    strip_rows_ = is_whole ? extent(g_, 1) : static_cast<int>(std::max<std::int64_t>(1, rows));
    const std::int64_t plane_bytes = row_bytes * field_rows();
    const std::int64_t planes = std::max<std::int64_t>(fewest, kFieldBytes / plane_bytes);
    ring_ = static_cast<int>(std::min<std::int64_t>(depth_, planes));
    slab_planes_ = ring_ == depth_ ? depth_ : ring_ - reach;
    volumes_ = ring_ < depth_ || strip_rows_ < extent(g_, 1)
                   ? 1
                   : static_cast<int>(std::clamp<std::int64_t>(
                         kFieldBytes / (plane_bytes * ring_), 1, g_.planes));
  }

  static int slots_of(const Tiles& tiles) { return tiles.across * tiles.down * tiles.chunks; }

  template <class Windows, class Gradient>
  void visit_strip(const Range& rows, std::int64_t volume, int volumes, int& slot,
      const Windows& windows, const Gradient& gradient) const {
    const Range all_rows = centres(g_, 1), all_planes = centres(g_, 0);
    const bool is_whole = rows.length() == extent(g_, 1);
    const Range field_rows = is_whole ? all_rows : around(rows, g_.radius[1], all_rows);
    Fields fields = {.pairs = nullptr,
        .rests = nullptr,
        .images = images_,
        .slots = std::max(1, ring_),
        .columns = extent(g_, 2),
        .row_first = field_rows.first,
        .rows = field_rows.length()};
    int done = 0;  // planes of the gradient
    for (int plane = all_planes.first; plane < all_planes.last || done < extent(g_, 0);) {
      const Range slab = {plane, std::min(plane + slab_planes_, all_planes.last)};
      if (field_rows.length() > 0 && slab.length() > 0) {
        WindowMarch march = {.measure = plan_.measure,
            .tiles = window_tiles(field_rows.length(), slab.length(), volumes_),
            .fields = fields,
            .planes = slab,
            .rows = field_rows,
            .owned_rows = rows,
            .scale = 1 / plan_.pass.taps,
            .partials = plan_.partials,
            .slots = plan_.slots,
            .first_slot = slot};
        march.tiles.first_volume = volume;
        march.tiles.volumes = volumes;  // the last volumes are cut as all others
        windows(march);
        slot += slots_of(march.tiles);
      }
      plane = slab.last;
      if (images_ == 0) break;
      // Every pixel whose windows are all there.
      const int ready = plane == all_planes.last ? extent(g_, 0) : plane - g_.radius[0];
      if (ready > done) {
        GradientMarch march = {.measure = plan_.measure,
            .tiles = gradient_tiles(rows.length(), ready - done, volumes_),
            .fields = fields,
            .planes = {done, ready},
            .rows = rows};
        march.tiles.volumes = volumes * images_;
        march.tiles.first_volume = volume;
        gradient(march);
        done = ready;
      }
    }
  }

  double begin() const { return 0.5 * (g_.radius[0] + 1); }
  Tiles window_tiles(int rows, int planes, int volumes) const {
    return window_memory_.find({rows, planes, volumes}, [&] {
      return best_tiles({centres(g_, 2).length(), 2 * g_.radius[2], rows, planes, volumes, begin()},
          window_room_, window_bytes);
    });
  }
  Tiles gradient_tiles(int rows, int planes, int volumes) const {
    return gradient_memory_.find({rows, planes, volumes}, [&] {
      Tiles tiles = best_tiles(
          {rows, 2 * g_.radius[1], extent(g_, 2), planes, volumes * std::max(1, images_), begin()},
          gradient_room_, gradient_bytes);
      std::swap(tiles.across, tiles.down);
      return tiles;
    });
  }

  const CudaPlan& plan_;
  const Geometry& g_;
  const bool is_f32_;
  const int images_, depth_;
  int strip_rows_ = 1, slab_planes_ = 1, ring_ = 0, volumes_ = 1;
  Room window_room_, gradient_room_;
  mutable Memory window_memory_, gradient_memory_;
};

}  // namespace

bool can_march(const CudaPlan& plan) {
  if (!plan.pass.is_box || !plan.pass.valid_mask.empty()) return false;
  for (const std::int64_t length : plan.measure.geometry.extent) {
    if (length > (1 << 30)) return false;
  }
  return Schedule(plan).fits();
}

int march_slots(const CudaPlan& plan) { return Schedule(plan).slots(); }

void run_march(const CudaPlan& plan) { Schedule(plan).run(); }

}  // namespace similis::lncc_internal
