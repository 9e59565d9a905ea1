// SPDX-License-Identifier: Apache-2.0
// An operation's C function behind one signature, so that bindings call all of them alike: its
// tensors stand in a row, in the order of its arguments, and its options are an address.
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

#include "similis/c/core.h"

namespace similis {

struct CFunction {
  using Call = similis_status(const similis_tensor* const* tensors, const void* options,
      const similis_execution* execution);
  Call* call = nullptr;  ///< null: the function takes more than tensors and options
  int operands = 0;      ///< tensors before its options
  int outputs = 0;       ///< tensors behind them
};

namespace c_function_internal {

template <class Function> struct Caller;
template <class... Arguments> struct Caller<similis_status (*)(Arguments...)> {
  static constexpr int count = sizeof...(Arguments);
  static constexpr bool is_tensor[count] = {std::same_as<Arguments, const similis_tensor*>...};

  static constexpr int operands() {
    int first = 0;
    while (is_tensor[first]) ++first;
    return first;
  }

  template <int index, class Argument>
  static Argument argument(const similis_tensor* const* tensors, const void* options,
      const similis_execution* execution) {
    if constexpr (std::same_as<Argument, const similis_tensor*>) {
      return tensors[index < operands() ? index : index - 1];
    } else if constexpr (std::same_as<Argument, const similis_execution*>) {
      static_assert(index == count - 1, "the execution is the last argument");
      return execution;
    } else {
      static_assert(index == operands(), "the options are the only other argument");
      return static_cast<Argument>(options);
    }
  }

  template <auto function>
  static similis_status call(const similis_tensor* const* tensors, const void* options,
      const similis_execution* execution) {
    return [&]<int... i>(std::integer_sequence<int, i...>) {
      return function(argument<i, Arguments>(tensors, options, execution)...);
    }
    (std::make_integer_sequence<int, count>());
  }
};

}  // namespace c_function_internal

template <auto function>
inline constexpr CFunction c_function = {
    .call = c_function_internal::Caller<decltype(function)>::template call<function>,
    .operands = c_function_internal::Caller<decltype(function)>::operands(),
    .outputs = c_function_internal::Caller<decltype(function)>::count - 2 -
               c_function_internal::Caller<decltype(function)>::operands()};

}  // namespace similis
