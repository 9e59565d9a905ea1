// SPDX-License-Identifier: Apache-2.0
// Every operation's table: C's defaults are C++'s, text is read back as it is printed, and a value
// outside the bounds is refused in the words of the table.
#include "src/operations/operations.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "similis/c/ssim.h"
#include "similis/error.hpp"
#include "similis/ssim.hpp"
#include "src/ssim/ssim.h"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

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

TEST(Operations, NameTheTensorsOfTheirCFunctions) {
  for (const ListedOperation& listed : operations()) {
    const OperationTable& table = *listed.table;
    if (table.c_function.call == nullptr) continue;
    EXPECT_EQ(table.operands.size(), static_cast<std::size_t>(table.c_function.operands))
        << table.name;
    EXPECT_EQ(table.outputs.size(), static_cast<std::size_t>(table.c_function.outputs))
        << table.name;
    EXPECT_LE(table.c_size, 512u) << "similis_call() has no room for the options of " << table.name;
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

std::int32_t position(std::string_view name) {
  std::int32_t index = 0;
  for (const ListedOperation& listed : operations()) {
    if (name == listed.table->name) break;
    ++index;
  }
  return index;
}

TEST(Call, GivesWhatTheCFunctionGives) {
  const test::Array x = test::noise({1, 2, 13, 14}, DType::f32, test::Layout::dense, 1, 1),
                    y = test::noise(x.shape, DType::f32, test::Layout::dense, 2, 1),
                    weights = test::noise({1, 1, 13, 14}, DType::f32, test::Layout::dense, 3, 1);
  const auto empty = [](const Extents& shape) {
    return test::filled(shape, DType::f32, test::Layout::dense, test::kUntouched);
  };
  const Tensor value = empty({}), by_x = empty(x.shape), expected = empty({}),
               expected_by_x = empty(x.shape);
  const test::CTensor c_x(x), c_y(y), c_mask(weights), c_value(value), c_by_x(by_x);
  similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
  options.padding = SIMILIS_PADDING_SAME;
  const similis_tensor* tensors[] = {c_x.get(), c_y.get(), c_mask.get(), nullptr, nullptr, nullptr,
      c_value.get(), c_by_x.get(), nullptr};
  ASSERT_EQ(similis_call(position("ssim"), tensors, 9, &options, nullptr), SIMILIS_OK)
      << similis_last_error();
  options.mask = c_mask.get();
  ASSERT_EQ(similis_ssim(c_x.get(), c_y.get(), &options, nullptr, test::CTensor(expected).get(),
                test::CTensor(expected_by_x).get(), nullptr, nullptr),
      SIMILIS_OK);
  EXPECT_EQ(to_doubles(value), to_doubles(expected));
  EXPECT_EQ(to_doubles(by_x), to_doubles(expected_by_x));
}

TEST(Call, RefusesWhatItCannotCall) {
  const similis_tensor* tensors[9] = {};
  const auto refusal = [&](std::int32_t operation, std::int32_t count, const void* options) {
    return similis_call(operation, tensors, count, options, nullptr) == SIMILIS_INVALID_ARGUMENT
               ? std::string(similis_last_error())
               : std::string("no refusal");
  };
  const auto last = static_cast<std::int32_t>(operations().size()) - 1;
  EXPECT_EQ(refusal(-1, 9, nullptr),
      "similis_call: operation is -1; it must be from 0 to " + std::to_string(last));
  EXPECT_EQ(refusal(position("ssim"), 8, nullptr), "similis_call: ssim takes 9 tensors and got 8");
  EXPECT_EQ(refusal(position("invert"), 3, nullptr),
      "similis_call: invert takes more than tensors and options; call similis_invert");
  EXPECT_EQ(refusal(position("ssim"), 9, nullptr), "ssim: x is NULL; it must be a tensor");
  const test::Array x = test::noise({1, 1, 13, 14}, DType::f32, test::Layout::dense, 1, 1);
  const test::CTensor c_x(x);
  tensors[0] = tensors[1] = c_x.get();
  similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
  options.struct_size = 4096;
  EXPECT_NE(refusal(position("ssim"), 9, &options).find("ssim: options.struct_size is 4096"),
      std::string::npos);
}

}  // namespace
}  // namespace similis
