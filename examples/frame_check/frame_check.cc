// SPDX-License-Identifier: Apache-2.0
// A renderer's test of its own frames: compares a frame with the approved one, in the RGBA bytes
// that the renderer holds, and says where they differ most.
//
//   frame_check           # equal frames but for rounding: exits with 0
//   frame_check --broken  # a shadow is missing: names the place and exits with 1
//
// Nothing is copied: strides tell similis to step over alpha, and its work runs on the engine's own
// threads, here a pool.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include "similis/similis.hpp"

namespace {

constexpr int kWidth = 320, kHeight = 180;
constexpr double kLeastSsim = 0.99;  // of an approved frame and one that differs by rounding

using Frame = std::vector<std::uint8_t>;  // RGBA, row by row

// A sphere over a checkered floor. Without its shadow it seems to float.
Frame render(bool with_shadow, int rounding) {
  Frame frame;
  frame.reserve(4 * kWidth * kHeight);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const int dx = x - 200, dy = y - 80,
                from_shadow = (x - 220) * (x - 220) / 9 + (y - 140) * (y - 140);
      int light = y < 90 ? 200 - y : ((x / 16 + y / 16) % 2 != 0 ? 180 : 90);
      if (with_shadow && from_shadow < 150) light /= 3;
      if (dx * dx + dy * dy < 40 * 40) light = 230 - (dx + dy + 80);
      light = std::clamp(light + rounding * ((x * 7 + y * 13) % 3 - 1), 0, 255);
      for (const int channel : {light, light * 9 / 10, light * 7 / 10, 255}) {
        frame.push_back(static_cast<std::uint8_t>(channel));
      }
    }
  }
  return frame;
}

// The three colours of a frame as [1,3,H,W]: neighbours in a row are four bytes apart.
similis::TensorView colours(const Frame& frame) {
  const similis::Extents shape = {1, 3, kHeight, kWidth};
  const similis::Extents strides = {4 * kWidth * kHeight, 1, 4 * kWidth, 4};
  return {frame.data(), shape, strides, similis::DType::u8};
}

// Returns the process's exit status.
int check(const Frame& approved, const Frame& frame) {
  similis::ThreadPool pool(2);
  similis::Execution exec;
  exec.runner = pool.runner();
  similis::SsimOptions options = {.padding = similis::Padding::same};
  const double ssim =
      similis::item(similis::ssim(colours(frame), colours(approved), options, exec));
  std::printf("SSIM %.4f, at least %.2f wanted\n", ssim, kLeastSsim);
  if (ssim >= kLeastSsim) return 0;

  options.reduction = similis::Reduction::none;  // a value for each pixel of each colour
  const similis::Tensor map = similis::ssim(colours(frame), colours(approved), options, exec);
  const std::span<const float> green(map.elements<float>() + kWidth * kHeight, kWidth * kHeight);
  const auto worst = std::min_element(green.begin(), green.end()) - green.begin();
  std::printf("worst at column %d, row %d: SSIM %.4f\n", static_cast<int>(worst % kWidth),
      static_cast<int>(worst / kWidth),
      static_cast<double>(green[static_cast<std::size_t>(worst)]));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_broken = argc > 1 && std::strcmp(argv[1], "--broken") == 0;
  try {
    return check(render(true, 0), render(!is_broken, 1));
  } catch (const std::exception& error) {  // similis names the argument and what it takes
    std::fprintf(stderr, "frame_check: %s\n", error.what());
    return 2;
  }
}
