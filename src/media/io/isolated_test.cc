// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/isolated.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <optional>

#include "similis/error.hpp"

namespace similis::media {
namespace {

using Result = std::vector<std::uint8_t>;

TEST(Isolated, GivesWhatTheWorkReturnsOrRefuses) {
  Result many(3'000'001);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  EXPECT_EQ(run_isolated([&] { return many; }, 10), many);
  EXPECT_EQ(run_isolated([] { return Result(); }, 10), Result());
  try {
    run_isolated([]() -> Result { throw InvalidArgument("cannot read a: it is odd"); }, 10);
    FAIL() << "nothing was refused";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "cannot read a: it is odd");
  }
}

TEST(Isolated, ACrashEndsTheCopyAlone) {
  for (const int number : {SIGSEGV, SIGABRT, SIGKILL}) {
    EXPECT_EQ(run_isolated(
                  [number]() -> Result {
                    raise(number);
                    return {1};
                  },
                  10),
        std::nullopt);
  }
}

TEST(Isolated, AnEndlessLoopEndsAtItsLimit) {
  volatile bool is_endless = true;
  const auto loop = [&]() -> Result {
    while (is_endless) {
    }
    return {1};
  };
  EXPECT_EQ(run_isolated(loop, 1), std::nullopt);
}

TEST(Isolated, ChangesStayInTheCopy) {
  int value = 1;
  run_isolated(
      [&] {
        value = 2;
        return Result();
      },
      10);
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace similis::media
