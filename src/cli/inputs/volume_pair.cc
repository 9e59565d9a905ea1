// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/volume_pair.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "src/cli/inputs/finite_mask.h"
#include "src/core/counted.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

constexpr double kMaxGridDistance = 0.01;  // in voxels, between corners of matching grids

std::string size_text(const media::Grid& grid) {
  return fmt::format("{}×{}×{}", grid.size[0], grid.size[1], grid.size[2]);
}

void require_same_grid(const media::Volume& reference, const media::Volume& distorted,
    const std::string& reference_name, const std::string& distorted_name) {
  const std::string hint =
      fmt::format("to bring both onto one grid, run `similis warp {} --reference {} -o OUT.nii.gz`",
          distorted_name, reference_name);
  require(distorted.grid.size == reference.grid.size, "{} has {} voxels but {} has {}; {}",
      reference_name, size_text(reference.grid), distorted_name, size_text(distorted.grid), hint);
  const double apart = media::grid_distance(reference.grid, distorted.grid);
  require(apart <= kMaxGridDistance,
      "the voxels of {} lie up to {:.3g} voxels away from those of {}; {}", distorted_name, apart,
      reference_name, hint);
  require(distorted.components == reference.components,
      "{} has {} per voxel but {} has {}; components must match", reference_name,
      counted(reference.components, "component"), distorted_name, distorted.components);
}

Tensor in_f64(const Tensor& values) {
  const Tensor wide = allocate(values.shape, DType::f64);
  std::copy_n(values.elements<float>(), values.shape.count(), wide.elements<double>());
  return wide;
}

template <class T> double range_of(const Tensor& values) {
  const T* begin = values.elements<T>();
  double smallest = HUGE_VAL, largest = -HUGE_VAL;
  for (std::int64_t i = 0; i < values.shape.count(); ++i) {
    if (!std::isfinite(begin[i])) continue;
    smallest = std::min(smallest, static_cast<double>(begin[i]));
    largest = std::max(largest, static_cast<double>(begin[i]));
  }
  return std::max(0.0, largest - smallest);
}

// One frame of [C,T,Z,Y,X].
Tensor frame_of(const Tensor& values, std::int64_t frame) {
  const Extents& shape = values.shape;
  const Extents& strides = values.strides;
  TensorView view = values;
  view.offset += frame * strides[1];
  if (shape[2] == 1) {
    view.shape = {1, shape[0], shape[3], shape[4]};
    view.strides = {shape.count(), strides[0], strides[3], strides[4]};
  } else {
    view.shape = {1, shape[0], shape[2], shape[3], shape[4]};
    view.strides = {shape.count(), strides[0], strides[2], strides[3], strides[4]};
  }
  return {view, std::make_shared<Tensor>(values)};
}

template <class T>
void require_finite_in(const Tensor& values, std::int64_t frame, const std::string& name) {
  const Extents &shape = values.shape, &strides = values.strides;
  const std::int64_t voxels = shape[2] * shape[3] * shape[4];
  std::int64_t count = 0, first = -1;
  for (std::int64_t c = 0; c < shape[0]; ++c) {
    const T* begin = values.elements<T>() + c * strides[0] + frame * strides[1];
    for (std::int64_t i = 0; i < voxels; ++i) {
      if (std::isfinite(begin[i])) continue;
      ++count;
      if (first < 0) first = i;
    }
  }
  require(count == 0, "{} has {} not finite, the first at x {}, y {}, z {}{}", name,
      count == 1 ? "1 value that is" : fmt::format("{} values that are", count), first % shape[4],
      first / shape[4] % shape[3], first / (shape[4] * shape[3]),
      shape[1] > 1 ? fmt::format(" of frame {}", frame) : "");
}

// The values of one frame of [C,T,Z,Y,X].
void require_finite(const Tensor& values, std::int64_t frame, const std::string& name) {
  values.dtype == DType::f64 ? require_finite_in<double>(values, frame, name)
                             : require_finite_in<float>(values, frame, name);
}

// The sides of the body to which x, y and z rise, each the nearest of an oblique axis.
std::array<char, 3> sides_of(const media::Grid& grid) {
  constexpr std::array<std::string_view, 3> kSides = {"LR", "PA", "IS"};  // against RAS, along it
  std::array<char, 3> sides{};
  if (grid.world_code == 0) return sides;  // the file does not say
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const media::Point column = grid.voxel_to_world.column(axis);
    const auto largest = std::max_element(
        column.begin(), column.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    sides[axis] = kSides[static_cast<std::size_t>(largest - column.begin())][*largest > 0 ? 1 : 0];
  }
  return sides;
}

}  // namespace

VolumePair::VolumePair(media::Volume reference, media::Volume distorted,
    const std::string& reference_name, const std::string& distorted_name,
    const FrameSelection& selection, bool masks_not_finite)
    : reference_(std::move(reference)),
      distorted_(std::move(distorted)),
      reference_name_(reference_name),
      distorted_name_(distorted_name),
      selection_(selection),
      masks_not_finite_(masks_not_finite) {
  require_same_grid(reference_, distorted_, reference_name, distorted_name);
  for (const auto& [volume, key] : {std::pair(&reference_, "reference_orientation"),
           std::pair(&distorted_, "distorted_orientation")}) {
    if (volume->forms_differ)
      differences_.emplace_back(key, "qform and sform differ; the sform is used");
  }
  if (reference_.values.dtype != distorted_.values.dtype) {
    media::Volume& narrow = reference_.values.dtype == DType::f32 ? reference_ : distorted_;
    narrow.values = in_f64(narrow.values);
  }
  data_range_ = reference_.values.dtype == DType::f64 ? range_of<double>(reference_.values)
                                                      : range_of<float>(reference_.values);
}

std::int64_t VolumePair::expected_pairs() const {
  return selection_.count(reference_.frames, distorted_.frames);
}

std::optional<FramePair> VolumePair::next() {
  if (taken_ == expected_pairs()) return std::nullopt;
  ++taken_;
  frame_ = selection_.next(frame_ + 1);
  const std::int64_t distorted_frame = frame_ + selection_.offset;
  if (!masks_not_finite_) {
    require_finite(reference_.values, frame_, reference_name_);
    require_finite(distorted_.values, distorted_frame, distorted_name_);
  }
  FramePair pair{.reference = frame_of(reference_.values, frame_),
      .distorted = frame_of(distorted_.values, distorted_frame),
      .data_range = data_range_,
      .voxel_mm = reference_.grid.spacing(),
      .toward = sides_of(reference_.grid)};
  if (masks_not_finite_) mask_not_finite(pair, {});
  return pair;
}

}  // namespace similis::cli
