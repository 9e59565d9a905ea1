// SPDX-License-Identifier: Apache-2.0
// Sampling on the CPU: values, and gradients to whatever makes the coordinates.
//
// A task takes rows of the output in chunks: coordinates become indices in plain loops in f64, then
// voxels are gathered. Where a vector's voxels all lie inside and the image is of the arithmetic's
// own type, eight gathers and no masks; anything else goes voxel by voxel, with the same operations
// in the same order. cpu_scatter.cc has the gradient to the image.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "src/core/parallel.h"
#include "src/warp/cpu_chunk-inl.h"
#include "src/warp/cpu_scatter.h"
#include "src/warp/vote.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using core_internal::HWY_NAMESPACE::load_row;
using core_internal::HWY_NAMESPACE::store_row;

// What a chunk's voxels sample in one channel.
template <class T> struct Samples {
  alignas(64) T value[kChunk];
  alignas(64) T slope[3][kChunk];
  alignas(64) T weight[kChunk];  // of labels
};

// Cells of linear interpolation in whole vectors.
template <class T> struct Cells {
  using Offset = hwy::MakeSigned<T>;
  alignas(64) T fraction[3][kChunk];
  alignas(64) Offset offset[kChunk];  // of the cell's first voxel
  alignas(64) Offset is_inside[kChunk];
};

// Whether all offsets in a plane fit those of the gathers.
template <class T> bool fits_gathers(const Pass& pass) {
  std::int64_t reach = 0;
  for (int a = 0; a < 3; ++a) {
    reach += (pass.axes[a].extent - 1) * std::abs(pass.image.strides[4 - a]);
  }
  return reach < std::numeric_limits<hwy::MakeSigned<T>>::max() / 2;
}

template <class T> void find_cells(const Pass& pass, const Chunk& chunk, Cells<T>* cells) {
  using Offset = typename Cells<T>::Offset;
  std::fill_n(cells->offset, kChunk, Offset{0});
  std::fill_n(cells->is_inside, kChunk, Offset{1});
  for (int a = 0; a < pass.rank; ++a) {
    const double last = static_cast<double>(pass.axes[a].extent - 1);
    const auto stride = static_cast<Offset>(pass.image.strides[4 - a]);
    const double* HWY_RESTRICT index = chunk.index[a];
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      const double first = std::floor(index[i]);
      cells->fraction[a][i] = static_cast<T>(index[i] - first);
      cells->offset[i] += static_cast<Offset>(static_cast<std::int32_t>(first)) * stride;
      cells->is_inside[i] &= static_cast<Offset>(first >= 0) & static_cast<Offset>(first < last);
    }
  }
}

template <class T>
bool are_all_inside(const Cells<T>& cells, std::int64_t first, std::int64_t count) {
  typename Cells<T>::Offset all = 1;
  for (std::int64_t i = first; i < first + count; ++i) all &= cells.is_inside[i];
  return all != 0;
}

// Value and slopes of one vector of voxels in the interior. The order of operations is
// interpolate()'s.
template <class T, bool with_slopes>
HWY_INLINE void sample_vector(
    const Pass& pass, const Cells<T>& cells, const T* plane, std::int64_t i, Samples<T>* out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t sx = pass.image.strides[4], sy = pass.image.strides[3],
                     sz = pass.image.strides[2];
  const auto offset = hn::Load(di, cells.offset + i);
  const V one = hn::Set(d, T{1});
  const V fx = hn::Load(d, cells.fraction[0] + i), fy = hn::Load(d, cells.fraction[1] + i);
  const V gx = hn::Sub(one, fx), gy = hn::Sub(one, fy);
  const auto mix = [](V g, V first, V f, V second)
                       HWY_ATTR { return hn::Add(hn::Mul(g, first), hn::Mul(f, second)); };
  const auto face = [&](const T* base, V* value, V* slope_x, V* slope_y) HWY_ATTR {
    const V v00 = hn::GatherIndex(d, base, offset), v01 = hn::GatherIndex(d, base + sx, offset);
    const V v10 = hn::GatherIndex(d, base + sy, offset),
            v11 = hn::GatherIndex(d, base + sy + sx, offset);
    const V low = mix(gx, v00, fx, v01), high = mix(gx, v10, fx, v11);
    *value = mix(gy, low, fy, high);
    if (with_slopes) {
      *slope_x = mix(gy, hn::Sub(v01, v00), fy, hn::Sub(v11, v10));
      *slope_y = hn::Sub(high, low);
    }
  };
  V value = one, slope_x = one, slope_y = one;
  face(plane, &value, &slope_x, &slope_y);
  if (pass.rank == 3) {
    const V fz = hn::Load(d, cells.fraction[2] + i), gz = hn::Sub(one, fz);
    V value1 = one, slope_x1 = one, slope_y1 = one;
    face(plane + sz, &value1, &slope_x1, &slope_y1);
    if (with_slopes) {
      hn::Store(hn::Sub(value1, value), d, out->slope[2] + i);
      slope_x = mix(gz, slope_x, fz, slope_x1);
      slope_y = mix(gz, slope_y, fz, slope_y1);
    }
    value = mix(gz, value, fz, value1);
  }
  hn::Store(value, d, out->value + i);
  if (with_slopes) {
    hn::Store(slope_x, d, out->slope[0] + i);
    hn::Store(slope_y, d, out->slope[1] + i);
  }
}

// Voxels [first, end) of the chunk, one by one. E: an element of the image.
template <class T, class E, int count>
void sample_voxels(const Pass& pass, const Chunk& chunk, const E* plane, std::int64_t first,
    std::int64_t end, Samples<T>* out) {
  const Extents& s = pass.image.strides;
  const auto voxel = [&](int x, int y, int z) {
    return static_cast<T>(load(plane[x * s[4] + y * s[3] + z * s[2]]));
  };
  const int planes = pass.rank == 2 ? 1 : count;
  for (std::int64_t i = first; i < end; ++i) {
    Taps<T, count> axis[3];
    taps_of(pass, chunk, i, axis);
    const Sampled<T> sampled = interpolate(axis, planes, voxel);
    out->value[i] = sampled.value;
    for (int a = 0; a < 3; ++a) out->slope[a][i] = sampled.slope[a];
  }
}

template <class T, class E>
void sample_labels(
    const Pass& pass, const Chunk& chunk, const E* plane, Samples<T>* out, double* label) {
  const Extents& s = pass.image.strides;
  const auto voxel = [&](int x, int y, int z) {
    return static_cast<double>(load(plane[x * s[4] + y * s[3] + z * s[2]]));
  };
  for (std::int64_t i = 0; i < chunk.count; ++i) {
    Taps<T, 2> axis[3];
    taps_of(pass, chunk, i, axis);
    const Vote<T> best = vote(axis, pass.rank - 1, pass.smallest_label, pass.background, voxel);
    label[i] = best.label;
    out->weight[i] = best.weight;
    for (int a = 0; a < 3; ++a) out->slope[a][i] = best.slope[a];
  }
}

template <class T, class E>
void sample_linear(const Pass& pass, const Chunk& chunk, const Cells<T>* cells, const E* plane,
    bool with_slopes, Samples<T>* out) {
  if constexpr (std::is_same_v<T, E>) {
    if (cells != nullptr) {
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
      for (std::int64_t i = 0; i < chunk.count; i += lanes) {
        const std::int64_t end = std::min(i + lanes, chunk.count);
        if (end - i < lanes || !are_all_inside(*cells, i, lanes)) {
          sample_voxels<T, E, 2>(pass, chunk, plane, i, end, out);
        } else if (with_slopes) {
          sample_vector<T, true>(pass, *cells, plane, i, out);
        } else {
          sample_vector<T, false>(pass, *cells, plane, i, out);
        }
      }
      return;
    }
  }
  sample_voxels<T, E, 2>(pass, chunk, plane, 0, chunk.count, out);
}

// One task: its rows, for each of the images that share a field.
template <class T> class Task {
 public:
  Task(Plan* plan, std::int64_t index)
      : plan_(*plan), pass_(plan->pass), with_slopes_(pass_.has_coordinate_gradient()) {
    outer_ = index / plan->tasks_of_image;
    part_ = index % plan->tasks_of_image;
    gathers_ = pass_.form == Form::image && pass_.mode == Interpolation::linear &&
               pass_.image.dtype == (sizeof(T) == 4 ? DType::f32 : DType::f64) &&
               fits_gathers<T>(pass_);
  }

  void run() {
    const std::int64_t first = part_ * plan_.rows_of_task;
    const std::int64_t end = std::min(first + plan_.rows_of_task, plan_.rows);
    const std::int64_t width = pass_.axes[0].out_extent;
    for (std::int64_t row = first; row < end; ++row) {
      for (std::int64_t x = 0; x < width; x += kChunk) {
        chunk_.z = row / pass_.axes[1].out_extent;
        chunk_.y = row % pass_.axes[1].out_extent;
        chunk_.x = x;
        chunk_.count = std::min(kChunk, width - x);
        run_chunk(row);
      }
    }
  }

 private:
  void run_chunk(std::int64_t row) {
    if (!pass_.field_gradient.empty()) {
      for (auto& component : field_gradient_) std::fill_n(component, kChunk, 0.0);
    }
    for (std::int64_t k = 0; k < plan_.images_of_task; ++k) {
      chunk_.image = outer_ * plan_.images_of_task + k;
      const Transform& t = plan_.transforms[static_cast<std::size_t>(chunk_.image)];
      place_chunk(pass_, t, &chunk_);
      if (!plan_.touched.empty()) note_touched(row);
      if (pass_.output.empty() && pass_.weight.empty() && !with_slopes_) continue;
      if (gathers_) find_cells(pass_, chunk_, &cells_);
      if (with_slopes_) {
        for (auto& axis : gradient_) std::fill_n(axis, kChunk, T{0});
      }
      for (std::int64_t c = 0; c < pass_.channels; ++c) run_channel(c);
      if (with_slopes_) add_gradients(t);
    }
    if (!pass_.field_gradient.empty()) store_field_gradient();
  }

  std::int64_t start_in(const TensorView& view, std::int64_t channel) const {
    const Extents& s = view.strides;
    return chunk_.image * s[0] + channel * s[1] + chunk_.z * s[2] + chunk_.y * s[3] +
           chunk_.x * s[4];
  }

  void run_channel(std::int64_t c) {
    const TensorView& image = pass_.image;
    const std::int64_t plane = chunk_.image * image.strides[0] + c * image.strides[1];
    visit_dtype(image.dtype, [&]<class E>(std::type_identity<E>) {
      if constexpr (std::is_same_v<E, double> == std::is_same_v<T, double>) {
        const E* elements = static_cast<const E*>(image.data) + plane;
        if (pass_.form == Form::labels) {
          sample_labels<T, E>(pass_, chunk_, elements, &samples_, result_);
        } else if (pass_.mode == Interpolation::linear) {
          sample_linear<T, E>(
              pass_, chunk_, gathers_ ? &cells_ : nullptr, elements, with_slopes_, &samples_);
        } else if (pass_.mode == Interpolation::nearest) {
          sample_voxels<T, E, 1>(pass_, chunk_, elements, 0, chunk_.count, &samples_);
        } else {
          sample_voxels<T, E, 4>(pass_, chunk_, elements, 0, chunk_.count, &samples_);
        }
      }
    });
    if (!pass_.output.empty()) store_output(c);
    if (!pass_.weight.empty()) {
      store_row(samples_.weight, chunk_.count, pass_.weight, start_in(pass_.weight, c),
          pass_.weight.strides[4]);
    }
    if (with_slopes_) add_slopes(c);
  }

  void store_output(std::int64_t c) {
    const std::int64_t start = start_in(pass_.output, c), stride = pass_.output.strides[4];
    if (pass_.form == Form::labels) {
      return store_labels(start, stride);
    }
    const std::int64_t count = chunk_.count;
    if (!pass_.addend.empty()) {
      load_row(pass_.addend, start_in(pass_.addend, c), pass_.addend.strides[4], count, row_);
      const T factor = static_cast<T>(pass_.factor);
      for (std::int64_t i = 0; i < count; ++i) row_[i] += factor * samples_.value[i];
      return store_row(row_, count, pass_.output, start, stride);
    }
    if (pass_.factor != 1) {
      const T factor = static_cast<T>(pass_.factor);
      for (std::int64_t i = 0; i < count; ++i) samples_.value[i] *= factor;
    }
    store_row(samples_.value, count, pass_.output, start, stride);
  }

  // Labels may be integers, which store_row's rounding is not for.
  void store_labels(std::int64_t start, std::int64_t stride) {
    visit_dtype(pass_.output.dtype, [&]<class E>(std::type_identity<E>) {
      E* out = static_cast<E*>(pass_.output.data) + start;
      for (std::int64_t i = 0; i < chunk_.count; ++i) store(result_[i], out + i * stride);
    });
  }

  void add_slopes(std::int64_t c) {
    const TensorView& upstream = pass_.upstream;
    load_row(upstream, start_in(upstream, c), upstream.strides[4], chunk_.count, row_);
    for (int a = 0; a < pass_.rank; ++a) {
      for (std::int64_t i = 0; i < chunk_.count; ++i) {
        gradient_[a][i] += row_[i] * samples_.slope[a][i];
      }
    }
  }

  // From gradients to the index to those of the field and the matrices.
  void add_gradients(const Transform& t) {
    const std::int64_t count = chunk_.count;
    for (int a = 0; a < pass_.rank; ++a) {
      for (std::int64_t i = 0; i < count; ++i) {
        by_index_[a][i] = static_cast<double>(gradient_[a][i]) * chunk_.slope[a][i];
      }
    }
    if (!pass_.field_gradient.empty()) {
      for (int j = 0; j < pass_.rank; ++j) {
        for (int a = 0; a < pass_.rank; ++a) {
          const double factor = t.s[a][j];
          if (factor == 0) continue;
          for (std::int64_t i = 0; i < count; ++i)
            field_gradient_[j][i] += factor * by_index_[a][i];
        }
      }
    }
    if (!plan_.sums.empty()) add_matrix_sums();
  }

  void add_matrix_sums() {
    MatrixSums& sums =
        plan_.sums[static_cast<std::size_t>(chunk_.image * plan_.tasks_of_image + part_)];
    const Axis* axes = pass_.axes;
    const double gx = axes[0].first + static_cast<double>(chunk_.x);
    const double gy = axes[1].first + static_cast<double>(chunk_.y);
    const double gz = axes[2].first + static_cast<double>(chunk_.z);
    for (int a = 0; a < pass_.rank; ++a) {
      const double* g = by_index_[a];
      double sum = 0, along_x = 0;
      for (std::int64_t i = 0; i < chunk_.count; ++i) {
        sum += g[i];
        along_x += g[i] * (gx + static_cast<double>(i));
      }
      sums.position[a][0] += along_x;
      sums.position[a][1] += sum * gy;
      sums.position[a][2] += sum * gz;
      sums.position[a][3] += sum;
      for (int j = 0; !pass_.grid_affine_gradient.empty() && j < pass_.rank; ++j) {
        double product = 0;
        for (std::int64_t i = 0; i < chunk_.count; ++i)
          product += g[i] == 0 ? 0 : g[i] * chunk_.field[j][i];
        sums.field[a][j] += product;
      }
    }
  }

  void store_field_gradient() {
    const TensorView& view = pass_.field_gradient;
    const Extents& s = view.strides;
    const std::int64_t start = outer_ * s[0] + chunk_.z * s[1] + chunk_.y * s[2] + chunk_.x * s[3];
    for (int j = 0; j < pass_.rank; ++j) {
      store_row(field_gradient_[j], chunk_.count, view, start + j * s[4], s[3]);
    }
  }

  // A superset of the planes (rows in 2D) of the image that the voxels' taps lie in.
  void note_touched(std::int64_t row) {
    const int last = static_cast<int>(pass_.axes[plan_.slab_axis].extent - 1);
    Touched& touched = plan_.touched[static_cast<std::size_t>(chunk_.image * plan_.rows + row)];
    if (chunk_.x == 0) touched = {last + 1, -1};
    const double* index = chunk_.index[plan_.slab_axis];
    const auto [least, most] = std::minmax_element(index, index + chunk_.count);
    int low = static_cast<int>(std::floor(*least)), high = static_cast<int>(std::floor(*most)) + 1;
    if (pass_.mode == Interpolation::cubic) {  // mirrored taps come back inside
      const bool wraps = low < 4 || high > last - 4;
      low = wraps ? std::min(low - 1, last - 8) : low - 1;
      high = wraps ? std::max(high + 1, 8) : high + 1;
    }
    touched.first = std::min(touched.first, std::max(low, 0));
    touched.last = std::max(touched.last, std::min(high, last));
  }

  Plan& plan_;
  const Pass& pass_;
  const bool with_slopes_;
  bool gathers_ = false;
  std::int64_t outer_ = 0, part_ = 0;
  Chunk chunk_;
  Cells<T> cells_;
  Samples<T> samples_;
  alignas(64) T row_[kChunk];
  alignas(64) T gradient_[3][kChunk];
  alignas(64) double by_index_[3][kChunk];
  alignas(64) double field_gradient_[3][kChunk];
  alignas(64) double result_[kChunk];
};

void run_task(Plan* plan, std::int64_t index) {
  if (plan->pass.image.dtype == DType::f64) {
    Task<double>(plan, index).run();
  } else {
    Task<float>(plan, index).run();
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::warp_internal {
HWY_EXPORT(run_task);

namespace {

void store_at(const TensorView& matrix, std::int64_t n, int i, int j, double value) {
  const Extents& s = matrix.strides;
  visit_dtype(matrix.dtype, [&]<class E>(std::type_identity<E>) {
    store(value, static_cast<E*>(matrix.data) + n * s[0] + i * s[1] + j * s[2]);
  });
}

// sum(n, i, j) over the images that share a matrix, which rounds once.
template <class Sum>
void store_matrix(const TensorView& matrix, std::int64_t batch, const Sum& sum) {
  const std::int64_t shared = matrix.shape[0] < batch ? batch : 1;
  for (std::int64_t n = 0; n < matrix.shape[0]; ++n) {
    for (int i = 0; i < matrix.shape[1]; ++i) {
      for (int j = 0; j < matrix.shape[2]; ++j) {
        double total = 0;
        for (std::int64_t k = 0; k < shared; ++k) total += sum(n * shared + k, i, j);
        store_at(matrix, n, i, j, total);
      }
    }
  }
}

void store_matrices(const Plan& plan) {
  const Pass& pass = plan.pass;
  std::vector<MatrixSums> totals(static_cast<std::size_t>(pass.batch));
  for (std::size_t n = 0; n < totals.size(); ++n) {
    for (std::int64_t task = 0; task < plan.tasks_of_image; ++task) {
      const MatrixSums& part = plan.sums[n * static_cast<std::size_t>(plan.tasks_of_image) +
                                         static_cast<std::size_t>(task)];
      for (int a = 0; a < 3; ++a) {
        for (int j = 0; j < 4; ++j) totals[n].position[a][j] += part.position[a][j];
        for (int j = 0; j < 3; ++j) totals[n].field[a][j] += part.field[a][j];
      }
    }
  }
  const Axis* axes = pass.axes;
  if (!pass.affine_gradient.empty()) {
    store_matrix(pass.affine_gradient, pass.batch, [&](std::int64_t n, int i, int j) {
      const double* sums = totals[static_cast<std::size_t>(n)].position[i];
      if (j == pass.rank) return axes[i].scale * sums[3];
      return axes[i].scale * (axes[j].origin * sums[3] + axes[j].step * sums[j]);
    });
  }
  if (!pass.grid_affine_gradient.empty()) {
    store_matrix(pass.grid_affine_gradient, pass.batch, [&](std::int64_t n, int i, int j) {
      return axes[i].scale * totals[static_cast<std::size_t>(n)].field[i][j];
    });
  }
}

}  // namespace

void sample_cpu(const Pass& pass, const Execution& exec) {
  Plan plan(pass);
  parallel_for(exec, plan.tasks(), [&](std::int64_t index) {
    HWY_DYNAMIC_DISPATCH(run_task)(&plan, index);
  });
  if (!plan.sums.empty()) store_matrices(plan);
  if (!pass.image_gradient.empty()) scatter_cpu(plan, exec);
}

}  // namespace similis::warp_internal
#endif
