// SPDX-License-Identifier: Apache-2.0
// The determinants of a field on the CPU, kept by pieces of rows, so that a repair looks at the
// pieces that it changed alone.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/execution.hpp"
#include "src/registration/passes.h"

namespace similis::registration_internal {

class FieldCheck {
 public:
  /// Every piece is to be looked at first. u must outlive this.
  FieldCheck(const GridRows& rows, Reals u, double accepted);
  ~FieldCheck();
  FieldCheck(const FieldCheck&) = delete;
  FieldCheck& operator=(const FieldCheck&) = delete;

  /// Finds the determinants of all pieces that have voxels in the box.
  void look(const Box& box, const Execution& exec);

  double least() const;      ///< NaN if one is
  std::int64_t bad() const;  ///< number of voxels that are not `accepted` or more
  /// Boxes that hold all bad voxels, which lie more than `apart` voxels from each other along some
  /// axis.
  std::vector<Box> spots(std::int64_t apart) const;

 private:
  static constexpr std::int64_t kPiece = 128;  // voxels
  struct Piece;

  GridRows rows_;
  Reals u_;
  double accepted_;
  std::int64_t pieces_of_row_;
  std::vector<Piece> pieces_;
};

}  // namespace similis::registration_internal
