// SPDX-License-Identifier: Apache-2.0
// The driver's types that describe a tensor to the copy engine, and the function that fills them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

using cuuint64_t = std::uint64_t;
using cuuint32_t = std::uint32_t;
using CUresult = int;
constexpr CUresult CUDA_SUCCESS = 0;

/// An array of rank 4 of which boxes are copied. Extents and boxes count elements, strides bytes.
struct alignas(64) CUtensorMap {
  const unsigned char* data;
  std::size_t element_bytes;
  cuuint64_t extents[4], strides[3];
  cuuint32_t box[4];
};
enum CUtensorMapDataType {
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_UINT8
};
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_NONE };
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

namespace similis::gpu_on_cpu {
inline CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t, void* data,
    const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t*,
    CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  map->data = static_cast<const unsigned char*>(data);
  map->element_bytes = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4
                       : type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1
                                                               : 2;
  std::copy_n(extents, 4, map->extents);
  std::copy_n(strides, 3, map->strides);
  std::copy_n(box, 4, map->box);
  return CUDA_SUCCESS;
}
}  // namespace similis::gpu_on_cpu

enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum cudaGetDriverEntryPointFlags { cudaEnableDefault };
inline int cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
    cudaGetDriverEntryPointFlags, cudaDriverEntryPointQueryResult* found) {
  *function = reinterpret_cast<void*>(similis::gpu_on_cpu::encode);
  *found = cudaDriverEntryPointSuccess;
  return 0;
}
