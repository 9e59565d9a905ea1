// SPDX-License-Identifier: Apache-2.0
// Arrays: a TensorView describes memory of the caller and its layout, a Tensor owns the memory it
// points to. Both describe the same as a DLPack DLTensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "similis/api.h"

namespace similis {

/// The type of one element. bf16 is the upper half of an f32; a boolean is a byte that is 0 or 1.
/// Arrays on a GPU have no i16, i32 and boolean, but that a mask there may be boolean.
enum class DType : std::uint8_t { u8, u16, f16, bf16, f32, f64, i16, i32, boolean };

/// Bytes of one element.
constexpr std::size_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::boolean: return 1;
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16: return 2;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f64: break;
  }
  return 8;
}
/// The names in NumPy and torch: "uint8", "float32", "bool", ….
SIMILIS_API const char* name(DType dtype);

enum class DeviceKind : std::uint8_t { cpu, cuda, vulkan };

/// "cpu", "cuda", "vulkan".
SIMILIS_API const char* name(DeviceKind kind);

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;  ///< the GPU's number; 0 on the CPU
  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr int kMaxRank = 8;

/// Up to kMaxRank numbers, one per axis: a shape, or strides in elements.
class Extents {
 public:
  constexpr Extents() = default;
  constexpr Extents(std::initializer_list<std::int64_t> values)
      : Extents(std::span<const std::int64_t>(values.begin(), values.size())) {}
  constexpr explicit Extents(std::span<const std::int64_t> values) {
    if (values.size() > std::size_t{kMaxRank}) too_long(values.size());
    for (const std::int64_t value : values) values_[static_cast<std::size_t>(rank_++)] = value;
  }

  constexpr int rank() const { return rank_; }
  constexpr std::int64_t operator[](int axis) const {
    return values_[static_cast<std::size_t>(axis)];
  }
  constexpr std::int64_t& operator[](int axis) { return values_[static_cast<std::size_t>(axis)]; }
  constexpr std::int64_t* data() { return values_.data(); }
  constexpr const std::int64_t* begin() const { return values_.data(); }
  constexpr const std::int64_t* end() const { return values_.data() + rank_; }
  /// The product of all: 1 for a scalar.
  constexpr std::int64_t count() const {
    std::int64_t product = 1;
    for (const std::int64_t value : *this) product *= value;
    return product;
  }
  friend constexpr bool operator==(const Extents&, const Extents&) = default;

 private:
  [[noreturn]] SIMILIS_API static void too_long(std::size_t rank);
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> values_{};
};

/// Row-major strides of a dense array of this shape.
SIMILIS_API Extents dense_strides(const Extents& shape);

/// An array that the view does not own. Copying a view copies no element; each function says which
/// views it reads and writes. Strides may be any, negative and 0 included (0 only for inputs).
struct TensorView {
  void* handle = nullptr;   ///< the memory: its address on the CPU and for CUDA, a VkBuffer for
                            ///< Vulkan; null: left out
  std::int64_t offset = 0;  ///< elements from there to the first, whose indices are all 0
  Extents shape;
  Extents strides;  ///< elements between neighbours along each axis
  DType dtype = DType::f32;
  Device device;

  TensorView() = default;
  /// A dense row-major array.
  TensorView(const void* elements, const Extents& dense_shape, DType type, Device where = {})
      : TensorView(elements, dense_shape, dense_strides(dense_shape), type, where) {}
  TensorView(const void* elements, const Extents& any_shape, const Extents& any_strides, DType type,
      Device where = {})
      : handle(const_cast<void*>(elements)),
        shape(any_shape),
        strides(any_strides),
        dtype(type),
        device(where) {}

  /// An argument that was left out.
  bool empty() const { return handle == nullptr; }
  /// The address of the first element, on devices whose handles are addresses: the CPU and CUDA.
  void* data() const {
    if (empty()) return nullptr;
    return static_cast<std::byte*>(handle) + offset * static_cast<std::int64_t>(size_bytes(dtype));
  }
  /// The same memory from the same first element on, with another shape and other strides.
  TensorView reshaped(const Extents& any_shape, const Extents& any_strides) const {
    TensorView view = *this;
    view.shape = any_shape;
    view.strides = any_strides;
    return view;
  }
};

/// An array that lives as long as the last copy of its Tensor.
class Tensor : public TensorView {
 public:
  Tensor() = default;
  Tensor(const TensorView& view, std::shared_ptr<void> owner)
      : TensorView(view), owner_(std::move(owner)) {}

  /// The elements of a CPU tensor; T must be the type of dtype.
  template <class T> T* elements() const { return static_cast<T*>(data()); }

 private:
  std::shared_ptr<void> owner_;
};

/// The only element of a one-element f32 or f64 tensor, waiting for the GPU where it lives there.
/// Throws InvalidArgument for any other tensor.
SIMILIS_API double item(const TensorView& tensor);

}  // namespace similis
