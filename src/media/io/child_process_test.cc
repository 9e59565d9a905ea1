// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/child_process.h"

#include <sys/wait.h>

#include <cerrno>

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

constexpr ProgramLimits kLimits = {.output_bytes = 1 << 20};

std::string text(const ProgramResult& result) {
  return {result.output.begin(), result.output.end()};
}

void expect_no_child_left() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(RunProgram, ArgumentsReachItAsTheyAre) {
  const auto result = run_program({"printf", "%s|", "$HOME", "*", "a b", "'; exit 1"}, {}, kLimits);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->succeeded);
  EXPECT_EQ(text(*result), "$HOME|*|a b|'; exit 1|");
  expect_no_child_left();
}

TEST(RunProgram, InputIsItsStandardInput) {
  const Buffer input(300000, 'x');
  const auto result = run_program({"cat"}, input, kLimits);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, input);
}

TEST(RunProgram, UnreadInputDisturbsNothing) {
  const auto result = run_program({"true"}, Buffer(300000, 'x'), kLimits);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->succeeded);
}

TEST(RunProgram, MissingProgramIsNoResult) {
  EXPECT_FALSE(run_program({"no-such-program-as-this"}, {}, kLimits));
  expect_no_child_left();
}

TEST(RunProgram, FailuresAreToldInWords) {
  const auto failed = run_program({"sh", "-c", "echo out; echo oops >&2; exit 3"}, {}, kLimits);
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->succeeded);
  EXPECT_EQ(failed->end, "status 3");
  EXPECT_EQ(failed->errors, "oops\n");
  EXPECT_EQ(text(*failed), "out\n");
  const auto killed = run_program({"sh", "-c", "kill -SEGV $$"}, {}, kLimits);
  ASSERT_TRUE(killed);
  EXPECT_FALSE(killed->succeeded);
  EXPECT_EQ(killed->end, "signal 11");
}

TEST(RunProgram, FloodsOnBothPipesDoNotBlock) {
  const auto result = run_program(
      {"sh", "-c", "head -c 500000 /dev/zero >&2; head -c 500000 /dev/zero"}, {}, kLimits);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->succeeded);
  EXPECT_EQ(result->output.size(), 500000u);
  EXPECT_EQ(result->errors.size(), 65536u) << "the rest is dropped";
}

TEST(RunProgram, EndlessOutputAndSilenceAreCutShort) {
  const auto endless = run_program({"cat", "/dev/zero"}, {}, {.output_bytes = 100000});
  ASSERT_TRUE(endless);
  EXPECT_FALSE(endless->succeeded);
  EXPECT_EQ(endless->end, "more than 100000 bytes of output");
  const auto silent = run_program(
      {"sleep", "60"}, {}, {.output_bytes = 10, .silence = std::chrono::milliseconds(200)});
  ASSERT_TRUE(silent);
  EXPECT_FALSE(silent->succeeded);
  EXPECT_EQ(silent->end, "no output for 0.2 s");
  expect_no_child_left();
}

}  // namespace
}  // namespace similis::media
