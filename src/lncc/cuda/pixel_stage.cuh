// SPDX-License-Identifier: Apache-2.0
// The pixels that the windows see: planes of both images in shared memory, or the images
// themselves.
#pragma once

#include "src/gpu/cuda/bulk_copy.h"
#include "src/lncc/cuda/fast_path.h"

namespace similis::lncc_internal {

// Returns the number of columns in a row of the stage, whole copies of `together` pixels wherever
// the tile begins between them.
SIMILIS_HOST_DEVICE int stage_columns(const Tiles& tiles, int together) {
  return (tiles.threads_across + 2 * together - 2) / together * together;
}
SIMILIS_HOST_DEVICE int stage_rows(const Tiles& tiles, int radius) {
  return tiles.threads_along * kOutputs + 2 * radius;
}

// The pixels that a step of the sliding window sees: x and y of a plane that enters, and of one
// that leaves or, while sums begin, enters too. Stored is the type of a pixel on the stage: that in
// memory where it is f32 or half, else f64.
template <class Value, class Stored = Value> class PixelStage {
 public:
  using Pixel = Stored;

  // A barrier must come before the first fill().
  __device__ PixelStage(unsigned char* shared, unsigned char* shared_tile, int shared_tile_bytes,
      const WindowArguments& m, const BlockTile& tile, const Shift& shift, int x_first, int y_first)
      : m_(m),
        pixels_(reinterpret_cast<Stored*>(shared)),
        in_shared_tile_(reinterpret_cast<Stored*>(shared_tile)),
        shared_tile_bytes_(shared_tile_bytes),
        columns_(stage_columns(m.tiles, kTogether)),
        rows_(stage_rows(m.tiles, m.problem.geometry.radius[1])),
        copies_(pixels_ + 4 * rows_ * columns_) {
    const Geometry& g = m.problem.geometry;
    const int x_begin = x_first - g.radius[2];
    lead_ = (x_begin % kTogether + kTogether) % kTogether;
    x_begin_ = x_begin - lead_;
    y_begin_ = y_first - g.radius[1];
    const bool is_black = g.padding == Padding::same;
    store(is_black ? 0 : shift.x, &x_outside_);
    store(is_black ? 0 : shift.y, &y_outside_);
    const std::int64_t volume = m.tiles.first_volume + tile.volume;
    x_volume_ = m.problem.x.plane(volume / g.channels, volume % g.channels);
    y_volume_ = m.problem.y.plane(volume / g.channels, volume % g.channels);
    const int width = static_cast<int>(g.extent[2]), height = static_cast<int>(g.extent[1]);
    const int x_end = x_begin_ + columns_, y_end = y_begin_ + rows_;
    columns_in_image_ = {x_begin_ < 0 ? 0 : x_begin_, x_end < width ? x_end : width};
    rows_in_image_ = {y_begin_ < 0 ? 0 : y_begin_, y_end < height ? y_end : height};
    for (int place = 0; place < (has_two_places() ? 2 : 1); ++place) {
      clear_plane(place, 0);
      clear_plane(place, 2);
    }
  }

  // There are two places while no sums are in the shared tile, if it is large enough.
  __device__ bool has_two_places() const {
    return 4 * image_size() * static_cast<int>(sizeof(Stored)) <= shared_tile_bytes_;
  }
  // Fills a place with two planes, the second of which may be missing.
  __device__ __forceinline__ void fill(int place, int one, int two, bool has_two) {
    const Geometry& g = m_.problem.geometry;
    const bool is_first = one >= 0 && one < g.extent[0];
    const bool is_second = has_two && two >= 0 && two < g.extent[0];
    if (m_.has_whole_copies && threadIdx.x == 0) {
      copies_.expect(place,
          2 * row_bytes() * rows_in_image_.length() * ((is_first ? 1 : 0) + (is_second ? 1 : 0)));
    }
    copy_rows(place, one, is_first, two, is_second);
    if (!is_first) clear_plane(place, 0);
    if (has_two && !is_second) clear_plane(place, 2);
  }
  // Waits for this thread's copies; a barrier must follow.
  __device__ __forceinline__ void wait(int place) {
    if (m_.has_whole_copies) {
      copies_.wait(place);
    } else {
      gpu::BulkCopies::wait_for_words();
    }
  }

  struct Pixels {
    Value x, y;
  };
  // The pixels under a thread's windows.
  struct Column {
    const Stored* first;
    int columns, image_size;

    __device__ __forceinline__ Pixels one(int line) const {
      const Stored* const at = first + line * columns;
      return {value(at[0]), value(at[image_size])};
    }
    __device__ __forceinline__ Pixels two(int line) const {
      const Stored* const at = first + line * columns;
      return {value(at[2 * image_size]), value(at[3 * image_size])};
    }
  };
  __device__ __forceinline__ Column column(int place, int row, int column) const {
    return {pixels(place) + row * columns_ + lead_ + column, columns_, image_size()};
  }

 private:
  static constexpr int kTogether = pixels_together(sizeof(Stored) < sizeof(float));

  __device__ __forceinline__ static Value value(Stored stored) {
    if constexpr (std::is_same_v<Stored, double>) {
      return stored;
    } else {
      return gpu::to_float(stored);
    }
  }
  __device__ int image_size() const { return rows_ * columns_; }
  __device__ Stored* pixels(int place) const { return place == 0 ? pixels_ : in_shared_tile_; }
  // `part` counts x and y of the first plane, then x and y of the second.
  __device__ __forceinline__ Stored* at(int place, int part, int row, int x) const {
    return pixels(place) + part * image_size() + (row - y_begin_) * columns_ + (x - x_begin_);
  }
  __device__ void clear_plane(int place, int part) const {
    clear(pixels(place) + part * image_size(), x_outside_);
    clear(pixels(place) + (part + 1) * image_size(), y_outside_);
  }
  __device__ int row_bytes() const {
    return columns_in_image_.length() * static_cast<int>(sizeof(Stored));
  }
  // Warps share the rows, and in each warp one thread after the other asks the engine for a row.
  __device__ __forceinline__ void copy_rows(
      int place, int one, bool is_first, int two, bool is_second) const {
    const int warps = static_cast<int>(blockDim.x) / gpu::kSubgroup;
    const int warp = static_cast<int>(threadIdx.x) / gpu::kSubgroup;
    const int lane = static_cast<int>(threadIdx.x) % gpu::kSubgroup;
    const int first = m_.has_whole_copies ? lane * warps + warp : warp;
    const int step = m_.has_whole_copies ? warps * gpu::kSubgroup : warps;
    for (int y = rows_in_image_.first + first; y < rows_in_image_.last; y += step) {
      if (is_first) copy_row(place, 0, one, y, lane);
      if (is_second) copy_row(place, 2, two, y, lane);
    }
  }
  // Copies a row of both images.
  __device__ __forceinline__ void copy_row(int place, int part, int z, int y, int lane) const {
    const gpu::View &x_view = m_.problem.x, &y_view = m_.problem.y;
    const std::int64_t x_row = x_volume_ + x_view.at(z, y, 0);
    const std::int64_t y_row = y_volume_ + y_view.at(z, y, 0);
    const int first = columns_in_image_.first;
    Stored* to = at(place, part, y, first);
    if (m_.has_whole_copies) {
      const int bytes = row_bytes();
      copies_.copy(place, to, static_cast<const Stored*>(x_view.data) + (x_row + first), bytes);
      copies_.copy(place, to + image_size(),
          static_cast<const Stored*>(y_view.data) + (y_row + first), bytes);
      return;
    }
    to += lane;
#pragma unroll 1
    for (int x = first + lane; x < columns_in_image_.last;
         x += gpu::kSubgroup, to += gpu::kSubgroup) {
      copy_pixel(to, x_view, x_row + x * x_view.strides[4]);
      copy_pixel(to + image_size(), y_view, y_row + x * y_view.strides[4]);
    }
  }
  __device__ __forceinline__ static void copy_pixel(
      Stored* to, const gpu::View& from, std::int64_t offset) {
    if constexpr (std::is_same_v<Stored, float>) {
      gpu::BulkCopies::copy_word(to, static_cast<const float*>(from.data) + offset);
    } else if constexpr (std::is_same_v<Stored, double>) {
      *to = from.load(offset);
    } else {
      *to = static_cast<const Stored*>(from.data)[offset];
    }
  }
  // Fills a plane with the value that lies around images; the image's pixels are copied over it
  // later.
  __device__ void clear(Stored* to, Stored outside) const {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < image_size();
         i += static_cast<int>(blockDim.x)) {
      to[i] = outside;
    }
    gpu::BulkCopies::publish();
  }

  const WindowArguments& m_;
  Stored *const pixels_, *const in_shared_tile_;
  const int shared_tile_bytes_;
  const int columns_, rows_;
  gpu::BulkCopies copies_;
  int lead_;               // number of columns before the tile's first
  int x_begin_, y_begin_;  // the place in the image where the stage begins
  Range columns_in_image_, rows_in_image_;
  Stored x_outside_, y_outside_;
  std::int64_t x_volume_, y_volume_;
};

// The same straight from the images, for windows that no stage has room for.
class FarPixels {
 public:
  using Pixel = double;

  __device__ FarPixels(unsigned char*, unsigned char*, int, const WindowArguments& m,
      const BlockTile& tile, const Shift& shift, int x_first, int y_first)
      : m_(m),
        outside_(m.problem.geometry.padding == Padding::same ? Shift{0, 0} : shift),
        x_begin_(x_first - m.problem.geometry.radius[2]),
        y_begin_(y_first - m.problem.geometry.radius[1]) {
    const std::int64_t volume = m.tiles.first_volume + tile.volume;
    image_ = volume / m.problem.geometry.channels;
    channel_ = volume % m.problem.geometry.channels;
  }
  struct Column {
    const FarPixels& far;
    int x, y;

    __device__ Shift one(int line) const { return far.pixels(far.one_, y + line, x); }
    __device__ Shift two(int line) const { return far.pixels(far.two_, y + line, x); }
  };
  __device__ static bool has_two_places() { return false; }
  __device__ void fill(int, int one, int two, bool) { one_ = one, two_ = two; }
  __device__ static void wait(int) {}
  __device__ Column column(int, int row, int column) const {
    return {*this, x_begin_ + column, y_begin_ + row};
  }

 private:
  __device__ Shift pixels(int z, int y, int x) const {
    const Problem& m = m_.problem;
    const Geometry& g = m.geometry;
    if (!g.is_pixel(0, z) || !g.is_pixel(1, y) || !g.is_pixel(2, x)) return outside_;
    const Place at{image_, channel_, z, y, x};
    return {Problem::load(m.x, at), Problem::load(m.y, at)};
  }

  const WindowArguments& m_;
  const Shift outside_;
  const int x_begin_, y_begin_;
  std::int64_t image_, channel_;
  int one_ = 0, two_ = 0;
};

}  // namespace similis::lncc_internal
