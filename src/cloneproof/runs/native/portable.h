// What lets the kernels compile both as CUDA (at run time, by NVRTC) and as plain C++ (for tests without a card).
//
// Contraction must be off in both (--fmad=false, -ffp-contract=off): a * b + c rounds twice here, as it does in Python.
// Where a fused product is wanted it is written fma(a, b, c).
#pragma once

#ifdef __CUDACC__

#define DEVICE __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define OUTLINED __device__ __noinline__
#define TABLE __constant__ const
#define UNROLLED _Pragma("unroll")
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

DEVICE u32 high_product(u32 a, u32 b) { return __umulhi(a, b); }
DEVICE u32 funnel_left(u32 low, u32 high) { return __funnelshift_l(low, high, 1); }  // high << 1 | low >> 31
DEVICE int first_bit(u32 bits) { return __ffs((int)bits) - 1; }
DEVICE int count_bits(u32 bits) { return __popc(bits); }
DEVICE float root_estimate(float x) { return rsqrtf(x); }
DEVICE float log2_estimate(float x) { return __log2f(x); }
DEVICE float float_of_bits(u32 x) { return __uint_as_float(x); }
DEVICE u64 bits_of(double x) { return (u64)__double_as_longlong(x); }
DEVICE double from_bits(u64 x) { return __longlong_as_double((i64)x); }
template <typename T> DEVICE T cached(const T* at) { return __ldg(at); }
#define THREAD (threadIdx.x)
#define BLOCK (blockIdx.x)
#define BLOCKS (gridDim.x)
#define BARRIER __syncthreads()

#else

#include <math.h>
#include <stdint.h>
#include <string.h>
#define DEVICE static inline
#define DEVICE_MEMBER
#define OUTLINED static
#define TABLE static const
#define UNROLLED
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

DEVICE u32 high_product(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
DEVICE u32 funnel_left(u32 low, u32 high) { return high << 1 | low >> 31; }
DEVICE int first_bit(u32 bits) { return __builtin_ffs((int)bits) - 1; }
DEVICE int count_bits(u32 bits) { return __builtin_popcount(bits); }
DEVICE float root_estimate(float x) { return 1.0f / sqrtf(x); }
DEVICE float log2_estimate(float x) { return log2f(x); }
DEVICE float float_of_bits(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
DEVICE u64 bits_of(double x) { u64 bits; memcpy(&bits, &x, 8); return bits; }
DEVICE double from_bits(u64 bits) { double x; memcpy(&x, &bits, 8); return x; }
template <typename T> DEVICE T cached(const T* at) { return *at; }
#define THREAD 0u
#define BLOCK 0u
#define BLOCKS 1u
#define BARRIER

#endif

// Memory of one run: numbers of 64 bits, those of neighbouring threads side by side. In shared memory the stride is a
// constant of the compiler; in global memory it is the number of threads of the launch.
struct Slots {
    u64* base;
    u64 stride;
    DEVICE_MEMBER u64& operator()(u64 i) const { return base[i * stride]; }
};
