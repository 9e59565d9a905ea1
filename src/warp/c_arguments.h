// SPDX-License-Identifier: Apache-2.0
// The arguments of the C functions that take similis_warp_options.
#pragma once

#include "similis/c/warp.h"
#include "similis/warp.hpp"
#include "src/c_api/call.h"

namespace similis::warp_internal {

class WarpArguments : public c_api::Arguments {
 public:
  WarpArguments(const char* operation, const similis_warp_options* options)
      : Arguments(operation), given_(Arguments::options(options, SIMILIS_WARP_DEFAULTS)) {}

  bool flag(const char* argument, std::int32_t value) const {
    return enumerator(argument, value, std::int32_t{1}) != 0;
  }
  bool accumulate() const { return flag("options.accumulate", given_.accumulate); }
  bool deterministic() const { return flag("options.deterministic", given_.deterministic); }
  double tolerance() const { return given_.tolerance; }
  bool align_corners() const { return flag("options.align_corners", given_.align_corners); }

  TensorView affine() const { return optional("options.affine", given_.affine); }
  TensorView displacement() const { return optional("options.displacement", given_.displacement); }

  Extents out_shape() const {
    const std::int32_t rank = enumerator("options.out_rank", given_.out_rank, std::int32_t{3});
    return Extents(std::span<const std::int64_t>(given_.out_shape, static_cast<std::size_t>(rank)));
  }
  std::optional<Coordinates> min_coords() const {
    return coordinates("options.has_min_coords", given_.has_min_coords, given_.min_coords);
  }
  std::optional<Coordinates> max_coords() const {
    return coordinates("options.has_max_coords", given_.has_max_coords, given_.max_coords);
  }
  Rows rows() const { return {given_.rows_start, given_.rows_extent}; }
  Rows image_rows() const { return {given_.image_rows_start, given_.image_rows_extent}; }
  Cells cells() const { return {given_.first_cell, given_.end_cell}; }
  Outside padding_mode() const {
    return enumerator("options.padding_mode", given_.padding_mode, Outside::reflection);
  }

  SampleOptions sample_options() const {
    return {.affine = affine(),
        .displacement = displacement(),
        .grid = optional("options.grid", given_.grid),
        .grid_affine = optional("options.grid_affine", given_.grid_affine),
        .out_shape = out_shape(),
        .mode = enumerator("options.mode", given_.mode, Interpolation::cubic),
        .padding_mode = padding_mode(),
        .align_corners = align_corners(),
        .prefilter = flag("options.prefilter", given_.prefilter),
        .min_coords = min_coords(),
        .max_coords = max_coords(),
        .rows = rows(),
        .image_rows = image_rows(),
        .cells = cells()};
  }
  LabelOptions label_options() const {
    LabelOptions result{.background = given_.background};
    if (flag("options.has_smallest_label", given_.has_smallest_label)) {
      result.smallest_label = given_.smallest_label;
    }
    return result;
  }

 private:
  std::optional<Coordinates> coordinates(
      const char* argument, std::int32_t has, const double (&xyz)[3]) const {
    if (!flag(argument, has)) return std::nullopt;
    return Coordinates{xyz[0], xyz[1], xyz[2]};
  }
  similis_warp_options given_;
};

}  // namespace similis::warp_internal
