// SPDX-License-Identifier: Apache-2.0
// Copies boxes of an array from global to shared memory with the copy engine of compute capability
// 9.0 and later, which writes zeros where a box lies outside. One thread asks for a copy; a flag in
// shared memory goes up when all its bytes have come.
#pragma once

#if !defined(__HIPCC__)

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstdint>

#include "src/core/tensor/convert.h"
#include "src/gpu/cuda/vendor.h"

#if defined(SIMILIS_GPU_ON_CPU)
#include "tests/gpu_on_cpu/copy_engine.h"
#endif
// True where device code that is compiled now may use the engine.
#if defined(SIMILIS_GPU_ON_CPU) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)
#define SIMILIS_COPY_ENGINE 1
#else
#define SIMILIS_COPY_ENGINE 0
#endif

namespace similis::gpu {

template <class T> inline constexpr CUtensorMapDataType kCopiedAs = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
template <> inline constexpr CUtensorMapDataType kCopiedAs<F16> = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
template <> inline constexpr CUtensorMapDataType kCopiedAs<BF16> = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
template <>
inline constexpr CUtensorMapDataType kCopiedAs<std::uint8_t> = CU_TENSOR_MAP_DATA_TYPE_UINT8;

/// Planes whose rows have unit stride: each of `images` has `channels` of them. The data and all
/// strides are multiples of 16 bytes; strides count elements.
struct Planes {
  const void* data;
  std::int64_t width, height, channels, images;
  std::int64_t row_stride, channel_stride, image_stride;
};

/// Describes to the engine boxes of box_width × box_height elements in the planes.
template <class T> CUtensorMap tensor_map(const Planes& p, int box_width, int box_height) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    check(cudaGetDriverEntryPointByVersion(
              "cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found),
        "gpu: the driver is too old");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  const auto bytes = [](std::int64_t elements) {
    return static_cast<cuuint64_t>(elements) * sizeof(T);
  };
  CUtensorMap map;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(p.width), static_cast<cuuint64_t>(p.height),
      static_cast<cuuint64_t>(p.channels), static_cast<cuuint64_t>(p.images)};
  const cuuint64_t strides[] = {
      bytes(p.row_stride), bytes(p.channel_stride), bytes(p.image_stride)};
  const cuuint32_t box[] = {
      static_cast<cuuint32_t>(box_width), static_cast<cuuint32_t>(box_height), 1, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  const CUresult result = encode(&map, kCopiedAs<T>, 4, const_cast<void*>(p.data), extents, strides,
      box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw DeviceError("gpu: the driver refuses a tensor map, with error " + std::to_string(result));
  }
  return map;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

using Flag = unsigned long long;

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ inline void init_flag(Flag* flag) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(flag)));
}
/// Makes initialised flags known to the copy engine.
__device__ inline void publish_flags() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// Announces the number of bytes that the flag is to wait for.
__device__ inline void expect_bytes(Flag* flag, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(flag)), "r"(bytes)
      : "memory");
}
/// Waits until the flag has gone up as often as the parity of `turn` says.
__device__ inline void wait_for(Flag* flag, int turn) {
  asm volatile(
      "{\n.reg .pred up;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 up, [%0], %1;\n@up bra "
      "UP;\nbra "
      "WAIT;\nUP:\n}" ::"r"(shared_address(flag)),
      "r"(turn & 1)
      : "memory");
}
/// Returns true in one thread of the warp; the compiler then knows that all it does there is
/// uniform.
__device__ inline bool elected() {
  int one;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}"
               : "=r"(one));
  return one != 0;
}
/// Copies the box that begins at column x of row y. Column x is a multiple of 16 bytes from column
/// 0 (the engine calls any other an illegal instruction); `to` is aligned to 128 bytes.
__device__ inline void copy_box(
    void* to, const CUtensorMap* map, int x, int y, int channel, int image, Flag* flag) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3, %4, %5}], [%6];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(channel), "r"(image), "r"(shared_address(flag))
      : "memory");
}

/// Copies one f32, or a zero where none exists; its thread awaits it. The copies asked for since
/// the last mark are awaited together.
__device__ inline void copy_word(float* to, const float* from, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(exists ? 4 : 0)
               : "memory");
}
__device__ inline void mark_words() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Awaits all but what came between the last two marks.
__device__ inline void await_words() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

#endif

}  // namespace similis::gpu

#endif
