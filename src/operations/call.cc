// SPDX-License-Identifier: Apache-2.0
// similis_call(): any operation of the list by its C function, for bindings.
#include <array>
#include <cstddef>
#include <cstring>

#include "src/c_api/call.h"
#include "src/core/require.h"
#include "src/operations/operations.h"

namespace similis {
namespace {

// The options of a call in memory of its own: the caller's may serve several calls at once.
class OptionsOfCall {
 public:
  OptionsOfCall(const OperationTable& operation, const void* given) {
    require(operation.c_size <= sizeof memory_, "{}: its options have {} bytes", operation.name,
        operation.c_size);
    std::size_t size = 0;
    if (given == nullptr) given = operation.c_defaults;
    std::memcpy(&size, given, sizeof size);
    if (size < operation.c_size) {
      std::memcpy(memory_.data(), operation.c_defaults, operation.c_size);
    }
    // If the size is wrong, the C function sees the size alone, and refuses it.
    const bool is_known = size >= sizeof size && size <= operation.c_size;
    std::memcpy(memory_.data(), given, is_known ? size : sizeof size);
  }

  void set(const Option& option, const similis_tensor* tensor) {
    std::memcpy(memory_.data() + option.c_offset(), &tensor, sizeof tensor);
  }
  const void* data() const { return memory_.data(); }

 private:
  alignas(std::max_align_t) std::array<std::byte, 512> memory_;
};

const OperationTable& operation_at(std::int32_t index) {
  const auto all = operations();
  require(index >= 0 && static_cast<std::size_t>(index) < all.size(),
      "similis_call: operation is {}; it must be from 0 to {}", index, all.size() - 1);
  const OperationTable& operation = *all[static_cast<std::size_t>(index)].table;
  require(operation.c_function.call != nullptr,
      "similis_call: {} takes more than tensors and options; call similis_{}", operation.name,
      operation.name);
  return operation;
}

similis_status call_function(const OperationTable& operation, const similis_tensor* const* tensors,
    std::int32_t count, const void* options, const similis_execution* execution) {
  require(tensors != nullptr, "similis_call: tensors is NULL; it must point to {} tensors", count);
  const CFunction& function = operation.c_function;
  OptionsOfCall own(operation, options);
  std::array<const similis_tensor*, 16> arguments{};
  std::int32_t taken = 0;
  const auto next = [&] { return taken < count ? tensors[taken++] : (++taken, nullptr); };
  for (int i = 0; i < function.operands; ++i) arguments[static_cast<std::size_t>(i)] = next();
  for (const auto options_of : {operation.options, operation.request}) {
    for (const Option& option : options_of) {
      if (option.type == OptionType::tensor) own.set(option, next());
    }
  }
  for (int i = 0; i < function.outputs; ++i) {
    arguments[static_cast<std::size_t>(function.operands + i)] = next();
  }
  require(
      taken == count, "similis_call: {} takes {} tensors and got {}", operation.name, taken, count);
  return function.call(arguments.data(), own.data(), execution);
}

}  // namespace
}  // namespace similis

similis_status similis_call(int32_t operation, const similis_tensor* const* tensors, int32_t count,
    const void* options, const similis_execution* execution) {
  using namespace similis;
  similis_status status = SIMILIS_OK;
  const similis_status refused = c_api::call(
      [&] { status = call_function(operation_at(operation), tensors, count, options, execution); });
  return refused == SIMILIS_OK ? status : refused;
}
