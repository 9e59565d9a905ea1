// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_slices.h"

#include <algorithm>
#include <cmath>

#include "src/core/tensor/doubles.h"
#include "src/registration/geometry.h"

namespace similis::cli {
namespace {

constexpr std::int64_t kMostPixels = 480;  // along a side
constexpr double kEdges = 0.75;            // share of the pixels that are no edge
constexpr int kFaintest = 16;              // difference of two neighbours that may be an edge
constexpr std::int64_t kGridPixels = 720;  // along a side of the warped grid's picture, at most
constexpr std::int64_t kCells = 24;        // of the warped grid along the longest side

using Colour = std::array<std::uint8_t, 4>;
constexpr Colour kEdgeColour = {255, 196, 0, 255}, kGridColour = {0, 224, 255, 255};

media::Image transparent(std::int64_t width, std::int64_t height) {
  media::Image image{.width = width, .height = height, .channels = 4};
  image.samples8.resize(static_cast<std::size_t>(4 * width * height));
  return image;
}

void paint(media::Image& image, std::int64_t row, std::int64_t column, const Colour& colour) {
  std::copy(
      colour.begin(), colour.end(), image.samples8.begin() + 4 * (row * image.width + column));
}

double value_at(const Tensor& values, std::int64_t voxel) {
  return values.dtype == DType::f64 ? values.elements<double>()[voxel]
                                    : static_cast<double>(values.elements<float>()[voxel]);
}

// The value below which so many lie.
double quantile(std::vector<double>& values, double share) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Numbers at a slice's pixels, interpolated between their centres.
struct SlicePlaces {
  std::int64_t width, height;
  std::vector<double> values;

  double at(double row, double column) const {
    const double y = std::clamp(row, 0.0, static_cast<double>(height - 1)),
                 x = std::clamp(column, 0.0, static_cast<double>(width - 1));
    const auto r = static_cast<std::int64_t>(y), c = static_cast<std::int64_t>(x);
    const auto value = [&](std::int64_t v, std::int64_t u) {
      return values[static_cast<std::size_t>(
          std::min(v, height - 1) * width + std::min(u, width - 1))];
    };
    const double share = x - static_cast<double>(c);
    const double above = value(r, c) + share * (value(r, c + 1) - value(r, c));
    const double below = value(r + 1, c) + share * (value(r + 1, c + 1) - value(r + 1, c));
    return above + (y - static_cast<double>(r)) * (below - above);
  }
};

// p + u(p) along an axis, in steps of so many voxels.
SlicePlaces places_of(const Tensor& displacement, const RegisterInput& fixed,
    const MiddleSlice& slice, std::size_t axis, std::int64_t step) {
  const registration_internal::Grid grid = registration_internal::grid_of(fixed.view);
  const registration_internal::Matrix to_voxels =
      registration_internal::inverse(grid.to_world.linear);
  const std::int64_t rank = grid.rank;
  SlicePlaces places{slice.width(), slice.height(), {}};
  for (std::int64_t row = 0; row < places.height; ++row) {
    for (std::int64_t column = 0; column < places.width; ++column) {
      const std::int64_t voxel = slice.voxel(row, column);
      const std::array<std::int64_t, 3> at = {voxel % grid.size[0],
          voxel / grid.size[0] % grid.size[1], voxel / grid.size[0] / grid.size[1]};
      auto place = static_cast<double>(at[axis]);
      for (int c = 0; c < grid.rank; ++c) {
        place += to_voxels(static_cast<int>(axis), c) *
                 static_cast<double>(displacement.elements<float>()[voxel * rank + c]);
      }
      places.values.push_back(place / static_cast<double>(step));
    }
  }
  return places;
}

// Returns true if voxels along an axis go mostly to the back or to the feet.
bool leads_down(const media::Grid& grid, std::size_t axis) {
  const auto& rows = grid.voxel_to_world.rows;  // to the right, front and top
  std::size_t most = 0;
  for (std::size_t r = 1; r < 3; ++r) {
    if (std::abs(rows[r][axis]) > std::abs(rows[most][axis])) most = r;
  }
  return most > 0 && rows[most][axis] < 0;
}

}  // namespace

MiddleSlice::MiddleSlice(const media::Grid& grid, std::size_t right, std::size_t up)
    : size_(grid.size),
      right_(right),
      up_(up),
      across_(3 - right - up),
      goes_down_(leads_down(grid, up)) {
  const media::Point spacing = grid.spacing();
  const double shortest = std::min(spacing[right], spacing[up]);
  const auto pixels = [&](std::size_t axis) {
    return static_cast<double>(size_[axis]) * spacing[axis] / shortest;
  };
  const double most = std::max(pixels(right), pixels(up));
  const double shrink = std::max(1.0, most / static_cast<double>(kMostPixels));
  width_ = std::max<std::int64_t>(1, std::llround(pixels(right) / shrink));
  height_ = std::max<std::int64_t>(1, std::llround(pixels(up) / shrink));
}

std::int64_t MiddleSlice::voxel(std::int64_t row, std::int64_t column) const {
  std::array<std::int64_t, 3> at{};
  at[right_] = column * size_[right_] / width_;
  at[up_] = (goes_down_ ? row : height_ - 1 - row) * size_[up_] / height_;
  at[across_] = size_[across_] / 2;
  return (at[2] * size_[1] + at[1]) * size_[0] + at[0];
}

std::vector<MiddleSlice> middle_slices_of(const media::Grid& grid) {
  if (grid.size[2] == 1) return {{grid, 0, 1}};
  return {{grid, 0, 1}, {grid, 0, 2}, {grid, 1, 2}};
}

std::pair<double, double> grey_range(const media::Volume& volume) {
  constexpr double kShown = 0.999;
  std::vector<double> values = to_doubles(volume.values);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {0, 1};
  const double low = *std::min_element(values.begin(), values.end());
  const double high = quantile(values, kShown);
  return {low, high > low ? high : low + 1};
}

media::Image grey_slice(
    const media::Volume& volume, const MiddleSlice& slice, const std::pair<double, double>& range) {
  media::Image image{.width = slice.width(), .height = slice.height(), .channels = 1};
  for (std::int64_t row = 0; row < image.height; ++row) {
    for (std::int64_t column = 0; column < image.width; ++column) {
      const double value = value_at(volume.values, slice.voxel(row, column));
      const double share =
          std::isfinite(value)
              ? std::clamp((value - range.first) / (range.second - range.first), 0.0, 1.0)
              : 0;
      image.samples8.push_back(static_cast<std::uint8_t>(std::lround(255 * share)));
    }
  }
  return image;
}

media::Image edges_of(const media::Image& grey) {
  const auto at = [&](std::int64_t row, std::int64_t column) {
    row = std::clamp<std::int64_t>(row, 0, grey.height - 1);
    column = std::clamp<std::int64_t>(column, 0, grey.width - 1);
    return static_cast<double>(grey.samples8[static_cast<std::size_t>(row * grey.width + column)]);
  };
  struct Slope {
    double x, y, size;
  };
  std::vector<Slope> slopes;
  std::vector<double> sizes;
  for (std::int64_t row = 0; row < grey.height; ++row) {
    for (std::int64_t column = 0; column < grey.width; ++column) {
      const double x = at(row, column + 1) - at(row, column - 1),
                   y = at(row + 1, column) - at(row - 1, column);
      slopes.push_back({x, y, std::hypot(x, y)});
      sizes.push_back(slopes.back().size);
    }
  }
  const double least = std::max(quantile(sizes, kEdges), static_cast<double>(kFaintest));
  const auto size_at = [&](std::int64_t row, std::int64_t column) {
    const bool is_inside = row >= 0 && row < grey.height && column >= 0 && column < grey.width;
    return is_inside ? slopes[static_cast<std::size_t>(row * grey.width + column)].size : 0;
  };
  media::Image edges = transparent(grey.width, grey.height);
  for (std::int64_t row = 0; row < grey.height; ++row) {
    for (std::int64_t column = 0; column < grey.width; ++column) {
      const Slope& own = slopes[static_cast<std::size_t>(row * grey.width + column)];
      if (own.size < least) continue;
      // A line is one pixel wide: the steepest along the slope's direction.
      const auto right = static_cast<std::int64_t>(std::lround(own.x / own.size)),
                 down = static_cast<std::int64_t>(std::lround(own.y / own.size));
      if (own.size > size_at(row - down, column - right) &&
          own.size >= size_at(row + down, column + right)) {
        paint(edges, row, column, kEdgeColour);
      }
    }
  }
  return edges;
}

std::int64_t grid_step(const media::Grid& grid) {
  return std::max<std::int64_t>(2, *std::max_element(grid.size.begin(), grid.size.end()) / kCells);
}

media::Image warped_grid(const Tensor& displacement, const RegisterInput& fixed,
    const MiddleSlice& slice, std::int64_t step) {
  const SlicePlaces right = places_of(displacement, fixed, slice, slice.right(), step),
                    up = places_of(displacement, fixed, slice, slice.up(), step);
  // Several pixels for each of the slice, so that lines are thin beside voxels.
  const std::int64_t zoom =
      std::max<std::int64_t>(1, kGridPixels / std::max(slice.width(), slice.height()));
  const auto cell = [&](const SlicePlaces& of, std::int64_t row, std::int64_t column) {
    const auto centre = [&](std::int64_t pixel) {
      return (static_cast<double>(pixel) + 0.5) / static_cast<double>(zoom) - 0.5;
    };
    return std::floor(of.at(centre(row), centre(column)));
  };
  media::Image lines = transparent(slice.width() * zoom, slice.height() * zoom);
  for (std::int64_t row = 1; row < lines.height; ++row) {
    for (std::int64_t column = 1; column < lines.width; ++column) {
      bool crosses = false;
      for (const SlicePlaces* of : {&right, &up}) {
        const double own = cell(*of, row, column);
        crosses = crosses || own != cell(*of, row, column - 1) || own != cell(*of, row - 1, column);
      }
      if (crosses) paint(lines, row, column, kGridColour);
    }
  }
  return lines;
}

double log_jacobian_limit(const Tensor& jacobian) {
  constexpr double kWithin = 0.99, kLeast = 0.1;
  std::vector<double> sizes = to_doubles(jacobian);
  for (double& value : sizes) value = std::abs(std::log(std::max(value, 1e-6)));
  return std::max(kLeast, quantile(sizes, kWithin));
}

media::Image log_jacobian_slice(const Tensor& jacobian, const MiddleSlice& slice, double limit) {
  media::Image image{.width = slice.width(), .height = slice.height(), .channels = 3};
  for (std::int64_t row = 0; row < image.height; ++row) {
    for (std::int64_t column = 0; column < image.width; ++column) {
      const double value = value_at(jacobian, slice.voxel(row, column));
      const double share = std::clamp(std::log(std::max(value, 1e-6)) / limit, -1.0, 1.0);
      // The other two channels fade to white; page.css has the same colours.
      const auto fade = [&](double end) {
        return static_cast<std::uint8_t>(std::lround(255 + std::abs(share) * (end - 255)));
      };
      if (share < 0) {
        image.samples8.insert(image.samples8.end(), {fade(11), fade(98), fade(196)});
      } else {
        image.samples8.insert(image.samples8.end(), {fade(196), fade(36), fade(11)});
      }
    }
  }
  return image;
}

}  // namespace similis::cli
