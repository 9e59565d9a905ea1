// SPDX-License-Identifier: Apache-2.0
#include "src/media/resample/zimg_plane.h"

#include <fmt/core.h>
#include <hwy/aligned_allocator.h>
#include <zimg.h>

#include <array>

#include "similis/error.hpp"

namespace similis::media {
namespace {

constexpr std::int64_t kRowFloats = 16;  // zimg's rows begin at multiples of 64 bytes

std::int64_t row_floats(std::int64_t width) {
  return (width + kRowFloats - 1) / kRowFloats * kRowFloats;
}

[[noreturn]] void refuse_with_zimgs_words() {
  std::array<char, 256> words{};
  zimg_get_last_error(words.data(), words.size());
  throw Error(fmt::format("zimg cannot resize: {}", words.data()));
}

zimg_image_format format_of(std::int64_t width, std::int64_t height) {
  zimg_image_format format;
  zimg_image_format_default(&format, ZIMG_API_VERSION);
  format.width = static_cast<unsigned>(width);
  format.height = static_cast<unsigned>(height);
  format.pixel_type = ZIMG_PIXEL_FLOAT;
  format.color_family = ZIMG_COLOR_GREY;
  return format;
}

zimg_graph_builder_params parameters_of(Resampling filter) {
  zimg_graph_builder_params parameters;
  zimg_graph_builder_params_default(&parameters, ZIMG_API_VERSION);
  switch (filter) {
    case Resampling::lanczos:
      parameters.resample_filter = ZIMG_RESIZE_LANCZOS;
      parameters.filter_param_a = 3;
      break;
    case Resampling::spline36: parameters.resample_filter = ZIMG_RESIZE_SPLINE36; break;
    case Resampling::bicubic:
      parameters.resample_filter = ZIMG_RESIZE_BICUBIC;
      parameters.filter_param_a = 0;
      parameters.filter_param_b = 0.5;
      break;
    case Resampling::bilinear: parameters.resample_filter = ZIMG_RESIZE_BILINEAR; break;
  }
  return parameters;
}

}  // namespace

struct ZimgPlane::State {
  std::unique_ptr<zimg_filter_graph, decltype(&zimg_filter_graph_free)> graph{
      nullptr, &zimg_filter_graph_free};
  std::int64_t in_stride = 0, out_stride = 0;
  hwy::AlignedFreeUniquePtr<float[]> in, out;
  hwy::AlignedFreeUniquePtr<std::uint8_t[]> workspace;
};

ZimgPlane::ZimgPlane(const ResampledAxis& x, const ResampledAxis& y, Resampling filter)
    : state_(std::make_unique<State>()) {
  zimg_image_format from = format_of(x.from, y.from);
  from.active_region = {x.first, y.first, x.length, y.length};
  const zimg_image_format to = format_of(x.to, y.to);
  const zimg_graph_builder_params parameters = parameters_of(filter);
  state_->graph.reset(zimg_filter_graph_build(&from, &to, &parameters));
  std::size_t workspace_bytes = 0;
  if (!state_->graph || zimg_filter_graph_get_tmp_size(state_->graph.get(), &workspace_bytes)) {
    refuse_with_zimgs_words();
  }
  state_->in_stride = row_floats(x.from);
  state_->out_stride = row_floats(x.to);
  const auto floats = [](std::int64_t stride, std::int64_t rows) {
    return hwy::AllocateAligned<float>(static_cast<std::size_t>(stride * rows));
  };
  state_->in = floats(state_->in_stride, y.from);
  state_->out = floats(state_->out_stride, y.to);
  state_->workspace = hwy::AllocateAligned<std::uint8_t>(workspace_bytes + 1);
  if (!state_->in || !state_->out || !state_->workspace) throw std::bad_alloc();
}

ZimgPlane::~ZimgPlane() = default;

float* ZimgPlane::input_row(std::int64_t y) { return state_->in.get() + y * state_->in_stride; }

const float* ZimgPlane::output_row(std::int64_t y) const {
  return state_->out.get() + y * state_->out_stride;
}

void ZimgPlane::run() {
  constexpr auto kFloatBytes = static_cast<std::ptrdiff_t>(sizeof(float));
  zimg_image_buffer_const from{};
  from.version = ZIMG_API_VERSION;
  from.plane[0] = {state_->in.get(), state_->in_stride * kFloatBytes, ZIMG_BUFFER_MAX};
  zimg_image_buffer to{};
  to.version = ZIMG_API_VERSION;
  to.plane[0] = {state_->out.get(), state_->out_stride * kFloatBytes, ZIMG_BUFFER_MAX};
  const zimg_error_code_e failed = zimg_filter_graph_process(
      state_->graph.get(), &from, &to, state_->workspace.get(), nullptr, nullptr, nullptr, nullptr);
  if (failed) refuse_with_zimgs_words();
}

std::string resampling_library() {
  unsigned major = 0, minor = 0, micro = 0;
  zimg_get_version_info(&major, &minor, &micro);
  return fmt::format("zimg {}.{}.{}", major, minor, micro);
}

}  // namespace similis::media
