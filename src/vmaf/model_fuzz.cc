// SPDX-License-Identifier: Apache-2.0
// A model's file is refused in a sentence that begins with its name, or it predicts a number for
// each of its columns.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "similis/error.hpp"
#include "src/vmaf/model/model.h"

namespace {

using namespace similis::vmaf_internal;

void require(bool condition) {
  if (!condition) std::abort();
}

void predict(const Model& model) {
  std::vector<double> predicted;
  for (const Regression& regression : model.regressions) {
    require(!regression.inputs.empty() && !regression.vectors.empty());
    for (const SupportVector& vector : regression.vectors) {
      require(vector.place.size() == regression.inputs.size());
    }
    for (const ModelInput& input : regression.inputs) {
      const auto columns = input.is_late ? input.feature.late_columns() : input.feature.columns();
      require(input.column < columns.size());
    }
    predicted.push_back(regression.predict(std::vector<double>(regression.inputs.size(), 0.5)));
  }
  static_cast<void>(model_score(model, predicted));
  require(member_scores(model, predicted).size() == model.member_columns().size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  for (const char* request :
      {"path=x", "path=x:enable_transform:disable_clip:adm.adm_csf_mode=2"}) {
    try {
      predict(parse_model(json, parse_model_request(request), "x"));
    } catch (const similis::InvalidArgument& error) {
      require(std::string_view(error.what()).starts_with("x: "));
    }
  }
  return 0;
}
