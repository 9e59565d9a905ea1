// SPDX-License-Identifier: Apache-2.0
// The passes of damped Gauss-Newton steps. A field times (1 + Q)⁻¹ or (1 + Q) moves 24 B a voxel: Q
// lies on every fourth voxel along each axis, and a thread takes a column of four planes between
// two planes of it, for which it loads 24 numbers of Q and 12 of the field at once.
#include "src/registration/curvature/formula.h"

#include "src/registration/cuda/curvature.h"
#include "src/registration/cuda/each.cuh"
#include "src/registration/cuda/passes.h"

namespace similis::registration_internal::cuda {
namespace {

struct Multiply {
  const float* b;
  float* a;

  __device__ void operator()(std::int64_t i) const { a[i] *= b[i]; }
};

struct EdgeProducts {
  Sizes sizes;
  Averages of;
  int a, b;
  float* out;

  __device__ void operator()(std::int64_t i) const {
    int at[3];
    sizes.place(i, at);
    const std::int64_t step[3] = {1, sizes.size[0], std::int64_t{sizes.size[0]} * sizes.size[1]};
    Beside along[3];
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      const bool is_last = at[axis] + 1 == static_cast<int>(sizes.size[axis]);
      along[axis] = {at[axis] > 0 ? -step[axis] : 0, is_last ? 0 : step[axis]};
    }
    out[i] = of.mask == nullptr ? edge_product<false>(of, i, along[a], along[b])
                                : edge_product<true>(of, i, along[a], along[b]);
  }
};

constexpr int kStride = static_cast<int>(kCurvatureStride);
constexpr int kWidth = 32, kHeight = 8;  // of a block's tile
constexpr int kSteps = 4;                // planes of Q that a block passes
static_assert(kWidth * kHeight == kThreads);

struct PreconditionPass {
  int size[3], coarse[3];
  int tiles_x, tiles_y;
  const float* q;
  float* field;
  smooth_internal::Gate gate;
};

template <bool restores>
__global__ __launch_bounds__(kThreads) void precondition_kernel(
    const SIMILIS_GRID_CONSTANT PreconditionPass pass) {
  if (!pass.gate.is_open()) return;
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int x = block % pass.tiles_x * kWidth + t % kWidth,
            y = block / pass.tiles_x % pass.tiles_y * kHeight + t / kWidth,
            first = block / pass.tiles_x / pass.tiles_y * kSteps;  // plane of Q
  const bool is_mine = x < pass.size[0] && y < pass.size[1];
  unsigned most = 0;  // bits of the largest square
  if (is_mine) {
    const int low_x = x / kStride, low_y = y / kStride, high_x = min(low_x + 1, pass.coarse[0] - 1),
              high_y = min(low_y + 1, pass.coarse[1] - 1);
    const float share_x = static_cast<float>(x % kStride) / kStride,
                share_y = static_cast<float>(y % kStride) / kStride;
    const int corners[2][2] = {{low_y * pass.coarse[0] + low_x, low_y * pass.coarse[0] + high_x},
        {high_y * pass.coarse[0] + low_x, high_y * pass.coarse[0] + high_x}};
    const std::int64_t coarse_plane = std::int64_t{pass.coarse[0]} * pass.coarse[1],
                       map = coarse_plane * pass.coarse[2],
                       plane = 3 * std::int64_t{pass.size[0]} * pass.size[1];
    const auto mix = [](float a, float b, float share) { return fmaf(share, b - a, a); };
    const auto matrix = [&](int z, float(&m)[6]) {
      const float* const of_plane = pass.q + min(z, pass.coarse[2] - 1) * coarse_plane;
#pragma unroll
      for (int k = 0; k < 6; ++k) {
        const float* const at = of_plane + k * map;
        m[k] = mix(mix(at[corners[0][0]], at[corners[0][1]], share_x),
            mix(at[corners[1][0]], at[corners[1][1]], share_x), share_y);
      }
    };
    float here[6], behind[6];
    matrix(first, here);
    float* place = pass.field + first * kStride * plane + 3 * (std::int64_t{y} * pass.size[0] + x);
    for (int step = 0; step < kSteps; ++step) {
      const int z0 = (first + step) * kStride;
      if (z0 >= pass.size[2]) break;
      float g[kStride][3];
#pragma unroll
      for (int i = 0; i < kStride; ++i) {
        const float* const from = place + i * plane;
#pragma unroll
        for (int c = 0; c < 3; ++c) g[i][c] = z0 + i < pass.size[2] ? from[c] : 0;
      }
      matrix(first + step + 1, behind);
#pragma unroll
      for (int i = 0; i < kStride; ++i) {
        const float share = static_cast<float>(i) / kStride;
        float m[6];
#pragma unroll
        for (int k = 0; k < 6; ++k) m[k] = mix(here[k], behind[k], share);
        float moved[3] = {g[i][0], g[i][1], g[i][2]};
        if constexpr (restores) {
          const float x_ = g[i][0], y_ = g[i][1], z_ = g[i][2];
          moved[0] += fmaf(m[0], x_, fmaf(m[3], y_, m[4] * z_));
          moved[1] += fmaf(m[3], x_, fmaf(m[1], y_, m[5] * z_));
          moved[2] += fmaf(m[4], x_, fmaf(m[5], y_, m[2] * z_));
        } else {
          solve_damped(m, moved);
        }
        if (z0 + i >= pass.size[2]) break;
#pragma unroll
        for (int c = 0; c < 3; ++c) place[c] = moved[c];
        most = max(
            most, __float_as_uint(moved[0] * moved[0] + moved[1] * moved[1] + moved[2] * moved[2]));
        place += plane;
      }
#pragma unroll
      for (int k = 0; k < 6; ++k) here[k] = behind[k];
    }
  }
  if (pass.gate.largest != nullptr) pass.gate.raise_largest(most);
}

}  // namespace

void multiply(Device device, std::int64_t count, const float* b, float* a, const Execution& exec) {
  each(device, count, exec, Multiply{b, a});
}

void edge_products(
    const GridRows& rows, const Averages& of, int a, int b, float* out, const Execution& exec) {
  each(rows.device, rows.voxels(), exec, EdgeProducts{Sizes(rows.size), of, a, b, out});
}

namespace {

template <bool restores>
void launch(const GridRows& rows, const float* q, float* field, const smooth_internal::Gate& gate,
    const Execution& exec) {
  const gpu::Current current(rows.device);
  PreconditionPass pass{
      .size = {}, .coarse = {}, .tiles_x = 1, .tiles_y = 1, .q = q, .field = field, .gate = gate};
  const auto coarse = curvature_size(rows.size);
  for (std::size_t a = 0; a < 3; ++a) {
    pass.size[a] = static_cast<int>(rows.size[a]);
    pass.coarse[a] = static_cast<int>(coarse[a]);
  }
  constexpr int kPlanes = kSteps * kStride;
  pass.tiles_x = (pass.size[0] + kWidth - 1) / kWidth;
  pass.tiles_y = (pass.size[1] + kHeight - 1) / kHeight;
  const std::int64_t tiles =
      std::int64_t{pass.tiles_x} * pass.tiles_y * ((pass.size[2] + kPlanes - 1) / kPlanes);
  gpu::launch(kName, exec.queue.handle, static_cast<unsigned>(tiles), kThreads, 0,
      precondition_kernel<restores>, pass);
}

}  // namespace

void launch_precondition(const GridRows& rows, const float* q, float* field,
    const smooth_internal::Gate& gate, const Execution& exec) {
  launch<false>(rows, q, field, gate, exec);
}

void launch_restoration(const GridRows& rows, const float* q, float* field,
    const smooth_internal::Gate& gate, const Execution& exec) {
  launch<true>(rows, q, field, gate, exec);
}

void precondition(const GridRows& rows, const float* q, float* field, const Execution& exec) {
  launch<false>(rows, q, field, {}, exec);
}

}  // namespace similis::registration_internal::cuda
