// SPDX-License-Identifier: Apache-2.0
// Marks a function that CPU and GPU compile from the same text, always inlined.
#pragma once

#if defined(__HIPCC__)
#define SIMILIS_HOST_DEVICE inline __attribute__((host, device, always_inline))
#elif defined(__CUDACC__)
#define SIMILIS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SIMILIS_HOST_DEVICE inline __attribute__((always_inline))
#endif
