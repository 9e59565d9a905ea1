// SPDX-License-Identifier: Apache-2.0
#include "src/registration/linear/starts.h"

#include <cmath>
#include <cstddef>

namespace similis::registration_internal {

std::vector<Start> starts_of(const Image& fixed, const Image& moving,
    const RegisterOptions& options, bool may_turn, const Execution& exec) {
  const auto moved = [](const Point& from, const Point& to) { return Map{{}, to - from}; };
  switch (options.start) {
    case RegisterStart::identity: return {{Map()}};
    case RegisterStart::given: return {{map_of(options.initial)}};
    case RegisterStart::centers: return {{moved(fixed.grid.centre(), moving.grid.centre())}};
    default: break;
  }
  const Map by_mass = moved(centre_of_mass(fixed, exec), centre_of_mass(moving, exec));
  if (options.start == RegisterStart::moments) return {{by_mass}};
  std::vector<Start> starts = {{Map()}, {by_mass}};
  if (!may_turn) return starts;
  constexpr double kDegree = M_PI / 180;
  if (fixed.grid.rank == 2) {
    // All around, as pictures and slices may lie in any way; their coarse grids are small.
    for (int i = 1; i < 16; ++i) starts.push_back({by_mass, {i * 22.5 * kDegree, 0, 0}});
    return starts;
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (const double angle : {-30.0, 30.0}) {
      Start start{by_mass};
      start.turn[axis] = angle * kDegree;
      starts.push_back(start);
    }
  }
  return starts;
}

}  // namespace similis::registration_internal
