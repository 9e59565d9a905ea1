// SPDX-License-Identifier: Apache-2.0
#include "src/mutual_information/information.h"

#include <algorithm>
#include <cmath>

namespace similis::mutual_information_internal {
namespace {

using Doubles = std::vector<double>;

// One axis of a histogram under the blur, with nothing outside: entries `step` apart, `lines` lines
// that begin `across` apart.
void blur_axis(const Blur& blur, int bins, std::size_t step, std::size_t across, Doubles* h) {
  Doubles line(static_cast<std::size_t>(bins));
  for (int l = 0; l < bins; ++l) {
    double* entries = h->data() + static_cast<std::size_t>(l) * across;
    for (int i = 0; i < bins; ++i)
      line[static_cast<std::size_t>(i)] = entries[step * static_cast<std::size_t>(i)];
    for (int i = 0; i < bins; ++i) {
      const int first = std::max(0, i - blur.radius), last = std::min(bins - 1, i + blur.radius);
      double sum = 0;
      for (int k = first; k <= last; ++k)
        sum += blur.taps[std::abs(k - i)] * line[static_cast<std::size_t>(k)];
      entries[step * static_cast<std::size_t>(i)] = sum;
    }
  }
}

struct Margins {
  Doubles a, b;
};

Margins margins_of(const Doubles& p, int bins) {
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

void plain(const Doubles& p, const Margins& margins, const Smoothing& smoothing, bool with_table,
    Information* result) {
  const std::size_t bins = margins.a.size();
  Doubles by_p_a(bins, 0), by_p_b(bins, 0);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const EntryTerm term =
        information({p[i], margins.a[i / bins], margins.b[i % bins]}, smoothing, 0);
    result->value += term.value;
    by_p_a[i / bins] += term.by_p_a;
    by_p_b[i % bins] += term.by_p_b;
    if (with_table) result->table[i] = term.by_p;
  }
  if (!with_table || !smoothing.is_on()) return;
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
  if (pass.is_binned) {
    const Blur blur = blur_of(pass.sigma, pass.bins);
    blur_axis(blur, pass.bins, 1, static_cast<std::size_t>(pass.bins), &p);
    blur_axis(blur, pass.bins, static_cast<std::size_t>(pass.bins), 1, &p);
  }
  double sum = 0;
  for (const double each : p) sum += each;
  if (sum == 0) {
    result.value = pass.is_normalized ? 1 : 0;
    return result;
  }
  for (double& each : p) each /= sum;
  const Margins margins = margins_of(p, pass.bins);
  if (pass.is_normalized) {
    normalized(p, margins, with_table, &result);
  } else {
    plain(p, margins, pass.smoothing, with_table, &result);
  }
  return result;
}

}  // namespace similis::mutual_information_internal
