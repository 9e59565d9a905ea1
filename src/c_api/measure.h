// SPDX-License-Identifier: Apache-2.0
// The C entries of measures, from their tables: each is one call of one of these.
#pragma once

#include "src/c_api/call.h"
#include "src/core/operation.h"

namespace similis::c_api {

/// The tensors of a measure with gradients.
struct MeasureTensors {
  const similis_tensor *x, *y, *upstream, *value, *x_gradient, *y_gradient;
};

template <class Into> struct MeasureTypes;
template <class R, class O>
struct MeasureTypes<void (*)(
    const TensorView&, const TensorView&, const R&, const O&, const Execution&)> {
  using Request = R;
  using Options = O;
};

/// The op_into() of a room whose options are a reduction alone, as measure() takes it.
template <auto into> struct ByReduction;
template <class R,
    void (*into)(const TensorView&, const TensorView&, const R&, Reduction, const Execution&)>
struct ByReduction<into> {
  static void run(const TensorView& x, const TensorView& y, const R& request,
      const ReductionOptions& options, const Execution& exec) {
    into(x, y, request, options.reduction, exec);
  }
};
template <auto into> inline constexpr auto by_reduction = &ByReduction<into>::run;

/// The tensors of a score, which has no gradient.
struct ScoreTensors {
  const similis_tensor *x, *y, *value;
};

template <class Into> struct ScoreTypes;
template <class O>
struct ScoreTypes<void (*)(
    const TensorView&, const TensorView&, const TensorView&, const O&, const Execution&)> {
  using Options = O;
};

/// Fills the C++ options, and the request where there is one, from a C struct.
template <class Options, class C>
void read_options(const OperationTable& operation, const Arguments& arguments, const C* options,
    int axes, Options& into, void* request) {
  const C given = arguments.options(options, *static_cast<const C*>(operation.c_defaults));
  for (const Option& option : operation.options) {
    option.from_c(option, operation.name, &given, axes, &into);
  }
  for (const Option& option : operation.request) {
    option.from_c(option, operation.name, &given, axes, request);
  }
}

inline int spatial_axes(const TensorView& image) { return image.shape.rank() == 5 ? 3 : 2; }

/// into: a room's op_into(x, y, request, options, exec).
template <auto into, class C>
similis_status measure(const OperationTable& operation, const C* options,
    const MeasureTensors& tensors, const similis_execution* execution) {
  return call([&] {
    using Types = MeasureTypes<decltype(into)>;
    const Arguments arguments(operation.name);
    const CallExecution exec(arguments, execution);
    const TensorView x = arguments.image("x", tensors.x);
    typename Types::Options own;
    typename Types::Request request;
    read_options(operation, arguments, options, spatial_axes(x), own, &request);
    request.upstream = arguments.optional("upstream", tensors.upstream);
    request.value = arguments.optional("value", tensors.value);
    request.x_gradient = arguments.optional("x_gradient", tensors.x_gradient);
    request.y_gradient = arguments.optional("y_gradient", tensors.y_gradient);
    into(x, arguments.image("y", tensors.y), request, own, exec);
  });
}

/// into: a room's op_into(x, y, value, options, exec).
template <auto into, class C>
similis_status score(const OperationTable& operation, const C* options, const ScoreTensors& tensors,
    const similis_execution* execution) {
  return call([&] {
    const Arguments arguments(operation.name);
    const CallExecution exec(arguments, execution);
    const TensorView x = arguments.image("x", tensors.x);
    typename ScoreTypes<decltype(into)>::Options own;
    read_options(operation, arguments, options, spatial_axes(x), own, nullptr);
    into(x, arguments.image("y", tensors.y), arguments.image("value", tensors.value), own, exec);
  });
}

}  // namespace similis::c_api
