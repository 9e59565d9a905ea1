// SPDX-License-Identifier: Apache-2.0
// Options and backends of exponentials, inverses and Jacobians; exponentials are steps of src/warp.
#include "src/fields/fields.h"
#include "src/warp/option_rows.h"

namespace similis::fields_internal {

using warp_internal::C;
using warp_internal::coordinates_option;
using warp_internal::kCDefaults;

constinit const Step<decltype(invert_cpu)> kInvert = {{invert_cpu, SIMILIS_IF_CUDA(invert_cuda)}};
constinit const Step<decltype(jacobian_cpu)> kJacobian = {
    {jacobian_cpu, SIMILIS_IF_CUDA(jacobian_cuda)}};

namespace {

using E = ExponentiateOptions;
constexpr E kExponentiateDefaults;
constexpr Option kExponentiateOptions[] = {
    option<&E::align_corners, &C::align_corners>("align_corners")};

using I = InvertOptions;
constexpr I kInvertDefaults;
constexpr Option kInvertOptions[] = {
    option<&I::align_corners, &C::align_corners>("align_corners"),
    option<&I::tolerance, &C::tolerance>("tolerance", kAtLeast0),
};

using J = JacobianOptions;
constexpr J kJacobianDefaults;
constexpr Option kJacobianOptions[] = {
    option<&J::align_corners, &C::align_corners>("align_corners"),
    coordinates_option<&J::min_coords, &C::min_coords, &C::has_min_coords>("min_coords"),
    coordinates_option<&J::max_coords, &C::max_coords, &C::has_max_coords>("max_coords"),
};

// `rows` are those of the result, of which FieldRows has the first.
constexpr Option kPart[] = {
    interval_option<&FieldPart::rows, &C::rows_start, &C::rows_extent>("rows"),
    interval_option<&FieldPart::image_rows, &C::image_rows_start, &C::image_rows_extent>(
        "image_rows"),
};

constexpr const char* kV[] = {"v"};
constexpr const char* kU[] = {"u"};
constexpr const char* kExponentiateOutputs[] = {"output"};
constexpr const char* kInvertOutputs[] = {"output", "residual"};
constexpr const char* kJacobianOutputs[] = {"determinant", "folds"};

}  // namespace

constinit const OperationTable kExponentiateTable = {.name = "exponentiate",
    .options = kExponentiateOptions,
    .defaults = &kExponentiateDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_warp_options",
    .c_size = sizeof(C),
    .operands = kV,
    .outputs = kExponentiateOutputs,
    .shape = ShapeRule::as_x};

constinit const OperationTable kInvertTable = {.name = "invert",
    .options = kInvertOptions,
    .request = kPart,
    .defaults = &kInvertDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_warp_options",
    .c_size = sizeof(C),
    .operands = kU,
    .outputs = kInvertOutputs,
    .shape = ShapeRule::as_x};

constinit const OperationTable kJacobianTable = {.name = "jacobian_determinant",
    .options = kJacobianOptions,
    .request = kPart,
    .defaults = &kJacobianDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_warp_options",
    .c_size = sizeof(C),
    .operands = kU,
    .outputs = kJacobianOutputs,
    .shape = ShapeRule::by_voxel,
    .c_function = c_function<similis_jacobian_determinant>};

}  // namespace similis::fields_internal
