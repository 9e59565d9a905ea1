// SPDX-License-Identifier: Apache-2.0
// Texts for people: suggestions, notes, the progress line, the help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "src/cli/command_line.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/terminal/nearest.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/progress.h"

namespace similis::cli {
namespace {

using testing::ElementsAre;

TEST(Nearest, FindsTyposAndNothingElse) {
  const std::vector<std::string> names = {"psnr", "ssim", "ms-ssim", "window_size"};
  EXPECT_EQ(nearest("sism", names), "ssim");
  EXPECT_EQ(nearest("mssim", names), "ssim");  // both ssim and ms-ssim are one letter away
  EXPECT_EQ(nearest("ms_ssim", names), "ms-ssim");
  EXPECT_EQ(nearest("windowsize", names), "window_size");
  EXPECT_EQ(nearest("vmaf", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("x", {"k1", "k2"}), "");
  EXPECT_EQ(nearest(std::string(100000, 's'), names), "");
}

TEST(Notes, AreOneLineEachWhateverTheFilesName) {
  EXPECT_EQ(one_line("a\nb\x1b[31mc\té"), "a\\nb\\x1b[31mc\\x09é");
}

TEST(Notes, TheSameTextIsToldOnce) {
  Notes notes;
  notes.add("a.png", "too small");
  notes.add("b.png", "converted");
  notes.add("c.png", "too small");
  notes.add("c.png", "too small");
  notes.add("d.png", "too small");
  EXPECT_THAT(notes.lines(), ElementsAre("a.png and 2 more: too small", "b.png: converted"));
}

TEST(Progress, SaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(progress_line("pairs", 0, 40, 0), "0/40 pairs");
  EXPECT_EQ(progress_line("pairs", 12, 40, 4), "12/40 pairs, 3.0/s, 10 s left");
  EXPECT_EQ(progress_line("pairs", 3, 40, 90), "3/40 pairs, 2/min, 18 min 30 s left");
  EXPECT_EQ(
      progress_line("frames", 1000, 100000, 10), "1000/100000 frames, 100/s, 16 min 30 s left");
  EXPECT_EQ(progress_line("pairs", 1, 1000, 60), "1/1000 pairs, 1/min, 16 h 39 min left");
  EXPECT_EQ(progress_line("frames", 7, std::nullopt, 2), "7 frames, 3.5/s");
  EXPECT_EQ(progress_line("frames", 41, 40, 1), "41 frames, 41/s") << "more than were expected";
}

TEST(Help, NamesEveryOptionMetricAndExitStatus) {
  const auto line = make_command_line();
  const std::string help = line->compare->help();
  for (const char* text : {"REF", "DIST", "-m,--metric", "--list-metrics", "--device", "--threads",
           "--format table|json|jsonl|csv|xml", "-o,--output", "--map", "--background", "--frames",
           "--every", "--offset", "--size", "--pix-fmt", "Examples:", "Exit status:"}) {
    EXPECT_THAT(help, testing::HasSubstr(text));
  }
  for (const Metric& metric : metrics()) {
    EXPECT_THAT(help, testing::HasSubstr(metric.description));
  }
  for (const CLI::App* command : line->app.get_subcommands({})) {
    EXPECT_THAT(line->app.help(), testing::HasSubstr(command->get_description()));
  }
}

TEST(Help, FitsATerminal) {
  const auto line = make_command_line();
  for (const CLI::App* app :
      {static_cast<CLI::App*>(&line->app), line->compare, line->warp, line->merge, line->bench}) {
    std::istringstream lines(app->help());
    for (std::string text; std::getline(lines, text);) {
      const auto columns =
          std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LE(columns, app == line->compare ? 80 : 102) << text;
    }
  }
}

}  // namespace
}  // namespace similis::cli
