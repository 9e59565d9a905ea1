// SPDX-License-Identifier: Apache-2.0
#include "src/mutual_information/information.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace similis::mutual_information_internal {
namespace {

using Doubles = std::vector<double>;
using ForEachBin = std::array<double, 256>;  // as many as there can be

// `bins` entries, `step` apart, under the blur, with nothing outside.
void blur_line(const Blur& blur, std::size_t step, double* entries, std::size_t bins) {
  ForEachBin line;
  for (std::size_t i = 0; i < bins; ++i) line[i] = entries[step * i];
  const int last = static_cast<int>(bins) - 1;
  for (int i = 0; i <= last; ++i) {
    double sum = 0;
    for (int k = std::max(0, i - blur.radius); k <= std::min(last, i + blur.radius); ++k) {
      sum += blur.taps[std::abs(k - i)] * line[static_cast<std::size_t>(k)];
    }
    entries[step * static_cast<std::size_t>(i)] = sum;
  }
}

// Both axes.
void blur_joint(const Blur& blur, std::size_t bins, double* p) {
  for (std::size_t a = 0; a < bins; ++a) blur_line(blur, 1, p + a * bins, bins);
  for (std::size_t b = 0; b < bins; ++b) blur_line(blur, bins, p + b, bins);
}

struct Margins {
  Doubles a, b;
};

// Blurred and scaled to sum to 1.
void blur_margin(const Blur& blur, Doubles* margin) {
  blur_line(blur, 1, margin->data(), margin->size());
  double sum = 0;
  for (const double each : *margin) sum += each;
  for (double& each : *margin) each /= sum;
}

Margins margins_of(const double* p, int bins) {
  const auto n = static_cast<std::size_t>(bins);
  Margins result{Doubles(n, 0), Doubles(n, 0)};
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      result.a[a] += p[a * n + b];
      result.b[b] += p[a * n + b];
    }
  }
  return result;
}

double entropy(const Doubles& p) {
  double sum = 0;
  for (const double each : p) sum += entropy_term(each);
  return sum;
}

void normalized(const Doubles& p, const Margins& margins, bool with_table, Information* result) {
  const double joint = entropy(p);
  result->value = normalized_information(entropy(margins.a), entropy(margins.b), joint);
  if (!with_table) return;
  const std::size_t bins = margins.a.size();
  for (std::size_t i = 0; i < p.size(); ++i) {
    result->table[i] =
        normalized_slope({p[i], margins.a[i / bins], margins.b[i % bins]}, result->value, joint, 0);
  }
}

void plain(const Pass& pass, const Doubles& p, const Margins& margins, bool with_table,
    Information* result) {
  const std::size_t bins = margins.a.size();
  ForEachBin by_p_a{}, by_p_b{};
  for (std::size_t i = 0; i < p.size(); ++i) {
    const EntryTerm term =
        information({p[i], margins.a[i / bins], margins.b[i % bins]}, pass.smoothing, 0);
    result->value += term.value;
    by_p_a[i / bins] += term.by_p_a;
    by_p_b[i % bins] += term.by_p_b;
    if (with_table) result->table[i] = term.by_p;
  }
  if (!with_table || !pass.needs_margin_slopes()) return;
  for (std::size_t i = 0; i < p.size(); ++i) {
    result->table[i] += by_p_a[i / bins] + by_p_b[i % bins];
  }
}

}  // namespace

Information information_of(const Pass& pass, const double* histogram, bool with_table) {
  const auto entries = static_cast<std::size_t>(pass.entries());
  Doubles p(histogram, histogram + entries);
  Information result;
  for (const double each : p) result.count += each;
  if (with_table) result.table.assign(entries, 0);
  const Blur blur = pass.is_binned ? blur_of(pass.sigma, pass.bins) : Blur{};
  if (pass.is_binned) blur_joint(blur, static_cast<std::size_t>(pass.bins), p.data());
  double sum = 0;
  for (const double each : p) sum += each;
  if (sum == 0) return result;
  for (double& each : p) each /= sum;
  Margins margins = margins_of(pass.is_binned ? histogram : p.data(), pass.bins);
  if (pass.is_binned) {
    blur_margin(blur, &margins.a);
    blur_margin(blur, &margins.b);
  }
  if (pass.is_normalized) {
    normalized(p, margins, with_table, &result);
  } else {
    plain(pass, p, margins, with_table, &result);
  }
  return result;
}

}  // namespace similis::mutual_information_internal
