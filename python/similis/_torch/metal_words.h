// SPDX-License-Identifier: Apache-2.0
// Metal's words in C++, as far as the kernels' text uses them. SYCL's compiler reads it on Intel's
// GPUs (sycl_text.py), and the tests' compiler on a CPU; each defines before it
//   SCALAR_FMA(a, b, c), CLZ(v), MULHI(a, b)   of one number
//   FETCH_OR(word, bits), FETCH_AND(word, bits)   atomic, on a pointer
//   BARRIER()   of a group
// Functions that the C library has too are macros at the end, as are constructors of vectors.
#pragma once

typedef unsigned int uint;
typedef unsigned long ulong;

namespace metal {

typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float3 __attribute__((ext_vector_type(3)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef uint uint2 __attribute__((ext_vector_type(2)));
struct uint3 {
  uint x, y, z;
};
struct half2 {
  unsigned short x, y;  // their bits
};
struct bool4 {
  bool x, y, z, w;
  explicit bool4(bool v) : x(v), y(v), z(v), w(v) {}
};

template <class To, class From> inline To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits in another type");
  return __builtin_bit_cast(To, from);
}

inline float float_of_half(unsigned short bits) {
  const uint sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return as_type<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x0400u) return as_type<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;  // 2⁻²⁴
  return sign != 0 ? -value : value;
}

inline float2 made2(float x, float y) { return float2{x, y}; }
inline float2 made2(float v) { return float2{v, v}; }
inline float2 made2(half2 v) { return float2{float_of_half(v.x), float_of_half(v.y)}; }
inline float3 made3(float x, float y, float z) { return float3{x, y, z}; }
inline float3 made3(float v) { return float3{v, v, v}; }
inline float4 made4(float x, float y, float z, float w) { return float4{x, y, z, w}; }
inline float4 made4(float v) { return float4{v, v, v, v}; }
inline float4 made4(float4 v) { return v; }
inline float4 made4(float x, float3 v) { return float4{x, v.x, v.y, v.z}; }
inline float4 made4(float3 v, float w) { return float4{v.x, v.y, v.z, w}; }
inline float4 made4(float2 v, float2 w) { return float4{v.x, v.y, w.x, w.y}; }
inline float4 made4(float2 v, float z, float w) { return float4{v.x, v.y, z, w}; }
inline float4 made4(float x, float2 v, float w) { return float4{x, v.x, v.y, w}; }
inline float4 made4(float x, float y, float2 v) { return float4{x, y, v.x, v.y}; }
inline uint2 made_uint2(uint x, uint y) { return uint2{x, y}; }

inline float fma(float a, float b, float c) { return SCALAR_FMA(a, b, c); }
inline float2 fma(float2 a, float2 b, float2 c) {
  return float2{fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)};
}
inline float3 fma(float3 a, float3 b, float3 c) {
  return float3{fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z)};
}
inline float4 fma(float4 a, float4 b, float4 c) {
  return float4{fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z), fma(a.w, b.w, c.w)};
}
inline float abs(float v) { return v < 0 ? -v : v == 0 ? 0.0f : v; }
inline int abs(int v) { return v < 0 ? -v : v; }
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline T clamp(T v, T low, T high) { return min(max(v, low), high); }
template <class T> inline T select(T no, T yes, bool condition) { return condition ? yes : no; }
inline float4 select(float4 no, float4 yes, bool4 c) {
  return float4{c.x ? yes.x : no.x, c.y ? yes.y : no.y, c.z ? yes.z : no.z, c.w ? yes.w : no.w};
}
template <class T> inline T clz(T v) { return CLZ(v); }
inline uint mulhi(uint a, uint b) { return MULHI(a, b); }
namespace fast {
using metal::clamp;
using metal::max;
using metal::min;
}  // namespace fast

enum memory_order { memory_order_relaxed };
using atomic_uint = uint;
inline uint atomic_fetch_or_explicit(uint* word, uint bits, memory_order) {
  return FETCH_OR(word, bits);
}
inline uint atomic_fetch_and_explicit(uint* word, uint bits, memory_order) {
  return FETCH_AND(word, bits);
}

enum class mem_flags { mem_threadgroup };
inline void threadgroup_barrier(mem_flags) { BARRIER(); }

}  // namespace metal

#define abs(...) metal::abs(__VA_ARGS__)
#define fma(...) metal::fma(__VA_ARGS__)
#define float2(...) metal::made2(__VA_ARGS__)
#define float3(...) metal::made3(__VA_ARGS__)
#define float4(...) metal::made4(__VA_ARGS__)
#define uint2(...) metal::made_uint2(__VA_ARGS__)
#define device
#define constant const
