// SPDX-License-Identifier: Apache-2.0
// The driver's types that describe a tensor to the copy engine. There is none here, so that a
// kernel that needs it is never launched and its description never made.
#pragma once

#include <cstdint>

using cuuint64_t = std::uint64_t;
using cuuint32_t = std::uint32_t;
using CUresult = int;
constexpr CUresult CUDA_SUCCESS = 0;

struct alignas(64) CUtensorMap {
  std::uint64_t words[16];
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

enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointVersionNotSufficent };
enum cudaGetDriverEntryPointFlags { cudaEnableDefault };
inline int cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
    cudaGetDriverEntryPointFlags, cudaDriverEntryPointQueryResult* found) {
  *function = nullptr;
  *found = cudaDriverEntryPointVersionNotSufficent;
  return 1;
}
