// SPDX-License-Identifier: Apache-2.0
// The fast path of the usual calls: images in f32, f16 or bf16 whose rows are dense, linear or
// nearest, and nearest also in f64; values and the gradient to a field whose vectors lie side by
// side.
//
//   field ─ place ─> cells of part of a row: fractions, and the offset of the first voxel ─ for
//   each channel ─> values, and sums of upstream·slope ─> gradients to the field
//
// Cells are found once for all channels and stay in the first-level cache. The bits are those of
// the general path (sample.cc). If tasks run one after the other, the gradient to the image is
// added up from the same cells; otherwise scatter.cc finds them again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/fast_path.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/cache_control.h"
#include "src/core/most_threads.h"
#include "src/core/tensor/elements-inl.h"
#include "src/warp/cpu/compose-inl.h"
#include "src/warp/cpu/fast_path.h"
#include "src/warp/cpu/nearest_gradient-inl.h"
#include "src/warp/cpu/ready_cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

#if HWY_NATIVE_FMA
using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using core_internal::HWY_NAMESPACE::load_elements;
using core_internal::HWY_NAMESPACE::store_elements;

inline bool has_dense_rows(const TensorView& view, DType dtype) {
  return view.empty() || (view.dtype == dtype && view.strides[4] == 1);
}

// True if an image is a field whose vectors lie side by side, as are those of the results.
inline bool has_vectors(const Pass& pass) {
  bool result = pass.channels == pass.rank && pass.mode == Interpolation::linear;
  for (const TensorView* const view : {&pass.image, &pass.output, &pass.addend, &pass.upstream}) {
    result = result && has_vectors(*view, pass.rank);
  }
  return result;
}

// True if all channels of a call lie in dense rows of the image's dtype.
inline bool has_dense_channels(const Pass& pass) {
  const DType dtype = pass.image.dtype;
  const bool is_upstream_one_number =
      !pass.upstream.empty() && pass.upstream.dtype == dtype && pass.upstream.strides[4] == 0;
  const bool has_dtype = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 ||
                         (dtype == DType::f64 && pass.mode == Interpolation::nearest);
  const bool has_pairs = pass.mode == Interpolation::nearest || pass.axes[0].extent > 1;
  return has_dtype && has_pairs && pass.addend.empty() && pass.factor == 1 &&
         pass.image.strides[4] == 1 && has_dense_rows(pass.output, dtype) &&
         (is_upstream_one_number || has_dense_rows(pass.upstream, dtype));
}

// True if sample_rows() computes the plan's results for all images.
inline bool has_fast_path(const Plan& plan) {
  const Pass& pass = plan.pass;
  const bool with_gradient = pass.has_coordinate_gradient();
  return pass.form == Form::image && pass.mode != Interpolation::cubic && plan.sums.empty() &&
         pass.weight.empty() && (plan.images_of_task == 1 || !with_gradient) &&
         (pass.field_gradient.empty() || is_interleaved(pass.field_gradient)) &&
         has_ready_cells(plan) && (has_dense_channels(pass) || has_vectors(pass));
}

// to[k] = plane[offset[k]] for a vector's lanes. joins: numbers of 32 bits are joined and stored as
// vectors, as eight stores took most of the time.
template <class E, bool joins>
HWY_INLINE void copy_elements(const E* plane, const std::int32_t* offset, E* to) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(E) == 4 && joins) {
    const hn::FixedTag<std::int32_t, 4> d4;  // integers are inserted by the instruction that loads
    const hn::FixedTag<std::int32_t, 8> d8;
    const auto bits = [&](std::size_t k) HWY_ATTR {
      std::int32_t result;
      std::memcpy(&result, plane + offset[k], sizeof(result));
      return result;
    };
    const auto four = [&](std::size_t k) HWY_ATTR {
      auto v = hn::InsertLane(hn::Set(d4, bits(k)), 1, bits(k + 1));
      v = hn::InsertLane(v, 2, bits(k + 2));
      return hn::InsertLane(v, 3, bits(k + 3));
    };
    for (std::size_t k = 0; k < hn::Lanes(D()); k += 8) {
      const hn::FixedTag<float, 8> f8;
      hn::StoreU(hn::BitCast(f8, hn::Combine(d8, four(k + 4), four(k))), f8,
          reinterpret_cast<float*>(to) + k);
    }
    return;
  }
#endif
  for (std::size_t k = 0; k < hn::Lanes(D()); ++k) to[k] = plane[offset[k]];
}

template <int rank> class FastRow {
 public:
  // vectors: null unless has_vectors(). The sums of the gradient to the image are in one of the
  // plan's, if tasks add to them.
  FastRow(Plan* plan, Chunk* chunk, ReadyCells* ready, ChunkVectors* vectors,
      std::int64_t image_of_sums)
      : plan_(*plan),
        pass_(plan->pass),
        has_vectors_(vectors != nullptr),
        image_of_sums_(image_of_sums),
        adds_up_(!plan->sums_of_image.empty()),
        chunk_(*chunk),
        ready_(*ready),
        vectors_(vectors) {
    const Transform& t = plan->transforms[static_cast<std::size_t>(chunk->image)];
    for (int a = 0; a < rank; ++a) factor_[a] = static_cast<float>(t.s[a][a]);
  }

  void run() {
    const std::int64_t row = chunk_.image * plan_.rows + chunk_.z * pass_.axes[1].out_extent;
    const bool notes_touched = !plan_.touched.empty() && !adds_up_;
    Touched* const touched =
        notes_touched ? &plan_.touched[static_cast<std::size_t>(row + chunk_.y)] : nullptr;
    if (touched != nullptr) *touched = kNoneTouched;
    const std::int64_t width = pass_.axes[0].out_extent;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t x = 0; x < width; x += kChunk) {
      chunk_.x = std::min(x, width - lanes);
      chunk_.count = std::min(kChunk, width - chunk_.x);
      run_chunk(touched, x - chunk_.x);
    }
    if (touched != nullptr) {
      const auto last = static_cast<int>(pass_.axes[plan_.slab_axis].extent - 1);
      *touched = {std::max(touched->first, 0), std::min(touched->last + 1, last)};
    }
  }

 private:
  static constexpr D d{};
  static constexpr DI di{};

  // `repeated` voxels at its beginning belong to the chunk before.
  void run_chunk(Touched* touched, std::int64_t repeated) {
    with_gradient_ = pass_.has_coordinate_gradient() &&
                     !(plan_.voxels_are_finite && stores_gradient_of_nothing());
    if (pass_.output.empty() && touched == nullptr && !adds_up_ && !with_gradient_) return;
    const bool is_linear = pass_.mode == Interpolation::linear;
    Touched of_chunk = kNoneTouched;
    if (adds_up_ && plan_.clears_planes) touched = &of_chunk;
    if (is_linear) {
      place_in_slots<rank>(plan_, chunk_, with_gradient_, touched, &ready_);
    } else {
      place_nearest_in_slots<rank>(plan_, chunk_, touched, &ready_);
    }
    const bool is_sampled = !pass_.output.empty() || with_gradient_;
    if (has_vectors_) {
      leave_slots(rank, chunk_.count, pass_.padding != Outside::zeros && with_gradient_, &cells_);
      if (is_sampled) run_vectors(repeated);
    } else if (is_sampled) {
      visit_elements([&]<class E>(std::type_identity<E>) { run_channels<E>(is_linear); });
    }
    if (with_gradient_) store_field_gradient();
    if (!adds_up_) return;
    if (!has_vectors_ && is_linear) leave_slots(rank, chunk_.count, false, &cells_);
    leave_slots(chunk_.count, ready_.offset);
    clear_touched(of_chunk);
    add_to_sums(plan_, image_of_sums_, chunk_, ready_, repeated);
  }

  // Clears the planes (rows in 2D) that the chunk is the first to add to, and those before them,
  // which then are in the second-level cache. Cells outside of the image add zeros to two planes.
  void clear_touched(const Touched& touched) {
    std::int64_t end = pass_.axes[plan_.slab_axis].extent;
    if (plan_.clears_planes) end = std::min<std::int64_t>(std::max(touched.last, 0) + 2, end);
    if (end > plan_.cleared[static_cast<std::size_t>(image_of_sums_)]) {
      clear_sums(&plan_, image_of_sums_, end);
    }
  }

  template <class Visit> void visit_elements(const Visit& visit) const {
    switch (pass_.image.dtype) {
      case DType::f16: return visit(std::type_identity<F16>());
      case DType::bf16: return visit(std::type_identity<BF16>());
      case DType::f64: return visit(std::type_identity<double>());
      default: return visit(std::type_identity<float>());
    }
  }

  // Stores the gradient to the field if the upstream gradient is finite, as all voxels are, and
  // returns whether it is.
  bool stores_gradient_of_nothing() {
    const TensorView& upstream = pass_.upstream;
    bool is_finite = true;
    visit_elements([&]<class E>(std::type_identity<E>) {
      for (std::int64_t c = 0; c < pass_.channels && is_finite; ++c) {
        const E* const given = static_cast<const E*>(upstream.data()) + start_in(upstream, c);
        is_finite = are_finite(given, upstream.strides[4] == 0 ? 1 : chunk_.count);
      }
    });
    if (!is_finite) return false;
    const auto* const field = static_cast<const float*>(pass_.field.data());
    store_gradient_of_nothing<rank>(
        field + start_in_field(pass_.field), chunk_.count, start_of_field_gradient());
    return true;
  }

  std::int64_t start_in(const TensorView& view, std::int64_t channel) const {
    const Extents& s = view.strides;
    return chunk_.image * s[0] + channel * s[1] + chunk_.z * s[2] + chunk_.y * s[3] +
           chunk_.x * s[4];
  }

  std::int64_t start_in_field(const TensorView& field) const {
    const Extents& s = field.strides;
    return chunk_.image * s[0] + chunk_.z * s[1] + chunk_.y * s[2] + chunk_.x * s[3];
  }
  float* start_of_field_gradient() const {
    return static_cast<float*>(pass_.field_gradient.data()) + start_in_field(pass_.field_gradient);
  }

  template <class E> void run_channels(bool is_linear) {
    const TensorView &image = pass_.image, &upstream = pass_.upstream;
    const bool is_one_number = with_gradient_ && upstream.strides[4] == 0;
    alignas(64) E expanded[kChunk];
    for (std::int64_t c = 0; c < pass_.channels; ++c) {
      const E* const plane = static_cast<const E*>(image.data()) + chunk_.image * image.strides[0] +
                             c * image.strides[1];
      E* const value = pass_.output.empty()
                           ? nullptr
                           : static_cast<E*>(pass_.output.data()) + start_in(pass_.output, c);
      const E* given = nullptr;
      if (with_gradient_) {
        given = static_cast<const E*>(upstream.data()) + start_in(upstream, c);
        if (is_one_number) {
          std::fill_n(expanded, chunk_.count, *given);
          given = expanded;
        }
      }
      if (!is_linear) {
        sample_nearest<E>(plane, given, value, c == 0);
      } else if constexpr (!std::is_same_v<E, double> && HWY_TARGET < HWY_AVX2) {
        has_slow_gathers() ? sample_linear<E, true>(plane, given, value, c == 0)
                           : sample_linear<E, false>(plane, given, value, c == 0);
      } else if constexpr (!std::is_same_v<E, double>) {
        sample_linear<E, false>(plane, given, value, c == 0);
      }
    }
  }

  // All channels at once, where they are the components of vectors.
  void run_vectors(std::int64_t repeated) {
    if (with_gradient_) vectors_->load_upstream(pass_, start_in(pass_.upstream, 0), chunk_.count);
    const auto sample = with_gradient_ ? sample_vectors<rank, true> : sample_vectors<rank, false>;
    const float* const image =
        static_cast<const float*>(pass_.image.data()) + chunk_.image * pass_.image.strides[0];
    sample(pass_, cells_, image, chunk_.count, vectors_, ready_.gradient);
    if (pass_.output.empty()) return;
    const std::int64_t addend = pass_.addend.empty() ? 0 : start_in(pass_.addend, 0);
    vectors_->store(pass_, start_in(pass_.output, 0), addend, repeated, chunk_.count);
  }

  template <class E, bool loads_pairs>
  void sample_linear(const E* plane, const E* given, E* value, bool is_first) {
    with_gradient_ ? sample_linear_with<E, loads_pairs, true>(plane, given, value, is_first)
                   : sample_linear_with<E, loads_pairs, false>(plane, given, value, is_first);
  }

  template <class E, bool loads_pairs, bool with_gradient>
  void sample_linear_with(const E* plane, const E* given, E* value, bool is_first) {
    const Sampler<float, rank, with_gradient, E, true, loads_pairs> sampler(pass_, plane);
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), end = chunk_.count;
    ReadyCells& ready = ready_;
    const Cells<float>& cells = ready.cells;
    for (std::int64_t slot = 0; slot < end; slot += lanes) {
      const std::int64_t i = std::min(slot, end - lanes);
      V fraction[3];
      for (int a = 0; a < rank; ++a) fraction[a] = hn::Load(d, cells.fraction[a] + slot);
      SampledVector<float> sampled;
      if (HWY_LIKELY(ready.is_inside[slot])) {
        sampled = sampler.sample_inside(fraction, ready.offset + slot);
      } else {
        hn::Vec<DI> voxel[3];
        for (int a = 0; a < rank; ++a) voxel[a] = hn::Load(di, cells.voxel[a] + slot);
        sampled = sampler.sample_border(fraction, voxel);
      }
      if (value != nullptr) {
        hwy::Prefetch(value + i + kChunk);  // of the next chunk, as of the field
        store_elements(sampled.value, value + i);
      }
      if constexpr (with_gradient) {
        hwy::Prefetch(given + i + kChunk);
        add_to_gradient(slot, load_elements(given + i), sampled.slope, is_first);
      }
    }
  }

  HWY_INLINE void add_to_gradient(std::int64_t slot, V given, const V (&slope)[3], bool is_first) {
    for (int a = 0; a < rank; ++a) {
      V sum = hn::Mul(given, slope[a]);
      if (!is_first) sum = hn::Add(hn::Load(d, ready_.gradient[a] + slot), sum);
      hn::Store(sum, d, ready_.gradient[a] + slot);
    }
  }

  template <class E> void sample_nearest(const E* plane, const E* given, E* value, bool is_first) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), end = chunk_.count;
    // Voxels that no row before has touched, as linear sampling fetches them.
    const E* const ahead = plane + 6 * pass_.image.strides[3] + 3 * lanes;
    alignas(64) E values[kChunk];
    E* const to = value != nullptr ? value : values;
    const std::int32_t* const offsets = ready_.offset;
    const bool* const is_inside = ready_.is_inside;
    const bool joins = HWY_TARGET == HWY_AVX2 || has_slow_gathers();
    for (std::int64_t slot = 0; slot < end; slot += lanes) {
      const std::int64_t i = std::min(slot, end - lanes);
      const std::int32_t* const offset = offsets + slot;
      for (std::int64_t k = 0; k < lanes; k += 8) hwy::Prefetch(ahead + offset[k]);
      hwy::Prefetch(to + i + kChunk);
      if (HWY_LIKELY(is_inside[slot])) {
        joins ? copy_elements<E, true>(plane, offset, to + i)
              : copy_elements<E, false>(plane, offset, to + i);
      } else {
        for (std::int64_t k = 0; k < lanes; ++k) {
          if (offset[k] != ReadyCells::kNone) {
            to[i + k] = plane[offset[k]];
          } else {
            store(ready_.none[slot + k], to + i + k);
          }
        }
      }
      if (given == nullptr) continue;
      const V nothing = nothing_of(to + i);
      const V slope[3] = {nothing, nothing, nothing};
      add_to_gradient(slot, nothing_of(given + i), slope, is_first);
    }
  }

  // Vectors of 0·element: 0, or NaN.
  template <class E> static HWY_INLINE V nothing_of(const E* from) {
    if constexpr (std::is_same_v<E, double>) {
      const hn::Repartition<double, D> d64;
      const hn::Half<D> half;
      const auto times = [&](const double* at) HWY_ATTR {
        return hn::DemoteTo(half, hn::Mul(hn::Zero(d64), hn::LoadU(d64, at)));
      };
      return hn::Combine(d, times(from + hn::Lanes(d64)), times(from));
    } else {
      return hn::Mul(hn::Zero(d), load_elements(from));
    }
  }

  // Makes the gradient to the field from that to the index.
  void store_field_gradient() {
    float* const to = start_of_field_gradient();
    const bool is_padded = pass_.padding != Outside::zeros && pass_.mode == Interpolation::linear;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), end = chunk_.count;
    for (std::int64_t slot = 0; slot < end; slot += lanes) {
      const std::int64_t i = std::min(slot, end - lanes);
      const std::int64_t at = has_vectors_ ? i : slot;  // vectors have left their slots
      V w[3];
      for (int a = 0; a < rank; ++a) {
        V by_index = hn::LoadU(d, ready_.gradient[a] + at);
        if (is_padded) by_index = hn::Mul(by_index, hn::LoadU(d, ready_.cells.slope[a] + at));
        w[a] = hn::Mul(hn::Set(d, factor_[a]), by_index);
        hwy::Prefetch(to + rank * (i + kChunk) + a * lanes);
      }
      if constexpr (rank == 3) {
        hn::StoreInterleaved3(w[0], w[1], w[2], d, to + rank * i);
      } else {
        hn::StoreInterleaved2(w[0], w[1], d, to + rank * i);
      }
    }
  }

  Plan& plan_;
  const Pass& pass_;
  const bool has_vectors_;
  bool with_gradient_ = false;  // to the field, of this chunk
  const std::int64_t image_of_sums_;
  const bool adds_up_;
  Chunk& chunk_;
  ReadyCells& ready_;
  Cells<float>& cells_ = ready_.cells;
  ChunkVectors* const vectors_;
  float factor_[3];
};

// Bytes: larger images would leave the cache before anything is added to them.
constexpr std::size_t kSecondLevelCache = 1 << 20;

void prepare_plan(Plan* plan, const TensorView& sums, const Execution& exec) {
  if (!has_fast_path(*plan)) return;
  const Pass& pass = plan->pass;
  plan->voxels_are_finite = wants_finite_voxels(*plan) && are_voxels_finite(pass, exec);
  if (sums.empty() || sums.data() == pass.image.data()) return;
  const bool is_in_order = most_threads(exec) == 1 || plan->tasks() == 1;
  const Extents &s = sums.strides, &own = pass.image.strides;
  const bool is_like_image = s[2] == own[2] && s[3] == own[3] && s[4] == own[4];
  // Sums over images that share a field would have another order.
  const bool is_apart = plan->images_of_task == 1 || sums.shape[0] == pass.batch;
  if (!(is_in_order && is_like_image && is_apart)) return;
  plan->sums_of_image = sums;
  plan->cleared.resize(static_cast<std::size_t>(sums.shape[0]), 0);
  const auto of_image = static_cast<std::size_t>(sums.shape.count() / sums.shape[0]);
  plan->clears_planes = of_image * size_bytes(sums.dtype) > kSecondLevelCache;
}

void clear_rest(Plan* plan) {
  const std::int64_t extent = plan->pass.axes[plan->slab_axis].extent;
  for (std::size_t n = 0; n < plan->cleared.size(); ++n) {
    clear_sums(plan, static_cast<std::int64_t>(n), extent);
  }
}

bool sample_rows(Plan* plan, std::int64_t index) {
  if (!has_fast_path(*plan)) return false;
  Chunk chunk;
  ReadyCells ready;
  ChunkVectors vectors;
  ChunkVectors* const given_vectors = has_vectors(plan->pass) ? &vectors : nullptr;
  const TensorView& sums = plan->sums_of_image;
  const std::int64_t outer = index / plan->tasks_of_image;
  const std::int64_t first = index % plan->tasks_of_image * plan->rows_of_task;
  const std::int64_t end = std::min(first + plan->rows_of_task, plan->rows);
  for (std::int64_t row = first; row < end; ++row) {
    chunk.z = row / plan->pass.axes[1].out_extent;
    chunk.y = row % plan->pass.axes[1].out_extent;
    for (std::int64_t k = 0; k < plan->images_of_task; ++k) {
      chunk.image = outer * plan->images_of_task + k;
      const std::int64_t of_sums = !sums.empty() && sums.shape[0] == 1 ? 0 : chunk.image;
      plan->pass.rank == 3 ? FastRow<3>(plan, &chunk, &ready, given_vectors, of_sums).run()
                           : FastRow<2>(plan, &chunk, &ready, given_vectors, of_sums).run();
    }
  }
  return true;
}
#else
bool sample_rows(Plan*, std::int64_t) { return false; }
void prepare_plan(Plan*, const TensorView&, const Execution&) {}
void clear_rest(Plan*) {}
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::warp_internal {
HWY_EXPORT(sample_rows);
HWY_EXPORT(prepare_plan);
HWY_EXPORT(clear_rest);

void prepare_fast_path(Plan* plan, const TensorView& sums, const Execution& exec) {
  HWY_DYNAMIC_DISPATCH(prepare_plan)(plan, sums, exec);
}

bool run_fast_task(Plan* plan, std::int64_t index) {
  return HWY_DYNAMIC_DISPATCH(sample_rows)(plan, index);
}

void finish_fast_path(Plan* plan) {
  if (!plan->cleared.empty()) HWY_DYNAMIC_DISPATCH(clear_rest)(plan);
}

}  // namespace similis::warp_internal
#endif
