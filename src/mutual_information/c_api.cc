// SPDX-License-Identifier: Apache-2.0
// similis_mutual_information(), similis_histogram() and
// similis_mutual_information_from_histogram(): the functions of mutual_information.hpp for C.
#include "similis/c/mutual_information.h"

#include "src/c_api/measure.h"
#include "src/mutual_information/mutual_information.h"

using namespace similis;

similis_status similis_mutual_information(const similis_tensor* x, const similis_tensor* y,
    const similis_mutual_information_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution) {
  return c_api::measure<mutual_information_into>(
      mutual_information_internal::kMutualInformation.table, options,
      {x, y, upstream, value, x_gradient, y_gradient}, execution);
}

similis_status similis_histogram(const similis_tensor* x, const similis_tensor* y,
    const similis_mutual_information_options* options, const similis_tensor* histogram,
    const similis_execution* execution) {
  const OperationTable& operation = mutual_information_internal::kHistogram.table;
  return c_api::call([&] {
    const c_api::Arguments arguments(operation.name);
    MutualInformationOptions own;
    MutualInformationRequest unread;
    c_api::read_options(operation, arguments, options, 2, own, &unread);
    histogram_into(arguments.image("x", x), arguments.image("y", y),
        arguments.image("histogram", histogram), own, c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_mutual_information_from_histogram(const similis_tensor* histogram,
    const similis_mutual_information_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  const OperationTable& operation = mutual_information_internal::kFromHistogram.table;
  return c_api::call([&] {
    const c_api::Arguments arguments(operation.name);
    MutualInformationOptions own;
    MutualInformationRequest unread;
    c_api::read_options(operation, arguments, options, 2, own, &unread);
    mutual_information_from_histogram_into(arguments.image("histogram", histogram),
        arguments.image("value", value), own, c_api::CallExecution(arguments, execution));
  });
}
