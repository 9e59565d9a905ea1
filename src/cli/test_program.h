// SPDX-License-Identifier: Apache-2.0
// Base of the program's end-to-end tests: a folder of files, and calls of the program there.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/spawned_program.h"
#include "src/cli/terminal/json_text.h"
#include "src/media/picture/formats/png_writer.h"

namespace similis::cli {

/// A smooth picture and the same with every third sample off by three.
inline media::Image reference_picture(
    std::int64_t width = 64, std::int64_t height = 48, int channels = 3) {
  return media::gradient(width, height, channels);
}
inline media::Image distorted_picture(
    std::int64_t width = 64, std::int64_t height = 48, int channels = 3) {
  media::Image image = reference_picture(width, height, channels);
  for (std::size_t i = 0; i < image.samples8.size(); i += 3) image.samples8[i] += 3;
  return image;
}

class ProgramTest : public testing::Test {
 protected:
  void write(const std::string& name, const media::Image& image) {
    media::write_png(folder_.file(name), image);
  }
  void write_bytes(const std::string& name, const media::Buffer& bytes) {
    media::write_content(folder_.file(name), bytes);
  }
  void write_text(const std::string& name, const std::string& text) {
    media::write_content(folder_.file(name), media::Buffer(text.begin(), text.end()));
  }
  std::string text_of(const std::string& name) const {
    const media::Buffer bytes = media::content(folder_.file(name));
    return {bytes.begin(), bytes.end()};
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_.file(name)); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file(""))) {
      const std::string name = entry.path().filename();
      if (!name.starts_with('.')) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  Outcome run(std::vector<std::string> arguments, const media::Buffer& input = {}) const {
    const char* const carried = std::getenv("SIMILIS_TEST_PROGRAM");  // to another machine
    arguments.insert(arguments.begin(), carried == nullptr ? SIMILIS_PROGRAM : carried);
    return spawn(folder_, arguments, input);
  }
  Outcome compare(std::vector<std::string> arguments, const media::Buffer& input = {}) const {
    arguments.insert(arguments.begin(), "compare");
    return run(std::move(arguments), input);
  }
  Json json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = compare(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  void expect_error(
      const std::vector<std::string>& arguments, int status, const std::string& error) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.err, "similis: " + error + "\n");
    EXPECT_EQ(outcome.out, "");
  }
  media::TestFolder folder_;
};

}  // namespace similis::cli
