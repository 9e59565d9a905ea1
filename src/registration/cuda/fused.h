// SPDX-License-Identifier: Apache-2.0
// Greedy iterations on a GPU, fused: no host between them, and fields that take turns in three
// buffers. Full resolution is in f32, coarse levels in f64. An iteration on a level's grid of
// volumes with one channel:
//
//   windows_kernel    F, J ─> slopes of LNCC by its averages, in a buffer; the loss
//   slopes_kernel     these, F, J, u, M ─> g = ∂(metrics)/∂u + momentum·g
//   (smooth)          g ─> G_fluid g, and its largest vector
//   compose_kernel    d = step·g / largest;  u' = G_elastic (d + u(x + d))
//   warp_kernel       u', M ─> J = M(A(x + u')), moments of F and J; determinants of u'
//
// In f64 g and u' are rounded as drop_last_digits() does: the kernels that read g round it, so that
// no pass over it is needed, and composing rounds u'. J is NaN where a voxel does not count. Every
// kernel looks at State::limit first: where the guard has work, or a level is at its end, all later
// iterations of the batch do nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/execution.hpp"
#include "src/core/host_device.h"
#include "src/registration/levels.h"

namespace similis::registration_internal::cuda {

constexpr int kBatch = 10;          // iterations between two looks of the host
constexpr int kLossesOfSlope = 10;  // as the CPU's

/// The record of an iteration.
struct Record {
  double loss;
  unsigned long long bad;  ///< voxels below the least determinant after it
  unsigned largest;        ///< bits of the largest squared vector of the smoothed gradient in f32
  unsigned long long largest_f64;  ///< likewise in f64
  double least;                    ///< determinant after it; NaN if one is
  int before[3], behind[3];  ///< of the bad voxels along x, y, z: the largest size - place, and
                             ///< the largest place + 1
  int is_flat;               ///< the gradient led nowhere: there was no step
  int is_converged;          ///< the loss no longer falls
};

/// On the device; begins as zeros.
struct State {
  /// Number of the last iteration that may run; 0: none is the last. Numbers begin at 1 for the
  /// warp before the first iteration.
  int limit;
  unsigned tickets[2];  ///< of blocks that are done
  int losses_seen;
  double count, mean_f, mean_j, by_f, by_j, pearson;  ///< the linear gradient of NCC
  double g_unit;               ///< g in f64 is rounded to its multiples; 0 before the first step
  double losses[16];           ///< the last, by iteration
  Record records[kBatch + 1];  ///< the last: of a field outside a batch
};

/// Two volumes of one channel, and the map between their voxels.
template <class T> struct Volumes {
  int size[3];  ///< of the fixed grid, x, y, z
  int moving_size[3];
  T start[3], by[3][3];  ///< voxel numbers of fixed to those of moving
  T inside[3];           ///< the last place of the moving grid, and kSlack
  const T *fixed, *moving;
  const T *fixed_mask, *moving_mask;  ///< null: all count
  Device device;

  SIMILIS_HOST_DEVICE std::int64_t voxels() const {
    return std::int64_t{size[0]} * size[1] * size[2];
  }
  void set_map(const Map& voxels) {
    for (std::size_t a = 0; a < 3; ++a) {
      start[a] = static_cast<T>(voxels.shift[a]);
      for (std::size_t c = 0; c < 3; ++c) by[a][c] = static_cast<T>(voxels.linear.rows[a][c]);
    }
  }
};
/// Sets all but the map. The images' elements are of type T.
template <class T> void set_images(const Image& fixed, const Image& moving, Volumes<T>& volumes) {
  volumes.fixed = fixed.values.elements<T>();
  volumes.moving = moving.values.elements<T>();
  volumes.fixed_mask = fixed.mask.elements<T>();
  volumes.moving_mask = moving.mask.elements<T>();
  volumes.device = fixed.grid.device;
  for (std::size_t a = 0; a < 3; ++a) {
    volumes.size[a] = static_cast<int>(fixed.grid.size[a]);
    volumes.moving_size[a] = static_cast<int>(moving.grid.size[a]);
    volumes.inside[a] = static_cast<T>(volumes.moving_size[a] - 1) + static_cast<T>(kSlack);
  }
}

/// The arguments of all kernels of a level.
template <class T> struct Level : Volumes<T> {
  T* j;
  double* partials;  ///< of blocks
  State* state;
  T lncc_weight, ncc_weight;  ///< 0: left out
  T momentum;                 ///< of the gradient that the slopes are added to; 0: it is not read
  double tolerance;
  T min_jacobian;
};
template <class T> Level<T> fused_level(const Image& fixed, const Image& moving, const Map& voxels);

/// True if the kernels take the image: a volume with one channel, whose planes they count in 32
/// bits.
bool is_fusable(const Image& image);
/// Sets the weights of one LNCC and at most one NCC, and returns LNCC's window size; 0 for other
/// metrics, which the kernels do not take.
template <class T> int set_metrics(const std::vector<MetricTerm>& terms, Level<T>& level);

/// The number of an iteration, and its place in the batch.
struct Iteration {
  int number, record;

  SIMILIS_HOST_DEVICE bool runs(const State* state) const {
    return state->limit == 0 || number <= state->limit;
  }
};

constexpr int kColumns = 32, kRows = 8;  // of a block's tile of a plane: a thread each
constexpr int kTile = kColumns * kRows;

/// Numbers that the blocks of a launch leave in Level::partials.
template <class T> std::int64_t warp_numbers(const Level<T>& level);
template <class T> std::int64_t windows_numbers(const Level<T>& level);

/// window_size: as set_metrics() returns it. Buffers of slopes and fields take 3 numbers a voxel.
template <class T>
void launch_warp(const Level<T>& level, Iteration at, const T* u, const Execution& exec);
template <class T>
void launch_windows(
    const Level<T>& level, Iteration at, int window_size, T* slopes, const Execution& exec);
/// With momentum g holds that of the iteration before, smoothed; zeros before the first.
template <class T>
void launch_slopes(const Level<T>& level, Iteration at, int window_size, const T* slopes,
    const T* u, T* g, const Execution& exec);
/// The largest radius of a smoothing in f64.
constexpr int kMostRadiusOfF64 = 12;
/// Smooths g in f64 with zeros outside, and finds its largest vector. taps: from the middle on.
/// work, scratch: of g's size.
void launch_smoothing(const Level<double>& level, Iteration at, const std::vector<double>& taps,
    double* g, double* work, double* scratch, const Execution& exec);
/// The taps of a smoothing of radius 1 or 0.
struct Elastic {
  double centre, beside;
};
/// step: the length that the largest vector of g gets, up to 1 voxel.
template <class T>
void launch_compose(const Level<T>& level, Iteration at, double step, const Elastic& elastic,
    const T* g, const T* u, T* to, const Execution& exec);

}  // namespace similis::registration_internal::cuda
