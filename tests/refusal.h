// SPDX-License-Identifier: Apache-2.0
// Expects a refusal of a call with exactly this sentence.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "similis/error.hpp"

namespace similis::test {

inline void expect_refusal(const std::function<void()>& call, const std::string& sentence) {
  try {
    call();
    ADD_FAILURE() << "nothing was refused; expected: " << sentence;
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.what(), sentence);
  }
}

}  // namespace similis::test
