// SPDX-License-Identifier: Apache-2.0
// The passes that iterations take where they are not fused, and those of the guard.
#include "src/registration/cuda/passes.h"

#include "src/registration/cuda/each.cuh"

namespace similis::registration_internal::cuda {
namespace {

struct WeighInside {
  using Result = Found<1, 1>;
  Sizes sizes;
  int rank;
  float start[3], by[3][3], last[3];
  const float *u, *mask;
  float* weights;

  __device__ void operator()(std::int64_t i, Result& found) const {
    int voxel[3];
    sizes.place(i, voxel);
    bool inside = mask == nullptr || mask[i] != 0;
    for (int a = 0; a < rank; ++a) {
      float at = start[a];
      for (int c = 0; c < rank; ++c) {
        at += by[a][c] * static_cast<float>(voxel[c]);
        if (u != nullptr) at += by[a][c] * u[rank * i + c];
      }
      // Rounding must not take the outermost voxels away.
      inside = inside && at >= -1e-3f && at <= last[a] + 1e-3f;
    }
    weights[i] = inside ? 1.0f : 0.0f;
    found.sum[0] += inside ? 1 : 0;
  }
};

struct DropBelow {
  using Result = Found<1, 1>;
  const float* value;
  float least;
  float* weights;

  __device__ void operator()(std::int64_t i, Result& found) const {
    if (!(value[i] >= least)) weights[i] = 0;
    found.sum[0] += weights[i] != 0 ? 1 : 0;
  }
};

struct CountNonzero {
  using Result = Found<1, 1>;
  const float* mask;

  __device__ void operator()(std::int64_t i, Result& found) const {
    found.sum[0] += mask[i] != 0 ? 1 : 0;
  }
};

struct SumMoments {
  using Result = Found<6, 1>;
  const float *f, *j, *weights;

  __device__ void operator()(std::int64_t i, Result& found) const {
    if (weights != nullptr && weights[i] == 0) return;
    const double a = static_cast<double>(f[i]), b = static_cast<double>(j[i]);
    found.sum[0] += 1;
    found.sum[1] += a;
    found.sum[2] += b;
    found.sum[3] += a * a;
    found.sum[4] += b * b;
    found.sum[5] += a * b;
  }
};

struct AddGradient {
  const float *f, *j, *weights;
  LinearGradient by;
  float* gradient;

  __device__ void operator()(std::int64_t i) const {
    if (weights != nullptr && weights[i] == 0) return;
    gradient[i] += by.by_f * (f[i] - by.mean_f) + by.by_j * (j[i] - by.mean_j);
  }
};

// out = factor·in, added to what is there if `adds`; in: null for 1.
struct Scale {
  float factor;
  const float* in;
  float* out;
  bool adds;

  __device__ void operator()(std::int64_t i) const {
    const float value = in == nullptr ? factor : factor * in[i];
    out[i] = adds ? out[i] + value : value;
  }
};

struct Blend {
  Sizes box;
  std::int64_t first, by_y, by_z;  // voxels of the grid
  int rank;
  const float *m, *b;
  float* u;

  __device__ void operator()(std::int64_t i) const {
    if (m[i] == 0) return;
    int at[3];
    box.place(i, at);
    const std::int64_t voxel = first + at[2] * by_z + at[1] * by_y + at[0];
    for (int c = 0; c < rank; ++c) {
      float& value = u[voxel * rank + c];
      value += m[i] * (b[i * rank + c] - value);
    }
  }
};

// to = u(x) + u(x + u(x)); places outside are those at the border.
template <int rank> struct Square {
  Sizes sizes;
  const float* u;
  float* to;

  __device__ void operator()(std::int64_t i) const {
    int at[3];
    sizes.place(i, at);
    const float* const own = u + i * rank;
    int cell = 0, stride = rank, steps[rank];
    float fraction[rank];
    for (int a = 0; a < rank; ++a) {
      const int last = static_cast<int>(sizes.size[a]) - 1;
      const float place =
          fminf(fmaxf(static_cast<float>(at[a]) + own[a], 0), static_cast<float>(last));
      const int first = min(static_cast<int>(place), max(last - 1, 0));
      fraction[a] = place - static_cast<float>(first);
      cell += first * stride;
      steps[a] = last > 0 ? stride : 0;
      stride *= static_cast<int>(sizes.size[a]);
    }
    const auto mix = [](float a, float b, float f) { return fmaf(f, b - a, a); };
    for (int c = 0; c < rank; ++c) {
      const auto row = [&](const float* from) { return mix(from[0], from[steps[0]], fraction[0]); };
      const auto plane = [&](const float* from) {
        return mix(row(from), row(from + steps[1]), fraction[1]);
      };
      const float* const corner = u + cell + c;
      float value = plane(corner);
      if constexpr (rank == 3) value = mix(value, plane(corner + steps[2]), fraction[2]);
      to[i * rank + c] = own[c] + value;
    }
  }
};

struct LargestSquare {
  using Result = Found<1, 1>;  // how many are NaN; the largest
  int rank;
  const float* field;

  __device__ void operator()(std::int64_t i, Result& found) const {
    float square = 0;
    for (int c = 0; c < rank; ++c) square += field[i * rank + c] * field[i * rank + c];
    found.sum[0] += isnan(square) ? 1 : 0;
    found.largest[0] = fmaxf(found.largest[0], square);
  }
};

struct Dilate {
  Sizes sizes;
  int axis, by;
  std::int64_t stride;
  const float* in;
  float* out;

  __device__ void operator()(std::int64_t i) const {
    int at[3];
    sizes.place(i, at);
    const int extent = static_cast<int>(sizes.size[axis]);
    float most = 0;
    for (int k = max(at[axis] - by, 0); k <= min(at[axis] + by, extent - 1); ++k) {
      most = fmaxf(most, in[i + (k - at[axis]) * stride]);
    }
    out[i] = most;
  }
};

// Numbers of the blocks: how many are bad, how many NaN; the largest -determinant, and of the bad
// the largest -x, x, -y, y, -z, z, which f32 holds up to 2²⁴.
template <int rank> struct CornerDeterminants {
  using Result = Found<2, 7>;
  Sizes box;
  int first[3], size[3];
  const float* u;
  float accepted;
  float* flags;

  __device__ void operator()(std::int64_t i, Result& found) const {
    int at[3];
    box.place(i, at);
    std::int64_t voxel = 0, stride = 1;
    for (int a = 0; a < 3; ++a) {
      at[a] += first[a];
      voxel += at[a] * stride;
      stride *= size[a];
    }
    // change[side][a][c]: of component c along axis a, forwards and backwards.
    float change[2][rank][rank];
    const float* const here = u + voxel * rank;
    stride = rank;
    for (int a = 0; a < rank; ++a) {
      const std::int64_t ahead = at[a] + 1 < size[a] ? stride : 0, behind = at[a] > 0 ? stride : 0;
      for (int c = 0; c < rank; ++c) {
        const float one = a == c ? 1.0f : 0.0f;
        const float forward = here[ahead + c] - here[c] + one,
                    backward = here[c] - here[c - behind] + one;
        change[0][a][c] = ahead == 0 ? backward : forward;
        change[1][a][c] = behind == 0 ? forward : backward;
      }
      stride *= size[a];
    }
    float least = INFINITY;
    for (int corner = 0; corner < (1 << rank); ++corner) {
      const float* const x = change[corner & 1][0];
      const float* const y = change[corner >> 1 & 1][1];
      float det;
      if constexpr (rank == 2) {
        det = x[0] * y[1] - x[1] * y[0];
      } else {
        const float* const z = change[corner >> 2 & 1][2];
        det = x[0] * (y[1] * z[2] - y[2] * z[1]) - y[0] * (x[1] * z[2] - x[2] * z[1]) +
              z[0] * (x[1] * y[2] - x[2] * y[1]);
      }
      least = corner == 0 || det < least || isnan(det) ? det : least;
    }
    const bool is_bad = !(least >= accepted);
    if (flags != nullptr) flags[i] = is_bad ? 1.0f : 0.0f;
    found.sum[1] += isnan(least) ? 1 : 0;
    found.largest[0] = fmaxf(found.largest[0], -least);
    if (!is_bad) return;
    found.sum[0] += 1;
    for (int a = 0; a < 3; ++a) {
      const auto place = static_cast<float>(at[a]);
      found.largest[1 + 2 * a] = fmaxf(found.largest[1 + 2 * a], -place);
      found.largest[2 + 2 * a] = fmaxf(found.largest[2 + 2 * a], place);
    }
  }
};

template <int rank>
Determinants corner_determinants_of(const GridRows& rows, const float* u, const Box& box,
    double accepted, float* flags, const Execution& exec) {
  CornerDeterminants<rank> body{.box = Sizes(box.size),
      .first = {},
      .size = {},
      .u = u,
      .accepted = static_cast<float>(accepted),
      .flags = flags};
  for (std::size_t a = 0; a < 3; ++a) {
    body.first[a] = static_cast<int>(box.first[a]);
    body.size[a] = static_cast<int>(rows.size[a]);
  }
  const std::int64_t count = box.size[0] * box.size[1] * box.size[2];
  const auto found = reduce(rows.device, count, exec, body);
  Determinants result;
  result.least = -static_cast<double>(found.largest[0]);
  result.bad = static_cast<std::int64_t>(found.sum[0]);
  if (found.sum[1] > 0) result.least = std::nan("");
  if (result.bad == 0) return result;
  for (std::size_t a = 0; a < 3; ++a) {
    result.around.first[a] = -static_cast<std::int64_t>(found.largest[1 + 2 * a]);
    result.around.size[a] =
        static_cast<std::int64_t>(found.largest[2 + 2 * a]) - result.around.first[a] + 1;
  }
  return result;
}

}  // namespace

std::int64_t weigh_inside(const GridRows& rows, const Map& voxels, const Grid& to, const float* u,
    const float* mask, float* weights, const Execution& exec) {
  WeighInside body{.sizes = Sizes(rows.size),
      .rank = rows.rank,
      .start = {},
      .by = {},
      .last = {},
      .u = u,
      .mask = mask,
      .weights = weights};
  for (std::size_t a = 0; a < 3; ++a) {
    body.start[a] = static_cast<float>(voxels.shift[a]);
    body.last[a] = static_cast<float>(to.size[a] - 1);
    for (std::size_t c = 0; c < 3; ++c)
      body.by[a][c] = static_cast<float>(voxels.linear.rows[a][c]);
  }
  return static_cast<std::int64_t>(reduce(rows.device, rows.voxels(), exec, body).sum[0]);
}

std::int64_t drop_below(
    const GridRows& rows, const float* value, float least, float* weights, const Execution& exec) {
  const DropBelow body{value, least, weights};
  return static_cast<std::int64_t>(reduce(rows.device, rows.voxels(), exec, body).sum[0]);
}

std::int64_t count_nonzero(const GridRows& rows, const float* mask, const Execution& exec) {
  const CountNonzero body{mask};
  return static_cast<std::int64_t>(reduce(rows.device, rows.voxels(), exec, body).sum[0]);
}

Moments moments(const GridRows& rows, const float* f, const float* j, const float* weights,
    const Execution& exec) {
  const auto found = reduce(rows.device, rows.voxels(), exec, SumMoments{f, j, weights});
  return {found.sum[0], found.sum[1], found.sum[2], found.sum[3], found.sum[4], found.sum[5]};
}

void add_gradient(const GridRows& rows, const float* f, const float* j, const float* weights,
    const LinearGradient& by, float* gradient, const Execution& exec) {
  each(rows.device, rows.voxels(), exec, AddGradient{f, j, weights, by, gradient});
}

void add_scaled(Device device, std::int64_t count, float factor, const float* b, float* a,
    const Execution& exec) {
  each(device, count, exec, Scale{factor, b, a, true});
}

void scale(Device device, std::int64_t count, float factor, const float* in, float* out,
    const Execution& exec) {
  each(device, count, exec, Scale{factor, in, out, false});
}

void fill(Device device, std::int64_t count, float value, float* out, const Execution& exec) {
  each(device, count, exec, Scale{value, nullptr, out, false});
}

void blend(const GridRows& rows, const Box& box, const float* m, const float* b, float* u,
    const Execution& exec) {
  const std::int64_t by_y = rows.size[0], by_z = by_y * rows.size[1];
  const Blend body{Sizes(box.size), box.first[2] * by_z + box.first[1] * by_y + box.first[0], by_y,
      by_z, rows.rank, m, b, u};
  each(rows.device, box.size[0] * box.size[1] * box.size[2], exec, body);
}

void square(const GridRows& rows, const float* u, float* to, const Execution& exec) {
  if (rows.rank == 3) {
    each(rows.device, rows.voxels(), exec, Square<3>{Sizes(rows.size), u, to});
  } else {
    each(rows.device, rows.voxels(), exec, Square<2>{Sizes(rows.size), u, to});
  }
}

double largest_square(const GridRows& rows, const float* field, const Execution& exec) {
  const auto found = reduce(rows.device, rows.voxels(), exec, LargestSquare{rows.rank, field});
  return found.sum[0] > 0 ? std::nan("") : static_cast<double>(found.largest[0]);
}

Determinants corner_determinants(const GridRows& rows, const float* u, const Box& box,
    double accepted, float* flags, const Execution& exec) {
  return rows.rank == 3 ? corner_determinants_of<3>(rows, u, box, accepted, flags, exec)
                        : corner_determinants_of<2>(rows, u, box, accepted, flags, exec);
}

void dilate(const GridRows& rows, std::int64_t by, float* flags, const Execution& exec) {
  const Tensor before = allocate({rows.voxels()}, DType::f32, rows.device, exec);
  auto* const held = static_cast<float*>(before.data());
  std::int64_t stride = 1;
  for (int axis = 0; axis < 3; ++axis) {
    scale(rows.device, rows.voxels(), 1, flags, held, exec);
    each(rows.device, rows.voxels(), exec,
        Dilate{Sizes(rows.size), axis, static_cast<int>(by), stride, held, flags});
    stride *= rows.size[static_cast<std::size_t>(axis)];
  }
}

}  // namespace similis::registration_internal::cuda
