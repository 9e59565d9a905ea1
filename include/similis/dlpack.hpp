// SPDX-License-Identifier: Apache-2.0
// Arrays of other libraries: converts DLPack's DLTensor, whose layout similis_tensor has, to a
// TensorView and back. No element is copied.
#pragma once

#include "similis/api.h"
#include "similis/c/core.h"
#include "similis/tensor.hpp"

namespace similis {

/// The array that a DLTensor describes (cast its pointer to similis_tensor's). Valid as long as the
/// array is.
/// Throws InvalidArgument if it has no data, more than 8 axes, a device other than the CPU or CUDA,
/// or elements other than those of DType.
SIMILIS_API TensorView from_dlpack(const similis_tensor& tensor);

/// The DLTensor of a view: its shape and strides are the view's own, so it is valid as long as the
/// view and the array are.
SIMILIS_API similis_tensor to_dlpack(TensorView& view);

}  // namespace similis
