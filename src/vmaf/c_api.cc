// SPDX-License-Identifier: Apache-2.0
// similis_vmaf() and the scorer of vmaf.hpp for C.
#include "similis/c/vmaf.h"

#include "similis/vmaf.hpp"
#include "src/c_api/call.h"
#include "src/core/require.h"

struct similis_vmaf_scorer : similis::VmafScorer {
  using VmafScorer::VmafScorer;
};

namespace similis {
namespace {

constexpr similis_vmaf_options kDefaults = SIMILIS_VMAF_DEFAULTS;

std::vector<std::string> texts(const char* argument, const char* const* given, std::int64_t count) {
  require(count >= 0 && (count == 0 || given != nullptr),
      "vmaf: {} has {} texts; give an array of as many", argument, count);
  std::vector<std::string> result;
  for (std::int64_t i = 0; i < count; ++i) {
    require(given[i] != nullptr, "vmaf: {} holds NULL; it must hold texts", argument);
    result.emplace_back(given[i]);
  }
  return result;
}

VmafOptions options_of(const c_api::Arguments& arguments, const similis_vmaf_options* given) {
  const similis_vmaf_options options = arguments.options(given, kDefaults);
  require(options.reserved == 0, "vmaf: reserved is {}; it must be 0", options.reserved);
  VmafOptions result{.features = texts("features", options.features, options.feature_count)};
  if (options.models != nullptr) {
    result.models = texts("models", options.models, options.model_count);
  }
  if (options.bit_depth != 0) result.bit_depth = options.bit_depth;
  return result;
}

void require_scorer(const void* scorer) {
  require(scorer != nullptr, "vmaf: scorer is NULL; similis_vmaf_scorer_create() makes one");
}

}  // namespace
}  // namespace similis

using namespace similis;

similis_status similis_vmaf(const similis_tensor* reference, const similis_tensor* distorted,
    const similis_vmaf_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  return c_api::call([&] {
    const c_api::Arguments arguments("vmaf");
    vmaf_into(arguments.image("reference", reference), arguments.image("distorted", distorted),
        arguments.optional("value", value), options_of(arguments, options),
        c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_vmaf_scorer_create(int64_t height, int64_t width,
    const similis_vmaf_options* options, similis_vmaf_scorer** scorer) {
  return c_api::call([&] {
    require(scorer != nullptr, "vmaf: scorer is NULL; it must point to a pointer");
    *scorer = nullptr;
    *scorer = new similis_vmaf_scorer(height, width, options_of(c_api::Arguments("vmaf"), options));
  });
}

void similis_vmaf_scorer_destroy(similis_vmaf_scorer* scorer) { delete scorer; }

int64_t similis_vmaf_scorer_column_count(const similis_vmaf_scorer* scorer) {
  return scorer == nullptr ? 0 : static_cast<int64_t>(scorer->columns().size());
}

const char* similis_vmaf_scorer_column(const similis_vmaf_scorer* scorer, int64_t column) {
  if (column < 0 || column >= similis_vmaf_scorer_column_count(scorer)) return nullptr;
  return scorer->columns()[static_cast<std::size_t>(column)].c_str();
}

similis_status similis_vmaf_scorer_push(similis_vmaf_scorer* scorer,
    const similis_tensor* reference, const similis_tensor* distorted,
    const similis_execution* execution) {
  return c_api::call([&] {
    require_scorer(scorer);
    const c_api::Arguments arguments("vmaf");
    scorer->push(arguments.image("reference", reference), arguments.image("distorted", distorted),
        c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_vmaf_scorer_finish(similis_vmaf_scorer* scorer) {
  return c_api::call([&] {
    require_scorer(scorer);
    scorer->finish();
  });
}

similis_status similis_vmaf_scorer_pop(
    similis_vmaf_scorer* scorer, int64_t* frame, double* values) {
  return c_api::call([&] {
    require_scorer(scorer);
    require(frame != nullptr && values != nullptr,
        "vmaf: frame or values is NULL; they must point to a number and to one for each column");
    *frame = -1;
    const auto numbers = scorer->pop();
    if (!numbers) return;
    *frame = numbers->frame;
    std::copy(numbers->values.begin(), numbers->values.end(), values);
  });
}
