// SPDX-License-Identifier: Apache-2.0
// Planes for this room's tests, from formulas that need no file, and recorded clips with libvmaf's
// figures.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/vmaf/plane.h"
#include "tests/arrays.h"

namespace similis::vmaf_internal {

/// The content of a pair of planes.
enum class Scene : std::uint8_t {
  noise,     ///< both full-range noise, without relation
  textured,  ///< a slope with noise, and the same with some more
  checked,   ///< fields of black and white, blurred in the distorted image
  flat,      ///< areas with hardly any variance
};
constexpr Scene kScenes[] = {Scene::noise, Scene::textured, Scene::checked, Scene::flat};

/// A pair of planes in bytes, or in words above 8 bits.
class TestPair {
 public:
  TestPair(Scene scene, std::int64_t width, std::int64_t height, int bit_depth) {
    const int peak = (1 << bit_depth) - 1, step = std::max(1, peak / 255);
    for (auto* samples : {&reference_, &distorted_}) {
      samples->resize(static_cast<std::size_t>(width * height) * (bit_depth > 8 ? 2 : 1));
    }
    for (std::int64_t i = 0; i < width * height; ++i) {
      const auto noise = [&](std::uint64_t seed, int range) {
        return static_cast<int>(test::uniform(seed, i) * range);
      };
      const std::int64_t x = i % width, y = i / width;
      int a = noise(1, peak + 1), b = noise(2, peak + 1);
      if (scene == Scene::textured) {
        a = static_cast<int>((3 * x + 2 * y) * step + noise(1, 32 * step)) % (peak + 1);
        b = a + noise(2, 16 * step) - 8 * step;
      } else if (scene == Scene::checked) {
        a = (x / 12 + y / 9) % 2 == 0 ? peak : 0;
        b = ((x + 1) / 12 + y / 9) % 2 == 0 ? peak - noise(2, 9 * step) : noise(2, 9 * step);
      } else if (scene == Scene::flat) {
        a = (x / 40 % 2 == 0 ? 80 : 160) * step + noise(1, 3 * step);
        b = a + noise(2, 5 * step);
      }
      set(reference_, i, std::clamp(a, 0, peak), bit_depth);
      set(distorted_, i, std::clamp(b, 0, peak), bit_depth);
    }
    planes_.reference = {reference_.data(), width, width, height, bit_depth > 8, bit_depth};
    planes_.distorted = {distorted_.data(), width, width, height, bit_depth > 8, bit_depth};
  }
  TestPair(const TestPair&) = delete;
  TestPair& operator=(const TestPair&) = delete;

  const PlanePair& planes() const { return planes_; }

 private:
  static void set(std::vector<std::uint8_t>& samples, std::int64_t i, int value, int bit_depth) {
    if (bit_depth == 8) {
      samples[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value);
    } else {
      const auto word = static_cast<std::uint16_t>(value);
      std::memcpy(samples.data() + 2 * i, &word, 2);
    }
  }
  std::vector<std::uint8_t> reference_, distorted_;
  PlanePair planes_;
};

/// The recorded figures; empty where there are none.
struct Recorded {
  std::filesystem::path folder;
  nlohmann::json figures;
};
inline Recorded recorded() {
  const char* folder = std::getenv("SIMILIS_TEST_DATA");
  const std::filesystem::path data = folder ? folder : SIMILIS_SOURCE_DIR "/../shared/data";
  std::ifstream stream(data / "golden_vmaf.json");
  return stream ? Recorded{data, nlohmann::json::parse(stream)} : Recorded{};
}

/// The luma planes of a recorded case.
class RecordedClip {
 public:
  RecordedClip(const Recorded& recorded, const nlohmann::json& clip)
      : width_(clip["width"]), height_(clip["height"]), bit_depth_(clip["depth"]) {
    for (const char* side : {"reference", "distorted"}) {
      std::ifstream stream(
          recorded.folder / "video" / clip[side].get<std::string>(), std::ios::binary);
      bytes_.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    }
  }
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  std::int64_t frames() const {
    return static_cast<std::int64_t>(bytes_[0].size()) / frame_bytes();
  }
  PlanePair frame(std::int64_t index) const {
    const auto plane = [&](int side) {
      return Plane{bytes_[static_cast<std::size_t>(side)].data() + index * frame_bytes(), width_,
          width_, height_, bit_depth_ > 8, bit_depth_};
    };
    return {plane(0), plane(1)};
  }

 private:
  std::int64_t frame_bytes() const { return width_ * height_ * 3 / 2 * (bit_depth_ > 8 ? 2 : 1); }
  std::int64_t width_, height_;
  int bit_depth_;
  std::vector<std::vector<char>> bytes_;
};

}  // namespace similis::vmaf_internal
