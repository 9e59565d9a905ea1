// SPDX-License-Identifier: Apache-2.0
#include "src/window/halving.h"

#include <gtest/gtest.h>

#include <vector>

namespace similis {
namespace {

using Pairs = std::vector<std::vector<std::int64_t>>;

Pairs pairs_of(const Halving& halving) {
  Pairs pairs;
  for (std::int64_t coarse = 0; coarse < halving.coarse_extent(); ++coarse) {
    pairs.push_back({halving.fine(coarse, 0), halving.fine(coarse, 1)});
  }
  return pairs;
}

TEST(Halving, EachRulePairsWhatItsLibraryDoes) {
  const auto even = [](Downsample rule) { return pairs_of(Halving(4, rule, false)); };
  for (const Downsample rule :
      {Downsample::vainf, Downsample::ceil, Downsample::floor, Downsample::piq}) {
    EXPECT_EQ(even(rule), (Pairs{{0, 1}, {2, 3}}));
  }
  EXPECT_EQ(pairs_of(Halving(5, Downsample::vainf, true)), (Pairs{{-1, 0}, {1, 2}, {3, 4}}));
  EXPECT_EQ(pairs_of(Halving(5, Downsample::ceil, true)), (Pairs{{0, 1}, {2, 3}, {4, 4}}));
  EXPECT_EQ(pairs_of(Halving(5, Downsample::floor, true)), (Pairs{{0, 1}, {2, 3}}));
  EXPECT_EQ(pairs_of(Halving(5, Downsample::piq, true)), (Pairs{{0, 0}, {1, 2}, {3, 4}}));
  // Another side is odd: this one moves by one all the same, and its last element is left out.
  EXPECT_EQ(pairs_of(Halving(4, Downsample::piq, true)), (Pairs{{0, 0}, {1, 2}}));
  EXPECT_EQ(pairs_of(Halving::none()), (Pairs{{0, 0}}));
}

TEST(Halving, SharesAreTheTransposeOfThePairs) {
  for (const Downsample rule :
      {Downsample::vainf, Downsample::ceil, Downsample::floor, Downsample::piq}) {
    for (const std::int64_t extent : {1, 2, 3, 8, 9}) {
      const Halving halving(extent, rule, true);
      std::vector<double> shares(static_cast<std::size_t>(extent));
      for (std::int64_t coarse = 0; coarse < halving.coarse_extent(); ++coarse) {
        for (const int k : {0, 1}) {
          const std::int64_t fine = halving.fine(coarse, k);
          if (fine == Halving::kZero) continue;
          shares[static_cast<std::size_t>(fine)] += 0.5;
          EXPECT_EQ(halving.coarse(fine), coarse);
        }
      }
      for (std::int64_t fine = 0; fine < extent; ++fine) {
        EXPECT_EQ(halving.share(fine), shares[static_cast<std::size_t>(fine)])
            << "extent " << extent << " fine " << fine;
      }
    }
  }
}

}  // namespace
}  // namespace similis
