// SPDX-License-Identifier: Apache-2.0
// Tests that run once with what PATH has, ffprobe and ffmpeg, and once with ffmpeg alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "src/media/picture/reader.h"

namespace similis::media {

/// SIMILIS_FFMPEG as long as it lives; nullptr unsets it.
class ChosenFfmpeg {
 public:
  explicit ChosenFfmpeg(const char* command) {
    if (const char* before = std::getenv(kName)) before_ = before;
    set(command);
  }
  ~ChosenFfmpeg() { set(before_ ? before_->c_str() : nullptr); }
  ChosenFfmpeg(const ChosenFfmpeg&) = delete;
  ChosenFfmpeg& operator=(const ChosenFfmpeg&) = delete;

 private:
  static constexpr const char* kName = "SIMILIS_FFMPEG";
  static void set(const char* command) {
    command == nullptr ? unsetenv(kName) : setenv(kName, command, 1);
  }
  std::optional<std::string> before_;
};

/// The path of ffmpeg: SIMILIS_FFMPEG, or the first on PATH; empty if there is none.
inline std::string path_of_ffmpeg() {
  if (const char* chosen = std::getenv("SIMILIS_FFMPEG")) return chosen;
  std::istringstream folders(std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (const std::string path = folder + "/ffmpeg"; std::filesystem::exists(path)) return path;
  }
  return {};
}

enum class Programs { both, ffmpeg_alone };
inline const auto kPrograms = testing::Values(Programs::both, Programs::ffmpeg_alone);

/// Instantiate with kPrograms and programs_name.
class WithFfmpeg : public testing::TestWithParam<Programs> {
 protected:
  void SetUp() override {
    const std::string path = path_of_ffmpeg();
    chosen_.emplace(GetParam() == Programs::both ? nullptr : path.c_str());
    if (path.empty() || ffmpeg_program().empty()) GTEST_SKIP() << "ffmpeg is not installed";
  }

 private:
  std::optional<ChosenFfmpeg> chosen_;
};

inline std::string programs_name(const testing::TestParamInfo<Programs>& tested) {
  return tested.param == Programs::both ? "WithFfprobe" : "FfmpegAlone";
}

}  // namespace similis::media
