// SPDX-License-Identifier: Apache-2.0
// Options and backends of sampling, composing and grids.
#include "src/warp/option_rows.h"
#include "src/warp/warp.h"

namespace similis::warp_internal {

constinit const Step<decltype(sample_cpu)> kSample = {{sample_cpu, SIMILIS_IF_CUDA(sample_cuda)}};
constinit const Step<decltype(spline_filter_cpu)> kSplineFilter = {
    {spline_filter_cpu, SIMILIS_IF_CUDA(spline_filter_cuda)}};
constinit const Step<decltype(copy_cpu)> kCopy = {{copy_cpu, SIMILIS_IF_CUDA(copy_cuda)}};
constinit const Step<decltype(affine_grid_cpu)> kAffineGrid = {
    {affine_grid_cpu, SIMILIS_IF_CUDA(affine_grid_cuda)}};

namespace {

constexpr const char* kModeWords[] = {"linear", "nearest", "cubic"};
constexpr const char* kPaddingModeWords[] = {"zeros", "border", "reflection"};
constexpr Choices kModes{kModeWords}, kPaddingModes{kPaddingModeWords};

// The options that sample() and sample_labels() share come first.
using S = SampleOptions;
constexpr S kSampleDefaults;
constexpr Option kSampleOptions[] = {
    option<&S::affine, &C::affine>("affine"),
    option<&S::displacement, &C::displacement>("displacement"),
    option<&S::grid, &C::grid>("grid"),
    option<&S::grid_affine, &C::grid_affine>("grid_affine"),
    extents_option<&S::out_shape, &C::out_shape, &C::out_rank>("out_shape"),
    option<&S::padding_mode, &C::padding_mode>("padding_mode", kPaddingModes),
    option<&S::align_corners, &C::align_corners>("align_corners"),
    coordinates_option<&S::min_coords, &C::min_coords, &C::has_min_coords>("min_coords"),
    coordinates_option<&S::max_coords, &C::max_coords, &C::has_max_coords>("max_coords"),
    interval_option<&S::rows, &C::rows_start, &C::rows_extent>("rows"),
    interval_option<&S::image_rows, &C::image_rows_start, &C::image_rows_extent>("image_rows"),
    interval_option<&S::cells, &C::first_cell, &C::end_cell>("cells", kFirstAndEnd),
    option<&S::mode, &C::mode>("mode", kModes),
    option<&S::prefilter, &C::prefilter>("prefilter"),
};
constexpr std::span<const Option> kSharedOptions(kSampleOptions, std::size(kSampleOptions) - 2);
constexpr Option kSampleRequest[] = {
    option<&SampleRequest::accumulate, &C::accumulate>("accumulate"),
    option<&SampleRequest::deterministic, &C::deterministic>("deterministic"),
    option<&NotedRequest::elsewhere, &C::elsewhere>("elsewhere"),
    option<&NotedRequest::noted, &C::noted>("noted"),
    interval_option<&NotedRequest::reached, &C::first_reached, &C::end_reached>(
        "reached", kFirstAndEnd),
};
constexpr Option kLabelOptions[] = {
    option<&LabelOptions::background, &C::background>("background", kAnyFloat),
    given_option<&LabelOptions::smallest_label, &C::smallest_label, &C::has_smallest_label>(
        "smallest_label"),
};

using P = ComposeOptions;
constexpr P kComposeDefaults;
constexpr Option kComposeOptions[] = {
    option<&P::affine, &C::affine>("affine"),
    option<&P::padding_mode, &C::padding_mode>("padding_mode", kPaddingModes),
    option<&P::align_corners, &C::align_corners>("align_corners"),
    coordinates_option<&P::min_coords, &C::min_coords, &C::has_min_coords>("min_coords"),
    coordinates_option<&P::max_coords, &C::max_coords, &C::has_max_coords>("max_coords"),
    interval_option<&P::rows, &C::rows_start, &C::rows_extent>("rows"),
    interval_option<&P::image_rows, &C::image_rows_start, &C::image_rows_extent>("image_rows"),
    interval_option<&P::cells, &C::first_cell, &C::end_cell>("cells", kFirstAndEnd),
};
constexpr Option kComposeRequest[] = {
    option<&ComposeRequest::accumulate, &C::accumulate>("accumulate"),
    option<&ComposeRequest::deterministic, &C::deterministic>("deterministic"),
};

using A = AffineGridOptions;
constexpr A kAffineGridDefaults;
constexpr Option kAffineGridOptions[] = {
    option<&A::displacement, &C::displacement>("displacement"),
    extents_option<&A::out_shape, &C::out_shape, &C::out_rank>("out_shape"),
    option<&A::align_corners, &C::align_corners>("align_corners"),
    coordinates_option<&A::min_coords, &C::min_coords, &C::has_min_coords>("min_coords"),
    coordinates_option<&A::max_coords, &C::max_coords, &C::has_max_coords>("max_coords"),
    interval_option<&A::rows, &C::rows_start, &C::rows_extent>("rows"),
};
constexpr Option kAffineGridRequest[] = {
    option<&AffineGridRequest::accumulate, &C::accumulate>("accumulate")};

constexpr const char* kImage[] = {"image"};
constexpr const char* kFields[] = {"u", "v"};
constexpr const char* kAffine[] = {"affine"};
constexpr const char* kSampleOutputs[] = {"output", "upstream", "image_gradient", "affine_gradient",
    "grid_gradient", "grid_affine_gradient"};
constexpr const char* kLabelOutputs[] = {
    "label", "weight", "upstream", "affine_gradient", "grid_gradient", "grid_affine_gradient"};
constexpr const char* kComposeOutputs[] = {
    "output", "upstream", "u_gradient", "v_gradient", "affine_gradient"};
constexpr const char* kAffineGridOutputs[] = {"output", "upstream", "affine_gradient"};

}  // namespace

constinit const OperationTable kSampleTable = {.name = "sample",
    .options = kSampleOptions,
    .request = kSampleRequest,
    .defaults = &kSampleDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_warp_options",
    .c_size = sizeof(C),
    .operands = kImage,
    .outputs = kSampleOutputs,
    .shape = ShapeRule::sampled,
    .c_function = c_function<similis_sample>};

constinit const OperationTable kSampleLabelsTable = {.name = "sample_labels",
    .options = kSharedOptions,
    .request = kLabelOptions,
    .defaults = &kSampleDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_warp_options",
    .c_size = sizeof(C),
    .operands = kImage,
    .outputs = kLabelOutputs,
    .shape = ShapeRule::sampled,
    .c_function = c_function<similis_sample_labels>};

constinit const OperationTable kComposeTable = {.name = "compose",
    .options = kComposeOptions,
    .request = kComposeRequest,
    .defaults = &kComposeDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_warp_options",
    .c_size = sizeof(C),
    .operands = kFields,
    .outputs = kComposeOutputs,
    .shape = ShapeRule::as_v,
    .c_function = c_function<similis_compose>};

constinit const OperationTable kAffineGridTable = {.name = "affine_grid",
    .options = kAffineGridOptions,
    .request = kAffineGridRequest,
    .defaults = &kAffineGridDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_warp_options",
    .c_size = sizeof(C),
    .operands = kAffine,
    .outputs = kAffineGridOutputs,
    .shape = ShapeRule::coordinates,
    .c_function = c_function<similis_affine_grid>};

}  // namespace similis::warp_internal
