// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 through Vulkan, mode exact, as cuda/ssimulacra2.cu has it: takes pairs of a batch
// at once, and does nothing on the host but to copy pictures that are there.
//   samples, light  samples or light ─> X, Y, B; light of the next scale     a kernel for each
//   scale across          X, Y, B ─> blurred products                              one for all
//   scales down            those ─> averages ─> terms ─> sums of 32×32 pixels       one for all
//   scales group_sums      those ─> sums of 32 columns                              one for all
//   scales score           those ─> scores                                          one
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "src/core/require.h"
#include "src/gpu/launch/vulkan/elements.h"
#include "src/gpu/launch/vulkan/staged_batches.h"
#include "src/gpu/vulkan/device_functions.h"
#include "src/ssimulacra2/blur.h"
#include "src/ssimulacra2/ssimulacra2.h"

namespace similis::ssimulacra2_internal {
namespace {

using gpu::vulkan::Commands;
using gpu::vulkan::Elements;
using gpu::vulkan::Gpu;
using gpu::vulkan::KernelArguments;

constexpr const char* kOperation = "ssimulacra2";

// As in the kernels.
constexpr std::int64_t kTileColumns = 16, kTileRows = 8, kThreads = 64, kDownThreads = 256;
constexpr int kMeans = 2, kProducts = 5, kSides = 2, kSums = kTerms * kNorms;
struct Job {
  std::int32_t first_across, first_down;
  std::int32_t width, height, x, y, across, products, terms, partials, sums;
};
struct WeightedNorm {
  double weight;
  std::int32_t sums, groups, pixels, is_fourth;
};

// Arguments of the kernels, laid out as theirs.
struct SamplesArguments : KernelArguments {
  std::int32_t width, height, xyb_first, xyb_image, next_first, light_image;
  std::int32_t offset_x, strides_x[4], offset_y, strides_y[4];
  std::int32_t channels_x, channels_y, is_linear, backgrounds;
  float background[2];
  float unit;
};
struct LightArguments : KernelArguments {
  std::int32_t width, height, xyb_first, xyb_image, light_first, next_first, light_image;
};
struct AcrossArguments : KernelArguments {
  std::int32_t job_count, xyb_image, across_image;
};
struct DownArguments : AcrossArguments {
  std::int32_t partials_image;
};
struct GroupArguments : KernelArguments {
  std::int32_t partials_image, sums_image;
};
struct ScoreArguments : KernelArguments {
  std::int32_t norm_count, sums_image, backgrounds, first_score;
};

std::int64_t parts(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }
std::int64_t quads_of(const Extent& extent) { return extent.height * parts(extent.width, 4); }
std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

// The work on one image, a pair over one background, and where its parts lie in memory.
class Plan {
 public:
  Plan(std::int64_t height, std::int64_t width) : scales_(scales_of(height, width)) {
    for (int scale = 0; scale < scales_.count; ++scale) {
      const Extent& extent = scales_.extents[scale];
      xyb_first_[scale] = xyb_;
      xyb_ += kSides * kChannels * quads_of(extent);
      light_first_[scale] = light_;
      if (scale > 0) light_ += kSides * kChannels * extent.height * extent.width;
      // The longest jobs first: the others fill the device at the end.
      for (const int products : {kProducts, kMeans}) {
        for (int channel = 0; channel < kChannels; ++channel) add_job(scale, channel, products);
      }
    }
  }

  const Scales& scales() const { return scales_; }
  const std::vector<Job>& jobs() const { return jobs_; }
  const std::vector<WeightedNorm>& norms() const { return norms_; }
  std::int64_t xyb_first(int scale) const { return xyb_first_[scale]; }
  /// -1 beyond the last scale.
  std::int64_t light_first(int scale) const {
    return scale < scales_.count ? light_first_[scale] : -1;
  }
  // Sizes, in quads, floats and doubles.
  std::int64_t xyb() const { return xyb_; }
  std::int64_t light() const { return light_; }
  std::int64_t across() const { return across_; }
  std::int64_t partials() const { return partials_; }
  std::int64_t sums() const { return sums_; }
  /// Workgroups.
  std::int64_t across_groups() const { return across_groups_; }
  std::int64_t down_groups() const { return down_groups_; }

  std::int64_t bytes() const {
    constexpr std::int64_t kQuad = 16, kFloat = 4, kDouble = 8;
    return kQuad * (xyb_ + across_) + kFloat * light_ + kDouble * (partials_ + sums_);
  }

 private:
  void add_job(int scale, int channel, int products) {
    const unsigned terms = weighted_terms(scales_.count, scale, channel);
    const int wanted = (terms >> kDissimilarity & 1u) != 0 ? kProducts : kMeans;
    if (terms == 0 || wanted != products) return;
    const Extent& extent = scales_.extents[scale];
    const std::int64_t quads = quads_of(extent), groups = parts(extent.width, kGroup);
    const std::int64_t x = xyb_first_[scale] + channel * quads;
    jobs_.push_back({.first_across = narrow(across_groups_),
        .first_down = narrow(down_groups_),
        .width = narrow(extent.width),
        .height = narrow(extent.height),
        .x = narrow(x),
        .y = narrow(x + kChannels * quads),
        .across = narrow(across_),
        .products = products,
        .terms = static_cast<std::int32_t>(terms),
        .partials = narrow(partials_),
        .sums = narrow(sums_)});
    add_norms(scale, channel, groups);
    across_groups_ += products * parts(extent.height, kThreads);
    down_groups_ += groups;
    across_ += products * quads;
    partials_ += parts(extent.height, kStripe) * groups * kSums;
    sums_ += groups * kSums;
  }

  // Norms without a weight add 0.
  void add_norms(int scale, int channel, std::int64_t groups) {
    const Extent& extent = scales_.extents[scale];
    for (const Norm norm : {kFirst, kFourth}) {
      for (int term = 0; term < kTerms; ++term) {
        const int place = weight_index(scales_.count, {scale, channel, term, norm});
        const double weight = kScoreWeights.of[place];
        if (weight == 0) continue;
        norms_.push_back({weight, narrow(sums_ + term * kNorms + norm), narrow(groups),
            narrow(extent.height * extent.width), norm});
        places_.push_back(place);
        // They are added in the order of the weights.
        for (std::size_t i = places_.size() - 1; i > 0 && places_[i] < places_[i - 1]; --i) {
          std::swap(places_[i], places_[i - 1]);
          std::swap(norms_[i], norms_[i - 1]);
        }
      }
    }
  }

  Scales scales_;
  std::vector<Job> jobs_;
  std::vector<WeightedNorm> norms_;
  std::vector<int> places_;
  std::int64_t xyb_first_[kMaxScales] = {}, light_first_[kMaxScales] = {};
  std::int64_t xyb_ = 0, light_ = 0, across_ = 0, partials_ = 0, sums_ = 0;
  std::int64_t across_groups_ = 0, down_groups_ = 0;
};

// Specialization constants: of the device's arithmetic, and the coefficients of the blur.
std::vector<std::int32_t> constants_of(bool uses_device_fma) {
  const auto coefficients =
      std::bit_cast<std::array<std::int32_t, sizeof(Recursion) / sizeof(float)>>(make_recursion());
  std::vector<std::int32_t> constants = {uses_device_fma ? 1 : 0};
  constants.insert(constants.end(), coefficients.begin(), coefficients.end());
  return constants;
}

float unit_of(DType dtype) {
  return dtype == DType::u8 ? 1 / 255.0f : dtype == DType::u16 ? 1 / 65535.0f : 1.0f;
}

void put(const Elements& samples, std::int32_t& offset, std::int32_t (&strides)[4]) {
  offset = samples.offset;
  std::copy_n(samples.strides, 4, strides);
}

// Pictures of a batch.
Pictures pictures_of(const Pictures& all, std::int64_t first, std::int64_t count) {
  Pictures some = all.picture(first);
  some.samples.shape[0] = count;
  return some;
}

class Batch {
 public:
  Batch(Commands& commands, const Plan& plan, const Pictures& x, const Pictures& y,
      const Execution& exec)
      : commands_(commands),
        plan_(plan),
        x_(x),
        y_(y),
        backgrounds_(backgrounds_of(x.has_alpha())),
        images_(x.count() * backgrounds_.count),
        samples_x_(gpu::vulkan::elements_of(kOperation, commands, x.samples, exec)),
        samples_y_(gpu::vulkan::elements_of(kOperation, commands, y.samples, exec)) {
    // Workspace is taken after the copies of pictures, so that calls of several threads share it.
    const auto& arithmetic = commands.gpu().exact_arithmetic(kOperation);
    suffix_ = arithmetic.uses_device_doubles ? "_f64" : "";
    constants_ = constants_of(arithmetic.uses_device_fma);
    xyb_ = workspace(plan.xyb(), 4 * sizeof(float));
    light_ = workspace(plan.light(), sizeof(float));
    across_ = workspace(plan.across(), 4 * sizeof(float));
    partials_ = workspace(plan.partials(), sizeof(double));
    sums_ = workspace(plan.sums(), sizeof(double));
    exceeded_ = workspace(1, sizeof(std::uint32_t));
    jobs_ = uploaded(plan.jobs());
    norms_ = uploaded(plan.norms());
  }

  /// Queues the kernels; the first pair's score goes to scores[first_score].
  void queue(VkBuffer scores, std::int64_t first_score) {
    convert();
    const std::int32_t jobs = narrow(static_cast<std::int64_t>(plan_.jobs().size()));
    const AcrossArguments across{{}, jobs, narrow(plan_.xyb()), narrow(plan_.across())};
    commands_.run({.module = "ssimulacra2/across", .constants = constants_}, {jobs_, xyb_, across_},
        across, {.x = plan_.across_groups(), .y = images_});
    const DownArguments down{across, narrow(plan_.partials())};
    commands_.run({.module = std::string("ssimulacra2/down") + suffix_, .constants = constants_},
        {jobs_, xyb_, across_, partials_}, down, {.x = plan_.down_groups(), .y = images_});
    const GroupArguments groups{{}, narrow(plan_.partials()), narrow(plan_.sums())};
    commands_.run({.module = std::string("ssimulacra2/group_sums") + suffix_},
        {jobs_, partials_, sums_}, groups,
        {.x = parts(parts(x_.width(), kGroup) * kSums, kThreads), .y = jobs, .z = images_});
    const ScoreArguments score{{}, narrow(static_cast<std::int64_t>(plan_.norms().size())),
        narrow(plan_.sums()), backgrounds_.count, narrow(first_score)};
    commands_.run({.module = "ssimulacra2/score"}, {norms_, sums_, exceeded_, scores}, score,
        {.x = x_.count()});
  }

 private:
  VkBuffer workspace(std::int64_t of_image, std::size_t bytes_each) {
    const std::int64_t count = std::max<std::int64_t>(1, of_image * images_);
    gpu::vulkan::require_addressable(kOperation, commands_.gpu(), count, bytes_each);
    return commands_.workspace(static_cast<std::size_t>(count) * bytes_each);
  }
  template <class T> VkBuffer uploaded(const std::vector<T>& values) {
    return commands_.workspace_of(values.data(), values.size() * sizeof(T));
  }

  void convert() {
    commands_.clear(exceeded_, static_cast<std::size_t>(images_) * sizeof(std::uint32_t));
    SamplesArguments samples{};
    samples.one = 1;
    put(samples_x_, samples.offset_x, samples.strides_x);
    put(samples_y_, samples.offset_y, samples.strides_y);
    samples.channels_x = x_.channels();
    samples.channels_y = y_.channels();
    samples.is_linear = x_.transfer == Ssimulacra2Transfer::linear ? 1 : 0;
    samples.backgrounds = backgrounds_.count;
    std::copy_n(backgrounds_.values.begin(), 2, samples.background);
    samples.unit = unit_of(x_.samples.dtype);
    for (int scale = 0; scale < plan_.scales().count; ++scale) {
      const Extent& extent = plan_.scales().extents[scale];
      const std::int32_t width = narrow(extent.width), height = narrow(extent.height);
      const std::int32_t first = narrow(plan_.xyb_first(scale)), image = narrow(plan_.xyb());
      const std::int32_t light = narrow(plan_.light_first(scale));
      const std::int32_t next = narrow(plan_.light_first(scale + 1));
      // Threads of columns up to a whole quad.
      const gpu::vulkan::Groups groups{.x = parts(extent.width, kTileColumns),
          .y = parts(extent.height, kTileRows),
          .z = kSides * images_};
      if (scale > 0) {
        const LightArguments arguments{
            {}, width, height, first, image, light, next, narrow(plan_.light())};
        commands_.run({.module = "ssimulacra2/light", .constants = {constants_[0]}}, {light_, xyb_},
            arguments, groups);
        continue;
      }
      samples.width = width;
      samples.height = height;
      samples.xyb_first = first;
      samples.xyb_image = image;
      samples.next_first = next;
      samples.light_image = narrow(plan_.light());
      commands_.run({.module = "ssimulacra2/samples",
                        .constants = {constants_[0], static_cast<int>(x_.samples.dtype)}},
          {samples_x_.buffer, samples_y_.buffer, xyb_, light_, exceeded_}, samples, groups);
    }
  }

  Commands& commands_;
  const Plan& plan_;
  const Pictures &x_, &y_;
  const Backgrounds backgrounds_;
  const std::int64_t images_;
  const Elements samples_x_, samples_y_;
  const char* suffix_ = "";
  std::vector<std::int32_t> constants_;
  VkBuffer xyb_, light_, across_, partials_, sums_, exceeded_, jobs_, norms_;
};

void require_kernels(const ScorePass& pass) {
  const auto refuse = [](const std::string& what) {
    throw DeviceError(
        fmt::format("ssimulacra2: {}; through Vulkan there is mode exact of pictures of uint8, "
                    "uint16, float16, "
                    "bfloat16 or float32",
            what));
  };
  if (pass.mode == Ssimulacra2Mode::fast) refuse("the mode is fast");
  if (pass.x.samples.dtype == DType::f64) refuse("x is float64");
}

// Number of pairs that go together: as many as take 1 GiB of workspace, in buffers that the device
// reads whole.
std::int64_t pairs_at_once(const Gpu& gpu, const Plan& plan, int backgrounds) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30, kMostPairs = 64;
  constexpr std::int64_t kQuadBytes = 16;
  const std::int64_t most_quads = std::min<std::int64_t>(gpu.limits().maxStorageBufferRange,
                                      std::numeric_limits<std::int32_t>::max()) /
                                  kQuadBytes;
  const std::int64_t largest = std::max(plan.xyb(), plan.across());
  const std::int64_t images = std::min(kMostBytes / plan.bytes(), most_quads / largest);
  return std::clamp<std::int64_t>(images / backgrounds, 1, kMostPairs);
}

std::int64_t bytes_of_pair(const ScorePass& pass) {
  const auto samples = pass.y.height() * pass.y.width() * (pass.x.channels() + pass.y.channels());
  return samples * static_cast<std::int64_t>(size_bytes(pass.y.samples.dtype));
}

}  // namespace

void ssimulacra2_vulkan(const ScorePass& pass, const Execution& exec) {
  require_kernels(pass);
  Gpu& gpu = gpu::vulkan::gpu_of(kOperation, pass.y.samples.device, exec);
  if (gpu.limits().maxComputeWorkGroupInvocations < kDownThreads) {
    throw DeviceError(
        fmt::format("ssimulacra2: a workgroup needs {} threads, and vulkan:{} has at most {}",
            kDownThreads, gpu.index(), gpu.limits().maxComputeWorkGroupInvocations));
  }
  const bool is_staged = pass.y.samples.device.kind == DeviceKind::cpu;
  const Plan plan(pass.y.height(), pass.y.width());
  std::int64_t at_once = pairs_at_once(gpu, plan, backgrounds_of(pass.x.has_alpha()).count);
  if (is_staged) at_once = std::min(at_once, gpu::vulkan::staged_pairs(bytes_of_pair(pass)));
  gpu::vulkan::StagedBatches staged;
  for (std::int64_t first = 0; first < pass.y.count(); first += at_once) {
    const std::int64_t count = std::min(at_once, pass.y.count() - first);
    const Pictures x = pictures_of(pass.x, first, count), y = pictures_of(pass.y, first, count);
    auto commands = std::make_unique<Commands>(gpu);
    Batch batch(*commands, plan, x, y, exec);
    if (!is_staged) {
      batch.queue(static_cast<VkBuffer>(pass.value.handle), pass.value.offset + first);
      commands->submit();
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
    const VkBuffer scores = commands->workspace(bytes);
    batch.queue(scores, 0);
    const void* const found = commands->download(scores, 0, bytes);
    staged.add(std::move(commands), found, static_cast<double*>(pass.value.data()) + first, bytes);
  }
  staged.finish();
}

}  // namespace similis::ssimulacra2_internal
