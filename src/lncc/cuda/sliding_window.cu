// SPDX-License-Identifier: Apache-2.0
// LNCC on the GPU under boxes: which passes the sliding window kernels take, and the division of
// their work. They take one part of the image at a time: its windows, which leave derivatives, then
// its gradient. If the gradient is a dense f32 or f64 array, derivatives are stored in the tail of
// the gradient that is not written yet: those of several images while there are many, then of slabs
// of planes, then of strips of rows, each smaller than the last; the remainder goes through a small
// workspace. Other gradients go through a larger one. Windows between two parts are computed twice.
#include "src/lncc/cuda/sliding_window.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/lncc/cuda/sliding_window_tiles.h"

namespace similis::lncc_internal {
namespace {

// The workspace has kWorkspaceBytes if images are small or the gradient holds no derivatives.
// Otherwise it has a byte for kElementsAByte elements under windows of 7 × 7 or less, and more for
// larger windows.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{64} << 20;
constexpr std::int64_t kSmallElements = std::int64_t{1} << 23;
constexpr double kElementsAByte = 12;
constexpr int kFewest = 8;  // planes of a slab or rows of a strip: fewer would not fill the GPU

Range centres(const Geometry& g, int axis) {
  return {static_cast<int>(g.first_centre[axis]), static_cast<int>(g.last_centre[axis])};
}
int extent(const Geometry& g, int axis) { return static_cast<int>(g.extent[axis]); }
Range around(const Range& range, int radius, const Range& bounds) {
  const int first = std::max(bounds.first, range.first - radius);
  return {first, std::max(first, std::min(bounds.last, range.last + radius))};
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

// Returns whether rows of both images begin at multiples of 16 bytes and have whole quads.
bool has_quads(const Pass& pass) {
  const auto has = [](const TensorView& view) {
    bool is_aligned = reinterpret_cast<std::uintptr_t>(view.data()) % 16 == 0 &&
                      view.strides[4] == 1 && view.shape[4] % kQuad == 0;
    for (int axis = 0; axis < 4; ++axis) {
      is_aligned &= view.shape[axis] == 1 || view.strides[axis] % kQuad == 0;
    }
    return is_aligned;
  };
  return pass.x.dtype == DType::f32 && has(pass.x) && has(pass.y);
}

int images_of(const Pass& pass) {
  if (!pass.has_gradient() || pass.gradient == LnccGradient::ants) return 0;
  return (pass.x_gradient.empty() ? 0 : 1) + (pass.y_gradient.empty() ? 0 : 1);
}

// A box of pixels of some volumes whose gradient is made at once, and the place of its derivatives.
using Axis = Range Box::*;
struct Part {
  Box pixels;
  std::int64_t volume;
  int volumes;
  DerivativeMaps derivatives;  // `data` and `early` are null for the workspace
  Tiles window_tiles = {}, gradient_tiles = {};
  int first_slot = 0;  // the part's first among the partial sums of a volume

  int slots() const { return window_tiles.count_x * window_tiles.count_y * window_tiles.chunks; }
};

}  // namespace

// The division of a pass into parts, and their launches.
class SlidingWindow {
 public:
  explicit SlidingWindow(const CudaPlan& plan)
      : plan_(plan),
        g_(plan.problem.geometry),
        images_(images_of(plan.pass)),
        all_{{0, extent(g_, 0)}, {0, extent(g_, 1)}, {0, extent(g_, 2)}} {
    const gpu::Limits& limits = gpu::limits(plan.device);
    window_room_ = {limits.multiprocessors, kWindowThreads, limits.shared_bytes_a_block};
    gradient_room_ = {limits.multiprocessors, kGradientThreads, limits.shared_bytes_a_block};
    gradients_[0] = &plan.pass.x_gradient;
    gradients_[1] = &plan.pass.y_gradient;
    if (!is_f32(plan.pass)) form_ = Form::f64;
    // A stage does not pay for tiles that see little beside what their neighbours see.
    if (window_tiles(all_, 1).threads_across <= 3 * g_.radius[2] ||
        gradient_tiles(all_, 1).threads_across <= 3 * g_.radius[1]) {
      form_ = Form::far;
    }
    if (!fits()) return;
    visit([&](Part part) {
      const int first = !parts_.empty() && parts_.back().volume == part.volume
                            ? parts_.back().first_slot + parts_.back().slots()
                            : 0;
      part.first_slot = first;
      if (count(part.derivatives.kept) > 0) {
        part.window_tiles = window_tiles(part.derivatives.kept, part.volumes);
      }
      if (images_ > 0) part.gradient_tiles = gradient_tiles(part.pixels, part.volumes);
      slots_ = std::max(slots_, first + part.slots());
      parts_.push_back(part);
    });
  }

  bool fits() const {
    const std::int64_t plane = std::int64_t{extent(g_, 1)} * extent(g_, 2);
    if (images_ > 0 && plane >= std::int64_t{1} << 31) return false;
    return window_tiles(all_, 1).threads_across != 0 && gradient_tiles(all_, 1).threads_across != 0;
  }
  int slots() const { return slots_; }

  void run() const {
    std::int64_t bytes = 0;
    for (const Part& part : parts_) bytes = std::max(bytes, workspace_bytes(part));
    std::shared_ptr<void> memory;
    if (bytes > 0) {
      memory = allocate_bytes(static_cast<std::size_t>(bytes), plan_.device, plan_.exec);
    }
    if (plan_.partials != nullptr && parts_.size() > 1) {  // parts have different numbers of sums
      const auto count =
          static_cast<std::size_t>(g_.planes) * static_cast<std::size_t>(plan_.slots);
      gpu::clear("lncc", plan_.exec.queue.handle, plan_.partials, count * sizeof(double));
    }
    for (Part part : parts_) {
      place_in(memory.get(), part);
      launch(part);
    }
    if (images_ == 0) clear_rim(plan_);
  }

 private:
  // Returns the centres of the windows that see a box of pixels.
  Box centres_around(const Box& pixels) const {
    return {around(pixels.planes, g_.radius[0], centres(g_, 0)),
        around(pixels.rows, g_.radius[1], centres(g_, 1)),
        around(pixels.columns, g_.radius[2], centres(g_, 2))};
  }
  static std::int64_t count(const Box& box) {
    return std::int64_t{box.planes.length()} * box.rows.length() * box.columns.length();
  }
  std::int64_t derivative_bytes() const {
    return form_ == Form::f32 ? sizeof(CentreDerivatives<float>)
                              : sizeof(CentreDerivatives<double>);
  }
  // Return the bytes of a plane of derivatives, and of the derivatives of a box of pixels, for the
  // gradient to one image.
  std::int64_t derivative_plane_bytes(const Box& centres) const {
    const std::int64_t bytes =
        std::int64_t{centres.rows.length()} * centres.columns.length() * derivative_bytes();
    return pieces(bytes, DerivativeMaps::kAlignment) * DerivativeMaps::kAlignment;
  }
  std::int64_t bytes_of(const Box& pixels) const {
    const Box centres = centres_around(pixels);
    return centres.planes.length() * derivative_plane_bytes(centres);
  }
  std::int64_t element_bytes() const { return form_ == Form::f32 ? sizeof(float) : sizeof(double); }

  // Returns whether the gradients can hold derivatives.
  bool has_dense_gradients() const {
    for (int image = 0; image < images_; ++image) {
      const TensorView& view = *gradients_[image];
      if (view.dtype != DType::f64 && form_ != Form::f32) return false;
      std::int64_t stride = 1;
      for (int axis = 4; axis >= 0; --axis) {
        if (view.shape[axis] > 1 && view.strides[axis] != stride) return false;
        stride *= view.shape[axis];
      }
    }
    return true;
  }

  // Returns the bytes of the workspace. Between small images and large ones it shrinks with the
  // square of their size.
  std::int64_t workspace_limit(bool is_dense) const {
    const auto elements = static_cast<double>(g_.planes * count(all_));
    if (!is_dense || elements <= kSmallElements) return kWorkspaceBytes;
    const double taps = (2.0 * g_.radius[1] + 1) * (2.0 * g_.radius[2] + 1);
    const double width = std::max(1.0, taps / 49);
    const double small = kSmallElements / elements;
    const double bytes = std::max(small * small * kWorkspaceBytes,
        std::min<double>(elements / kElementsAByte * width * width, kWorkspaceBytes));
    return static_cast<std::int64_t>(std::max(bytes, elements / kElementsAByte));
  }

  // Calls emit(part) for each part, in order.
  template <class Emit> void visit(const Emit& emit) const {
    if (images_ == 0) {
      constexpr int kVolumes = 1 << 12;
      for (std::int64_t volume = 0; volume < g_.planes; volume += kVolumes) {
        emit(Part{.pixels = all_,
            .volume = volume,
            .volumes = static_cast<int>(std::min<std::int64_t>(kVolumes, g_.planes - volume)),
            .derivatives = {.kept = centres_around(all_)}});
      }
      return;
    }
    const bool is_dense = has_dense_gradients();
    const std::int64_t limit = workspace_limit(is_dense);
    for (std::int64_t volume = 0; volume < g_.planes;) {
      const std::int64_t volumes = std::max(is_dense ? volumes_in_gradient(volume) : 0,
          std::min(
              g_.planes - volume, limit / std::max<std::int64_t>(1, images_ * bytes_of(all_))));
      if (volumes > 0) {
        const bool is_small = volumes * images_ * bytes_of(all_) <= limit;
        emit(is_small ? in_workspace(all_, volume, static_cast<int>(volumes))
                      : at_the_end(all_, volume, static_cast<int>(volumes)));
        volume += volumes;
        continue;
      }
      Box rest = all_;
      if (is_dense) {
        visit_slabs(rest, volume, emit);
        visit_strips(rest, volume, limit, emit);
      }
      visit_workspace(rest, volume, limit, emit);
      ++volume;
    }
  }

  // Returns the bytes of a gradient from a plane of a volume on.
  std::int64_t bytes_from(std::int64_t volume, int plane) const {
    return ((g_.planes - volume) * all_.planes.last - plane) * plane_bytes();
  }
  std::int64_t plane_bytes() const {
    return std::int64_t{extent(g_, 1)} * extent(g_, 2) * element_bytes();
  }

  // Returns the number of volumes, from this one on, whose derivatives have room behind their
  // gradients.
  std::int64_t volumes_in_gradient(std::int64_t volume) const {
    const std::int64_t each = bytes_of(all_) + all_.planes.last * plane_bytes();
    return std::max<std::int64_t>(0, (bytes_from(volume, 0) - DerivativeMaps::kAlignment) / each);
  }

  // Emits slabs of planes whose derivatives fit at the end of the gradient, and removes them from
  // `rest`.
  template <class Emit> void visit_slabs(Box& rest, std::int64_t volume, const Emit& emit) const {
    while (rest.planes.length() > 0) {
      Box slab = rest;
      const auto has_room = [&](int planes) {
        slab.planes.last = rest.planes.first + planes;
        return bytes_of(slab) + DerivativeMaps::kAlignment <= bytes_from(volume, slab.planes.last);
      };
      const int planes = most(rest.planes.length(), has_room);
      if (planes < std::min(kFewest, rest.planes.length())) return;
      slab.planes.last = rest.planes.first + planes;
      emit(at_the_end(slab, volume, 1));
      rest.planes.first = slab.planes.last;
    }
  }

  // Emits strips of rows whose derivatives fit at the end of each plane of the gradient, but for
  // the derivatives of earlier planes.
  template <class Emit>
  void visit_strips(Box& rest, std::int64_t volume, std::int64_t limit, const Emit& emit) const {
    const std::int64_t row_bytes = std::int64_t{extent(g_, 2)} * element_bytes();
    while (count(rest) > 0 && images_ * bytes_of(rest) > limit) {
      Box strip = rest;
      const auto part = [&](int rows) {
        strip.rows.last = rest.rows.first + rows;
        return in_planes(strip, volume);
      };
      const auto has_room = [&](int rows) {
        const DerivativeMaps derivatives = part(rows).derivatives;
        return derivative_plane_bytes(derivatives.kept) + DerivativeMaps::kAlignment <=
                   (rest.rows.last - strip.rows.last) * row_bytes &&
               early_bytes(derivatives) * images_ <= limit;
      };
      const int rows = most(rest.rows.length(), has_room);
      if (rows < kFewest) return;
      emit(part(rows));
      rest.rows.first = strip.rows.last;
    }
  }

  // Emits pieces whose derivatives fit into the workspace, or that are as small as pieces become.
  template <class Emit>
  void visit_workspace(
      const Box& rest, std::int64_t volume, std::int64_t limit, const Emit& emit) const {
    if (count(rest) == 0) return;
    const auto fits = [&](const Box& box) { return images_ * bytes_of(box) <= limit; };
    if (fits(rest)) {
      emit(in_workspace(rest, volume, 1));
      return;
    }
    // Cut along the first axis where fewer than half of the windows are computed twice, else along
    // the last.
    for (const Axis axis : {&Box::planes, &Box::rows, &Box::columns}) {
      const int index = axis == &Box::planes ? 0 : axis == &Box::rows ? 1 : 2;
      Box piece = rest;
      const Range whole = rest.*axis;
      const auto has_room = [&](int length) {
        (piece.*axis).last = whole.first + length;
        return fits(piece);
      };
      const int room = most(whole.length(), has_room);
      const int fewest = std::min(whole.length(), std::max(kFewest, 2 * g_.radius[index]));
      if (room < fewest && index < 2) continue;
      const int length = std::max(room, fewest);
      for (int first = whole.first; first < whole.last; first += length) {
        piece.*axis = {first, std::min(first + length, whole.last)};
        if (room >= fewest) {
          emit(in_workspace(piece, volume, 1));
        } else {
          visit_halves(piece, volume, limit, emit);
        }
      }
      return;
    }
  }
  // Emits the parts of a piece that no cut along columns makes small enough.
  template <class Emit>
  void visit_halves(
      const Box& piece, std::int64_t volume, std::int64_t limit, const Emit& emit) const {
    const Axis axis = piece.planes.length() >= piece.rows.length() ? &Box::planes : &Box::rows;
    const int length = (piece.*axis).length();
    if (images_ * bytes_of(piece) <= limit || length <= kFewest) {
      emit(in_workspace(piece, volume, 1));
      return;
    }
    Box half = piece;
    (half.*axis).last = (piece.*axis).first + length / 2;
    visit_halves(half, volume, limit, emit);
    half.*axis = {(half.*axis).last, (piece.*axis).last};
    visit_halves(half, volume, limit, emit);
  }

  // Returns the largest number up to `limit` that `holds`; all smaller numbers do.
  template <class Holds> static int most(int limit, const Holds& holds) {
    int least = 0;
    while (least < limit) {
      const int middle = least + (limit - least + 1) / 2;
      if (holds(middle)) {
        least = middle;
      } else {
        limit = middle - 1;
      }
    }
    return least;
  }

  // Returns derivatives in one piece of memory.
  DerivativeMaps dense_derivatives(const Box& pixels) const {
    DerivativeMaps derivatives = {.images = images_, .kept = centres_around(pixels)};
    derivatives.first_plane = derivatives.kept.planes.first;
    derivatives.plane_bytes = derivative_plane_bytes(derivatives.kept);
    derivatives.volume_bytes = derivatives.plane_bytes * derivatives.kept.planes.length();
    return derivatives;
  }
  Part in_workspace(const Box& pixels, std::int64_t volume, int volumes) const {
    return {pixels, volume, volumes, dense_derivatives(pixels)};
  }
  Part at_the_end(const Box& pixels, std::int64_t volume, int volumes) const {
    Part part = in_workspace(pixels, volume, volumes);
    const std::int64_t end = g_.planes * all_.planes.last * plane_bytes();
    for (int image = 0; image < images_; ++image) {
      char* const data = static_cast<char*>(gradients_[image]->data());
      part.derivatives.data[image] =
          data + (end - volumes * part.derivatives.volume_bytes - DerivativeMaps::kAlignment);
    }
    return part;
  }
  Part in_planes(const Box& pixels, std::int64_t volume) const {
    Part part = in_workspace(pixels, volume, 1);
    DerivativeMaps& derivatives = part.derivatives;
    derivatives.early_plane_bytes = derivatives.plane_bytes;
    derivatives.plane_bytes = plane_bytes();
    derivatives.first_plane = std::max(derivatives.kept.planes.first, pixels.planes.first);
    const std::int64_t offset =
        (volume * all_.planes.last + derivatives.first_plane + 1) * plane_bytes() -
        derivative_plane_bytes(derivatives.kept) - DerivativeMaps::kAlignment;
    for (int image = 0; image < images_; ++image) {
      derivatives.data[image] = static_cast<char*>(gradients_[image]->data()) + offset;
    }
    return part;
  }

  // Returns the bytes of the part's derivatives that do not lie in the gradient.
  std::int64_t workspace_bytes(const Part& part) const {
    if (part.derivatives.data[0] != nullptr) return early_bytes(part.derivatives) * images_;
    return part.derivatives.volume_bytes * images_ * part.volumes;
  }
  static std::int64_t early_bytes(const DerivativeMaps& derivatives) {
    return (derivatives.first_plane - derivatives.kept.planes.first) *
           derivatives.early_plane_bytes;
  }
  void place_in(void* workspace, Part& part) const {
    DerivativeMaps& derivatives = part.derivatives;
    const bool is_whole = derivatives.data[0] == nullptr;
    for (int image = 0; image < images_; ++image) {
      char* const place =
          static_cast<char*>(workspace) +
          image * (is_whole ? derivatives.volume_bytes * part.volumes : early_bytes(derivatives));
      (is_whole ? derivatives.data : derivatives.early)[image] = place;
    }
  }

  void launch(const Part& part) const {
    const Box& kept = part.derivatives.kept;
    if (count(kept) > 0) {
      WindowArguments arguments = {.problem = plan_.problem,
          .tiles = part.window_tiles,
          .derivatives = part.derivatives,
          .centres = kept,
          .owned = {around(part.pixels.planes, 0, centres(g_, 0)),
              around(part.pixels.rows, 0, centres(g_, 1)),
              around(part.pixels.columns, 0, centres(g_, 2))},
          .scale = 1 / plan_.pass.taps,
          .partials = plan_.partials,
          .slots = plan_.slots,
          .first_slot = part.first_slot,
          .has_quads = has_quads(plan_.pass)};
      arguments.tiles.first_volume = part.volume;
      launch_windows(plan_, arguments, form_);
    }
    if (images_ == 0) return;
    GradientArguments arguments = {.problem = plan_.problem,
        .tiles = part.gradient_tiles,
        .derivatives = part.derivatives,
        .pixels = part.pixels};
    arguments.tiles.first_volume = part.volume;
    launch_gradient(plan_, arguments, form_);
  }

  double begin() const { return 1 + 0.6 * (g_.radius[0] + 1); }
  Tiles window_tiles(const Box& box, int volumes) const {
    return best_tiles({.across = box.columns.length(),
                          .halo = 2 * g_.radius[2],
                          .along = box.rows.length(),
                          .planes = box.planes.length(),
                          .volumes = volumes,
                          .lines = 0.2 * g_.radius[1],  // most arrive in time
                          .begin = begin()},
        window_room_, [&](const Tiles& tiles) { return window_bytes(tiles, g_.radius, form_); });
  }
  Tiles gradient_tiles(const Box& box, int volumes) const {
    Tiles tiles = best_tiles({.across = box.rows.length(),
                                 .halo = 2 * g_.radius[1],
                                 .along = box.columns.length(),
                                 .planes = box.planes.length(),
                                 .volumes = volumes * std::max(1, images_),
                                 .lines = 2.0 * g_.radius[2],
                                 .begin = begin()},
        gradient_room_, [&](const Tiles& t) { return gradient_bytes(t, g_.radius, form_); });
    std::swap(tiles.count_x, tiles.count_y);
    return tiles;
  }

  const CudaPlan& plan_;
  const Geometry& g_;
  Form form_ = Form::f32;
  const int images_;
  const Box all_;  // pixels
  const TensorView* gradients_[2];
  Room window_room_, gradient_room_;
  std::vector<Part> parts_;
  int slots_ = 0;
};

std::shared_ptr<const SlidingWindow> find_sliding_window(const CudaPlan& plan) {
  if (!plan.pass.is_box || !plan.pass.valid_mask.empty()) return nullptr;
  for (const std::int64_t length : plan.problem.geometry.extent) {
    if (length > (1 << 30)) return nullptr;
  }
  auto sliding_window = std::make_shared<const SlidingWindow>(plan);
  return sliding_window->fits() ? sliding_window : nullptr;
}

int sliding_window_slots(const SlidingWindow& sliding_window) { return sliding_window.slots(); }

void run_sliding_window(const SlidingWindow& sliding_window) { sliding_window.run(); }

}  // namespace similis::lncc_internal
