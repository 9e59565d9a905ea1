// SPDX-License-Identifier: Apache-2.0
// Registration: the map that lays one image over another, in 2D and 3D.
//
// Points are in millimetres of a world that both images share. The result maps points of the fixed
// image to points of the moving one ("pull back"):
//
//   T(p) = A(p + u(p)),   inverse: p = q' + w(q') with q' = A⁻¹(q)
//
// A is affine, u and w are displacements on the fixed image's grid, interpolated linearly. Linear
// stages find A: Adam on mutual information, from several starts, on two coarse grids. The
// deformable stage finds u, coarse to fine: each step follows the smoothed gradient of the metrics,
// is composed with u, and a guard repairs the field before it may fold. The greedy form of B. B.
// Avants et al., "Symmetric diffeomorphic image registration with cross-correlation", Medical Image
// Analysis 12(1), 2008. The symmetric stage follows a stationary velocity v instead, u = exp(v) and
// w = exp(-v), whose metrics are the mean of both directions: V. Arsigny et al., "A log-Euclidean
// framework for statistics on diffeomorphisms", MICCAI 2006. It and the linear stages before it use
// the same one of both images as the base whichever is called fixed, so swapped images give the
// inverse. Registration runs where the images are, and its results are there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// A map of points (x, y, z): rows of 3 factors and an addend. In 2D z is left as it is.
using AffineRows = std::array<double, 12>;
inline constexpr AffineRows kIdentityRows = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};

struct Volume {
  TensorView data;  ///< [1,C,Y,X] or [1,C,Z,Y,X] with one channel or more, of any dtype (on a GPU
                    ///< but i16, i32 and boolean), on the CPU or a CUDA device
  AffineRows to_world = kIdentityRows;  ///< voxel numbers (x, y, z) to millimetres
};

enum class RegisterStage : std::uint8_t {
  translation,
  rigid,
  similarity,  ///< rigid with one scale
  affine,
  deformable,  ///< greedy
  symmetric,   ///< instead of it: a stationary velocity that moves both images
};

enum class RegisterMetric : std::uint8_t {
  lncc,
  ncc,
  mi,
  mse,
  dice,  ///< overlap of the labels, RegisterOptions::fixed_labels; only of the deformable stages
};

/// One term of what a stage maximises: weight times the metric's mean over voxels and channels.
struct MetricTerm {
  RegisterMetric metric = RegisterMetric::lncc;
  double weight = 1;
  int window_size = 5;     ///< of lncc, in voxels, odd
  int num_bins = 48;       ///< of mi
  double sampling = 1;     ///< of mi: share of the voxels that are counted
  std::uint64_t seed = 0;  ///< which voxels these are
};

enum class RegisterPreset : std::uint8_t {
  quick,     ///< 30, 20 and 10 iterations, coarse to fine; further levels repeat the first
  balanced,  ///< 50, 40, 20
  accurate,  ///< 100, 100, 20
};

/// The map before the first stage.
enum class RegisterStart : std::uint8_t {
  automatic,  ///< the best of several: the identity, and the centres of mass with rotations
  centers,    ///< the centre of the fixed grid goes to that of the moving one
  moments,    ///< likewise the centres of mass
  identity,
  given,  ///< RegisterOptions::initial
};

struct RegisterProgress {
  RegisterStage stage;
  int shrink;               ///< factor of the level; 0 in linear stages
  int iteration;            ///< from 0
  int iterations;           ///< of the level, at most
  double loss;              ///< the negative of the weighted metrics
  double min_jacobian = 1;  ///< least determinant of the field that the loss is of
};

struct RegisterOptions {
  std::vector<RegisterStage> stages = {
      RegisterStage::rigid, RegisterStage::affine, RegisterStage::deformable};
  RegisterStart start = RegisterStart::automatic;
  AffineRows initial = kIdentityRows;  ///< read with RegisterStart::given
  std::vector<MetricTerm> metrics = {{}, {.metric = RegisterMetric::ncc}};
  MetricTerm linear_metric = {.metric = RegisterMetric::mi, .num_bins = 32};
  RegisterPreset preset = RegisterPreset::balanced;
  std::vector<int> iterations = {};    ///< per level, coarse to fine; empty: the preset's
  std::vector<int> levels = {};        ///< shrink factors; empty: 4, 2, 1, more for large images
  std::optional<double> fluid = {};    ///< σ of the gradient's smoothing in voxels; empty: 3, 2.5
                                       ///< of symmetric, and at full resolution up to 1 more where
                                       ///< images are noisy; 4 where mi is the only metric
  std::optional<double> elastic = {};  ///< σ of the field's; empty: 0.25
  double step = 0.5;                   ///< largest displacement of an iteration, in voxels
  double min_jacobian = 0.1;  ///< least determinant of one-sided differences that the guard accepts
  double tolerance = 1e-5;    ///< a level ends where the loss falls by less in an iteration
  TensorView fixed_mask = {};     ///< [Y,X] or [Z,Y,X], any dtype; voxels that are not 0 count
  TensorView moving_mask = {};    ///< likewise on the moving grid
  TensorView fixed_labels = {};   ///< shaped as a mask: integers, 0 for none; read with the metric
                                  ///< dice, which is the mean over the labels that both images have
  TensorView moving_labels = {};  ///< likewise on the moving grid
  bool mask_not_finite = false;   ///< NaN and infinity are outside the mask; else they are refused
  std::string fixed_name = "fixed", moving_name = "moving";  ///< in messages
  /// Called after each iteration; false ends the registration with the last valid field. On a GPU
  /// iterations of the greedy stage are told of up to 10 at a time, after all of them were taken.
  std::function<bool(const RegisterProgress&)> progress = {};
};

struct RegisterLevel {
  int shrink = 0;  ///< 0 in linear stages
  std::vector<double> loss;
  std::vector<double> min_jacobian;  ///< of the field after each iteration; deformable stages only
  const char* stopped = "iterations";  ///< or "tolerance", "guard", "flat" or "callback"
};
struct RegisterStageReport {
  RegisterStage stage;
  double seconds = 0;
  std::vector<RegisterLevel> levels;
};

struct RegisterSummary {
  double mean = 0, p99 = 0, max = 0;
};

struct Registration {
  AffineRows affine = kIdentityRows;  ///< A
  Tensor displacement;                ///< u in mm, [1,Y,X,2] or [1,Z,Y,X,3], f32; empty without a
                                      ///< deformable stage
  Tensor inverse_displacement;        ///< w likewise
  Tensor warped;                      ///< moving at T on the fixed grid, [1,C,…], f32; 0 outside
  std::vector<RegisterStageReport> stages;
  double fluid = 0, elastic = 0;  ///< of the deformable stage's last level, as it took them
  std::vector<int> levels, iterations;
  std::int64_t repairs = 0;          ///< iterations in which the guard changed the field
  double repaired_share = 0;         ///< largest share of voxels that it changed in one of them
  double min_jacobian = 1;           ///< least determinant of one-sided differences of u
  double overlap = 1;                ///< share of the fixed voxels that T maps into the moving grid
  RegisterSummary inverse_error_mm;  ///< |u(x + w) + w|
};

/// Registers moving to fixed. The same arguments give the same bits, for any number of threads and
/// in every run on a GPU. Maps of a CPU and of a GPU agree to 0.02 voxel on average: linear stages
/// and coarse levels are in f64, and find the same. It waits for the GPU. Memory: about 60 B per
/// fixed voxel and channel beside both images; on a GPU at most 52 in the greedy stage with its
/// defaults. The metric dice adds 20 B per voxel and label. Throws InvalidArgument if the images
/// have different numbers of axes or channels, an extent below 2, a value that is not finite, or
/// one value only; a mask has another shape or counts no voxel; labels are missing, are no
/// integers, or are not shared by the images; a map is singular; the images are on different
/// devices, or have 2³¹ voxels or more on a GPU; the start lays less than 5 % of the fixed voxels
/// over the moving grid; or an option is outside its range.
SIMILIS_API Registration register_images(const Volume& fixed, const Volume& moving,
    const RegisterOptions& options = {}, const Execution& exec = {});

/// T of an image on the moving grid: sampled linearly (or by the nearest voxel) on the fixed grid,
/// 0 outside. image: [1,C,…] of a float dtype, on moving_to_world's grid.
SIMILIS_API Tensor apply_registration(const Registration& registration, const Volume& fixed,
    const Volume& image, bool nearest = false, const Execution& exec = {});

/// The determinant of the derivative of p + u(p) at each voxel of the fixed image, by central
/// differences: [1,Y,X] or [1,Z,Y,X], f32. The registration must have a displacement.
SIMILIS_API Tensor registration_jacobian(
    const Registration& registration, const Volume& fixed, const Execution& exec = {});

struct RegisterSimilarity {
  double ncc = 0;   ///< Pearson's correlation
  double mi = 0;    ///< mutual information, in nats
  double lncc = 0;  ///< mean squared local correlation in windows of 5 voxels
};
/// Measures how alike two images on one grid are. fixed, other: [1,C,…], any dtype, on one device.
/// mask: [1,1,…], any dtype; voxels that are not 0 count; empty: all. Voxels where either image is
/// not finite are left out too, also of LNCC's windows; where none is left, numbers are NaN.
SIMILIS_API RegisterSimilarity register_similarity(const TensorView& fixed, const TensorView& other,
    const TensorView& mask = {}, const Execution& exec = {});

}  // namespace similis
