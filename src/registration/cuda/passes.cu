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
  double start[3], by[3][3], last[3];
  Reals u, mask, weights;

  __device__ void operator()(std::int64_t i, Result& found) const {
    int voxel[3];
    sizes.place(i, voxel);
    bool inside = mask.empty() || mask[i] != 0;
    for (int a = 0; a < rank; ++a) {
      double at = start[a];
      for (int c = 0; c < rank; ++c) {
        at += by[a][c] * voxel[c];
        if (!u.empty()) at += by[a][c] * u[rank * i + c];
      }
      inside = inside && at >= -kSlack && at <= last[a] + kSlack;
    }
    weights.set(i, inside ? 1 : 0);
    found.sum[0] += inside ? 1 : 0;
  }
};

struct DropBelow {
  using Result = Found<1, 1>;
  Reals value;
  double least;
  Reals weights;

  __device__ void operator()(std::int64_t i, Result& found) const {
    if (!(value[i] >= least)) weights.set(i, 0);
    found.sum[0] += weights[i] != 0 ? 1 : 0;
  }
};

struct CountNonzero {
  using Result = Found<1, 1>;
  Reals mask;

  __device__ void operator()(std::int64_t i, Result& found) const {
    found.sum[0] += mask[i] != 0 ? 1 : 0;
  }
};

struct SumMoments {
  using Result = Found<6, 1>;
  Reals f, j, weights;

  __device__ void operator()(std::int64_t i, Result& found) const {
    if (!weights.empty() && weights[i] == 0) return;
    const double a = f[i], b = j[i];
    found.sum[0] += 1;
    found.sum[1] += a;
    found.sum[2] += b;
    found.sum[3] += a * a;
    found.sum[4] += b * b;
    found.sum[5] += a * b;
  }
};

struct AddGradient {
  Reals f, j, weights;
  LinearGradient by;
  Reals gradient;

  __device__ void operator()(std::int64_t i) const {
    if (!weights.empty() && weights[i] == 0) return;
    gradient.set(i, gradient[i] + by.by_f * (f[i] - by.mean_f) + by.by_j * (j[i] - by.mean_j));
  }
};

constexpr int kTogether = 4;  // elements of a thread: one alone is too little under way

template <class T> struct alignas(16) Together { T of[kTogether]; };

// out = factor·in, added to what is there if `adds`; in: null for 1. i: of kTogether elements.
template <class From, class To> struct Scale {
  std::int64_t count;
  double factor;
  const From* in;
  To* out;
  bool adds, is_aligned;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t first = i * kTogether, end = first + kTogether;
    if (!is_aligned || end > count) {
      for (std::int64_t k = first; k < end && k < count; ++k) {
        out[k] = value(in == nullptr ? From(1) : in[k], adds ? out[k] : To(0));
      }
      return;
    }
    Together<From> from = {{1, 1, 1, 1}};
    Together<To> to = {};
    if (in != nullptr) from = *reinterpret_cast<const Together<From>*>(in + first);
    if (adds) to = *reinterpret_cast<const Together<To>*>(out + first);
#pragma unroll
    for (int k = 0; k < kTogether; ++k) to.of[k] = value(from.of[k], to.of[k]);
    *reinterpret_cast<Together<To>*>(out + first) = to;
  }
  __device__ To value(From from, To before) const {
    const double own = factor * static_cast<double>(from);
    return static_cast<To>(adds ? static_cast<double>(before) + own : own);
  }
};

void launch_scale(Device device, std::int64_t count, double factor, Reals in, Reals out, bool adds,
    const Execution& exec) {
  with_type(out, [&]<class To>(To) {
    const auto run = [&]<class From>(From) {
      const auto* const from = in.as<From>();
      auto* const to = out.as<To>();
      const auto address =
          reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
      each(device, (count + kTogether - 1) / kTogether, exec,
          Scale<From, To>{count, factor, from, to, adds, address % alignof(Together<To>) == 0});
    };
    in.empty() ? run(To()) : with_type(in, run);
  });
}

struct Blend {
  Sizes box;
  std::int64_t first, by_y, by_z;  // voxels of the grid
  int rank;
  Reals m, b, u;

  __device__ void operator()(std::int64_t i) const {
    if (m[i] == 0) return;
    int at[3];
    box.place(i, at);
    const std::int64_t voxel = first + at[2] * by_z + at[1] * by_y + at[0];
    for (int c = 0; c < rank; ++c) {
      const double value = u[voxel * rank + c];
      u.set(voxel * rank + c, value + m[i] * (b[i * rank + c] - value));
    }
  }
};

// to = d(x) + u(x + d(x)); places outside are those at the border.
template <class T, int rank> struct Compose {
  Sizes sizes;
  const T *d, *u;
  T* to;

  __device__ void operator()(std::int64_t i) const {
    int at[3];
    sizes.place(i, at);
    const T* const own = d + i * rank;
    int cell = 0, stride = rank, steps[rank];
    T fraction[rank];
    for (int a = 0; a < rank; ++a) {
      const int last = static_cast<int>(sizes.size[a]) - 1;
      const T moved = static_cast<T>(at[a]) + own[a];
      const T place = moved > 0 ? moved < static_cast<T>(last) ? moved : static_cast<T>(last) : 0;
      const int first = min(static_cast<int>(place), max(last - 1, 0));
      fraction[a] = place - static_cast<T>(first);
      cell += first * stride;
      steps[a] = last > 0 ? stride : 0;
      stride *= static_cast<int>(sizes.size[a]);
    }
    const auto mix = [](T a, T b, T f) { return fma(f, b - a, a); };
    for (int c = 0; c < rank; ++c) {
      const auto row = [&](const T* from) { return mix(from[0], from[steps[0]], fraction[0]); };
      const auto plane = [&](const T* from) {
        return mix(row(from), row(from + steps[1]), fraction[1]);
      };
      const T* const corner = u + cell + c;
      T value = plane(corner);
      if constexpr (rank == 3) value = mix(value, plane(corner + steps[2]), fraction[2]);
      to[i * rank + c] = own[c] + value;
    }
  }
};

struct LargestSquare {
  using Result = Found<1, 1>;  // how many are NaN; the largest
  int rank;
  Reals field;

  __device__ void operator()(std::int64_t i, Result& found) const {
    double square = 0;
    for (int c = 0; c < rank; ++c) square += field[i * rank + c] * field[i * rank + c];
    found.sum[0] += isnan(square) ? 1 : 0;
    found.largest[0] = fmax(found.largest[0], square);
  }
};

template <class T> struct Dilate {
  Sizes sizes;
  int by;
  const T* in;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    int at[3], first[3], last[3];
    sizes.place(i, at);
    for (int a = 0; a < 3; ++a) {
      first[a] = max(at[a] - by, 0);
      last[a] = min(at[a] + by, static_cast<int>(sizes.size[a]) - 1);
    }
    T most = 0;
    for (int z = first[2]; z <= last[2]; ++z) {
      for (int y = first[1]; y <= last[1]; ++y) {
        const T* const row = in + (std::int64_t{z} * sizes.size[1] + y) * sizes.size[0];
        for (int x = first[0]; x <= last[0]; ++x) most = fmax(most, row[x]);
      }
    }
    out[i] = most;
  }
};

// Numbers of the blocks: how many are bad, how many NaN; the largest -determinant, and of the bad
// the largest -x, x, -y, y, -z, z.
template <class T, int rank> struct CornerDeterminants {
  using Result = Found<2, 7>;
  Sizes box;
  int first[3], size[3];
  const T* u;
  T accepted;
  T* flags;

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
    T change[2][rank][rank];
    const T* const here = u + voxel * rank;
    stride = rank;
    for (int a = 0; a < rank; ++a) {
      const std::int64_t ahead = at[a] + 1 < size[a] ? stride : 0, behind = at[a] > 0 ? stride : 0;
      for (int c = 0; c < rank; ++c) {
        const T one = a == c ? 1 : 0;
        const T forward = here[ahead + c] - here[c] + one,
                backward = here[c] - here[c - behind] + one;
        change[0][a][c] = ahead == 0 ? backward : forward;
        change[1][a][c] = behind == 0 ? forward : backward;
      }
      stride *= size[a];
    }
    T least = INFINITY;
    for (int corner = 0; corner < (1 << rank); ++corner) {
      const T* const x = change[corner & 1][0];
      const T* const y = change[corner >> 1 & 1][1];
      T det;
      if constexpr (rank == 2) {
        det = x[0] * y[1] - x[1] * y[0];
      } else {
        const T* const z = change[corner >> 2 & 1][2];
        det = x[0] * (y[1] * z[2] - y[2] * z[1]) - y[0] * (x[1] * z[2] - x[2] * z[1]) +
              z[0] * (x[1] * y[2] - x[2] * y[1]);
      }
      least = corner == 0 || det < least || isnan(det) ? det : least;
    }
    const bool is_bad = !(least >= accepted);
    if (flags != nullptr) flags[i] = is_bad ? 1 : 0;
    found.sum[1] += isnan(least) ? 1 : 0;
    found.largest[0] = fmax(found.largest[0], static_cast<double>(-least));
    if (!is_bad) return;
    found.sum[0] += 1;
    for (int a = 0; a < 3; ++a) {
      const double place = at[a];
      found.largest[1 + 2 * a] = fmax(found.largest[1 + 2 * a], -place);
      found.largest[2 + 2 * a] = fmax(found.largest[2 + 2 * a], place);
    }
  }
};

// Its flags alone.
template <class T, int rank> struct CornerFlags {
  CornerDeterminants<T, rank> of;

  __device__ void operator()(std::int64_t i) const {
    typename CornerDeterminants<T, rank>::Result found;
    of(i, found);
  }
};

template <class T, int rank>
CornerDeterminants<T, rank> corners_of(
    const GridRows& rows, Reals u, const Box& box, double accepted, Reals flags) {
  CornerDeterminants<T, rank> body{.box = Sizes(box.size),
      .first = {},
      .size = {},
      .u = u.as<T>(),
      .accepted = static_cast<T>(accepted),
      .flags = flags.as<T>()};
  for (std::size_t a = 0; a < 3; ++a) {
    body.first[a] = static_cast<int>(box.first[a]);
    body.size[a] = static_cast<int>(rows.size[a]);
  }
  return body;
}

std::int64_t voxels_of(const Box& box) { return box.size[0] * box.size[1] * box.size[2]; }

template <class T, int rank>
Determinants corner_determinants_of(const GridRows& rows, Reals u, const Box& box, double accepted,
    Reals flags, const Execution& exec) {
  const auto found =
      reduce(rows.device, voxels_of(box), exec, corners_of<T, rank>(rows, u, box, accepted, flags));
  Determinants result;
  result.least = -found.largest[0];
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

std::int64_t weigh_inside(const GridRows& rows, const Map& voxels, const Grid& to, Reals u,
    Reals mask, Reals weights, const Execution& exec) {
  WeighInside body{.sizes = Sizes(rows.size),
      .rank = rows.rank,
      .start = {},
      .by = {},
      .last = {},
      .u = u,
      .mask = mask,
      .weights = weights};
  for (std::size_t a = 0; a < 3; ++a) {
    body.start[a] = voxels.shift[a];
    body.last[a] = static_cast<double>(to.size[a] - 1);
    for (std::size_t c = 0; c < 3; ++c) body.by[a][c] = voxels.linear.rows[a][c];
  }
  return static_cast<std::int64_t>(reduce(rows.device, rows.voxels(), exec, body).sum[0]);
}

std::int64_t drop_below(
    const GridRows& rows, Reals value, double least, Reals weights, const Execution& exec) {
  const DropBelow body{value, value.rounded(least), weights};
  return static_cast<std::int64_t>(reduce(rows.device, rows.voxels(), exec, body).sum[0]);
}

std::int64_t count_nonzero(const GridRows& rows, Reals mask, const Execution& exec) {
  const CountNonzero body{mask};
  return static_cast<std::int64_t>(reduce(rows.device, rows.voxels(), exec, body).sum[0]);
}

Moments moments(const GridRows& rows, Reals f, Reals j, Reals weights, const Execution& exec) {
  const auto found = reduce(rows.device, rows.voxels(), exec, SumMoments{f, j, weights});
  return {found.sum[0], found.sum[1], found.sum[2], found.sum[3], found.sum[4], found.sum[5]};
}

void add_gradient(const GridRows& rows, Reals f, Reals j, Reals weights, const LinearGradient& by,
    Reals gradient, const Execution& exec) {
  each(rows.device, rows.voxels(), exec, AddGradient{f, j, weights, by, gradient});
}

void add_scaled(
    Device device, std::int64_t count, double factor, Reals b, Reals a, const Execution& exec) {
  launch_scale(device, count, a.rounded(factor), b, a, true, exec);
}

void scale(
    Device device, std::int64_t count, double factor, Reals in, Reals out, const Execution& exec) {
  launch_scale(device, count, out.rounded(factor), in, out, false, exec);
}

void fill(Device device, std::int64_t count, double value, Reals out, const Execution& exec) {
  launch_scale(device, count, value, nullptr, out, false, exec);
}

void blend(const GridRows& rows, const Box& box, Reals m, Reals b, Reals u, const Execution& exec) {
  const std::int64_t by_y = rows.size[0], by_z = by_y * rows.size[1];
  const Blend body{Sizes(box.size), box.first[2] * by_z + box.first[1] * by_y + box.first[0], by_y,
      by_z, rows.rank, m, b, u};
  each(rows.device, box.size[0] * box.size[1] * box.size[2], exec, body);
}

void compose(const GridRows& rows, Reals d, Reals u, Reals to, const Execution& exec) {
  with_type(to, [&]<class T>(T) {
    const auto run = [&](const auto& body) { each(rows.device, rows.voxels(), exec, body); };
    const T *const by = d.as<T>(), *const field = u.as<T>();
    if (rows.rank == 3) {
      run(Compose<T, 3>{Sizes(rows.size), by, field, to.as<T>()});
    } else {
      run(Compose<T, 2>{Sizes(rows.size), by, field, to.as<T>()});
    }
  });
}

double largest_square(const GridRows& rows, Reals field, const Execution& exec) {
  const auto found = reduce(rows.device, rows.voxels(), exec, LargestSquare{rows.rank, field});
  return found.sum[0] > 0 ? std::nan("") : found.largest[0];
}

Determinants corner_determinants(const GridRows& rows, Reals u, const Box& box, double accepted,
    Reals flags, const Execution& exec) {
  return with_type(u, [&]<class T>(T) {
    const auto find = rows.rank == 3 ? corner_determinants_of<T, 3> : corner_determinants_of<T, 2>;
    return find(rows, u, box, accepted, flags, exec);
  });
}

void mark_folds(const GridRows& rows, Reals u, const Box& box, double accepted, std::int64_t by,
    Reals flags, const Execution& exec) {
  const std::int64_t voxels = voxels_of(box);
  const DType dtype = flags.is_f64() ? DType::f64 : DType::f32;
  const Tensor bad = allocate({voxels}, dtype, rows.device, exec);
  with_type(u, [&]<class T>(T) {
    const auto mark = [&](const auto& of) { each(rows.device, voxels, exec, of); };
    if (rows.rank == 3) {
      mark(CornerFlags<T, 3>{corners_of<T, 3>(rows, u, box, accepted, bad)});
    } else {
      mark(CornerFlags<T, 2>{corners_of<T, 2>(rows, u, box, accepted, bad)});
    }
    mark(Dilate<T>{
        Sizes(box.size), static_cast<int>(by), bad.template elements<T>(), flags.as<T>()});
  });
}

}  // namespace similis::registration_internal::cuda
