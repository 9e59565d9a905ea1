// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/launch/vulkan/totals.h"

namespace similis::gpu::vulkan {
namespace {

struct Arguments : KernelArguments {
  std::int32_t count;
  double bias, factor;
  std::int32_t offset, is_f64;
};

}  // namespace

void queue_totals(
    Commands& commands, VkBuffer sums, const Totals& totals, const Elements& results, DType dtype) {
  const Arguments arguments{{}, static_cast<std::int32_t>(totals.count), totals.bias, totals.factor,
      results.offset, dtype == DType::f64 ? 1 : 0};
  commands.run(
      {.module = "gpu/launch/totals"}, {sums, results.buffer}, arguments, {.x = totals.results});
}

}  // namespace similis::gpu::vulkan
