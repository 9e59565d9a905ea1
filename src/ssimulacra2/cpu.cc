// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 on the CPU: the passes of cpu_plan.h for each scale, stripe by stripe. Averages
// that only terms of weight 0 need are left out: six of fifteen at the finest scale, whose pixels
// are three quarters of all.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ssimulacra2/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/core/parallel.h"
#include "src/core/tensor/memory.h"
#include "src/ssimulacra2/cpu_blur-inl.h"
#include "src/ssimulacra2/cpu_convert-inl.h"
#include "src/ssimulacra2/cpu_plan.h"
#include "src/ssimulacra2/cpu_terms-inl.h"
#include "src/ssimulacra2/loss_map.h"

HWY_BEFORE_NAMESPACE();
namespace similis::ssimulacra2_internal::HWY_NAMESPACE {

void fill_table(LightOfBytes& table) {
  for (std::size_t v = 0; v < table.of.size(); ++v)
    table.of[v] = static_cast<float>(v) * (1 / 255.0f);
  to_light(static_cast<std::int64_t>(table.of.size()), table.of.data());
}

}  // namespace similis::ssimulacra2_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::ssimulacra2_internal {

/// For each scale X, Y and B, and the averages that depend on the reference alone.
struct Pyramid {
  struct Scale {
    ThreeRows xyb;
    std::array<std::array<Rows, kProducts>, kChannels> averages;
  };
  Ssimulacra2Mode mode;
  std::array<Scale, kMaxScales> scales;
  std::vector<std::shared_ptr<void>> memory;
};

namespace {

HWY_EXPORT(fill_table);
HWY_EXPORT(convert_rows);
HWY_EXPORT(blur_across);
HWY_EXPORT(score_tile);

std::int64_t whole_tiles(std::int64_t width) {
  return (width + kTileColumns - 1) / kTileColumns * kTileColumns;
}

// Planes in one piece of memory, zeroed. Made twice: first to measure, then to hand out.
class Planes {
 public:
  explicit Planes(float* memory = nullptr) : memory_(memory) {}
  float* take(std::int64_t count) {
    float* taken = memory_ ? memory_ + used_ : nullptr;
    used_ += (count + 15) / 16 * 16;
    return taken;
  }
  Rows rows(std::int64_t stride, std::int64_t kept) { return {take(stride * kept), stride, kept}; }
  std::size_t bytes() const { return static_cast<std::size_t>(used_) * sizeof(float); }

 private:
  float* memory_;
  std::int64_t used_ = 0;
};

// Lays planes out by lay_out(Planes&), in memory that lives as long as the result.
template <class LayOut>
std::shared_ptr<void> allocate_planes(const Execution& exec, const LayOut& lay_out) {
  Planes measured;
  lay_out(measured);
  std::shared_ptr<void> memory = allocate_bytes(measured.bytes(), {}, exec);
  std::memset(memory.get(), 0, measured.bytes());
  Planes taken(static_cast<float*>(memory.get()));
  lay_out(taken);
  return memory;
}

// The products to average for these terms.
unsigned products_for(unsigned terms, bool has_y, bool x_is_known) {
  if (terms == 0) return 0;
  unsigned products = bit(kMeanX) | bit(kMeanY);
  if (terms & bit(kDissimilarity)) products |= bit(kSquareX) | bit(kSquareY) | bit(kProductXY);
  if (!has_y) products &= kOfX;
  if (x_is_known) products &= ~kOfX;
  return products;
}

Samples samples_of(const Pictures& side, Background background) {
  const TensorView& view = side.samples;
  return {.data = view.data(),
      .dtype = view.dtype,
      .channels = side.channels(),
      .channel_stride = view.strides[1],
      .row_stride = view.strides[2],
      .column_stride = view.strides[3],
      .is_linear = side.transfer == Ssimulacra2Transfer::linear,
      .background = background};
}

// All scales of one pass, the finest first.
class Walk {
 public:
  Walk(const CpuPass& pass, Pyramid* made, const Execution& exec)
      : pass_(pass), made_(made), exec_(exec), recursion_(make_recursion()) {
    const Pictures& any = pass.y.samples.empty() ? pass.x : pass.y;
    scales_ = scales_of(any.height(), any.width());
    HWY_DYNAMIC_DISPATCH(fill_table)(table_);
  }

  PairSums run() {
    PairSums sums;
    std::array<ThreeRows, 2> light{};
    std::shared_ptr<void> light_memory;
    for (int scale = 0; scale < scales_.count; ++scale) {
      ScalePlan plan = plan_of(scale);
      plan.light = light;
      std::shared_ptr<void> next_memory;
      if (scale + 1 < scales_.count) next_memory = lay_out_next(plan);
      const std::shared_ptr<void> memory = lay_out(plan);
      std::vector<double> partials;
      if (has_y()) {
        partials.resize(
            static_cast<std::size_t>(stripes(plan) * plan.groups() * kChannels * kTerms * kNorms));
        plan.partials = partials.data();
      }
      std::vector<float> losses;
      if (plan.loss != nullptr) {
        losses.resize(static_cast<std::size_t>(plan.stride * plan.extent.height));
        plan.losses = {losses.data(), plan.stride, plan.extent.height};
      }
      run_scale(plan);
      if (plan.loss != nullptr) {
        const Extent& whole = scales_.extents[0];
        add_to_map(
            plan.losses, plan.extent, scale, {pass_.map, whole.width, whole.height}, whole, exec_);
      }
      if (has_y()) add_up(plan, sums.scales[scale]);
      light = plan.next_light;
      light_memory = std::move(next_memory);
    }
    return sums;
  }

 private:
  bool has_y() const { return !pass_.y.samples.empty(); }
  bool reads_x() const { return pass_.pyramid == nullptr; }
  static std::int64_t stripes(const ScalePlan& plan) {
    return (plan.extent.height + kStripe - 1) / kStripe;
  }

  ScalePlan plan_of(int scale) const {
    ScalePlan plan;
    plan.extent = scales_.extents[scale];
    plan.stride = whole_tiles(plan.extent.width);
    plan.is_read = {reads_x(), has_y()};
    if (scale == 0) {
      if (reads_x()) plan.samples[kX] = samples_of(pass_.x, pass_.background);
      if (has_y()) plan.samples[kY] = samples_of(pass_.y, pass_.background);
    }
    for (int channel = 0; channel < kChannels; ++channel) {
      const auto c = static_cast<std::size_t>(channel);
      plan.terms[c] = weighted_terms(scales_.count, scale, channel);
      plan.products[c] = products_for(plan.terms[c], has_y(), !reads_x());
    }
    plan.mode = pass_.mode;
    plan.recursion = recursion_;
    plan.scale = scale;
    plan.loss = pass_.loss;
    return plan;
  }

  // The next scale's light, whole.
  std::shared_ptr<void> lay_out_next(ScalePlan& plan) const {
    const Extent& next = scales_.extents[plan.scale + 1];
    return allocate_planes(exec_, [&](Planes& planes) {
      for (std::size_t side = 0; side < 2; ++side) {
        if (!plan.is_read[side]) continue;
        for (Rows& rows : plan.next_light[side])
          rows = planes.rows(whole_tiles(next.width), next.height);
      }
    });
  }

  // The rings and states of a scale; the rows that a pyramid holds are in the pyramid.
  std::shared_ptr<void> lay_out(ScalePlan& plan) const {
    const auto scale = static_cast<std::size_t>(plan.scale);
    std::shared_ptr<void> memory = allocate_planes(exec_, [&](Planes& planes) {
      plan.zeros = planes.take(plan.stride);
      for (std::size_t side = 0; side < 2; ++side) {
        if (!plan.is_read[side]) continue;
        for (Rows& rows : plan.xyb[side]) rows = planes.rows(plan.stride, kRingRows);
      }
      for (std::size_t c = 0; c < kChannels; ++c) {
        for (std::size_t p = 0; p < kProducts; ++p) {
          if (!(plan.products[c] & bit(static_cast<int>(p)))) continue;
          plan.across[c][p] = planes.rows(plan.stride, kRingRows);
          plan.states[p][c] = planes.rows(plan.stride, std::int64_t{2} * kSections);
        }
      }
    });
    if (pass_.pyramid) {
      plan.xyb[kX] = pass_.pyramid->scales[scale].xyb;
      plan.averages = pass_.pyramid->scales[scale].averages;
    }
    if (made_) {
      made_->memory.push_back(lay_out_pyramid(plan, made_->scales[scale]));
      plan.xyb[kX] = made_->scales[scale].xyb;
      plan.averages = made_->scales[scale].averages;
    }
    return memory;
  }

  std::shared_ptr<void> lay_out_pyramid(const ScalePlan& plan, Pyramid::Scale& scale) const {
    // It outlives the call, and so maybe the caller's allocator.
    return allocate_planes({}, [&](Planes& planes) {
      for (std::size_t c = 0; c < kChannels; ++c) {
        scale.xyb[c] = planes.rows(plan.stride, plan.extent.height);
        for (std::size_t p = 0; p < kProducts; ++p) {
          if (plan.products[c] & bit(static_cast<int>(p)))
            scale.averages[c][p] = planes.rows(plan.stride, plan.extent.height);
        }
      }
    });
  }

  void run_scale(const ScalePlan& plan) const {
    const std::int64_t height = plan.extent.height;
    std::int64_t done = 0;
    for (std::int64_t stripe = 0; stripe < stripes(plan); ++stripe) {
      const std::int64_t ready = std::min(height, (stripe + 1) * kStripe + kAhead);
      convert(plan, done, ready);
      blur(plan, done, ready);
      done = ready;
      parallel_for(exec_, plan.stride / kTileColumns, [&](std::int64_t tile) {
        HWY_DYNAMIC_DISPATCH(score_tile)(plan, stripe, tile * kTileColumns);
      });
    }
  }

  void convert(const ScalePlan& plan, std::int64_t first, std::int64_t end) const {
    const std::int64_t pairs = (end - first + 1) / 2;
    parallel_for(exec_, 2 * pairs, [&](std::int64_t task) {
      const auto side = static_cast<int>(task % 2);
      if (!plan.is_read[static_cast<std::size_t>(side)]) return;
      HWY_DYNAMIC_DISPATCH(convert_rows)(plan, table_, side, first + task / 2 * 2);
    });
  }

  void blur(const ScalePlan& plan, std::int64_t first, std::int64_t end) const {
    const std::int64_t groups = (end - first + kLanes - 1) / kLanes;
    parallel_for(exec_, groups * kChannels, [&](std::int64_t task) {
      const auto channel = static_cast<int>(task % kChannels);
      if (plan.products[static_cast<std::size_t>(channel)] == 0) return;
      const std::int64_t row = first + task / kChannels * kLanes;
      HWY_DYNAMIC_DISPATCH(blur_across)(plan, channel, row, std::min(kLanes, end - row));
    });
  }

  // Stripes from the top, then groups of columns from the left.
  static void add_up(const ScalePlan& plan, ScaleSums& sums) {
    for (int channel = 0; channel < kChannels; ++channel) {
      for (int i = 0; i < kTerms * kNorms; ++i) {
        double total = 0;
        for (std::int64_t group = 0; group < plan.groups(); ++group) {
          double of_group = 0;
          for (std::int64_t stripe = 0; stripe < stripes(plan); ++stripe) {
            of_group += plan.partial(stripe, group, channel)[i];
          }
          total += of_group;
        }
        sums.of[channel][i / kNorms][i % kNorms] = total;
      }
    }
  }

  const CpuPass& pass_;
  Pyramid* made_;
  const Execution& exec_;
  Recursion recursion_;
  Scales scales_;
  LightOfBytes table_{};
};

}  // namespace

PairSums sums_cpu(const CpuPass& pass, const Execution& exec) {
  return Walk(pass, nullptr, exec).run();
}

std::shared_ptr<const Pyramid> make_pyramid_cpu(
    const Pictures& x, Background background, Ssimulacra2Mode mode, const Execution& exec) {
  const auto pyramid = std::make_shared<Pyramid>();
  pyramid->mode = mode;
  const CpuPass pass{.x = x, .y = {}, .background = background, .mode = mode};
  Walk(pass, pyramid.get(), exec).run();
  return pyramid;
}

}  // namespace similis::ssimulacra2_internal
#endif
