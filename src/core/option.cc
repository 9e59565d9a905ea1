// SPDX-License-Identifier: Apache-2.0
#include "src/core/option.h"

#include <vector>

#include "src/core/require.h"

namespace similis {

namespace {

std::vector<std::string_view> taken(const Choices& choices) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < choices.words.size(); ++i) {
    if (choices.take(i)) words.emplace_back(choices.words[i]);
  }
  return words;
}

}  // namespace

std::string listed(const Choices& choices) {
  const std::vector<std::string_view> words = taken(choices);
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string accepted_values(const Option& option) {
  switch (option.type) {
    case OptionType::flag: return "true or false";
    case OptionType::choice: return listed(option.choices);
    case OptionType::range: {
      std::string words;
      for (const std::string_view word : taken(option.choices)) words.append(word) += ", ";
      return words + "or two numbers: LOW,HIGH";
    }
    case OptionType::numbers:
      return fmt::format("{}, or several separated by commas", option.bounds.words);
    case OptionType::extents:
    case OptionType::coordinates:
    case OptionType::interval: return option.bounds.words;
    default: break;
  }
  if (option.c_count == 1) return option.bounds.words;
  return fmt::format("{}, or one per axis: y,x or z,y,x", option.bounds.words);
}

void refuse_value(const Option& option, const char* operation, std::string_view value) {
  const bool is_number = option.choices.words.empty();
  const std::string taken = is_number ? option.bounds.words : accepted_values(option);
  throw InvalidArgument(
      fmt::format("{}: {} is {}; it must be {}", operation, option.name, value, taken));
}

void refuse_null_list(const Option& option, const char* operation, std::size_t count) {
  throw InvalidArgument(
      fmt::format("{}: {} is NULL with a count of {}; it must point to as many "
                  "numbers",
          operation, option.name, count));
}

}  // namespace similis
