// SPDX-License-Identifier: Apache-2.0
// LNCC on the GPU, the fast path: which passes it takes, by which of its two pairs of kernels, and
// their launches. Both pairs leave derivatives of windows in memory, whose window sums are the
// gradient.
//   sliding window (sliding_window_*.cu,   boxes of any width; cost is nearly the same for all
//                   valid_windows.cu)
//   filters (filter_*.cu)                  Gaussian windows, and valid_mask where the sliding
//                                          window does not take it; up to 11 taps
#include "src/lncc/cuda/fast_path.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/lncc/cuda/filter_chunks.h"
#include "src/lncc/cuda/parts.h"
#include "src/lncc/cuda/tiles.h"

namespace similis::lncc_internal {
namespace {

bool is_half(const Pass& pass) { return pass.x.dtype == DType::f16 || pass.x.dtype == DType::bf16; }

// Returns whether 32 bits can index the elements of a plane.
bool has_short_planes(const TensorView& view) {
  return view.empty() ||
         std::abs(view.strides[3]) * view.shape[3] + std::abs(view.strides[4]) * view.shape[4] <
             (std::int64_t{1} << 31);
}

// Returns whether pixels are f32 or half, and 32 bits can index those of a plane.
bool has_short_pixels(const Pass& pass) {
  return (pass.x.dtype == DType::f32 || is_half(pass)) && has_short_planes(pass.x) &&
         has_short_planes(pass.y) && has_short_planes(pass.x_gradient) &&
         has_short_planes(pass.y_gradient);
}

// Returns whether the filters' kernels take the pass: their offsets in a plane have 32 bits.
bool takes_filter(const Pass& pass, int taps) {
  return taps <= kMostTaps && has_short_planes(pass.x) && has_short_planes(pass.y) &&
         has_short_planes(pass.valid_mask);
}

// Returns whether the formula may be f32: a smaller bound of variances leaves its range, and values
// must not pass 1 but by rounding.
bool takes_f32_formula(const Pass& pass) {
  constexpr double kLeastBound = 1e-15;
  return pass.constants.dr >= kLeastBound &&
         (pass.is_signed || pass.constants.nr <= pass.constants.dr);
}

// Returns whether rows of an array begin and end at multiples of `together` elements, which are 16
// bytes.
bool has_whole_rows(const TensorView& view, int together) {
  bool is_aligned = reinterpret_cast<std::uintptr_t>(view.data()) % 16 == 0 &&
                    view.strides[4] == 1 && view.shape[4] % together == 0;
  for (int axis = 0; axis < 4; ++axis) {
    is_aligned &= view.shape[axis] == 1 || view.strides[axis] % together == 0;
  }
  return is_aligned;
}

// Returns whether those of both images do.
bool has_whole_copies(const Pass& pass, Form form) {
  const int together = pixels_together(form == Form::half);
  return (form == Form::f32 || form == Form::half || form == Form::valid) &&
         has_whole_rows(pass.x, together) && has_whole_rows(pass.y, together);
}

// Returns the kind of the centres, which is weighted under valid_mask.
Kind kind_under(const Pass& pass, Form form) {
  return form == Form::valid ? Kind::weighted : kind_of(pass, form);
}

// Returns whether rows of valid_mask do.
bool has_whole_weights(const Pass& pass) {
  return has_whole_rows(pass.valid_mask, pass.valid_mask.dtype == DType::f32 ? 4 : 16);
}

// Returns whether runs of centres begin at multiples of 16 bytes, and have whole vectors, in what
// the windows' kernel loads and stores besides.
bool has_whole_runs(const Pass& pass, Form form, const Geometry& g) {
  const Kind kind = kind_under(pass, form);
  constexpr int kTogether = pixels_together(false);
  if (!takes_whole_runs(kind) || g.first_centre[2] % kTogether != 0 ||
      g.centres(2) % kTogether != 0) {
    return false;
  }
  if (form == Form::valid) return has_whole_weights(pass);
  if (kind == Kind::weighted) return !pass.mask.empty() && has_whole_rows(pass.mask, kTogether);
  return has_whole_rows(pass.x, kTogether) && has_whole_rows(pass.y, kTogether) &&
         has_whole_rows(pass.x_gradient, kTogether);
}

int images_of(const Pass& pass) {
  if (!pass.has_gradient() || pass.gradient == LnccGradient::ants) return 0;
  return (pass.x_gradient.empty() ? 0 : 1) + (pass.y_gradient.empty() ? 0 : 1);
}

// Returns the filters' taps, 0 beyond the window.
FilterTaps taps_of(const Pass& pass) {
  FilterTaps taps;
  const std::vector<double>* const along[3] = {&pass.window.z, &pass.window.y, &pass.window.x};
  for (int axis = 0; axis < 3; ++axis) {
    taps.count[axis] = static_cast<int>(along[axis]->size());
    if (taps.count[axis] <= kMostTaps)
      std::copy(along[axis]->begin(), along[axis]->end(), taps.along[axis]);
  }
  return taps;
}

// Returns whether the sliding window takes a pass with valid_mask: f32 images under weights of f32
// or u8, reduced to a number, with an exact gradient if any. Filters are faster where images are
// small or so narrow that most of a tile would be empty.
bool slides_under_valid_mask(const CudaPlan& plan, int taps) {
  const Pass& pass = plan.pass;
  const bool has_mask = !pass.valid_mask.empty() && has_short_planes(pass.valid_mask) &&
                        (pass.valid_mask.dtype == DType::f32 || pass.valid_mask.dtype == DType::u8);
  const bool is_plain = pass.is_box && pass.mask.empty() && !pass.is_signed &&
                        pass.reduction != Reduction::none &&
                        (!pass.has_gradient() || pass.gradient == LnccGradient::exact);
  if (!has_mask || !is_plain || pass.x.dtype != DType::f32 || !has_short_pixels(pass) ||
      !takes_f32_formula(pass)) {
    return false;
  }
  const Geometry& g = plan.problem.geometry;
  constexpr std::int64_t kLeastPixels = 100'000, kLeastOfVolume = 1 << 15;
  constexpr std::int64_t kLeastColumns = 32, kLeastRows = 16;
  const bool is_large = g.planes * g.map_elements() >= kLeastPixels &&
                        g.map_elements() >= kLeastOfVolume && g.centres(2) >= kLeastColumns &&
                        g.centres(1) >= kLeastRows;
  return is_large || !takes_filter(pass, taps);
}

Form form_of(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const int* const radius = plan.problem.geometry.radius;
  const int widest = std::max({radius[0], radius[1], radius[2]});
  if (slides_under_valid_mask(plan, 2 * widest + 1)) return Form::valid;
  const bool can_slide = pass.is_box && pass.valid_mask.empty();
  if (!can_slide) return takes_filter(pass, 2 * widest + 1) ? Form::filter : Form::none;
  if (!has_short_pixels(pass) || !takes_f32_formula(pass)) return Form::f64;
  return is_half(pass) ? Form::half : Form::f32;
}

std::int64_t derivative_bytes(const CudaPlan& plan, Form form) {
  const bool is_short = form == Form::f32 || form == Form::half || form == Form::valid ||
                        (form == Form::filter && plan.pass.x.dtype != DType::f64);
  return is_short ? sizeof(CentreDerivatives<float>) : sizeof(CentreDerivatives<double>);
}

}  // namespace

// The parts of a pass, and their launches.
class FastPath {
 public:
  explicit FastPath(const CudaPlan& plan)
      : plan_(plan),
        g_(plan.problem.geometry),
        form_(form_of(plan)),
        images_(images_of(plan.pass)),
        all_(Division::all_pixels(g_)) {
    set_rooms();
    if (!is_taken()) return;
    // A stage does not pay for tiles that see little beside what their neighbours see.
    if (form_ != Form::filter && (window_tiles(all_, 1).threads_across <= 3 * g_.radius[2] ||
                                     gradient_tiles(all_, 1).threads_across <= 3 * g_.radius[1])) {
      form_ = form_ != Form::valid                ? Form::far
              : takes_filter(plan.pass, widest()) ? Form::filter
                                                  : Form::none;
      set_rooms();
    }
    if (!fits()) return;
    const ChunkGrid cuts(all_.planes, gradient_tiles(all_, 1).chunk_planes, slabs());
    division_.emplace(plan, images_, derivative_bytes(plan, form_), cuts);
    if (images_ == 0) {
      constexpr int kVolumes = 1 << 12;
      for (std::int64_t volume = 0; volume < g_.planes; volume += kVolumes) {
        const auto volumes = std::min<std::int64_t>(kVolumes, g_.planes - volume);
        Part part{all_, volume, static_cast<int>(volumes), {}};
        part.derivatives.kept = division_->all_centres();
        add({part}, part);
      }
      return;
    }
    const std::vector<Part> parts = division_->small_parts();
    for (auto first = parts.begin(), last = first; first != parts.end(); first = last) {
      int volumes = 0;
      for (; last != parts.end(); ++last) {
        if (division_->is_whole(*first) != division_->is_whole(*last)) break;
        if (last == first || last->volume != last[-1].volume) volumes += last->volumes;
      }
      add({first, last}, division_->whole(first->volume, volumes));
    }
  }

  bool is_taken() const {
    if (form_ == Form::none) return false;
    return std::all_of(g_.extent, g_.extent + 3,
        [](std::int64_t length) { return length <= (std::int64_t{1} << 30); });
  }
  bool fits() const {
    if (!is_taken()) return false;
    const std::int64_t plane = g_.extent[1] * g_.extent[2];
    if (images_ > 0 && plane >= std::int64_t{1} << 31) return false;
    return window_tiles(all_, 1).threads_across != 0 && gradient_tiles(all_, 1).threads_across != 0;
  }
  int slots() const { return slots_; }
  // The filters' gradients have no register to spare for it: under 9 taps they took 17 % longer.
  bool writes_values() const { return images_ > 0 && form_ != Form::filter; }

  void run() const {
    std::int64_t bytes = 0;
    for (const Part& part : parts_) bytes = std::max(bytes, division_->workspace_bytes(part));
    std::shared_ptr<void> memory;
    if (bytes > 0) {
      memory = allocate_bytes(static_cast<std::size_t>(bytes), plan_.device, plan_.exec);
    }
    if (plan_.partials != nullptr && parts_.size() > 1) {  // parts have different numbers of sums
      const auto count =
          static_cast<std::size_t>(g_.planes) * static_cast<std::size_t>(plan_.slots);
      gpu::clear("lncc", plan_.exec.queue.handle, plan_.partials, count * sizeof(double));
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Part part = parts_[i];
      if (images_ > 0) division_->place_in(memory.get(), part);
      launch(part, i + 1 == parts_.size());
    }
    if (images_ == 0) clear_rim(plan_);
  }

 private:
  void set_rooms() {
    const gpu::Limits& limits = gpu::limits(plan_.device);
    const bool filters = form_ == Form::filter;
    const int taps = widest();
    window_room_ = {limits.multiprocessors,
        filters                ? filter_window_threads(taps) * filter_window_blocks(taps)
        : form_ == Form::valid ? valid_threads()
                               : kWindowThreads,
        limits.shared_bytes_a_block};
    gradient_room_ = {limits.multiprocessors,
        filters ? kFilterGradientThreads * filter_gradient_blocks(taps) : kGradientThreads,
        limits.shared_bytes_a_block};
  }

  // Adds either the parts that some volumes have without a workspace, or all as one. Both have the
  // tiles across and the chunks of planes that suit the whole; those of volumes that are cut suit
  // one volume.
  void add(const std::vector<Part>& parts, const Part& whole) {
    const bool is_cut = images_ > 0 && !division_->is_whole(parts.front());
    // True if chunks need not be another form's to have its bits; filters have one order.
    const bool is_free = form_ == Form::filter || (is_cut && !division_->could_be_whole());
    const int volumes = is_cut ? 1 : whole.volumes;
    const Tiles tiles = window_tiles(whole.derivatives.kept, volumes);
    const ChunkGrid of_windows(whole.derivatives.kept.planes, tiles.chunk_planes,
        is_cut && Division::has_shorter_chunks(g_) ? ChunkGrid::Taper{.divisor = 2}
                                                   : ChunkGrid::Taper());
    const ChunkGrid of_gradient(all_.planes, gradient_tiles(all_, volumes).chunk_planes,
        is_cut ? slabs() : ChunkGrid::Taper());
    const bool takes_whole = images_ > 0 && division_->has_room_for_all() &&
                             (!is_cut || is_free || division_->keep_bits(parts));
    for (Part part : takes_whole ? std::vector<Part>{whole} : parts) {
      part.first_slot = !parts_.empty() && parts_.back().volume == part.volume
                            ? parts_.back().first_slot + parts_.back().slots()
                            : 0;
      const Box& kept = part.derivatives.kept;
      if (kept.planes.length() > 0 && kept.rows.length() > 0 && kept.columns.length() > 0) {
        part.centres = kept;
        if (form_ != Form::filter) {  // begin with a run of outputs
          const auto first = static_cast<int>(g_.first_centre[1]);
          part.centres.rows.first -= (kept.rows.first - first) % kOutputs;
        }
        part.window_tiles =
            window_tiles(part.centres, part.volumes, is_free ? 0 : tiles.threads_across);
        part.window_tiles.chunks = is_free
                                       ? free_chunks(part.window_tiles, kept.planes, window_room_)
                                       : of_windows.within(kept.planes, form_ == Form::filter);
      }
      if (images_ > 0) {
        part.gradient_tiles = gradient_tiles(part.pixels, part.volumes);
        const Range& planes = part.pixels.planes;
        part.gradient_tiles.chunks = is_free
                                         ? free_chunks(part.gradient_tiles, planes, gradient_room_)
                                         : of_gradient.within(planes, true);
      }
      slots_ = std::max(slots_, part.first_slot + part.slots());
      parts_.push_back(part);
    }
  }

  // Returns the chunks of planes whose bits need not be those of another form.
  Chunks free_chunks(const Tiles& tiles, const Range& planes, const Room& room) const {
    if (form_ == Form::filter) {
      const int places = room.threads / tiles.threads() * room.multiprocessors;
      return filter_chunks(tiles, planes, 2 * g_.radius[0], places);
    }
    return ChunkGrid(planes, tiles.chunk_planes, {}).within(planes, true);
  }

  void launch(const Part& part, bool is_last) const {
    if (part.slots() > 0) {
      WindowArguments arguments = {.problem = plan_.problem,
          .tiles = part.window_tiles,
          .derivatives = part.derivatives,
          .centres = part.centres,
          .owned = division_->owned(part),
          .scale = plan_.pass.is_box ? 1 / plan_.pass.taps : 1,
          .partials = plan_.partials,
          .slots = plan_.slots,
          .first_slot = part.first_slot,
          .has_f32_formula = plan_.pass.x.dtype != DType::f64 && takes_f32_formula(plan_.pass),
          .has_f64_derivatives = plan_.pass.x.dtype == DType::f64,
          .has_whole_copies = has_whole_copies(plan_.pass, form_),
          .has_whole_runs = has_whole_runs(plan_.pass, form_, g_) &&
                            part.centres.columns.first %
                                    (form_ == Form::valid ? kOutputs : pixels_together(false)) ==
                                0,
          .has_whole_weights = form_ == Form::valid && has_whole_weights(plan_.pass)};
      arguments.tiles.first_volume = part.volume;
      if (form_ == Form::filter) {
        launch_filter_windows(plan_, arguments, taps_of(plan_.pass));
      } else if (form_ == Form::valid) {
        launch_valid_windows(plan_, arguments);
      } else {
        launch_windows(plan_, arguments, form_);
      }
    }
    if (images_ == 0) return;
    GradientArguments arguments = {.problem = plan_.problem,
        .tiles = part.gradient_tiles,
        .derivatives = part.derivatives,
        .pixels = part.pixels,
        .values = is_last && writes_values() ? plan_.values : Values()};
    arguments.tiles.first_volume = part.volume;
    if (form_ == Form::filter) {
      launch_filter_gradient(plan_, arguments, taps_of(plan_.pass));
    } else if (form_ == Form::valid) {
      launch_valid_gradient(plan_, arguments);
    } else {
      launch_gradient(plan_, arguments, form_);
    }
  }

  // Returns the number of taps of the window's longest axis.
  int widest() const { return 2 * std::max({g_.radius[0], g_.radius[1], g_.radius[2]}) + 1; }
  // The derivatives of a slab take four times the room of its gradient, and so do those of the
  // windows beside it.
  ChunkGrid::Taper slabs() const {
    if (!Division::has_shorter_chunks(g_)) return {};
    return {.divisor = 5, .margin = 8 * g_.radius[0] + 1};
  }
  // On an H200 volumes with planes of 1000² took less by the former costs, and those with planes of
  // 900² by the new ones.
  static bool is_wide(const Box& box) {
    constexpr std::int64_t kWidePixels = 900'000;
    return box.planes.length() > 1 &&
           std::int64_t{box.rows.length()} * box.columns.length() > kWidePixels;
  }
  double begin() const { return 1 + 0.6 * (g_.radius[0] + 1); }
  std::array<int, 3> radius() const { return {g_.radius[0], g_.radius[1], g_.radius[2]}; }
  Tiles window_tiles(const Box& box, int volumes, int threads_across = 0) const {
    if (form_ == Form::filter) {
      return filter_tiles(
          box, volumes, g_.radius[0], filter_window_threads(widest()), window_room_);
    }
    const Work work = {.across = box.columns.length(),
        .halo = 2 * g_.radius[2],
        .along = box.rows.length(),
        .planes = box.planes.length(),
        .volumes = volumes,
        .lines = 0.2 * std::max(0, g_.radius[1] - (is_wide(box) ? 0 : 3)),  // most arrive in time
        .has_whole_runs = takes_whole_runs(kind_under(plan_.pass, form_)),
        .threads_across = threads_across,
        .begin = begin(),
        .is_wide = is_wide(box)};
    return remembered_tiles({work, window_room_, radius(), form_, false}, [&](const Tiles& tiles) {
      return form_ == Form::valid ? valid_window_bytes(tiles, g_.radius)
                                  : window_bytes(tiles, g_.radius, form_);
    });
  }
  Tiles gradient_tiles(const Box& box, int volumes) const {
    const int both = volumes * std::max(1, images_);
    if (form_ == Form::filter) {
      return filter_tiles(box, both, g_.radius[0], kFilterGradientThreads, gradient_room_);
    }
    const Work work = {.across = box.rows.length(),
        .halo = 2 * g_.radius[1],
        .along = box.columns.length(),
        .planes = box.planes.length(),
        .volumes = both,
        .lines = 2.0 * g_.radius[2],
        .has_whole_runs = true,
        .threads_across = 0,
        .begin = begin(),
        .is_wide = is_wide(box)};
    Tiles tiles = remembered_tiles({work, gradient_room_, radius(), form_, true},
        [&](const Tiles& t) { return gradient_bytes(t, g_.radius, form_); });
    std::swap(tiles.count_x, tiles.count_y);
    return tiles;
  }

  const CudaPlan& plan_;
  const Geometry& g_;
  Form form_;
  const int images_;
  const Box all_;  // pixels
  std::optional<Division> division_;
  Room window_room_, gradient_room_;
  std::vector<Part> parts_;
  int slots_ = 0;
};

std::shared_ptr<const FastPath> find_fast_path(const CudaPlan& plan) {
  auto fast_path = std::make_shared<const FastPath>(plan);
  return fast_path->fits() ? fast_path : nullptr;
}

int fast_path_slots(const FastPath& fast_path) { return fast_path.slots(); }

bool fast_path_writes_values(const FastPath& fast_path) { return fast_path.writes_values(); }

void run_fast_path(const FastPath& fast_path) { fast_path.run(); }

}  // namespace similis::lncc_internal
