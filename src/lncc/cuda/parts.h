// SPDX-License-Identifier: Apache-2.0
// Divides a pass of the fast path. It takes one part of the image at a time: its windows, which
// leave derivatives, then its gradient. With a workspace for all derivatives, the image is one
// part. Otherwise, if the gradient is a dense f32 or f64 array, derivatives are stored in the tail
// of the gradient that is not written yet: those of several images while there are many, then of
// slabs of planes, then of strips of rows, each smaller than the last; the remainder goes through a
// small workspace, as other gradients do. Windows between two parts are computed twice.
//
// Results are the same to the last bit however the pass is divided: parts begin where chunks of the
// whole do, and at multiples of kOutputs rows.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/lncc/cuda/fast_path.h"
#include "src/lncc/cuda/tiles.h"

namespace similis::lncc_internal {

/// A box of pixels of some volumes whose gradient is made at once, and the place of its
/// derivatives.
struct Part {
  Box pixels;
  std::int64_t volume;
  int volumes;
  DerivativeMaps derivatives;  // `data` and `early` are null for the workspace
  Box centres = {};            // of windows: those of derivatives, and rows before them
  Tiles window_tiles = {}, gradient_tiles = {};
  int first_slot = 0;  // the part's first among the partial sums of a volume

  int slots() const {
    return window_tiles.count_x * window_tiles.count_y * window_tiles.chunks.count;
  }
};

/// The first planes of chunks along z, by which the planes of all parts are cut.
struct ChunkGrid {
  std::vector<int> first;
  int end = 0;

  /// Chunks become shorter towards the end: none is longer than (rest - margin) / divisor, as
  /// slabs are, until the rest is cut into four. divisor 0: all are alike.
  struct Taper {
    int divisor = 0, margin = 0;
  };

  ChunkGrid(const Range& planes, int chunk_planes, const Taper& taper) : end(planes.last) {
    constexpr int kShortest = 8;
    int length = chunk_planes;
    bool tapers = taper.divisor > 0;
    for (int plane = planes.first; plane < planes.last; plane += length) {
      first.push_back(plane);
      if (!tapers) continue;
      const int rest = planes.last - plane, most = (rest - taper.margin) / taper.divisor;
      tapers = most >= kShortest;
      length = std::min(chunk_planes, tapers ? most : std::max(kShortest, pieces(rest, 4)));
    }
  }
  /// Returns the last beginning of a chunk up to this plane, or the end.
  int before(int plane) const {
    if (plane >= end) return end;
    return *std::prev(std::upper_bound(first.begin(), first.end(), plane));
  }
  /// Returns the beginning of a chunk inside a range of planes, next to the middle; 0 if none is.
  int middle(const Range& planes) const {
    const int last = before(planes.first + planes.length() / 2);
    if (last > planes.first && last < planes.last) return last;
    const auto next = std::upper_bound(first.begin(), first.end(), planes.first);
    return next != first.end() && *next < planes.last ? *next : 0;
  }
  /// Returns whether a range of planes can be cut where chunks begin, into pieces of this length at
  /// most.
  bool divides(const Range& planes, int length) const {
    for (int plane = planes.first; plane + length < planes.last;) {
      const int next = before(plane + length);
      if (next <= plane) return false;
      plane = next;
    }
    return true;
  }
  bool has(int plane) const { return std::binary_search(first.begin(), first.end(), plane); }

  /// Returns the chunks that hold a range of planes; the first is whole unless it is `clipped`.
  Chunks within(const Range& planes, bool clipped) const {
    Chunks chunks;
    chunks.last_plane = planes.last;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const int next = i + 1 < first.size() ? first[i + 1] : end;
      if (first[i] >= planes.last || next <= planes.first) continue;
      const int begin = clipped ? std::max(first[i], planes.first) : first[i];
      const int length = next - begin;
      const bool is_new =
          chunks.segments == 0 ||
          (length != chunks.segment[chunks.segments - 1].chunk_planes &&
              !(next == end && length < chunks.segment[chunks.segments - 1].chunk_planes));
      if (is_new && chunks.segments < Chunks::kMostSegments) {
        chunks.segment[chunks.segments++] = {begin, length, chunks.count};
      }
      ++chunks.count;
    }
    return chunks;
  }
};

class Division {
  using Axis = Range Box::*;

 public:
  /// `cuts`: the chunks of the gradient of a volume that is cut, if it could be whole.
  Division(const CudaPlan& plan, int images, std::int64_t derivative_bytes, const ChunkGrid& cuts)
      : g_(plan.problem.geometry),
        images_(images),
        derivative_bytes_(derivative_bytes),
        element_bytes_(plan.pass.x.dtype == DType::f64   ? 8
                       : plan.pass.x.dtype == DType::f32 ? 4
                                                         : 2),
        is_small_(plan.pass.workspace == LnccWorkspace::small),
        all_(all_pixels(g_)),
        cuts_(could_be_whole() ? cuts : ChunkGrid(all_.planes, 1, {})) {
    gradients_[0] = &plan.pass.x_gradient;
    gradients_[1] = &plan.pass.y_gradient;
  }

  /// Returns whether a workspace for all derivatives is allowed unless the caller wants it small.
  /// Only then must the parts' bits be those of the whole.
  bool could_be_whole() const {
    constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
    return derivative_bytes_ == sizeof(CentreDerivatives<float>) &&
           g_.planes * images_ * bytes_of(all_) <= kMostBytes;
  }
  bool has_room_for_all() const { return !is_small_ && could_be_whole(); }
  /// Returns whether the chunks of a volume that is cut become shorter towards its end, as the room
  /// for derivatives does. Images that are small have a workspace with room for longer chunks.
  static bool has_shorter_chunks(const Geometry& g) {
    return g.planes * count(all_pixels(g)) > kSmallElements;
  }
  /// Returns the parts without a workspace for all derivatives.
  std::vector<Part> small_parts() const {
    std::vector<Part> parts;
    visit([&](const Part& part) { parts.push_back(part); });
    return parts;
  }
  /// Returns whether a part is all of its volumes.
  bool is_whole(const Part& part) const { return count(part.pixels) == count(all_); }
  Part whole(std::int64_t volume, int volumes) const { return in_workspace(all_, volume, volumes); }
  /// Returns whether the parts of a volume give the bits that the whole has: they begin where its
  /// chunks and its runs of outputs do.
  bool keep_bits(const std::vector<Part>& parts) const {
    return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
      return cuts_.has(part.pixels.planes.first) && part.pixels.rows.first % kOutputs == 0 &&
             part.pixels.columns.length() == all_.columns.length();
    });
  }
  const Box& all() const { return all_; }
  static Box all_pixels(const Geometry& g) {
    return {{0, extent(g, 0)}, {0, extent(g, 1)}, {0, extent(g, 2)}};
  }
  Box all_centres() const { return centres_around(all_); }
  /// Returns the centres of a part that add to values: each belongs to one part.
  Box owned(const Part& part) const {
    const auto within = [&](const Range& pixels, int axis) {
      const Range bounds = centres(g_, axis);
      const int first = std::max(bounds.first, pixels.first);
      return Range{first, std::max(first, std::min(bounds.last, pixels.last))};
    };
    return {
        within(part.pixels.planes, 0), within(part.pixels.rows, 1), within(part.pixels.columns, 2)};
  }

  /// Returns the bytes of the part's workspace, and places the part's derivatives there.
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

 private:
  static constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  // The workspace has kWorkspaceBytes if images are small or their gradients have strides; 2 bytes
  // for an element of f16 or bf16, within bounds; otherwise a byte for kElementsAByte elements
  // under windows of 7 × 7 or less, and more for larger windows.
  static constexpr std::int64_t kWorkspaceBytes = 64 * kMiB, kHalfWorkspaceBytes = 4 * kMiB;
  static constexpr std::int64_t kSmallElements = std::int64_t{1} << 23;
  static constexpr double kElementsAByte = 12;
  static constexpr int kFewest = 8;  // planes or rows of a part: fewer would not fill the GPU

  static Range centres(const Geometry& g, int axis) {
    return {static_cast<int>(g.first_centre[axis]), static_cast<int>(g.last_centre[axis])};
  }
  static int extent(const Geometry& g, int axis) { return static_cast<int>(g.extent[axis]); }
  static std::int64_t count(const Box& box) {
    return std::int64_t{box.planes.length()} * box.rows.length() * box.columns.length();
  }

  // Returns the centres of the windows that see a range of pixels.
  Range around(const Range& pixels, int axis) const {
    const Range bounds = centres(g_, axis);
    const int first = std::max(bounds.first, pixels.first - g_.radius[axis]);
    return {first, std::max(first, std::min(bounds.last, pixels.last + g_.radius[axis]))};
  }
  Box centres_around(const Box& pixels) const {
    return {around(pixels.planes, 0), around(pixels.rows, 1), around(pixels.columns, 2)};
  }
  // Return the bytes of a plane of derivatives, and of the derivatives of a box of pixels, for the
  // gradient to one image.
  std::int64_t derivative_plane_bytes(const Box& centres) const {
    const std::int64_t bytes =
        std::int64_t{centres.rows.length()} * centres.columns.length() * derivative_bytes_;
    return pieces(bytes, DerivativeMaps::kAlignment) * DerivativeMaps::kAlignment;
  }
  std::int64_t bytes_of(const Box& pixels) const {
    const Box centres = centres_around(pixels);
    return centres.planes.length() * derivative_plane_bytes(centres);
  }

  // Returns whether the gradients can hold derivatives.
  bool has_dense_gradients() const {
    if (element_bytes_ < 4) return false;
    for (int image = 0; image < 2; ++image) {
      const TensorView& view = *gradients_[image];
      if (view.empty()) continue;
      std::int64_t stride = 1;
      for (int axis = 4; axis >= 0; --axis) {
        if (view.shape[axis] > 1 && view.strides[axis] != stride) return false;
        stride *= view.shape[axis];
      }
    }
    return true;
  }

  std::int64_t workspace_limit(bool is_dense) const {
    const auto elements = static_cast<double>(g_.planes * count(all_));
    if (element_bytes_ < 4) {
      return std::clamp(
          static_cast<std::int64_t>(2 * elements), kHalfWorkspaceBytes, kWorkspaceBytes);
    }
    if (!is_dense || elements <= kSmallElements) return kWorkspaceBytes;
    const double taps = (2.0 * g_.radius[1] + 1) * (2.0 * g_.radius[2] + 1);
    const double width = std::max(1.0, taps / 49);
    const double least = elements / kElementsAByte;
    return static_cast<std::int64_t>(
        std::max(least, std::min<double>(least * width * width, kWorkspaceBytes)));
  }

  // Calls emit(part) for each part, in order.
  template <class Emit> void visit(const Emit& emit) const {
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
    return std::int64_t{extent(g_, 1)} * extent(g_, 2) * element_bytes_;
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
      const int planes = cuts_.before(rest.planes.first + most(rest.planes.length(), has_room)) -
                         rest.planes.first;
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
    const std::int64_t row_bytes = std::int64_t{extent(g_, 2)} * element_bytes_;
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
      const int most_rows = most(rest.rows.length(), has_room);
      if (most_rows < kFewest) return;
      const int rows = runs(most_rows, rest.rows.length());
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
    // Cut along the first axis where fewer than half of the windows are computed twice; else along
    // planes and rows; if that does not do, along columns.
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
      if (index == 0 && could_be_whole() && !cuts_.divides(whole, room)) continue;
      if (index == 2 && could_be_whole() && fits(smallest(rest))) {
        visit_halves(rest, volume, limit, emit);
        return;
      }
      int length = std::max(room, fewest);
      if (index > 0) length = runs(length, whole.length());
      for (int first = whole.first, last = first; first < whole.last; first = last) {
        last = std::min(first + length, whole.last);
        if (index == 0 && cuts_.before(last) > first) last = cuts_.before(last);
        piece.*axis = {first, last};
        if (room >= fewest) {
          emit(in_workspace(piece, volume, 1));
        } else {
          visit_halves(piece, volume, limit, emit);
        }
      }
      return;
    }
  }
  // Returns what is left of a box once it is cut into halves.
  static Box smallest(Box box) {
    box.planes.last = std::min(box.planes.last, box.planes.first + kFewest);
    box.rows.last = std::min(box.rows.last, box.rows.first + kFewest);
    return box;
  }
  // Emits the parts of a piece, cut into halves along rows and where chunks begin until they are
  // small enough.
  template <class Emit>
  void visit_halves(
      const Box& piece, std::int64_t volume, std::int64_t limit, const Emit& emit) const {
    const int chunk = cuts_.middle(piece.planes);
    const bool cuts_rows =
        piece.rows.length() > (chunk > 0 ? piece.planes.length() : kFewest) || chunk == 0;
    const Axis axis = cuts_rows ? &Box::rows : &Box::planes;
    const int length = (piece.*axis).length();
    if (images_ * bytes_of(piece) <= limit || length <= kFewest) {
      emit(in_workspace(piece, volume, 1));
      return;
    }
    Box half = piece;
    (half.*axis).last = cuts_rows ? piece.rows.first + runs(length / 2, length) : chunk;
    visit_halves(half, volume, limit, emit);
    half.*axis = {(half.*axis).last, (piece.*axis).last};
    visit_halves(half, volume, limit, emit);
  }

  // Returns the largest number of rows or columns that is no more than `length` and ends with a run
  // of outputs, unless it is all there are.
  static int runs(int length, int all) {
    return length >= all ? all : std::max(kOutputs, length / kOutputs * kOutputs);
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

  const Geometry& g_;
  const int images_;
  const std::int64_t derivative_bytes_, element_bytes_;
  const bool is_small_;
  const Box all_;  // pixels
  const ChunkGrid cuts_;
  const TensorView* gradients_[2];
};

}  // namespace similis::lncc_internal
