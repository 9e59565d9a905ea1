// SPDX-License-Identifier: Apache-2.0
// The probe: a device computes results of which the CPU knows every bit.
#include "src/gpu/vulkan/arithmetic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>
#include <vector>

#include "src/core/require.h"
#include "src/gpu/vulkan/commands.h"

namespace similis::gpu::vulkan {
namespace {

// 2^20 cases in 8 parts, of which each takes 14 MB.
constexpr int kPartCases = 1 << 17, kParts = 8;
constexpr int kFloatAnswers = 9, kDoubleAnswers = 6;  // of probe.comp, in its order
enum FloatAnswer { kFma, kIntegerFma, kQuotient, kFirstSum };

struct Cases {
  std::vector<float> floats;    // a, b, c of each
  std::vector<double> doubles;  // x, y, z of each
};

struct Random {
  std::uint64_t state;
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};

// Numbers of which many nearly cancel in a·b + c, where a rounding more or less shows.
Cases cases_of(int part) {
  Random random{static_cast<std::uint64_t>(part) + 1};
  Cases cases;
  cases.floats.reserve(std::size_t{3} * kPartCases);
  cases.doubles.reserve(std::size_t{3} * kPartCases);
  for (int i = 0; i < kPartCases; ++i) {
    const auto any_float = [&] {
      const std::uint64_t bits = random.next();
      const auto exponent = static_cast<std::uint32_t>(117 + (bits >> 32) % 20);
      return std::bit_cast<float>(
          (static_cast<std::uint32_t>(bits) & 0x807fffffu) | exponent << 23);
    };
    const auto any_double = [&] {
      const std::uint64_t bits = random.next(), exponent = 1013 + random.next() % 20;
      return std::bit_cast<double>((bits & 0x800fffffffffffffu) | exponent << 52);
    };
    const float a = any_float(), b = any_float();
    float c = any_float();
    const double x = any_double(), y = any_double();
    double z = any_double();
    if (i % 3 == 0) {
      const std::uint64_t near = random.next() & 3;
      c = std::bit_cast<float>(
          std::bit_cast<std::uint32_t>(-a * b) ^ static_cast<std::uint32_t>(near));
      z = std::bit_cast<double>(std::bit_cast<std::uint64_t>(-x * y) ^ near);
    }
    cases.floats.insert(cases.floats.end(), {a, b, c});
    cases.doubles.insert(cases.doubles.end(), {x, y, z});
  }
  return cases;
}

std::array<float, kFloatAnswers> float_answers(std::size_t i, float a, float b, float c) {
  const float fused = std::fma(a, b, c);
  return {fused, fused, a / b, a * b + c, a * b - c, c - a * b, a * b + b * c,
      ((i & 1) != 0 ? a * b : a) + c, (0.5f * (a * b)) * 14.0f + c};
}

std::array<double, kDoubleAnswers> double_answers(float a, double x, double y, double z) {
  const auto integer = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x)) >> 3;
  return {x + y, x * y, x / y, x * y + z, static_cast<double>(integer), static_cast<double>(a)};
}

bool any(std::span<const bool> wrong) { return std::count(wrong.begin(), wrong.end(), true) > 0; }

using Words = std::vector<std::string>;

bool have(const Words& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Words of SIMILIS_VULKAN_TEST.
Words switches() {
  static const Words kKnown = {"integer_fma", "integer_f64", "wrong_fma", "wrong_f64",
      "wrong_quotient", "wrong_sum", "wrong_integers"};
  const char* const text = std::getenv("SIMILIS_VULKAN_TEST");
  std::istringstream rest(text == nullptr ? "" : text);
  Words words;
  for (std::string word; std::getline(rest, word, ',');) {
    require(have(kKnown, word.c_str()),
        "SIMILIS_VULKAN_TEST has the word \"{}\"; it takes integer_fma, integer_f64, wrong_fma, "
        "wrong_f64, wrong_quotient, wrong_sum and wrong_integers",
        word);
    words.push_back(word);
  }
  return words;
}

// Operations of which some result was wrong.
struct Wrong {
  std::array<bool, kFloatAnswers> floats{};
  std::array<bool, kDoubleAnswers> doubles{};
};

// Compares the bits of a case's answers with the device's, which lie as [answer][case].
template <class T, std::size_t count>
void compare(const std::array<T, count>& expected, const void* found, std::size_t of_case,
    std::array<bool, count>& wrong) {
  for (std::size_t k = 0; k < count; ++k) {
    const T* const answer = static_cast<const T*>(found) + k * kPartCases + of_case;
    wrong[k] |= std::memcmp(&expected[k], answer, sizeof(T)) != 0;
  }
}

struct Push : KernelArguments {
  std::int32_t count = kPartCases;
};

// Runs a part; the quotient is made of the device's fma or of integers.
void run_part(Gpu& gpu, bool device_doubles, bool device_fma, int part, Wrong& wrong) {
  const Cases cases = cases_of(part);
  const std::size_t answer_bytes = sizeof(float) * kFloatAnswers * kPartCases;
  const std::size_t sum_bytes = sizeof(double) * kDoubleAnswers * kPartCases;
  Commands commands(gpu);
  const VkBuffer floats =
      commands.workspace_of(cases.floats.data(), cases.floats.size() * sizeof(float));
  const VkBuffer doubles =
      commands.workspace_of(cases.doubles.data(), cases.doubles.size() * sizeof(double));
  const VkBuffer answers = commands.workspace(answer_bytes);
  const VkBuffer sums = commands.workspace(sum_bytes);
  commands.run(
      {.module = device_doubles ? "gpu/probe_f64" : "gpu/probe", .constants = {device_fma ? 1 : 0}},
      {floats, doubles, answers, sums}, Push{}, {.x = kPartCases / 64});
  const void* const of_floats = commands.download(answers, 0, answer_bytes);
  const void* const of_doubles = commands.download(sums, 0, sum_bytes);
  commands.finish();
  for (std::size_t i = 0; i < kPartCases; ++i) {
    const float* const f = &cases.floats[3 * i];
    const double* const d = &cases.doubles[3 * i];
    compare(float_answers(i, f[0], f[1], f[2]), of_floats, i, wrong.floats);
    compare(double_answers(f[0], d[0], d[1], d[2]), of_doubles, i, wrong.doubles);
  }
}

Wrong run_all(Gpu& gpu, bool device_doubles, bool device_fma, const Words& words) {
  Wrong wrong;
  for (int part = 0; part < kParts; ++part) run_part(gpu, device_doubles, device_fma, part, wrong);
  wrong.floats[kFma] |= have(words, "wrong_fma");
  wrong.floats[kIntegerFma] |= have(words, "wrong_integers");
  wrong.floats[kQuotient] |= have(words, "wrong_quotient");
  wrong.floats[kFirstSum] |= have(words, "wrong_sum");
  wrong.doubles[0] |= have(words, device_doubles ? "wrong_f64" : "wrong_integers");
  return wrong;
}

}  // namespace

Arithmetic probe(Gpu& gpu) {
  const Words words = switches();
  bool doubles = gpu.described().has_doubles && !have(words, "integer_f64");
  Wrong wrong = run_all(gpu, doubles, true, words);
  const bool fma = !wrong.floats[kFma] && !have(words, "integer_fma");
  if ((doubles && any(wrong.doubles)) || !fma) {
    doubles = doubles && !any(wrong.doubles);
    wrong = run_all(gpu, doubles, fma, words);
  }
  Arithmetic found{.uses_device_fma = fma, .uses_device_doubles = doubles};
  if (any(std::span(wrong.floats).subspan<kFirstSum>())) {
    found.problem = "its driver fuses products with sums that are to be rounded apart";
  } else if (any(wrong.doubles) || (!fma && wrong.floats[kIntegerFma])) {
    found.problem = "its integers of 64 bits give wrong results";
  } else if (wrong.floats[kQuotient]) {
    found.problem = "its reciprocals are too far off for exact quotients";
  }
  return found;
}

std::string verdict(const Arithmetic& found) {
  if (!found.problem.empty()) return "not exact: " + found.problem;
  return fmt::format("exact, with {} fused multiply-add and {}",
      found.uses_device_fma ? "the device's" : "an integer",
      found.uses_device_doubles ? "the device's doubles" : "doubles in integers");
}

}  // namespace similis::gpu::vulkan
