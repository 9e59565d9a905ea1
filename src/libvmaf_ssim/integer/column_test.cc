// SPDX-License-Identifier: Apache-2.0
// The parts of the GPU's kernels, run on the CPU: running sums down columns, maps of chunks
// composed to groups, and the walk over them, against the loops that define them. All 64 bits.
#include "src/libvmaf_ssim/integer/column.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "src/libvmaf_ssim/integer/ordered_walk.h"
#include "src/libvmaf_ssim/reference.h"
#include "src/libvmaf_ssim/test_planes.h"

namespace similis::libvmaf_ssim_internal {
namespace {

// The terms of one pair in raster order.
template <class Sums> std::vector<double> column_terms(const TestPlanes& planes) {
  const std::int64_t height = planes.x.shape[0], width = planes.x.shape[1];
  const std::vector<double> x = to_doubles(planes.x), y = to_doubles(planes.y);
  const int middle = middle_of_range(planes.depth);
  const auto padded = static_cast<std::size_t>(width + 2 * kRadius);
  std::vector<ColumnSums<Sums>> columns(padded);
  std::vector<double> terms;
  for (std::int64_t row = 0; row < height + kRadius; ++row) {
    std::array<std::vector<typename Sums::Down>, Sums::products> down;
    for (std::size_t i = 0; i < padded; ++i) {
      const std::int64_t column = static_cast<std::int64_t>(i) - kRadius;
      typename Sums::Down products[Sums::products] = {};
      if (row < height && column >= 0 && column < width) {
        const auto at = static_cast<std::size_t>(row * width + column);
        Sums::multiply(static_cast<int>(x[at]), static_cast<int>(y[at]), middle, products);
      }
      columns[i].feed(products);
      for (int p = 0; p < Sums::products; ++p) {
        down[static_cast<std::size_t>(p)].push_back(columns[i].complete(p));
      }
    }
    if (row < kRadius) continue;
    for (std::int64_t column = 0; column < width; ++column) {
      typename Sums::Across across[Sums::products];
      for (int p = 0; p < Sums::products; ++p) {
        across[p] = sum_across<typename Sums::Across>(
            &down[static_cast<std::size_t>(p)][static_cast<std::size_t>(column + kRadius)]);
      }
      const double w = weight_inside(row - kRadius, height) * weight_inside(column, width);
      terms.push_back(Sums::term(across, weight_of(w, planes.depth), middle));
    }
  }
  return terms;
}

std::vector<double> column_terms_of(const TestPlanes& planes) {
  return planes.depth == 8    ? column_terms<Centred8>(planes)
         : planes.depth == 10 ? column_terms<Centred10>(planes)
                              : column_terms<Whole>(planes);
}

double in_order(const std::vector<double>& terms) {
  return add_one_by_one(0, terms.data(), static_cast<std::int64_t>(terms.size()));
}

TEST(IntegerColumns, HasTheReferencesTerms) {
  for (const Scene scene : kScenes) {
    for (const int depth : {8, 10, 12, 16}) {
      for (const Extents& shape : {Extents{1, 1}, Extents{3, 7}, Extents{9, 40}, Extents{41, 23}}) {
        const TestPlanes planes(scene, shape, depth);
        const std::vector<double> terms = column_terms_of(planes);
        EXPECT_EQ(in_order(terms) / total_weight(shape[0], shape[1]),
            reference_integer_ssim(planes.pairs())[0])
            << name(scene) << ", " << depth << " bits, " << shape[0] << "x" << shape[1];
      }
    }
  }
}

// Maps as the GPU makes them, and the parts of them that the walk asks for.
class Maps {
 public:
  explicit Maps(const std::vector<double>& terms) : terms_(terms) {
    const auto count = static_cast<std::int64_t>(terms.size());
    double before = 0;
    for (std::int64_t first = 0; first < count; first += kChunkTerms) {
      const int in_chunk = at_most(count - first, kChunkTerms);
      chunks_.push_back(map_of(&terms_[static_cast<std::size_t>(first)], in_chunk, before));
      for (int i = 0; i < in_chunk; ++i) before += terms_[static_cast<std::size_t>(first + i)];
      before *= 1.0001;  // not quite the later value
    }
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      if (i % kGroupChunks == 0) {
        groups_.push_back(chunks_[i]);
      } else {
        groups_.back() = then(groups_.back(), chunks_[i]);
      }
    }
  }

  MappedTerms mapped() const {
    return {
        terms_.data(), chunks_.data(), groups_.data(), static_cast<std::int64_t>(terms_.size())};
  }

 private:
  static ChunkMap map_of(const double* terms, int count, double expected) {
    ChunkMap map;
    map.first_exponent = first_exponent_about(expected);
    double sum = 0, furthest = 0;
    for (int i = 0; i < count; ++i) {
      sum += terms[i];
      furthest = larger(furthest, magnitude(sum));
    }
    map.reach = reach_of(furthest, count, map.first_exponent);
    for (int b = 0; b < kBinades; ++b) map_in_order(terms, count, b, map);
    return map;
  }

  const std::vector<double>& terms_;
  std::vector<ChunkMap> chunks_, groups_;
};

// Composes the steps of a window before it looks at which hold, as a GPU's subgroup does.
struct Window {
  const ChunkMap* maps;
  int count;

  int advance(int from, double& sum) const {
    const int exponent = exponent_of(sum);
    const double start = sum;
    Step all = {0, 0};
    for (int i = from; i < count; ++i) {
      const double before = start + all.from(start);
      if (exponent_of(before) != exponent || !holds(maps[i], before)) return i;
      all = then(all, step_of(maps[i], exponent), binade(exponent + 1));
      sum = start + all.from(start);
    }
    return count;
  }
};

struct Walker {
  std::int64_t* one_by_one;

  Window window(const ChunkMap* maps, int count) const { return {maps, count}; }
  double add(const double* terms, int count, double sum) const {
    *one_by_one += count;
    return add_one_by_one(sum, terms, count);
  }
};

// Returns how many terms the walk added one by one.
std::int64_t expect_the_loops_bits(const std::vector<double>& terms) {
  const Maps maps(terms);
  std::int64_t one_by_one = 0;
  const double sum = walk(maps.mapped(), Walker{&one_by_one});
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sum), std::bit_cast<std::uint64_t>(in_order(terms)))
      << sum << " for " << in_order(terms);
  return one_by_one;
}

std::vector<double> random_terms(std::size_t count, double least, double most) {
  std::mt19937_64 random(7);
  std::vector<double> terms(count);
  for (double& term : terms) {
    term = 65536 * (least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53);
  }
  return terms;
}

TEST(OrderedWalk, AddsGrowingSumsByGroups) {
  for (const std::size_t count : {1u, 255u, 256u, 257u, 8192u, 8193u, 700'001u}) {
    expect_the_loops_bits(random_terms(count, 0.5, 1));
    expect_the_loops_bits(random_terms(count, -1, 0.1));
  }
  EXPECT_LT(expect_the_loops_bits(random_terms(2'000'000, 0.9, 1)), 40 * kChunkTerms);
  EXPECT_LT(expect_the_loops_bits(random_terms(2'000'000, -1, -0.2)), 40 * kChunkTerms);
}

TEST(OrderedWalk, AddsSumsThatWanderAboutZero) {
  const std::int64_t one_by_one = expect_the_loops_bits(random_terms(2'000'000, -1, 1));
  EXPECT_LT(one_by_one, 1'000'000);
}

TEST(OrderedWalk, AddsTermsThatAreOftenHalfway) {
  std::mt19937_64 random(3);
  for (const int bits : {3, 20, 30}) {
    std::vector<double> terms(600'000);
    for (double& term : terms) {
      term = std::ldexp(static_cast<double>(random() >> (64 - bits)) + 1, -36);
    }
    terms[0] = 0x1p16;
    expect_the_loops_bits(terms);
  }
}

TEST(OrderedWalk, AddsTheTermsOfPlanes) {
  for (const Scene scene : kScenes) {
    expect_the_loops_bits(column_terms_of(TestPlanes(scene, {150, 130}, 8)));
    expect_the_loops_bits(column_terms_of(TestPlanes(scene, {150, 130}, 12)));
  }
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
