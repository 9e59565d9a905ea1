// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 on the GPU: takes all pairs of a batch at once, and does nothing on the host:
//   convert   samples or light ─> X, Y, B; light of the next scale     a kernel for each scale
//   across    X, Y, B ─> blurred products                              exact: one for all scales
//   down      those ─> averages ─> terms ─> sums of 32×32 pixels       exact: one for all scales
//   filter    X, Y, B ─> averages ─> terms ─> such sums                fast: one for all scales
//   finish    those ─> scores                                          one
// Averages and terms never leave registers. The bits are those of the CPU: a step, a term and a
// score have the same text, and sums have the same order. Recursions run along whole rows and
// columns, so a single picture does not fill a GPU; batches do, and small scales fill the gaps that
// large ones leave. Each pixel of the finest scale has 24 B of X, Y and B, written once, read once
// (fast) or twice (exact); exact also 36 B of nine products, written and read once; a third more
// for the other scales, which have 15 products.
#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/ssimulacra2/cuda/across.cuh"
#include "src/ssimulacra2/cuda/convert.cuh"
#include "src/ssimulacra2/cuda/down.cuh"
#include "src/ssimulacra2/cuda/filter.cuh"
#include "src/ssimulacra2/cuda/finish.cuh"

namespace similis::ssimulacra2_internal {
namespace {

constexpr const char* kOperation = "ssimulacra2";
constexpr std::int64_t kMostBytes = std::int64_t{1}
                                    << 32;  // of workspace, unless one pair takes more
constexpr std::int64_t kMostPairs = 64;

// Cuts one allocation into aligned parts.
class Cut {
 public:
  explicit Cut(char* memory) : memory_(memory) {}
  template <class T> T* take(std::int64_t count) {
    T* part = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return part;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  std::size_t bytes_ = 0;
};

std::int64_t parts(std::int64_t extent, std::int64_t each) { return (extent + each - 1) / each; }

std::int64_t pitch_of(std::int64_t width) { return parts(width, kLanes) * kLanes; }

int products_for(unsigned terms) {
  if (terms == 0) return 0;
  return (terms >> kDissimilarity & 1u) != 0 ? kProducts : kMeans;
}

// A batch: its scales and its launches.
class Batch {
 public:
  Batch(const Pictures& x, const Pictures& y, Ssimulacra2Mode mode)
      : x_(x), y_(y), mode_(mode), backgrounds_(backgrounds_of(x.has_alpha())) {
    finish_.scales = scales_of(x.height(), x.width());
    finish_.weights = kScoreWeights;
    finish_.backgrounds = backgrounds_.count;
    for (int i = 0; i < finish_.scales.count; ++i) {
      scales_[i] = scale_of(i);
      std::copy_n(scales_[i].terms, kChannels, finish_.terms[i]);
    }
  }

  std::size_t bytes_for(std::int64_t pairs) {
    Cut cut(nullptr);
    lay_out(pairs, cut);
    return cut.bytes();
  }

  void lay_out(std::int64_t pairs, Cut& cut) {
    const std::int64_t images = pairs * backgrounds_.count;
    for (int i = 0; i < finish_.scales.count; ++i) {
      Scale& s = scales_[i];
      s.xyb = cut.take<float>(images * kSides * kChannels * s.plane());
      if (mode_ == Ssimulacra2Mode::exact) s.across = cut.take<float>(images * s.slots * s.plane());
      s.light = i == 0 ? nullptr : scales_[i - 1].next_light;
      const bool is_last = i + 1 == finish_.scales.count;
      s.next_light =
          is_last ? nullptr : cut.take<float>(images * kSides * kChannels * s.next_plane());
      s.partials = cut.take<double>(images * s.stripes() * s.groups() * kSumsOfScale);
      finish_.partials[i] = s.partials;
      finish_.groups[i] = cut.take<double>(images * s.groups() * kSumsOfScale);
    }
  }

  void queue(std::int64_t first, std::int64_t pairs, double* scores, void* stream) {
    const std::int64_t images = pairs * backgrounds_.count;
    queue_conversions(first, images, stream);
    if (mode_ == Ssimulacra2Mode::exact) {
      const Work across = work_of(images, across_blocks);
      const auto columns = [](const Scale& s, int) { return parts(s.extent.width, kDownThreads); };
      const Work down = work_of(images, columns);
      gpu::launch(
          kOperation, stream, across.grid(), kAcrossThreads, 0, across_kernel, across, recursion_);
      gpu::launch(kOperation, stream, down.grid(), kDownThreads, 0, down_kernel, down, recursion_);
    } else {
      const int stripes = stripes_a_strip(images);
      const auto warps = [&](const Scale& s, int) {
        const Strips strips = strips_of(s, stripes);
        return parts(strips.beside * strips.above, kFilterWarps);
      };
      const Work filter = work_of(images, warps);
      gpu::launch(
          kOperation, stream, filter.grid(), kFilterThreads, 0, filter_kernel, filter, stripes);
    }
    finish_.scores = scores + first;
    gpu::launch(kOperation, stream, dim3(static_cast<unsigned>(pairs)), kFinishThreads, 0,
        finish_kernel, finish_);
  }

 private:
  Scale scale_of(int index) const {
    const Scales& scales = finish_.scales;
    Scale s{};
    s.extent = scales.extents[index];
    s.next = {(s.extent.height + 1) / 2, (s.extent.width + 1) / 2};
    s.pitch = pitch_of(s.extent.width);
    s.next_pitch = pitch_of(s.next.width);
    for (int channel = 0; channel < kChannels; ++channel) {
      s.terms[channel] = weighted_terms(scales.count, index, channel);
      s.products[channel] = products_for(s.terms[channel]);
      s.first_slot[channel] = s.slots;
      s.slots += s.products[channel];
    }
    return s;
  }

  // blocks(scale, products) gives the number of blocks for each channel that counts.
  template <class Blocks> Work work_of(std::int64_t images, const Blocks& blocks) const {
    Work work;
    work.images = static_cast<unsigned>(images);
    std::copy_n(scales_, finish_.scales.count, work.scales);
    for (int i = 0; i < finish_.scales.count; ++i) {
      for (const int products : {kProducts, kMeans}) {
        for (int channel = 0; channel < kChannels; ++channel) {
          if (scales_[i].products[channel] != products) continue;
          work.add(i, channel, blocks(scales_[i], products));
        }
      }
    }
    return work;
  }

  // Returns the height of a strip in stripes: as high as leaves each multiprocessor two rounds of
  // warps.
  int stripes_a_strip(std::int64_t images) const {
    const Strips of_one = strips_of(scales_[0], 1);
    const std::int64_t enough = std::int64_t{24} * gpu::limits(x_.samples.device).multiprocessors;
    const std::int64_t warps = images * kChannels * of_one.beside * of_one.above;
    return static_cast<int>(std::clamp<std::int64_t>(warps / enough, 1, kMostStripes));
  }

  void queue_conversions(std::int64_t first, std::int64_t images, void* stream) const {
    const Source source = {Side(x_.picture(first)), Side(y_.picture(first)), backgrounds_.count,
        {backgrounds_.values[0], backgrounds_.values[1]}};
    const bool of_bytes = is_plain(x_) && is_plain(y_);
    for (int i = 0; i < finish_.scales.count; ++i) {
      if (i == 0) {
        of_bytes ? convert<ByteReader>(0, source, images, stream)
                 : convert<SampleReader>(0, source, images, stream);
      } else {
        of_bytes ? convert<LightReader<true>>(i, source, images, stream)
                 : convert<LightReader<false>>(i, source, images, stream);
      }
    }
  }

  template <class Reader>
  void convert(int scale, const Source& source, std::int64_t images, void* stream) const {
    const Scale& s = scales_[scale];
    const dim3 blocks(static_cast<unsigned>(parts(s.extent.width, 2 * kLanes)),
        static_cast<unsigned>(parts(s.extent.height, kConvertRows * kConvertTurns<Reader>)),
        static_cast<unsigned>(images * kSides));
    gpu::launch(kOperation, stream, blocks, kConvertThreads, 0, convert_kernel<Reader>, s, source);
  }

  // Returns whether the samples are bytes that a table turns into light.
  static bool is_plain(const Pictures& side) {
    return side.samples.dtype == DType::u8 && !side.has_alpha() &&
           side.transfer == Ssimulacra2Transfer::srgb;
  }

  const Pictures &x_, &y_;
  Ssimulacra2Mode mode_;
  Backgrounds backgrounds_;
  Recursion recursion_ = make_recursion();
  Scale scales_[kMaxScales] = {};
  Finish finish_{};
};

}  // namespace

void ssimulacra2_cuda(const Pictures& x, const Pictures& y, Ssimulacra2Mode mode, double* scores,
    const Execution& exec) {
  const gpu::Current current(x.samples.device);
  Batch batch(x, y, mode);
  const auto of_one = static_cast<std::int64_t>(batch.bytes_for(1));
  const std::int64_t most = std::clamp<std::int64_t>(kMostBytes / of_one, 1, kMostPairs);
  const std::int64_t at_once =
      parts(x.count(), parts(x.count(), most));  // all alike, but for the last
  const auto memory = allocate_bytes(batch.bytes_for(at_once), x.samples.device, exec);
  for (std::int64_t first = 0; first < x.count(); first += at_once) {
    const std::int64_t pairs = std::min(at_once, x.count() - first);
    Cut cut(static_cast<char*>(memory.get()));
    batch.lay_out(pairs, cut);
    batch.queue(first, pairs, scores, exec.queue.handle);
  }
}

}  // namespace similis::ssimulacra2_internal
