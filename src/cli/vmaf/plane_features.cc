// SPDX-License-Identifier: Apache-2.0
// The features of all planes of a frame.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "similis/pixel_error.hpp"
#include "src/cli/metrics/plane_scores.h"
#include "src/cli/vmaf/known_feature.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

constexpr std::array kPlanes = {"y", "cb", "cr"};

ReadOption flag(const char* name, bool FeatureOptions::*member) {
  return {name, NamedValue<bool>::takes(kSwitch), [member](std::string_view text, auto& into) {
            const auto value = NamedValue<bool>::parse(text, kSwitch);
            if (value) into.*member = *value;
            return value.has_value();
          }};
}

const ReadOption kMinSse{
    "min_sse", "a number of 0 or more", [](std::string_view text, FeatureOptions& into) {
      const auto value = parse_number<double>(text);
      if (!value || !(*value >= 0) || std::isinf(*value)) return false;
      into.min_sse = *value;
      return true;
    }};

// PSNR of the planes of frames, and of all frames that it saw.
class Psnr {
 public:
  explicit Psnr(const FeatureOptions& options) : options_(options) {}

  int planes(const media::VideoFormat& format) const {
    return options_.enable_chroma ? format.pixels.color_planes : 1;
  }
  std::vector<std::string> columns(const media::VideoFormat& format) const {
    std::vector<std::string> names;
    for (int plane = 0; plane < planes(format); ++plane) {
      const char* name = kPlanes[static_cast<std::size_t>(plane)];
      names.push_back(fmt::format("psnr_{}", name));
      if (options_.enable_mse) names.push_back(fmt::format("mse_{}", name));
    }
    return names;
  }
  std::vector<double> scores(const VideoPair& videos, const Execution& exec) {
    std::vector<double> values;
    for (int plane = 0; plane < planes(videos.format()); ++plane) {
      const double mse = add_plane(videos, plane, exec);
      values.push_back(decibels(mse, plane));
      if (options_.enable_mse) values.push_back(mse);
    }
    return values;
  }
  void observe(const VideoPair& videos, const Execution& exec) {
    if (!options_.enable_apsnr) return;
    for (int plane = 0; plane < planes(videos.format()); ++plane) add_plane(videos, plane, exec);
  }
  std::vector<std::pair<std::string, double>> aggregates() const {
    std::vector<std::pair<std::string, double>> values;
    for (std::size_t i = 0; options_.enable_apsnr && i < sums_.size(); ++i) {
      if (sums_[i].samples == 0) continue;
      const double power = peak_ * peak_;
      const double score =
          10 * (std::log10(power) + std::log10(sums_[i].samples) - std::log10(sums_[i].squares));
      const double most = std::ceil(10 * std::log10(power * sums_[i].samples * 2));
      values.emplace_back(fmt::format("apsnr_{}", kPlanes[i]), std::min(score, most));
    }
    return values;
  }

 private:
  struct Sum {
    double samples = 0, squares = 0, samples_of_frame = 0;
  };

  double add_plane(const VideoPair& videos, int plane, const Execution& exec) {
    const media::VideoFormat& format = videos.format();
    depth_ = format.pixels.bit_depth;
    peak_ = options_.reduced_hbd_peak ? 255 << (depth_ - 8) : (1 << depth_) - 1;
    const double error = mean_squared_error(
        videos.reference().plane(format, plane), videos.distorted().plane(format, plane), exec);
    Sum& sum = sums_[static_cast<std::size_t>(plane)];
    sum.samples_of_frame =
        static_cast<double>(format.plane_width(plane) * format.plane_height(plane));
    sum.samples += sum.samples_of_frame;
    sum.squares += std::round(error * sum.samples_of_frame);  // a whole number
    return error;
  }
  double decibels(double mse, int plane) const {
    const double samples = sums_[static_cast<std::size_t>(plane)].samples_of_frame;
    const double most =
        options_.min_sse == 0
            ? 6.0 * depth_ + 12
            : std::ceil(10 * std::log10(peak_ * peak_ / (options_.min_sse / samples)));
    return std::min(10 * std::log10(peak_ * peak_ / std::max(mse, 1e-16)), most);
  }

  FeatureOptions options_;
  int depth_ = 8;
  double peak_ = 255;
  std::array<Sum, 3> sums_;
};

}  // namespace

KnownFeature psnr_feature() {
  return {"psnr", "PSNR of each plane",
      {flag("enable_chroma", &FeatureOptions::enable_chroma),
          flag("enable_mse", &FeatureOptions::enable_mse),
          flag("enable_apsnr", &FeatureOptions::enable_apsnr),
          flag("reduced_hbd_peak", &FeatureOptions::reduced_hbd_peak), kMinSse},
      [](const FeatureOptions& options) {
        const auto psnr = std::make_shared<Psnr>(options);
        return VmafFeature{.columns = [psnr](const auto& format) { return psnr->columns(format); },
            .scores = [psnr](const VideoPair& videos,
                          const Execution& exec) { return psnr->scores(videos, exec); },
            .observe = [psnr](const VideoPair& videos,
                           const Execution& exec) { psnr->observe(videos, exec); },
            .aggregates = [psnr] { return psnr->aggregates(); },
            .reads_chroma = options.enable_chroma};
      }};
}

KnownFeature psnr_hvs_feature() {
  return {"psnr_hvs", "PSNR as the eye sees it, of each plane and of the frame", {},
      [](const FeatureOptions&) {
        return VmafFeature{.columns =
                               [](const media::VideoFormat&) {
                                 return std::vector<std::string>{
                                     "psnr_hvs_y", "psnr_hvs_cb", "psnr_hvs_cr", "psnr_hvs"};
                               },
            .scores =
                [](const VideoPair& videos, const Execution& exec) {
                  const PsnrHvsScores scores = psnr_hvs_scores(
                      videos.reference(), videos.distorted(), videos.format(), exec);
                  return std::vector<double>{
                      scores.planes[0], scores.planes[1], scores.planes[2], scores.frame};
                },
            .reads_chroma = true};
      }};
}

KnownFeature ciede_feature() {
  return {"ciede", "CIEDE2000, the difference of colours", {}, [](const FeatureOptions&) {
            return VmafFeature{
                .columns =
                    [](const media::VideoFormat&) { return std::vector<std::string>{"ciede2000"}; },
                .scores =
                    [](const VideoPair& videos, const Execution& exec) {
                      return std::vector<double>{ciede_of_frame(
                          videos.reference(), videos.distorted(), videos.format(), exec)};
                    },
                .reads_chroma = true};
          }};
}

}  // namespace similis::cli
