// SPDX-License-Identifier: Apache-2.0
// The two images as the fused kernels take them, and the metrics of one that a field moves by them.
#include "src/registration/moved_metric.h"

#include <algorithm>
#include <limits>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/vendor.h"
#include "src/gpu/device.h"
#include "src/registration/cuda/fused.h"

namespace similis::registration_internal {

namespace cuda {

template <class T>
Level<T> fused_level(const Image& fixed, const Image& moving, const Map& voxels) {
  Level<T> level = {};
  set_images(fixed, moving, level);
  level.set_map(voxels);
  return level;
}

bool is_fusable(const Image& image) {
  constexpr std::int64_t kMostOfPlane = std::int64_t{1} << 29;  // 3 numbers a voxel
  const auto& size = image.grid.size;
  return image.grid.rank == 3 && image.channels() == 1 && size[0] * size[1] < kMostOfPlane;
}

template <class T> int set_metrics(const std::vector<MetricTerm>& terms, Level<T>& level) {
  constexpr int kWidest = sizeof(T) == sizeof(float) ? 7 : 5;
  int window_size = 0, ncc = 0;
  for (const MetricTerm& term : terms) {
    const auto weight = static_cast<T>(term.weight);
    const int size = term.window_size;
    if (term.metric == RegisterMetric::lncc && window_size == 0 && size <= kWidest) {
      window_size = size;
      level.lncc_weight = weight;
    } else if (term.metric == RegisterMetric::ncc && ++ncc == 1) {
      level.ncc_weight = weight;
    } else {
      return 0;
    }
  }
  return window_size;
}

template Level<float> fused_level(const Image&, const Image&, const Map&);
template Level<double> fused_level(const Image&, const Image&, const Map&);
template int set_metrics(const std::vector<MetricTerm>&, Level<float>&);
template int set_metrics(const std::vector<MetricTerm>&, Level<double>&);

}  // namespace cuda

namespace {

using namespace cuda;

template <class T> class MetricOnGpu : public FusedMetric {
 public:
  MetricOnGpu(const Level<T>& level, int window_size, const Image& still, const Execution& exec)
      : level_(level),
        window_size_(window_size),
        exec_(exec),
        j_(still.allocated(1, exec)),
        slopes_(still.allocated(3, exec)),
        state_(allocate_bytes(sizeof(State), level.device, exec)),
        partials_(allocate_bytes(sizeof(double) * static_cast<std::size_t>(std::max(
                                                      warp_numbers(level), windows_numbers(level))),
            level.device, exec)) {
    level_.j = j_.template elements<T>();
    level_.state = static_cast<State*>(state_.get());
    level_.partials = static_cast<double*>(partials_.get());
    level_.min_jacobian = -std::numeric_limits<T>::infinity();  // the caller looks at folds
  }

  double differentiate(const Tensor& u, const Tensor& gradient, const Tensor&) override {
    const gpu::Current current(level_.device);
    gpu::clear("register", exec_.queue.handle, state_.get(), sizeof(State));
    const Iteration at{.number = 1, .record = 0};
    const T* const field = u.template elements<T>();
    T* const slopes = slopes_.template elements<T>();
    launch_warp(level_, at, field, exec_);
    launch_windows(level_, at, window_size_, slopes, exec_);
    launch_slopes(level_, at, window_size_, slopes, field, gradient.template elements<T>(), exec_);
    Record record;
    gpu::copy_to_cpu(
        &record, level_.state->records, sizeof(record), level_.device, exec_.queue.handle);
    return -record.loss;
  }

 private:
  Level<T> level_;
  int window_size_;
  const Execution& exec_;
  Tensor j_, slopes_;
  std::shared_ptr<void> state_, partials_;
};

}  // namespace

std::unique_ptr<FusedMetric> fused_metric_cuda(const Image& still, const Image& moved,
    const Map& voxels, const std::vector<MetricTerm>& terms, const Execution& exec) {
  if (!is_fusable(still)) return nullptr;
  return with_type(still.values, [&]<class T>(T) -> std::unique_ptr<FusedMetric> {
    auto level = fused_level<T>(still, moved, voxels);
    const int window_size = set_metrics(terms, level);
    if (window_size == 0) return nullptr;
    return std::make_unique<MetricOnGpu<T>>(level, window_size, still, exec);
  });
}

}  // namespace similis::registration_internal
