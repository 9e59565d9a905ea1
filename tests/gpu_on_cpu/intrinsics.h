// SPDX-License-Identifier: Apache-2.0
// CUDA's keywords, vector types and device functions in C++, as far as similis uses them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/gpu_on_cpu/launch.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))

struct __attribute__((aligned(8))) float2 {
  float x, y;
};
struct __attribute__((aligned(16))) float4 {
  float x, y, z, w;
};
struct __attribute__((aligned(16))) double2 {
  double x, y;
};
struct __attribute__((aligned(8))) int2 {
  int x, y;
};
struct __attribute__((aligned(16))) int4 {
  int x, y, z, w;
};
struct __attribute__((aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
  unsigned x, y, z, w;
};
struct __attribute__((aligned(8))) ushort4 {
  unsigned short x, y, z, w;
};
struct __attribute__((aligned(4))) uchar4 {
  unsigned char x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Barriers and exchange within a warp.
inline void __syncthreads() { similis::gpu_on_cpu::wait_for_block(); }
inline int __syncthreads_or(int is_true) {
  return similis::gpu_on_cpu::wait_for_block(is_true != 0) ? 1 : 0;
}
inline void __syncwarp(unsigned = 0xffffffffu) { similis::gpu_on_cpu::wait_for_warp(); }
inline void __threadfence() {}

namespace similis::gpu_on_cpu {
template <class T> T from_lane(T value, unsigned source) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t* const words = words_of_warp();
  std::memcpy(&words[lane()], &value, sizeof(T));
  wait_for_warp();
  T result;
  std::memcpy(&result, &words[source < kLanes ? source : lane()], sizeof(T));
  wait_for_warp();
  return result;
}
}  // namespace similis::gpu_on_cpu

template <class T> T __shfl_sync(unsigned, T value, int source) {
  return similis::gpu_on_cpu::from_lane(value, static_cast<unsigned>(source) % 32);
}
template <class T> T __shfl_down_sync(unsigned, T value, unsigned distance) {
  return similis::gpu_on_cpu::from_lane(value, similis::gpu_on_cpu::lane() + distance);
}
template <class T> T __shfl_up_sync(unsigned, T value, unsigned distance) {
  return similis::gpu_on_cpu::from_lane(value, similis::gpu_on_cpu::lane() - distance);
}
inline unsigned __ballot_sync(unsigned, bool is_true) {
  using namespace similis::gpu_on_cpu;
  std::uint64_t* const words = words_of_warp();
  words[lane()] = is_true;
  wait_for_warp();
  unsigned lanes = 0;
  for (unsigned i = 0; i < kLanes; ++i)
    if ((lanes_of_warp() >> i & 1) != 0 && words[i] != 0) lanes |= 1u << i;
  wait_for_warp();
  return lanes;
}

// Memory. Blocks and threads take turns, so that nothing comes between a read and its write.
template <class T> T __ldg(const T* address) { return *address; }
template <class T> T __ldcg(const T* address) { return *address; }
template <class T> void __stcs(T* address, T value) { *address = value; }
template <class T, class V> T atomicAdd(T* address, V value) {
  const T old = *address;
  *address = static_cast<T>(old + static_cast<T>(value));
  return old;
}
template <class T, class V> T atomicMin(T* address, V value) {
  const T old = *address;
  *address = std::min(old, static_cast<T>(value));
  return old;
}
template <class T, class V> T atomicMax(T* address, V value) {
  const T old = *address;
  *address = std::max(old, static_cast<T>(value));
  return old;
}

// Bits.
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __int_as_float(int value) { return std::bit_cast<float>(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline int __double2loint(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value));
}
inline int __double2hiint(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 32);
}
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(
      static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __clz(int value) { return std::countl_zero(static_cast<unsigned>(value)); }
inline int __popc(unsigned value) { return std::popcount(value); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}

// Numbers. Conversions hold at the ends of the integers' range, and NaN becomes 0.
inline int __float2int_rn(float value) {
  if (!(value == value)) return 0;
  return static_cast<int>(
      std::clamp(std::nearbyint(static_cast<double>(value)), -0x1p31, 0x1p31 - 1));
}
inline unsigned __float2uint_rn(float value) {
  if (!(value == value)) return 0;
  return static_cast<unsigned>(
      std::clamp(std::nearbyint(static_cast<double>(value)), 0.0, 0x1p32 - 1));
}
inline float __fdividef(float a, float b) { return a / b; }
using std::isfinite;
using std::isnan;
inline float rsqrtf(float value) { return 1 / std::sqrt(value); }
inline double rsqrt(double value) { return 1 / std::sqrt(value); }
inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline long min(long a, long b) { return a < b ? a : b; }
inline unsigned long min(unsigned long a, unsigned long b) { return a < b ? a : b; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline float min(float a, float b) { return std::fmin(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long max(long a, long b) { return a > b ? a : b; }
inline unsigned long max(unsigned long a, unsigned long b) { return a > b ? a : b; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
