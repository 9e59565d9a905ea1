// SPDX-License-Identifier: Apache-2.0
// similis_ssimulacra2() and the reference that is kept, for C.
#include "similis/c/ssimulacra2.h"

#include "similis/ssimulacra2.hpp"
#include "src/c_api/measure.h"
#include "src/core/require.h"
#include "src/ssimulacra2/ssimulacra2.h"

struct similis_ssimulacra2_reference : similis::Ssimulacra2Reference {
  using Ssimulacra2Reference::Ssimulacra2Reference;
};

namespace similis {
namespace {

Ssimulacra2Options options_of(
    const c_api::Arguments& arguments, const similis_ssimulacra2_options* options) {
  Ssimulacra2Options own;
  c_api::read_options(
      ssimulacra2_internal::kSsimulacra2.table, arguments, options, 2, own, nullptr);
  return own;
}

}  // namespace
}  // namespace similis

similis_status similis_ssimulacra2(const similis_tensor* x, const similis_tensor* y,
    const similis_ssimulacra2_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("ssimulacra2");
    ssimulacra2_into(arguments.image("x", x), arguments.image("y", y),
        {.value = arguments.image("value", value)}, options_of(arguments, options),
        c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_ssimulacra2_map(const similis_tensor* x, const similis_tensor* y,
    const similis_ssimulacra2_options* options, const similis_tensor* value,
    const similis_tensor* map, const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("ssimulacra2");
    ssimulacra2_into(arguments.image("x", x), arguments.image("y", y),
        {.value = arguments.optional("value", value), .map = arguments.image("map", map)},
        options_of(arguments, options), c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_ssimulacra2_reference_create(const similis_tensor* x,
    const similis_ssimulacra2_options* options, const similis_execution* execution,
    similis_ssimulacra2_reference** reference) {
  using namespace similis;
  return c_api::call([&] {
    require(reference != nullptr,
        "similis_ssimulacra2_reference_create: reference is NULL; it must point to a pointer");
    *reference = nullptr;
    const c_api::Arguments arguments("ssimulacra2");
    *reference = new similis_ssimulacra2_reference(arguments.image("x", x),
        options_of(arguments, options), c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_ssimulacra2_reference_score(const similis_ssimulacra2_reference* reference,
    const similis_tensor* y, const similis_tensor* value, const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    require(reference != nullptr,
        "similis_ssimulacra2_reference_score: reference is NULL; it must have been created");
    const c_api::Arguments arguments("ssimulacra2");
    reference->score_into(arguments.image("y", y), arguments.image("value", value),
        c_api::CallExecution(arguments, execution));
  });
}

void similis_ssimulacra2_reference_destroy(similis_ssimulacra2_reference* reference) {
  delete reference;
}
