// SPDX-License-Identifier: Apache-2.0
// Bjøntegaard's differences between two curves of quality over bitrate (ITU-T VCEG-M33, 2001), with
// piecewise cubic Hermite interpolation that keeps each curve monotone (PCHIP: Fritsch and Butland,
// SIAM J. Sci. Stat. Comput. 5(2), 1984, as SciPy's PchipInterpolator has it) in the place of one
// cubic, as Netflix and AreWeCompressedYet compute them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace similis::cli {

/// A point of a curve; the rate is above 0.
struct RatePoint {
  double rate, quality;
};

struct BdDifference {
  std::optional<double> rate;     ///< in percent; negative if `curve` takes fewer bits
  std::optional<double> quality;  ///< in the metric's own unit
  std::string note;               ///< a caution, or why a number is missing; usually empty
};

/// `curve` against `base`: the mean difference of log10(rate) over the qualities that both reach,
/// as a ratio of rates, and the mean difference of quality over the rates that both reach.
/// Qualities grow with the rate (negate errors first).
BdDifference bd_difference(std::vector<RatePoint> base, std::vector<RatePoint> curve);

/// ∫ of the interpolant through (x, y), x growing, from a to b, both within x.
double pchip_integral(
    const std::vector<double>& x, const std::vector<double>& y, double a, double b);

}  // namespace similis::cli
