// SPDX-License-Identifier: Apache-2.0
// One volume over several processes, from C++: which rows a rank holds are arguments, and what it
// computes of them are sums that add up. Threads stand for the ranks here; with MPI the rows that
// copy_rows() takes come by MPI_Sendrecv, and the sums by MPI_Allgather, added in the order of
// ranks.
//
//   slabs [RANKS]     compares a fixed volume with one that moves, on RANKS ranks (3) and on one
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "similis/lncc.hpp"
#include "similis/mutual_information.hpp"
#include "similis/warp.hpp"

namespace {

using similis::DType;
using similis::Extents;
using similis::TensorView;

constexpr std::int64_t kDepth = 24, kHeight = 20, kWidth = 28, kPlane = kHeight * kWidth;
constexpr int kBins = 32;

using Array = std::vector<float>;

// Planes [first, end) of a volume that somebody holds.
Array copy_rows(const Array& volume, std::int64_t first, std::int64_t end, std::int64_t of_row) {
  return {volume.begin() + first * of_row, volume.begin() + end * of_row};
}

TensorView image(Array& values) {
  return {values.data(),
      Extents{1, 1, static_cast<std::int64_t>(values.size()) / kPlane, kHeight, kWidth},
      DType::f32};
}
TensorView field(Array& values) {
  return {values.data(),
      Extents{1, static_cast<std::int64_t>(values.size()) / (3 * kPlane), kHeight, kWidth, 3},
      DType::f32};
}

struct Volumes {
  Array fixed, moving, displacement;
};

Volumes make_volumes() {
  Volumes result;
  for (std::int64_t i = 0; i < kDepth * kPlane; ++i) {
    const auto z = static_cast<double>(i / kPlane), y = static_cast<double>(i / kWidth % kHeight);
    const auto x = static_cast<double>(i % kWidth);
    const double fixed = std::sin(0.4 * x) * std::cos(0.3 * y) + std::sin(0.5 * z);
    const double moving = std::sin(0.4 * x + 0.2) * std::cos(0.3 * y) + std::sin(0.5 * z - 0.3);
    result.fixed.push_back(static_cast<float>(fixed));
    result.moving.push_back(static_cast<float>(moving * moving));
    for (const double u : {0.03, 0.01 * std::sin(0.2 * y), 0.05 * std::cos(0.3 * x)}) {
      result.displacement.push_back(static_cast<float>(u));
    }
  }
  return result;
}

// A rank's results for its rows [start, stop).
struct Own {
  Array moved;                    // the moving volume at x + u(x)
  std::vector<double> histogram;  // of fixed and moved
};

// u moves by less than kReach planes, which are fetched on each side. Rows that nobody's
// coordinates reach may be missing: they would weigh nothing.
constexpr std::int64_t kReach = 2;

Own compute(const Volumes& held, std::int64_t start, std::int64_t stop) {
  const std::int64_t first = std::max<std::int64_t>(start - kReach, 0);
  const std::int64_t end = std::min(stop + kReach + 1, kDepth);
  Array fixed = copy_rows(held.fixed, start, stop, kPlane);
  Array u = copy_rows(held.displacement, start, stop, 3 * kPlane);
  Array moving = copy_rows(held.moving, first, end, kPlane);  // the neighbours' rows are among them
  Own own{.moved = Array(fixed.size()), .histogram = std::vector<double>(kBins * kBins)};
  similis::sample_into(image(moving), {.output = image(own.moved)},
      {.displacement = field(u),
          .padding_mode = similis::Outside::border,
          .rows = {start, kDepth},         // the output's rows, of how many
          .image_rows = {first, kDepth}},  // the image's
      {});
  const TensorView into(own.histogram.data(), Extents{1, 1, kBins, kBins}, DType::f64);
  similis::histogram_into(image(fixed), image(own.moved), into,
      {.num_bins = kBins, .range = similis::ValueRange::fixed, .low = -2, .high = 4});
  return own;
}

// Σ LNCC and Σ weight of the windows centred on rows [start, stop). They see kRadius rows more on
// each side, which are fetched.
constexpr std::int64_t kRadius = 2;

std::array<double, 2> correlation(
    const Array& fixed, const Array& moved, std::int64_t start, std::int64_t stop) {
  const std::int64_t first = std::max<std::int64_t>(start - kRadius, 0);
  const std::int64_t end = std::min(stop + kRadius, kDepth);
  Array x = copy_rows(fixed, first, end, kPlane), y = copy_rows(moved, first, end, kPlane);
  std::array<double, 2> sums{};
  const TensorView into(sums.data(), Extents{2, 1, 1}, DType::f64);
  similis::lncc_into(image(x), image(y), {.value = into},
      {.window_size = 2 * kRadius + 1, .rows = {start - first, stop - first}, .sums = true});
  return sums;
}

double information(std::vector<double>& histogram) {
  const TensorView whole(histogram.data(), Extents{1, 1, kBins, kBins}, DType::f64);
  double value = 0;
  const TensorView into(&value, Extents{}, DType::f64);
  similis::mutual_information_from_histogram_into(whole, into);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t ranks = argc > 1 ? std::atoi(argv[1]) : 3;
  if (ranks < 1 || ranks > kDepth) {
    std::fprintf(stderr, "slabs: give 1 to %d ranks\n", static_cast<int>(kDepth));
    return 2;
  }
  const Volumes volumes = make_volumes();
  std::vector<Own> parts(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      parts[static_cast<std::size_t>(rank)] =
          compute(volumes, rank * kDepth / ranks, (rank + 1) * kDepth / ranks);
    });
  }
  for (std::thread& each : threads) each.join();
  Array moved;
  std::vector<double> histogram(kBins * kBins);
  for (const Own& part : parts) {  // in the order of ranks, for the same bits on all of them
    moved.insert(moved.end(), part.moved.begin(), part.moved.end());
    for (std::size_t i = 0; i < histogram.size(); ++i) histogram[i] += part.histogram[i];
  }
  std::array<double, 2> sums{};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::array<double, 2> own =
        correlation(volumes.fixed, moved, rank * kDepth / ranks, (rank + 1) * kDepth / ranks);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += own[i];
  }
  Own whole = compute(volumes, 0, kDepth);
  const std::array<double, 2> of_whole = correlation(volumes.fixed, whole.moved, 0, kDepth);
  const double lncc = sums[0] / sums[1], expected_lncc = of_whole[0] / of_whole[1];
  const double value = information(histogram), expected = information(whole.histogram);
  const bool is_alike = moved == whole.moved && std::abs(value - expected) <= 1e-12 * expected &&
                        std::abs(lncc - expected_lncc) <= 1e-12;
  std::printf("%d ranks: MI %.12f, LNCC %.12f; one: MI %.12f, LNCC %.12f; moved volumes %s\n",
      static_cast<int>(ranks), value, lncc, expected, expected_lncc,
      moved == whole.moved ? "have the same bits" : "differ");
  return is_alike ? 0 : 1;
}
