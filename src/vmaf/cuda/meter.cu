// SPDX-License-Identifier: Apache-2.0
// VMAF's features on the GPU: all frames of a batch go through VIF's four launches, ADM's five and
// motion's one, and their sums come back in one copy of 776 B a frame (one setting). Nothing waits
// between kernels. Scores and models are computed from the sums on the host, by the CPU's code.
#include "src/vmaf/cuda/meter.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/vendor.h"
#include "src/vmaf/adm/cuda.h"
#include "src/vmaf/motion/cuda.h"
#include "src/vmaf/vif/cuda.h"

namespace similis::vmaf_internal {
namespace {

// Frames that go together, unless one takes more: the workspace has 4 B a pixel. 16 of 1080p fill
// the GPU at the smallest scale too.
constexpr std::int64_t kMostBytes = std::int64_t{160} << 20, kMostFrames = 64;

constexpr std::int64_t kVifNumbers = std::int64_t{kVifScales} * kVifGpuSums;
constexpr std::int64_t kAdmNumbers = std::int64_t{kAdmScales} * kAdmGpuSums;

GpuImages images_of(const TensorView& frames) {
  return {frames.data(), frames.strides[0], frames.strides[1], frames.strides[2]};
}

// The sums of a batch, first where the kernels add them and then on the host.
struct Results {
  Results(std::int64_t references, std::int64_t pairs, std::size_t vif_passes,
      std::size_t adm_passes, GpuCut& cut)
      : motion(cut.take<GpuSum>(references * kMotionLags)),
        vif(cut.take<GpuSum>(static_cast<std::int64_t>(vif_passes) * pairs * kVifNumbers)),
        adm(cut.take<GpuSum>(static_cast<std::int64_t>(adm_passes) * pairs * kAdmNumbers)),
        largest(cut.take<std::uint32_t>(references + pairs)) {}
  GpuSum* motion;          // [frame][lag]
  GpuSum* vif;             // [pass][pair][scale][kVifGpuSums]
  GpuSum* adm;             // [pass][pair][scale][kAdmGpuSums]
  std::uint32_t* largest;  // samples beyond the depth: [frame], then [pair]
};

class CudaMeter final : public GpuMeter {
 public:
  CudaMeter(const ClipPlan& plan, Device device) : plan_(plan), cambi_(plan), device_(device) {
    for (const AdmSetting& setting : plan.adm_settings) {
      adm_settings_.push_back({setting.gain_limit, adm_sensitivity(setting)});
    }
  }

  std::vector<FrameSums> measure(const TensorView& reference, const TensorView& distorted,
      int bit_depth, const Execution& exec) override {
    const gpu::Current current(device_);
    GpuPairs pairs{.reference = images_of(reference),
        .distorted = images_of(distorted),
        .count = reference.shape[0],
        .width = static_cast<int>(reference.shape[2]),
        .height = static_cast<int>(reference.shape[1]),
        .is_words = reference.dtype == DType::u16,
        .bit_depth = bit_depth};
    const std::int64_t frames = pairs.count, at_once = frames_at_once(pairs);
    const std::deque<std::shared_ptr<void>> before = earlier_;
    std::vector<FrameSums> sums;
    for (std::int64_t first = 0; first < frames; first += at_once) {
      GpuPairs part = pairs;
      part.count = std::min(at_once, frames - first);
      part.reference.samples = at(reference, first);
      part.distorted.samples = at(distorted, first);
      try {
        for (FrameSums& each : run(part, true, exec)) sums.push_back(std::move(each));
      } catch (const InvalidArgument&) {
        earlier_ = before;
        throw;
      }
    }
    return sums;
  }

  FrameSums measure(
      const Plane& reference, std::span<const Plane> distorted, const Execution& exec) override {
    const gpu::Current current(device_);
    const auto images = static_cast<std::int64_t>(distorted.size()) + 1;
    const std::int64_t pixels = reference.width * reference.height;
    const std::int64_t sample_bytes = reference.is_words ? 2 : 1;
    const auto memory =
        allocate_bytes(static_cast<std::size_t>(images * pixels * sample_bytes), device_, exec);
    auto* const samples = static_cast<char*>(memory.get());
    GpuPairs pairs{.reference = {samples, pixels, reference.width, 1},
        .distorted = {samples + pixels * sample_bytes, pixels, reference.width, 1},
        .count = std::max<std::int64_t>(1, images - 1),
        .distorted_of_each = std::max<std::int64_t>(1, images - 1),
        .width = static_cast<int>(reference.width),
        .height = static_cast<int>(reference.height),
        .is_words = reference.is_words,
        .bit_depth = reference.bit_depth};
    upload(reference, samples, exec);
    for (std::int64_t i = 1; i < images; ++i) {
      upload(distorted[static_cast<std::size_t>(i - 1)], samples + i * pixels * sample_bytes, exec);
    }
    FrameSums sums = std::move(run(pairs, !distorted.empty(), exec).front());
    if (!distorted.empty()) cambi_.measure(reference, distorted, exec, sums);
    return sums;
  }

 private:
  static const void* at(const TensorView& frames, std::int64_t index) {
    const auto bytes =
        index * frames.strides[0] * static_cast<std::int64_t>(size_bytes(frames.dtype));
    return static_cast<const char*>(frames.data()) + bytes;
  }

  // Queues the copy of a plane, whose rows become dense.
  static void upload(const Plane& plane, char* to, const Execution& exec) {
    const std::size_t row_bytes = static_cast<std::size_t>(plane.width) * (plane.is_words ? 2 : 1);
    const auto queue = [&](const void* from, char* into, std::size_t bytes) {
      gpu::check(SIMILIS_GPU(MemcpyAsync)(into, from, bytes, SIMILIS_GPU(MemcpyHostToDevice),
                     static_cast<gpu::Stream>(exec.queue.handle)),
          "vmaf: planes cannot be copied from the CPU");
    };
    if (plane.row_stride == plane.width) {
      queue(plane.samples, to, row_bytes * static_cast<std::size_t>(plane.height));
      return;
    }
    for (std::int64_t y = 0; y < plane.height; ++y) {
      const void* row = plane.is_words ? static_cast<const void*>(plane.row<std::uint16_t>(y))
                                       : plane.row<std::uint8_t>(y);
      queue(row, to + static_cast<std::size_t>(y) * row_bytes, row_bytes);
    }
  }

  std::size_t vif_passes(bool is_shown) const {
    return is_shown ? (plan_.vif_limits.size() + kVifGpuLimits - 1) / kVifGpuLimits : 0;
  }
  std::size_t adm_passes(bool is_shown) const {
    return is_shown ? (adm_settings_.size() + kAdmGpuSettings - 1) / kAdmGpuSettings : 0;
  }

  std::int64_t frames_at_once(GpuPairs pairs) const {
    pairs.count = 1;
    GpuCut cut(nullptr);
    VifGpuWorkspace(pairs, cut);
    AdmGpuWorkspace(pairs, cut);
    return std::clamp<std::int64_t>(
        kMostBytes / static_cast<std::int64_t>(cut.bytes()), 1, kMostFrames);
  }

  // Measures a batch and waits for its sums.
  std::vector<FrameSums> run(const GpuPairs& pairs, bool is_shown, const Execution& exec) {
    void* const stream = exec.queue.handle;
    const std::int64_t references = pairs.references(), shown = is_shown ? pairs.count : 0;
    const auto results_in = [&](GpuCut& cut) {
      return Results(references, shown, vif_passes(is_shown), adm_passes(is_shown), cut);
    };
    GpuCut measured(nullptr);
    results_in(measured);
    const std::size_t result_bytes = measured.bytes();
    if (is_shown) {
      VifGpuWorkspace(pairs, measured);
      AdmGpuWorkspace(pairs, measured);
    }
    const auto memory = allocate_bytes(measured.bytes(), device_, exec);
    GpuCut cut(static_cast<char*>(memory.get()));
    const Results results = results_in(cut);
    gpu::clear("vmaf", stream, memory.get(), result_bytes);
    const bool may_exceed = pairs.is_words && pairs.bit_depth < 16;
    if (may_exceed && is_shown) queue_largest(pairs, results.largest, stream);
    queue_motion(pairs, results, stream);
    std::deque<std::shared_ptr<void>> kept = kept_frames(pairs, stream);
    if (is_shown) queue_features(pairs, results, cut, stream);
    std::vector<GpuSum> host(result_bytes / sizeof(GpuSum));
    gpu::check(SIMILIS_GPU(MemcpyAsync)(host.data(), memory.get(), result_bytes,
                   SIMILIS_GPU(MemcpyDeviceToHost), static_cast<gpu::Stream>(stream)),
        "vmaf: sums cannot be copied to the CPU");
    gpu::check(SIMILIS_GPU(StreamSynchronize)(static_cast<gpu::Stream>(stream)),
        "vmaf: work on the stream failed");
    GpuCut host_cut(reinterpret_cast<char*>(host.data()));
    const Results found = results_in(host_cut);
    require_depth_of_samples(found, references, shown, pairs.bit_depth);
    std::vector<FrameSums> sums;
    for (std::int64_t frame = 0; frame < references; ++frame) {
      sums.push_back(sums_of(found, frame, pairs.count, is_shown ? pairs.distorted_of_each : 0));
    }
    earlier_ = std::move(kept);
    return sums;
  }

  void queue_motion(const GpuPairs& pairs, const Results& results, void* stream) const {
    if (plan_.kept_frames() == 0) return;
    EarlierFrames earlier{};
    for (std::size_t i = 0; i < earlier_.size(); ++i) earlier[i] = earlier_[i].get();
    vmaf_internal::queue_motion(pairs, earlier, plan_.lags, results.motion, stream);
  }

  void queue_features(
      const GpuPairs& pairs, const Results& results, GpuCut& cut, void* stream) const {
    const VifGpuWorkspace vif(pairs, cut);
    const AdmGpuWorkspace adm(pairs, cut);
    const std::span<const double> limits = plan_.vif_limits;
    for (std::size_t pass = 0; pass < vif_passes(true); ++pass) {
      const std::size_t first = pass * kVifGpuLimits;
      queue_vif(pairs,
          limits.subspan(first, std::min<std::size_t>(kVifGpuLimits, limits.size() - first)),
          plan_.skips_vif_scale0, vif,
          results.vif + static_cast<std::int64_t>(pass) * pairs.count * kVifNumbers, stream);
    }
    const std::span<const AdmGpuSetting> settings = adm_settings_;
    for (std::size_t pass = 0; pass < adm_passes(true); ++pass) {
      const std::size_t first = pass * kAdmGpuSettings;
      queue_adm(pairs,
          settings.subspan(first, std::min<std::size_t>(kAdmGpuSettings, settings.size() - first)),
          plan_.skips_adm_scale0, adm,
          results.adm + static_cast<std::int64_t>(pass) * pairs.count * kAdmNumbers, stream);
    }
  }

  // Queues copies of the batch's last frames, and keeps of the earlier ones what is still looked
  // at.
  std::deque<std::shared_ptr<void>> kept_frames(const GpuPairs& pairs, void* stream) {
    std::deque<std::shared_ptr<void>> kept = earlier_;
    const auto most = static_cast<std::int64_t>(plan_.kept_frames());
    for (std::int64_t frame = std::max<std::int64_t>(0, pairs.references() - most);
         frame < pairs.references() && most > 0; ++frame) {
      kept.push_front(unused_frame(pairs));
      queue_copy(pairs, frame, kept.front().get(), stream);
    }
    while (static_cast<std::int64_t>(kept.size()) > most) kept.pop_back();
    return kept;
  }

  // Frames outlive the caller's queue and allocator, so they have neither.
  std::shared_ptr<void> unused_frame(const GpuPairs& pairs) {
    for (const std::shared_ptr<void>& frame : frames_) {
      if (frame.use_count() == 1) return frame;
    }
    const std::size_t bytes = static_cast<std::size_t>(pairs.width) *
                              static_cast<std::size_t>(pairs.height) * (pairs.is_words ? 2 : 1);
    frames_.push_back(allocate_bytes(bytes, device_, {}));
    gpu::check(SIMILIS_GPU(StreamSynchronize)(nullptr), "vmaf: memory cannot be had");
    return frames_.back();
  }

  static void require_depth_of_samples(
      const Results& found, std::int64_t references, std::int64_t pairs, int bit_depth) {
    for (std::int64_t i = 0; i < references + pairs; ++i) {
      require_sample_depth(i < references ? "reference" : "distorted", found.largest[i], bit_depth);
    }
  }

  FrameSums sums_of(const Results& found, std::int64_t frame, std::int64_t all_pairs,
      std::int64_t pairs_of_frame) const {
    FrameSums sums;
    for (std::size_t lag = 0; lag < sums.motion.size(); ++lag) {
      sums.motion[lag] = static_cast<std::int64_t>(
          found.motion[frame * kMotionLags + static_cast<std::int64_t>(lag)]);
    }
    for (std::int64_t i = 0; i < pairs_of_frame; ++i) {
      const std::int64_t pair = frame * pairs_of_frame + i;
      PairSums& of_pair = sums.pairs.emplace_back();
      if (vif_passes(true) > 0) of_pair.vif = vif_sums(found.vif, pair, all_pairs);
      if (adm_passes(true) > 0) of_pair.adm = adm_sums(found.adm, pair, all_pairs);
    }
    return sums;
  }

  VifSums vif_sums(const GpuSum* all, std::int64_t pair, std::int64_t pairs) const {
    VifSums sums;
    for (std::size_t scale = 0; scale < sums.size(); ++scale) {
      VifScaleSums& of_scale = sums[scale];
      for (std::size_t k = 0; k < plan_.vif_limits.size(); ++k) {
        const auto pass = static_cast<std::int64_t>(k / kVifGpuLimits);
        const GpuSum* numbers = all + (pass * pairs + pair) * kVifNumbers +
                                static_cast<std::int64_t>(scale) * kVifGpuSums;
        of_scale.flat_count = static_cast<std::int64_t>(numbers[0]);
        of_scale.flat_rest = static_cast<std::int64_t>(numbers[1]);
        of_scale.reference_information = static_cast<std::int64_t>(numbers[2]);
        of_scale.information.push_back(static_cast<std::int64_t>(numbers[3 + k % kVifGpuLimits]));
      }
    }
    return sums;
  }

  AdmSums adm_sums(const GpuSum* all, std::int64_t pair, std::int64_t pairs) const {
    AdmSums sums;
    for (std::size_t scale = 0; scale < sums.size(); ++scale) {
      AdmScaleSums& of_scale = sums[scale];
      for (std::size_t k = 0; k < adm_settings_.size(); ++k) {
        const auto pass = static_cast<std::int64_t>(k / kAdmGpuSettings);
        const GpuSum* numbers = all + (pass * pairs + pair) * kAdmNumbers +
                                static_cast<std::int64_t>(scale) * kAdmGpuSums;
        const GpuSum* of_setting = numbers + 4 + k % kAdmGpuSettings * 2 * kAdmBands;
        AdmScaleSums::Masked& masked = of_scale.masked.emplace_back();
        for (std::size_t band = 0; band < kAdmBands; ++band) {
          of_scale.reference[band] = static_cast<std::int64_t>(numbers[band]);
          masked.detail[band] = static_cast<std::int64_t>(of_setting[band]);
          masked.additive[band] = static_cast<std::int64_t>(of_setting[kAdmBands + band]);
        }
      }
    }
    return sums;
  }

  ClipPlan plan_;
  CambiMeters cambi_;
  Device device_;
  std::vector<AdmGpuSetting> adm_settings_;
  std::vector<std::shared_ptr<void>> frames_;  // memory for dense reference frames
  std::deque<std::shared_ptr<void>> earlier_;  // those of the frames before, the latest first
};

}  // namespace

std::unique_ptr<GpuMeter> make_cuda_meter(const ClipPlan& plan, Device device) {
  return std::make_unique<CudaMeter>(plan, device);
}

}  // namespace similis::vmaf_internal
