// SPDX-License-Identifier: Apache-2.0
// Mutual information: the amount that the values of one image tell about those of the other at the
// same voxels, whatever their scales mean. It registers images of different modalities.
//
//   MI = Σ_ab p_ab log(p_ab / (p_a p_b)), in nats
//
// p_ab is a joint histogram in which each voxel counts by smooth weights w_a(x)·w_b(y), so that it
// has a gradient (Parzen windows), and p_a, p_b are its margins. P. Viola, W. M. Wells, "Alignment
// by maximization of mutual information", IJCV 24(2), 1997; D. Mattes et al., "PET-CT image
// registration in the chest using free-form deformations", IEEE TMI 22(1), 2003.
#pragma once

#include <cstdint>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/reduction.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// The weights by which a voxel counts in the bins around its value. Weights beyond the first and
/// last bin are cut, and the remaining ones are scaled to sum to 1.
enum class ParzenKernel : std::uint8_t {
  b_spline,  ///< cubic B-spline: 4 bins
  gaussian,  ///< Gaussian with a standard deviation of sigma_ratio / 2 bins
  delta,     ///< weight 1 in the bin that holds the value; has no gradient
};

/// The values at which the first bin begins and the last bin ends. Limits that depend on the data
/// are constants for the gradient.
enum class ValueRange : std::uint8_t {
  per_image,       ///< smallest and largest value of a channel of an image, for x and y separately
  common,          ///< the same, for x and y together
  fixed,           ///< low and high; values outside are clamped to them
  unit_or_common,  ///< 0 and 1 if all values of x and y lie there, else their smallest and largest
                   ///< value over all images and channels
};

enum class HistogramMethod : std::uint8_t {
  exact,   ///< voxels are counted by the kernel's weights
  binned,  ///< each voxel counts as 1 in the bin that holds it; then the histogram is blurred by a
           ///< Gaussian with a standard deviation of sigma_ratio / 2 bins, integrated over each
           ///< bin, cut at 4 standard deviations, zero outside; p_ab and its margins are blurred
           ///< separately and scaled to sum to 1. The gradient uses the kernel's weights with the
           ///< blurred p_ab.
};

struct MutualInformationOptions {
  int num_bins = 32;  ///< bins of each image, 4 to 256
  ParzenKernel kernel = ParzenKernel::b_spline;
  double sigma_ratio = 1;  ///< twice the Gaussian's standard deviation, in bins; at least 0.1
  ValueRange range = ValueRange::per_image;
  double low = 0, high = 1;  ///< read with ValueRange::fixed
  bool normalized =
      false;  ///< (H(x) + H(y)) / H(x,y) instead, from 1 to 2 (Studholme et al., 1999)
  /// With either above 0 the logarithm is that of (p_ab + nr) / (p_a p_b + dr) + dr; not
  /// normalized.
  double smooth_nr = 0, smooth_dr = 0;
  HistogramMethod method = HistogramMethod::exact;
  double sampling = 1;     ///< share of the voxels that are counted, chosen by the seed
  std::uint64_t seed = 0;  ///< the same voxels on every device, in all images and channels
  /// Voxels with a mask above 0 are counted; the others may hold anything. Any dtype; the spatial
  /// axes with or without leading N and C, broadcast. A negative number or a NaN is refused on the
  /// CPU; on a GPU it makes the result of its channel NaN.
  TensorView mask = {};
  Reduction reduction = Reduction::mean;  ///< over N and C; none is [N,C], as per_channel is
  /// The values at which the first bin begins and the last ends, for each channel of each image:
  /// [N,C,4] in f64, dense: x's two, then y's. `range` is then not read. So part of an image counts
  /// by the limits of the whole; values outside are clamped. Empty: as range says.
  TensorView limits = {};
};

/// Mutual information of x and y, of each channel of each image: 0 if they are independent.
/// x, y: [N,C,…] of any rank from 3 to 8; any dtype, but i16, i32 and boolean on the CPU alone;
/// alike in all but their strides. Returns f32 (f64 for f64 and i32 images) on their device: a
/// scalar, [N] or [N,C], as reduction says; NaN where a voxel that counts is NaN. A mean leaves out
/// channels where no voxel counts; where none is left the measure is NaN and the loss 0, both with
/// gradient 0. Bits do not depend on threads or on the run. On a GPU work is queued on exec.queue
/// and not waited for. Beside the results it needs at most 64 MiB; on a GPU 32 B for each pair of
/// bins and channel up to that. Throws InvalidArgument if x and y are not alike or have no
/// elements, an option is outside its range above, high is not above low, sampling is not in (0,
/// 1], or the mask does not broadcast or, on the CPU, holds a number that is negative or not
/// finite.
SIMILIS_API Tensor mutual_information(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options = {}, const Execution& exec = {});

/// The negative of mutual_information(), to be minimised.
SIMILIS_API Tensor mutual_information_loss(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options = {}, const Execution& exec = {});

/// The value and the gradient of its sum over all results. Refuses integer images and kernel delta,
/// which have none. A value that was clamped has gradient 0.
SIMILIS_API ValueAndGradient mutual_information_value_and_gradient(const TensorView& x,
    const TensorView& y, GradientOf wrt = GradientOf::x,
    const MutualInformationOptions& options = {}, const Execution& exec = {});

SIMILIS_API ValueAndGradient mutual_information_loss_value_and_gradient(const TensorView& x,
    const TensorView& y, GradientOf wrt = GradientOf::x,
    const MutualInformationOptions& options = {}, const Execution& exec = {});

/// The gradient of Σ upstream·mutual_information(x, y): upstream has the shape of the result and
/// any float dtype. The value is left empty.
SIMILIS_API ValueAndGradient mutual_information_backward(const TensorView& x, const TensorView& y,
    const TensorView& upstream, GradientOf wrt = GradientOf::x,
    const MutualInformationOptions& options = {}, const Execution& exec = {});

/// The joint histogram, [N,C,bins of x,bins of y] in f64, in voxels: it sums to their number.
/// Histograms of parts of an image add up to that of the whole if the range is fixed. With method
/// binned it is not blurred yet.
SIMILIS_API Tensor histogram(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options = {}, const Execution& exec = {});

/// The mutual information of a histogram(), or of a sum of them, in f64. It reads the options
/// normalized, smooth_nr, smooth_dr, method with sigma_ratio, and reduction.
/// Throws InvalidArgument if the histogram is not [N,C,bins,bins] in f64 with 4 to 256 bins.
SIMILIS_API Tensor mutual_information_from_histogram(const TensorView& histogram,
    const MutualInformationOptions& options = {}, const Execution& exec = {});

/// The results of one pass, in memory of the caller; empty views are not computed.
struct MutualInformationRequest {
  enum class Form : std::uint8_t { measure, loss };
  Form form = Form::measure;
  /// A histogram as histogram() returns it, dense, of a whole image of which x and y are a part:
  /// value and gradients are those of the whole. Empty: the histogram of x and y.
  TensorView histogram = {};
  TensorView upstream = {};    ///< multiplies the gradients; shaped as value, a float. Empty: 1
  TensorView value = {};       ///< dense; f32 or f64, whatever the images' dtype
  TensorView x_gradient = {};  ///< any strides without overlap; the images' dtype
  TensorView y_gradient = {};
};

/// The pass behind the functions of this header: for bindings and callers with memory of their own.
/// Throws also if a view of the request has the wrong shape, strides, dtype or device.
SIMILIS_API void mutual_information_into(const TensorView& x, const TensorView& y,
    const MutualInformationRequest& request, const MutualInformationOptions& options = {},
    const Execution& exec = {});
/// into: [N,C,bins,bins], dense, f64.
SIMILIS_API void histogram_into(const TensorView& x, const TensorView& y, const TensorView& into,
    const MutualInformationOptions& options = {}, const Execution& exec = {});
/// value: dense; f32 or f64.
SIMILIS_API void mutual_information_from_histogram_into(const TensorView& histogram,
    const TensorView& value, const MutualInformationOptions& options = {},
    const Execution& exec = {});

}  // namespace similis
