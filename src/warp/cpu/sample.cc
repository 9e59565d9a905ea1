// SPDX-License-Identifier: Apache-2.0
// Sampling on the CPU: values, and gradients to the field and the matrices.
//
// The usual calls take fast_path.cc; this is the general path. A task takes rows of the output in
// chunks. If interpolation is linear, coordinates become cells and cells are interpolated in whole
// vectors (linear-inl.h), those of fields one or two voxels at a time (compose-inl.h); so are cubic
// ones of f32 (cubic-inl.h); values of the nearest voxels come by their offsets (nearest-inl.h);
// everything else goes voxel by voxel (voxels.cc), with the same operations in the same order.
// scatter.cc has the gradient to the image.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/sample.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <type_traits>

#include "src/core/parallel.h"
#include "src/warp/cpu/chunk-inl.h"
#include "src/warp/cpu/compose-inl.h"
#include "src/warp/cpu/cubic-inl.h"
#include "src/warp/cpu/fast_path.h"
#include "src/warp/cpu/linear-inl.h"
#include "src/warp/cpu/matrix_gradients.h"
#include "src/warp/cpu/nearest-inl.h"
#include "src/warp/cpu/scatter.h"
#include "src/warp/cpu/voxels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
using core_internal::HWY_NAMESPACE::load_row;
using core_internal::HWY_NAMESPACE::store_row;

// One channel, whose elements are E, of an image with short offsets.
template <bool loads_pairs, class T, class E>
void sample_linear_with(const Pass& pass, const Cells<T>& cells, const E* plane, std::int64_t count,
    bool with_slopes, Samples<T>* out) {
  const auto sample = pass.rank == 3 ? with_slopes ? sample_cells<T, 3, true, E, loads_pairs>
                                                   : sample_cells<T, 3, false, E, loads_pairs>
                      : with_slopes ? sample_cells<T, 2, true, E, loads_pairs>
                                     : sample_cells<T, 2, false, E, loads_pairs>;
  sample(pass, cells, plane, count, out);
}
template <class T, class E>
void sample_linear(const Pass& pass, const Cells<T>& cells, const E* plane, std::int64_t count,
    bool with_slopes, Samples<T>* out) {
  if constexpr (sizeof(T) == 4 && HWY_TARGET < HWY_AVX2) {
    if (has_slow_gathers()) {
      return sample_linear_with<true>(pass, cells, plane, count, with_slopes, out);
    }
  }
  sample_linear_with<false>(pass, cells, plane, count, with_slopes, out);
}

// One task: its rows, for each of the images that share a field.
template <class T> class Task {
 public:
  Task(Plan* plan, std::int64_t index)
      : plan_(*plan), pass_(plan->pass), with_slopes_(pass_.has_coordinate_gradient()) {
    outer_ = index / plan->tasks_of_image;
    part_ = index % plan->tasks_of_image;
    const bool is_image = pass_.form == Form::image;
    is_part_ = pass_.axes[pass_.rank - 1].is_part();
    gathers_ = is_image && pass_.mode == Interpolation::linear && has_short_offsets(pass_.image);
    has_vectors_ = kMixesVectors && gathers_ && !is_part_ && sizeof(T) == 4 &&
                   pass_.channels == pass_.rank && pass_.weight.empty() &&
                   !(pass_.output.empty() && !with_slopes_);
    for (const TensorView* const view :
        {&pass_.image, &pass_.output, &pass_.addend, &pass_.upstream}) {
      has_vectors_ = has_vectors_ && has_vectors(*view, pass_.rank);
    }
    takes_nearest_ = is_image && pass_.mode == Interpolation::nearest;
    takes_cubic_vectors_ = kHasCubicVectors && is_image && pass_.mode == Interpolation::cubic &&
                           pass_.image.dtype == DType::f32 && pass_.image.strides[4] == 1 &&
                           has_short_offsets(pass_.image) && !is_part_;
  }

  void run() {
    const std::int64_t first = part_ * plan_.rows_of_task;
    const std::int64_t end = std::min(first + plan_.rows_of_task, plan_.rows);
    const std::int64_t width = pass_.axes[0].out_extent;
    for (std::int64_t row = first; row < end; ++row) {
      chunk_.z = row / pass_.axes[1].out_extent;
      chunk_.y = row % pass_.axes[1].out_extent;
      for (std::int64_t x = 0; x < width; x += kChunk) {
        chunk_.x = x;
        chunk_.count = std::min(kChunk, width - x);
        run_chunk(row);
      }
    }
  }

 private:
  void run_chunk(std::int64_t row) {
    for (std::int64_t k = 0; k < plan_.images_of_task; ++k) {
      chunk_.image = outer_ * plan_.images_of_task + k;
      const Transform& t = plan_.transforms[static_cast<std::size_t>(chunk_.image)];
      if (takes_nearest_ && can_round_cells() && place_nearest_by_cells()) {
        // No coordinate is as near to the middle between two voxels as cells are inexact.
      } else if (gathers_) {
        place_cells(plan_, &chunk_, &cells_);
      } else {
        place_chunk(plan_, &chunk_);
        if (takes_nearest_) place_nearest(pass_, chunk_, &nearest_);
        if (takes_cubic_vectors_) cubic_.find(pass_, chunk_, with_slopes_);
      }
      if (!plan_.touched.empty()) note_touched(row);
      if (pass_.output.empty() && pass_.weight.empty() && !with_slopes_) continue;
      for (std::int64_t c = 0; c < pass_.channels && !has_vectors_; ++c) run_channel(c);
      if (has_vectors_) run_vectors();
      if (with_slopes_) add_gradients(t, k == 0);
    }
    if (!pass_.field_gradient.empty()) store_field_gradient();
  }

  // Indices and slopes of a chunk are not there if cells are rounded.
  bool can_round_cells() const {
    return !plan_.columns.empty() && !is_part_ && !with_slopes_ && plan_.touched.empty() &&
           has_short_offsets(pass_.image);
  }
  bool place_nearest_by_cells() {
    if constexpr (sizeof(T) == 4) {
      place_cells(plan_, &chunk_, &cells_);
      alignas(64) std::int32_t offset[kChunk];
      if (!round_cells(pass_, pass_.image.strides, cells_, chunk_.count, offset, nearest_.none))
        return false;
      std::copy_n(offset, chunk_.count, nearest_.offset);
      return true;
    }
    return false;
  }

  std::int64_t start_in(const TensorView& view, std::int64_t channel) const {
    const Extents& s = view.strides;
    return chunk_.image * s[0] + channel * s[1] + chunk_.z * s[2] + chunk_.y * s[3] +
           chunk_.x * s[4];
  }

  void run_channel(std::int64_t c) {
    sample_channel(c);
    if (!pass_.output.empty()) store_output(c);
    if (!pass_.weight.empty()) {
      store_row(samples_.weight, chunk_.count, pass_.weight, start_in(pass_.weight, c),
          pass_.weight.strides[4]);
    }
    if (with_slopes_) add_slopes(c);
  }

  template <class E> const E* plane(std::int64_t c) const {
    const TensorView& image = pass_.image;
    return static_cast<const E*>(image.data()) + chunk_.image * image.strides[0] +
           c * image.strides[1];
  }

  void sample_channel(std::int64_t c) {
    const TensorView& image = pass_.image;
    if (pass_.form == Form::labels) {
      sample_labels(pass_, chunk_, c, &samples_, result_);
    } else if (takes_nearest_) {
      visit_dtype(image.dtype, [&]<class E>(std::type_identity<E>) {
        if constexpr (!std::is_integral_v<E> &&
                      std::is_same_v<E, double> == std::is_same_v<T, double>) {
          sample_nearest(nearest_, chunk_.count, plane<E>(c), with_slopes_, &samples_);
        }
      });
    } else if (gathers_) {
      if constexpr (sizeof(T) == 4) {
        if (image.dtype != DType::f32) {
          return sample_linear(
              pass_, cells_, plane<Half>(c), chunk_.count, with_slopes_, &samples_);
        }
      }
      sample_linear(pass_, cells_, plane<T>(c), chunk_.count, with_slopes_, &samples_);
    } else if (!takes_cubic_vectors_ || !run_cubic_vectors(c)) {
      sample_voxels(pass_, chunk_, c, 0, chunk_.count, &samples_);
    }
  }

  // False for chunks of less than a vector.
  bool run_cubic_vectors(std::int64_t c) {
    if constexpr (kHasCubicVectors && sizeof(T) == 4) {
      return sample_cubic(pass_, chunk_, cubic_, plane<float>(c), with_slopes_, &samples_);
    }
    return false;
  }

  // All channels at once, where they are the components of vectors.
  void run_vectors() {
    if constexpr (kMixesVectors && sizeof(T) == 4) {
      if (with_slopes_) {
        vectors_.load_upstream(pass_, start_in(pass_.upstream, 0), chunk_.count);
      }
      const auto sample = pass_.rank == 3
                              ? with_slopes_ ? sample_vectors<3, true> : sample_vectors<3, false>
                          : with_slopes_ ? sample_vectors<2, true>
                                         : sample_vectors<2, false>;
      sample(pass_, cells_, plane<float>(0), chunk_.count, &vectors_, gradient_);
      if (pass_.output.empty()) return;
      const std::int64_t addend = pass_.addend.empty() ? 0 : start_in(pass_.addend, 0);
      vectors_.store(pass_, start_in(pass_.output, 0), addend, 0, chunk_.count);
    }
  }

  void store_output(std::int64_t c) {
    const std::int64_t start = start_in(pass_.output, c), stride = pass_.output.strides[4];
    if (pass_.form == Form::labels) {
      return store_labels(result_, chunk_.count, pass_.output, start, stride);
    }
    const std::int64_t count = chunk_.count;
    if (!pass_.addend.empty()) {
      load_row(pass_.addend, start_in(pass_.addend, c), pass_.addend.strides[4], count, row_);
      const T factor = static_cast<T>(pass_.factor), of_addend = static_cast<T>(pass_.field_factor);
      for (std::int64_t i = 0; i < count; ++i) {
        row_[i] = of_addend * row_[i] + factor * samples_.value[i];
      }
      return store_row(row_, count, pass_.output, start, stride);
    }
    if (pass_.factor != 1) {
      const T factor = static_cast<T>(pass_.factor);
      for (std::int64_t i = 0; i < count; ++i) samples_.value[i] *= factor;
    }
    store_row(samples_.value, count, pass_.output, start, stride);
  }

  void add_slopes(std::int64_t c) {
    const TensorView& upstream = pass_.upstream;
    load_row(upstream, start_in(upstream, c), upstream.strides[4], chunk_.count, row_);
    for (int a = 0; a < pass_.rank; ++a) {
      T* HWY_RESTRICT gradient = gradient_[a];
      const T* HWY_RESTRICT slope = samples_.slope[a];
      if (c == 0) {
        for (std::int64_t i = 0; i < chunk_.count; ++i) gradient[i] = row_[i] * slope[i];
      } else {
        for (std::int64_t i = 0; i < chunk_.count; ++i) gradient[i] += row_[i] * slope[i];
      }
    }
  }

  // Makes the gradients to the field and the matrices from those to the index.
  void add_gradients(const Transform& t, bool is_first_image) {
    if (pass_.padding != Outside::zeros) {
      gathers_ ? multiply_gradient(cells_.slope) : multiply_gradient(chunk_.slope);
    }
    if (!pass_.field_gradient.empty()) {
      plan_.images_of_task == 1 ? add_field_gradient(t, true, by_field_)
                                : add_field_gradient(t, is_first_image, by_shared_field_);
    }
    if (!plan_.sums.empty()) add_matrix_sums();
  }

  template <class Slope> void multiply_gradient(const Slope (&slopes)[3][kChunk]) {
    for (int a = 0; a < pass_.rank; ++a) {
      T* HWY_RESTRICT gradient = gradient_[a];
      const Slope* HWY_RESTRICT slope = slopes[a];
      for (std::int64_t i = 0; i < chunk_.count; ++i) gradient[i] *= static_cast<T>(slope[i]);
    }
  }

  // The sums of one image are in T, those over several in f64.
  template <class Sum>
  void add_field_gradient(const Transform& t, bool is_first_image, Sum (&sums)[3][kChunk]) const {
    for (int j = 0; j < pass_.rank; ++j) {
      Sum* HWY_RESTRICT sum = sums[j];
      bool is_first = is_first_image;
      for (int k = 0; k < pass_.rank; ++k) {
        const int a = (j + k) % pass_.rank;  // its own axis first, the only one without grid_affine
        const auto factor = static_cast<Sum>(t.s[a][j]);
        if (factor == 0 && k > 0) continue;
        const T* HWY_RESTRICT gradient = gradient_[a];
        if (is_first) {
          for (std::int64_t i = 0; i < chunk_.count; ++i) {
            sum[i] = factor * static_cast<Sum>(gradient[i]);
          }
        } else {
          for (std::int64_t i = 0; i < chunk_.count; ++i) {
            sum[i] += factor * static_cast<Sum>(gradient[i]);
          }
        }
        is_first = false;
      }
    }
  }

  void add_matrix_sums() {
    MatrixSums& sums =
        plan_.sums[static_cast<std::size_t>(chunk_.image * plan_.tasks_of_image + part_)];
    const Axis* axes = pass_.axes;
    const double gx = axes[0].first + static_cast<double>(chunk_.x);
    const double gy = axes[1].first + static_cast<double>(chunk_.y);
    const double gz = axes[2].first + static_cast<double>(chunk_.z);
    for (int a = 0; a < pass_.rank; ++a) {
      const T* g = gradient_[a];
      double sum = 0, along_x = 0;
      for (std::int64_t i = 0; i < chunk_.count; ++i) {
        const auto by_index = static_cast<double>(g[i]);
        sum += by_index;
        along_x += by_index * (gx + static_cast<double>(i));
      }
      sums.position[a][0] += along_x;
      sums.position[a][1] += sum * gy;
      sums.position[a][2] += sum * gz;
      sums.position[a][3] += sum;
      for (int j = 0; !pass_.grid_affine_gradient.empty() && j < pass_.rank; ++j) {
        double product = 0;
        for (std::int64_t i = 0; i < chunk_.count; ++i)
          product += g[i] == 0 ? 0 : static_cast<double>(g[i]) * chunk_.field[j][i];
        sums.field[a][j] += product;
      }
    }
  }

  void store_field_gradient() {
    const TensorView& view = pass_.field_gradient;
    const Extents& s = view.strides;
    const std::int64_t start = outer_ * s[0] + chunk_.z * s[1] + chunk_.y * s[2] + chunk_.x * s[3];
    const auto store = [&]<class Sum>(const Sum(&sums)[3][kChunk]) {
      const Sum* const components[3] = {sums[0], sums[1], sums[2]};
      store_vectors(components, pass_.rank, chunk_.count, view, start);
    };
    plan_.images_of_task == 1 ? store(by_field_) : store(by_shared_field_);
  }

  // A superset of the planes (rows in 2D) of the image that the voxels' taps lie in.
  void note_touched(std::int64_t row) {
    const int last = static_cast<int>(pass_.axes[plan_.slab_axis].extent - 1);
    Touched& touched = plan_.touched[static_cast<std::size_t>(chunk_.image * plan_.rows + row)];
    if (chunk_.x == 0) touched = {last + 1, -1};
    int low = 0, high = last;  // all, where indices count from another voxel than the image's first
    if (gathers_) {
      const std::int32_t* voxel = cells_.voxel[plan_.slab_axis];
      const auto [least, most] = std::minmax_element(voxel, voxel + chunk_.count);
      low = *least, high = *most + 1;
    } else if (!pass_.axes[plan_.slab_axis].is_part()) {
      const double* index = chunk_.index[plan_.slab_axis];
      const auto [least, most] = std::minmax_element(index, index + chunk_.count);
      low = static_cast<int>(std::floor(*least)), high = static_cast<int>(std::floor(*most)) + 1;
    }
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
  bool gathers_ = false, is_part_ = false, has_vectors_ = false, takes_nearest_ = false,
       takes_cubic_vectors_ = false;
  std::int64_t outer_ = 0, part_ = 0;
  Chunk chunk_;
  Cells<T> cells_;
  NearestVoxels nearest_;
  CubicTaps cubic_;
  ChunkVectors vectors_;
  Samples<T> samples_;
  alignas(64) T row_[kChunk];
  alignas(64) T gradient_[3][kChunk];
  alignas(64) T by_field_[3][kChunk];
  alignas(64) double by_shared_field_[3][kChunk];
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

void sample_cpu(const Pass& pass, const Execution& exec) {
  Plan plan(pass);
  const ImageSums sums = sums_of_image(pass, exec);
  prepare_fast_path(&plan, sums.view, exec);
  parallel_for(exec, plan.tasks(), [&](std::int64_t index) {
    if (!run_fast_task(&plan, index)) HWY_DYNAMIC_DISPATCH(run_task)(&plan, index);
  });
  finish_fast_path(&plan);
  if (!plan.sums.empty()) store_matrices(plan);
  if (sums.view.empty()) return;
  if (plan.sums_of_image.empty()) scatter_cpu(plan, sums.view, exec);
  store_image_gradient(pass, sums, exec);
}

}  // namespace similis::warp_internal
#endif
