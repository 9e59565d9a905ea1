// SPDX-License-Identifier: Apache-2.0
// MS-SSIM on the CPU: SSIM's passes over a pyramid of halved images. Values come first, from the
// finest level to the coarsest, because each level's gradient depends on all means; gradients
// follow from the coarsest to the finest, each level adding what the next sends back as it writes
// its own.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ms_ssim/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/ms_ssim/formula.h"
#include "src/ms_ssim/ms_ssim.h"

HWY_BEFORE_NAMESPACE();
namespace similis::ms_ssim_internal::HWY_NAMESPACE {
using core_internal::HWY_NAMESPACE::load_row;
using core_internal::HWY_NAMESPACE::store_row;

// One row of a halved image: the mean of up to four fine rows, then of pairs of their columns.
void halve_row(const TensorView& fine, const std::array<Halving, 3>& halving,
    const TensorView& coarse, const std::array<std::int64_t, 4>& position) {
  const auto [image, channel, z, y] = position;
  const std::int64_t width = fine.shape[4];
  std::vector<double> row(static_cast<std::size_t>(width)), sum(row.size());
  for (const int kz : {0, 1}) {
    for (const int ky : {0, 1}) {
      const std::int64_t fine_z = halving[0].fine(z, kz), fine_y = halving[1].fine(y, ky);
      if (fine_z == Halving::kZero || fine_y == Halving::kZero) continue;
      const Extents& strides = fine.strides;
      load_row(fine,
          image * strides[0] + channel * strides[1] + fine_z * strides[2] + fine_y * strides[3],
          strides[4], width, row.data());
      for (std::size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
    }
  }
  std::vector<double> halved(static_cast<std::size_t>(coarse.shape[4]));
  for (std::int64_t x = 0; x < coarse.shape[4]; ++x) {
    double pair = 0;
    for (const int k : {0, 1}) {
      const std::int64_t fine_x = halving[2].fine(x, k);
      if (fine_x != Halving::kZero) pair += sum[static_cast<std::size_t>(fine_x)];
    }
    halved[static_cast<std::size_t>(x)] = pair / 8;
  }
  const Extents& strides = coarse.strides;
  store_row(halved.data(), coarse.shape[4], coarse,
      image * strides[0] + channel * strides[1] + z * strides[2] + y * strides[3], strides[4]);
}

}  // namespace similis::ms_ssim_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::ms_ssim_internal {
namespace {

HWY_EXPORT(halve_row);

Tensor halve(const TensorView& fine, const std::array<Halving, 3>& halving, const Execution& exec) {
  const Tensor coarse = allocate(coarse_shape(fine.shape, halving), DType::f64, fine.device, exec);
  const Extents& shape = coarse.shape;
  parallel_for(exec, shape[0] * shape[1] * shape[2] * shape[3], [&](std::int64_t index) {
    const std::int64_t y = index % shape[3], z = index / shape[3] % shape[2];
    const std::int64_t plane = index / shape[3] / shape[2];
    HWY_DYNAMIC_DISPATCH(halve_row)
    (fine, halving, coarse, {plane / shape[1], plane % shape[1], z, y});
  });
  return coarse;
}

struct Level {
  ssim_internal::Pass pass;
  Tensor x, y;                // halved images; f64, for x - y is lost in f32 where they are alike
  Tensor mask;                // likewise
  std::vector<double> means;  // mean 1 - cs (1 - SSIM at the coarsest) of each channel
};

std::vector<Level> pyramid(const Pass& pass, const Execution& exec) {
  std::vector<Level> levels(pass.weights.size());
  levels[0].pass = pass.level;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    ssim_internal::Pass& level = levels[l].pass;
    if (l > 0) {
      const ssim_internal::Pass& finer = levels[l - 1].pass;
      levels[l].x = halve(finer.x, finer.halving, exec);
      levels[l].y = halve(finer.y, finer.halving, exec);
      level = pass.level;
      level.x = levels[l].x;
      level.y = levels[l].y;
      if (!finer.mask.empty()) {
        levels[l].mask = halve(own_planes(finer.mask), finer.halving, exec);
        level.mask = broadcast_planes(levels[l].mask, level.x);
      }
    }
    const bool is_coarsest = l + 1 == levels.size();
    level.term = is_coarsest ? ssim_internal::Term::ssim : ssim_internal::Term::contrast;
    level.reduction = Reduction::per_channel;
    if (!is_coarsest) level.halving = halving_of(level.x.shape, pass.is_3d, pass.downsample);
  }
  return levels;
}

void find_means(Level& level, const Execution& exec) {
  const Extents shape = {level.pass.x.shape[0], level.pass.x.shape[1]};
  level.means.resize(static_cast<std::size_t>(shape.count()));
  ssim_internal::Pass pass = level.pass;
  pass.value = TensorView(level.means.data(), shape, DType::f64);
  ssim_internal::kSsim.run(pass, pass.x.device, exec);
}

// The channels' values, their reduction, and the derivative of Σ upstream·value by each level's
// mean. Channels without a value are left out.
class Combination {
 public:
  Combination(const Pass& pass, const std::vector<Level>& levels) : pass_(pass), levels_(levels) {
    for (std::size_t plane = 0; plane < levels[0].means.size(); ++plane) {
      const std::vector<double> means = means_of(plane);
      bool exists = true;
      for (std::size_t l = 0; l < means.size(); ++l) {
        exists = exists && (pass.weights[l] == 0 || means[l] != kNoMean);
      }
      exists_.push_back(exists);
      products_.push_back(
          product(means.data(), pass.weights.data(), static_cast<int>(means.size())));
    }
    const std::size_t channels = products_.size();
    planes_of_result_.resize(pass.reduction == Reduction::per_channel ? channels
                             : pass.reduction == Reduction::per_image
                                 ? static_cast<std::size_t>(pass.level.x.shape[0])
                                 : 1);
    for (std::size_t plane = 0; plane < channels; ++plane) {
      if (exists_[plane]) ++planes_of_result_[result_of(plane)];
    }
  }

  void write_values() const {
    std::vector<double> sums(planes_of_result_.size());
    for (std::size_t plane = 0; plane < products_.size(); ++plane) {
      if (!exists_[plane]) continue;
      sums[result_of(plane)] += pass_.bias + pass_.term_weight * products_[plane].dissimilarity;
    }
    for (std::size_t result = 0; result < sums.size(); ++result) {
      sums[result] *= share(result);
      const bool is_unknown =
          planes_of_result_[result] == 0 && pass_.reduction != Reduction::sum && pass_.bias != 0;
      if (is_unknown) sums[result] = std::numeric_limits<double>::quiet_NaN();
    }
    if (pass_.value.dtype == DType::f64) {
      std::copy(sums.begin(), sums.end(), static_cast<double*>(pass_.value.data()));
    } else {
      std::transform(sums.begin(), sums.end(), static_cast<float*>(pass_.value.data()),
          [](double sum) { return static_cast<float>(sum); });
    }
  }

  // d(Σ upstream·value)/d(mean of the level), for each channel of each image.
  std::vector<double> slopes(std::size_t level) const {
    std::vector<double> result;
    for (std::size_t plane = 0; plane < products_.size(); ++plane) {
      if (!exists_[plane]) {
        result.push_back(0);
        continue;
      }
      result.push_back(upstream_of(plane) * share(result_of(plane)) * pass_.term_weight *
                       slope(products_[plane], levels_[level].means[plane], pass_.weights[level]));
    }
    return result;
  }

 private:
  std::vector<double> means_of(std::size_t plane) const {
    std::vector<double> means;
    for (const Level& level : levels_) means.push_back(level.means[plane]);
    return means;
  }
  std::size_t channels() const { return static_cast<std::size_t>(pass_.level.x.shape[1]); }

  // Planes are spread evenly over the results, in order.
  std::size_t result_of(std::size_t plane) const {
    return plane / (products_.size() / planes_of_result_.size());
  }
  // The weight of a channel's value in its result.
  double share(std::size_t result) const {
    const std::size_t planes = planes_of_result_[result];
    return pass_.reduction == Reduction::sum || planes == 0 ? 1 : 1 / static_cast<double>(planes);
  }
  double upstream_of(std::size_t plane) const {
    const TensorView& upstream = pass_.upstream;
    if (upstream.empty()) return 1;
    const auto image = static_cast<std::int64_t>(plane / channels());
    const auto channel = static_cast<std::int64_t>(plane % channels());
    std::int64_t offset = 0;
    if (upstream.shape.rank() > 0) offset += image * upstream.strides[0];
    if (upstream.shape.rank() > 1) offset += channel * upstream.strides[1];
    return element(upstream, offset);
  }

  const Pass& pass_;
  const std::vector<Level>& levels_;
  std::vector<Product> products_;
  std::vector<bool> exists_;                   // of each channel: has a value
  std::vector<std::size_t> planes_of_result_;  // number of those that exist
};

// A gradient of one image at every level: the caller's at the finest, our own below.
std::vector<Tensor> allocate_gradients(
    const std::vector<Level>& levels, const TensorView& finest, const Execution& exec) {
  std::vector<Tensor> gradients(levels.size());
  if (finest.empty()) return gradients;
  gradients[0] = Tensor(finest, nullptr);
  for (std::size_t l = 1; l < levels.size(); ++l) {
    const TensorView& x = levels[l].pass.x;
    gradients[l] = allocate(x.shape, result_dtype(finest.dtype), x.device, exec);
  }
  return gradients;
}

void find_gradients(const Pass& pass, const std::vector<Level>& levels,
    const Combination& combination, const Execution& exec) {
  const std::vector<Tensor> by_x = allocate_gradients(levels, pass.x_gradient, exec);
  const std::vector<Tensor> by_y = allocate_gradients(levels, pass.y_gradient, exec);
  for (std::size_t l = levels.size(); l-- > 0;) {
    ssim_internal::Pass level = levels[l].pass;
    const std::vector<double> upstream = combination.slopes(l);
    level.upstream = TensorView(upstream.data(), {level.x.shape[0], level.x.shape[1]}, DType::f64);
    level.x_gradient = by_x[l];
    level.y_gradient = by_y[l];
    if (l + 1 < levels.size()) {
      level.coarse_x_gradient = by_x[l + 1];
      level.coarse_y_gradient = by_y[l + 1];
    }
    ssim_internal::kSsim.run(level, level.x.device, exec);
  }
}

}  // namespace

void ms_ssim_cpu(const Pass& pass, const Execution& exec) {
  std::vector<Level> levels = pyramid(pass, exec);
  for (Level& level : levels) find_means(level, exec);
  const Combination combination(pass, levels);
  if (!pass.value.empty()) combination.write_values();
  if (pass.x_gradient.empty() && pass.y_gradient.empty()) return;
  find_gradients(pass, levels, combination, exec);
}

}  // namespace similis::ms_ssim_internal
#endif
