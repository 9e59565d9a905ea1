// SPDX-License-Identifier: Apache-2.0
// Every operation's table: C's defaults are C++'s, text is read back as it is printed, and a value
// outside the bounds is refused in the words of the table.
#include "src/operations/operations.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "similis/error.hpp"
#include "similis/ssim.hpp"
#include "src/ssim/ssim.h"

namespace similis {
namespace {

TEST(Operations, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const ListedOperation& listed : operations()) {
    EXPECT_TRUE(names.insert(listed.table->name).second) << listed.table->name;
    std::set<std::string> options;
    for (const Option& option : listed.table->options) {
      EXPECT_TRUE(options.insert(option.name).second) << listed.table->name << option.name;
    }
  }
}

TEST(Operations, TakeTheirDefaults) {
  for (const ListedOperation& listed : operations()) {
    EXPECT_NO_THROW(listed.table->check(listed.table->defaults)) << listed.table->name;
  }
}

TEST(Operations, PlaceOptionsInsideTheirCStructs) {
  for (const ListedOperation& listed : operations()) {
    for (const Option& option : listed.table->options) {
      EXPECT_GE(option.c_offset(), sizeof(std::size_t)) << listed.table->name << option.name;
      EXPECT_LT(option.c_offset(), listed.table->c_size) << listed.table->name << option.name;
    }
  }
}

// A row reads the member that its offset names, so C's defaults give C++'s.
TEST(Operations, HaveTheSameDefaultsInCAsInCpp) {
  const OperationTable& table = ssim_internal::kSsim.table;
  SsimOptions options{.window_size = 3, .sigma = 9, .k1 = 7, .k2 = 7, .padding = Padding::same};
  for (const Option& option : table.options) {
    option.from_c(option, table.name, table.c_defaults, 3, &options);
  }
  const SsimOptions defaults;
  EXPECT_EQ(options.data_range, defaults.data_range);
  EXPECT_EQ(options.k1, defaults.k1);
  EXPECT_EQ(options.k2, defaults.k2);
  EXPECT_EQ(options.padding, defaults.padding);
  EXPECT_EQ(options.reduction, defaults.reduction);
  EXPECT_EQ(options.window_size.z(), defaults.window_size.z());
  EXPECT_EQ(options.sigma.x(), defaults.sigma.x());
}

TEST(Operations, ReadTextAsTheyPrintIt) {
  SsimOptions options;
  const OperationTable& table = ssim_internal::kSsim.table;
  const auto read = [&](const std::string& name, const char* text) -> std::string {
    for (const Option& option : table.options) {
      if (option.name != name) continue;
      return option.parse(option, text, &options) ? option.json(option, &options) : "refused";
    }
    return "unknown";
  };
  EXPECT_EQ(read("window_size", "7,11"), "[7,11]");
  EXPECT_EQ(read("window_size", "8"), "refused");
  EXPECT_EQ(read("window_size", "3,5,7,9"), "refused");
  EXPECT_EQ(read("sigma", "0"), "refused");
  EXPECT_EQ(read("data_range", "1023"), "1023");
  EXPECT_EQ(read("padding", "reflect"), "\"reflect\"");
  EXPECT_EQ(read("padding", "zeros"), "refused");
}

TEST(Operations, RefuseInTheWordsOfTheTable) {
  const SsimOptions options{.window_size = 8};
  try {
    ssim_internal::kSsim.table.check(&options);
    ADD_FAILURE() << "an even window was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "ssim: window_size is 8; it must be an odd number from 1 to 65535");
  }
}

}  // namespace
}  // namespace similis
