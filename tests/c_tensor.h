// SPDX-License-Identifier: Apache-2.0
// A TensorView as a caller in C passes it.
#pragma once

#include "similis/dlpack.hpp"

namespace similis::test {

/// Shape and strides are members of the object, so it must not move.
class CTensor {
 public:
  explicit CTensor(const TensorView& view) : view_(view), tensor_(to_dlpack(view_)) {}
  CTensor(const CTensor&) = delete;
  CTensor& operator=(const CTensor&) = delete;

  const similis_tensor* get() const { return &tensor_; }

 private:
  TensorView view_;
  similis_tensor tensor_;
};

}  // namespace similis::test
