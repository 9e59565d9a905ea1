// SPDX-License-Identifier: Apache-2.0
// The view of a DLTensor, or a refusal that names the argument of an operation.
#pragma once

#include "similis/c/core.h"
#include "similis/tensor.hpp"

namespace similis {

TensorView from_dlpack(const char* operation, const char* argument, const similis_tensor& tensor);

similis_device to_dlpack(Device device);

}  // namespace similis
