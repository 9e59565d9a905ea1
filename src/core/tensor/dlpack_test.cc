// SPDX-License-Identifier: Apache-2.0
#include "similis/dlpack.hpp"

#include <gtest/gtest.h>

#include "similis/error.hpp"

namespace similis {
namespace {

TEST(Dlpack, AViewGoesThereAndBack) {
  std::array<float, 24> elements{};
  for (const DType dtype : {DType::u8, DType::u16, DType::f16, DType::bf16, DType::f32, DType::f64,
           DType::i16, DType::i32, DType::boolean}) {
    TensorView view(elements.data(), {2, 3}, {-5, 2}, dtype, {DeviceKind::cuda, 3});
    view.offset = 5;
    const TensorView back = from_dlpack(to_dlpack(view));
    EXPECT_EQ(back.handle, view.handle);
    EXPECT_EQ(back.offset, view.offset);
    EXPECT_EQ(back.shape, view.shape);
    EXPECT_EQ(back.strides, view.strides);
    EXPECT_EQ(back.dtype, dtype);
    EXPECT_EQ(back.device, view.device);
  }
}

TEST(Dlpack, NoStridesMeansDenseAndTheOffsetIsInBytes) {
  std::array<float, 24> elements{};
  TensorView view(elements.data(), {2, 3, 4}, DType::f32);
  similis_tensor tensor = to_dlpack(view);
  tensor.strides = nullptr;
  tensor.byte_offset = 8;
  const TensorView back = from_dlpack(tensor);
  EXPECT_EQ(back.strides, (Extents{12, 4, 1}));
  EXPECT_EQ(back.handle, elements.data());
  EXPECT_EQ(back.offset, 2);
  EXPECT_EQ(back.data(), elements.data() + 2);
}

TEST(Dlpack, AnOffsetBetweenElementsMovesTheAddress) {
  std::array<float, 24> elements{};
  TensorView view(elements.data(), {2, 3}, DType::f32);
  similis_tensor tensor = to_dlpack(view);
  tensor.byte_offset = 6;
  EXPECT_EQ(from_dlpack(tensor).data(), reinterpret_cast<char*>(elements.data()) + 6);
}

TEST(Dlpack, AnOffsetMayBeNegative) {
  std::array<float, 24> elements{};
  TensorView view(elements.data() + 10, {2, 3}, DType::f32);
  view.offset = -4;
  const TensorView back = from_dlpack(to_dlpack(view));
  EXPECT_EQ(back.offset, -4);
  EXPECT_EQ(back.data(), elements.data() + 6);
}

TEST(Dlpack, RefusesWhatItCannotSay) {
  std::array<float, 24> elements{};
  TensorView view(elements.data(), {24}, DType::f32);
  similis_tensor tensor = to_dlpack(view);
  tensor.device.type = 8;  // Metal
  EXPECT_THROW(from_dlpack(tensor), InvalidArgument);
  tensor = to_dlpack(view);
  tensor.byte_offset = 2;
  tensor.device.type = SIMILIS_VULKAN;  // a buffer's handle is no address to add to
  EXPECT_THROW(from_dlpack(tensor), InvalidArgument);
  tensor = to_dlpack(view);
  tensor.dtype = {0, 64, 1};  // int64
  EXPECT_THROW(from_dlpack(tensor), InvalidArgument);
  tensor = to_dlpack(view);
  tensor.ndim = 9;
  EXPECT_THROW(from_dlpack(tensor), InvalidArgument);
  tensor = to_dlpack(view);
  tensor.data = nullptr;
  EXPECT_THROW(from_dlpack(tensor), InvalidArgument);
}

}  // namespace
}  // namespace similis
