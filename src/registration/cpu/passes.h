// SPDX-License-Identifier: Apache-2.0
// The CPU's functions of the table of passes.
#pragma once

#include "src/registration/passes.h"

namespace similis::registration_internal::cpu {

namespace all = registration_internal;

// rows.cc, in vectors
decltype(all::weigh_inside) weigh_inside;
decltype(all::moments) moments;
decltype(all::add_gradient) add_gradient;
decltype(all::add_scaled) add_scaled;
decltype(all::scale) scale;
decltype(all::blend) blend;
decltype(all::largest_square) largest_square;
decltype(all::turn) turn;
decltype(all::round_to) round_to;

// determinants.cc, in vectors
decltype(all::corner_determinants) corner_determinants;

// values.cc
decltype(all::drop_below) drop_below;
decltype(all::count_nonzero) count_nonzero;
decltype(all::fill) fill;
decltype(all::mark_folds) mark_folds;
decltype(all::to_floats) to_floats;
decltype(all::threshold) threshold;
decltype(all::normalize_mask) normalize_mask;
decltype(all::look_for_gaps) look_for_gaps;
decltype(all::spread) spread;
decltype(all::nth_above) nth_above;
decltype(all::rescale) rescale;
decltype(all::divide) divide;
decltype(all::mass) mass;
decltype(all::lengths) lengths;
decltype(all::upload) upload;

// curvature.cc, in vectors
decltype(all::multiply) multiply;
decltype(all::edge_products) edge_products;
decltype(all::precondition) precondition;

}  // namespace similis::registration_internal::cpu
