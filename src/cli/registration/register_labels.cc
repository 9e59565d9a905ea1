// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_labels.h"

#include <cmath>
#include <cstdint>
#include <map>

#include "src/cli/inputs/media_pair.h"
#include "src/core/number_text.h"
#include "src/core/require.h"
#include "src/core/tensor/doubles.h"

namespace similis::cli {
namespace {

struct Counts {
  std::int64_t fixed = 0, moving = 0, both = 0;

  double dice() const {
    return fixed + moving == 0
               ? 0
               : 2 * static_cast<double>(both) / static_cast<double>(fixed + moving);
  }
};

std::map<double, Counts> counted(
    const std::vector<double>& fixed, const std::vector<double>& moving) {
  std::map<double, Counts> counts;
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    ++counts[fixed[i]].fixed;
    ++counts[moving[i]].moving;
    if (fixed[i] == moving[i]) ++counts[fixed[i]].both;
  }
  counts.erase(0);
  return counts;
}

}  // namespace

media::Volume read_labels(const std::string& path, const RegisterInput& image) {
  media::Volume labels = read_on_grid(path, image, "a map of labels");
  for (const double value : to_doubles(labels.values)) {
    require(value == std::floor(value), "{}: a voxel is {}; labels are integers",
        display_name(path), shortest(value));
  }
  return labels;
}

std::vector<LabelOverlap> label_overlaps(
    const media::Volume& fixed, const media::Volume& before, const media::Volume& after) {
  const std::vector<double> own = to_doubles(fixed.values);
  std::map<double, Counts> first = counted(own, to_doubles(before.values));
  std::map<double, Counts> last = counted(own, to_doubles(after.values));
  std::map<double, LabelOverlap> overlaps;
  for (const auto& [label, counts] : first) overlaps[label].before = counts.dice();
  for (const auto& [label, counts] : last) overlaps[label].after = counts.dice();
  std::vector<LabelOverlap> result;
  for (auto& [label, overlap] : overlaps) {
    overlap.label = label;
    result.push_back(overlap);
  }
  return result;
}

}  // namespace similis::cli
