// SPDX-License-Identifier: Apache-2.0
// The functions of the table of passes on a GPU.
#pragma once

#include "src/registration/passes.h"

namespace similis::registration_internal::cuda {

namespace all = registration_internal;

// passes.cu
decltype(all::weigh_inside) weigh_inside;
decltype(all::drop_below) drop_below;
decltype(all::moments) moments;
decltype(all::add_gradient) add_gradient;
decltype(all::add_scaled) add_scaled;
decltype(all::scale) scale;
decltype(all::blend) blend;
decltype(all::count_nonzero) count_nonzero;
decltype(all::fill) fill;
decltype(all::mark_folds) mark_folds;
decltype(all::largest_square) largest_square;
decltype(all::corner_determinants) corner_determinants;

/// to = d(x) + u(x + d(x)), where places outside are those at the border; d may be u. Fields have
/// fewer than 2³¹ numbers.
void compose(const GridRows& rows, Reals d, Reals u, Reals to, const Execution& exec);

// values.cu
decltype(all::turn) turn;
decltype(all::round_to) round_to;
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

// curvature.cu
decltype(all::multiply) multiply;
decltype(all::edge_products) edge_products;
decltype(all::precondition) precondition;

}  // namespace similis::registration_internal::cuda
