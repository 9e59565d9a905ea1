// SPDX-License-Identifier: Apache-2.0
// The passes of damped Gauss-Newton steps: plain loops, which become the vectors of each SIMD
// target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/registration/cpu/curvature.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>

#include "src/core/parallel.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/registration/cpu/passes.h"
#include "src/registration/curvature/formula.h"

#ifndef SIMILIS_REGISTRATION_CURVATURE
#define SIMILIS_REGISTRATION_CURVATURE
namespace similis::registration_internal {

constexpr std::int64_t kPieceOfCurvature = std::int64_t{1} << 14;  // elements that a task takes

struct EdgeRow {
  Averages of;  // from the row's first voxel on
  std::int64_t width;
  Beside y, z;
  int a, b;
};

// A row of a field, and the rows of matrices about it.
struct CoarseRow {
  const float* q;
  std::int64_t width, coarse_width, map;  // map: elements of one
  std::int64_t rows[2][2];                // first elements, by z and y
  float y, z;                             // share of the further ones
};

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {

void multiply_of(const float* HWY_RESTRICT b, float* HWY_RESTRICT a, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) a[i] *= b[i];
}

template <bool has_mask> void edges_in(const EdgeRow& row, float* HWY_RESTRICT out) {
  const EdgeRow r = row;
  const auto edge = [&](std::int64_t x, const Beside& along_x) HWY_ATTR {
    const Beside along[3] = {along_x, r.y, r.z};
    out[x] = edge_product<has_mask>(r.of, x, along[r.a], along[r.b]);
  };
  const std::int64_t last = r.width - 1;
  edge(0, {0, last > 0 ? 1 : 0});
  const Beside inside[3] = {{-1, 1}, r.y, r.z};
  const Beside a = inside[r.a], b = inside[r.b];
  for (std::int64_t x = 1; x < last; ++x) out[x] = edge_product<has_mask>(r.of, x, a, b);
  if (last > 0) edge(last, {-1, 0});
}
void edges_of_row(const EdgeRow* row, float* out) {
  row->of.mask == nullptr ? edges_in<false>(*row, out) : edges_in<true>(*row, out);
}

// memory: 6·stride + 1 floats for each coarse voxel of a row, and one.
void precondition_row(const CoarseRow* row, float* memory, float* field) {
  const CoarseRow r = *row;
  constexpr std::int64_t kStride = kCurvatureStride;
  const std::int64_t pitch = r.coarse_width * kStride;
  float* HWY_RESTRICT line = memory + 6 * pitch;
  for (int k = 0; k < 6; ++k) {
    const float* const map = r.q + k * r.map;
    const float *HWY_RESTRICT a = map + r.rows[0][0], *HWY_RESTRICT b = map + r.rows[0][1],
                              *HWY_RESTRICT c = map + r.rows[1][0],
                              *HWY_RESTRICT d = map + r.rows[1][1];
    for (std::int64_t i = 0; i < r.coarse_width; ++i) {
      const float near = a[i] + r.y * (b[i] - a[i]), far = c[i] + r.y * (d[i] - c[i]);
      line[i] = near + r.z * (far - near);
    }
    line[r.coarse_width] = line[r.coarse_width - 1];
    float* HWY_RESTRICT to = memory + k * pitch;
    for (std::int64_t i = 0; i < r.coarse_width; ++i) {
      const float from = line[i], step = line[i + 1] - from;
      for (std::int64_t j = 0; j < kStride; ++j) {
        to[i * kStride + j] = from + static_cast<float>(j) / kStride * step;
      }
    }
  }
  const float* HWY_RESTRICT q = memory;
  float* HWY_RESTRICT g = field;
  for (std::int64_t i = 0; i < r.width; ++i) {
    const float of_voxel[6] = {
        q[i], q[pitch + i], q[2 * pitch + i], q[3 * pitch + i], q[4 * pitch + i], q[5 * pitch + i]};
    float v[3] = {g[3 * i], g[3 * i + 1], g[3 * i + 2]};
    solve_damped(of_voxel, v);
    g[3 * i] = v[0];
    g[3 * i + 1] = v[1];
    g[3 * i + 2] = v[2];
  }
}

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(multiply_of);
HWY_EXPORT(edges_of_row);
HWY_EXPORT(precondition_row);

namespace cpu {

void multiply(Device, std::int64_t count, const float* b, float* a, const Execution& exec) {
  parallel_for(exec, (count + kPieceOfCurvature - 1) / kPieceOfCurvature, [&](std::int64_t task) {
    const std::int64_t first = task * kPieceOfCurvature;
    HWY_DYNAMIC_DISPATCH(multiply_of)
    (b + first, a + first, std::min(kPieceOfCurvature, count - first));
  });
}

void edge_products(
    const GridRows& rows, const Averages& of, int a, int b, float* out, const Execution& exec) {
  const std::int64_t width = rows.size[0], height = rows.size[1], depth = rows.size[2];
  parallel_for(exec, rows.count(), [&](std::int64_t task) {
    const std::int64_t y = task % height, z = task / height, first = task * width,
                       plane = width * height;
    const EdgeRow row{.of = {of.values + first, of.mean + first, of.square + first,
                          of.mask == nullptr ? nullptr : of.mask + first},
        .width = width,
        .y = {y > 0 ? -width : 0, y + 1 < height ? width : 0},
        .z = {z > 0 ? -plane : 0, z + 1 < depth ? plane : 0},
        .a = a,
        .b = b};
    HWY_DYNAMIC_DISPATCH(edges_of_row)(&row, out + first);
  });
}

void precondition(const GridRows& rows, const float* q, float* field, const Execution& exec) {
  const std::int64_t width = rows.size[0], height = rows.size[1], depth = rows.size[2];
  const auto coarse = curvature_size(rows.size);
  parallel_for(exec, depth, [&](std::int64_t z) {
    AlignedVector<float> memory(
        static_cast<std::size_t>((6 * kCurvatureStride + 1) * coarse[0] + 1));
    for (std::int64_t y = 0; y < height; ++y) {
      CoarseRow row{.q = q,
          .width = width,
          .coarse_width = coarse[0],
          .map = coarse[0] * coarse[1] * coarse[2],
          .rows = {},
          .y = static_cast<float>(y % kCurvatureStride) / kCurvatureStride,
          .z = static_cast<float>(z % kCurvatureStride) / kCurvatureStride};
      for (std::int64_t far_z = 0; far_z < 2; ++far_z) {
        for (std::int64_t far_y = 0; far_y < 2; ++far_y) {
          const std::int64_t at_z = std::min(z / kCurvatureStride + far_z, coarse[2] - 1),
                             at_y = std::min(y / kCurvatureStride + far_y, coarse[1] - 1);
          row.rows[far_z][far_y] = (at_z * coarse[1] + at_y) * coarse[0];
        }
      }
      HWY_DYNAMIC_DISPATCH(precondition_row)
      (&row, memory.data(), field + 3 * (z * height + y) * width);
    }
  });
}

}  // namespace cpu
}  // namespace similis::registration_internal
#endif
