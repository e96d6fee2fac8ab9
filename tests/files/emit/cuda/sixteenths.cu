#define ushort unsigned short
typedef unsigned short u16;
typedef unsigned int u32;
typedef float f32;
static __device__ __forceinline__ f32 cx_widen_bf16(u16 a) { return __uint_as_float((u32)a << 16); }
static __device__ __forceinline__ f32 cx_fma_f32(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ f32 cx_widen_f16(u16 a) { f32 v; asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(a)); return v; }
extern "C" __global__ void __launch_bounds__(256) sums_kernel(ushort* __restrict__ A, float* __restrict__ B, float* __restrict__ C, ushort* __restrict__ H) {
  float acc[2];
  float t = (cx_widen_bf16(A[((int)threadIdx.x)]) * 6.250000e-02f);
  acc[0] = t;
  acc[0] = cx_fma_f32(cx_widen_bf16(A[(255 - ((int)threadIdx.x))]), 6.250000e-02f, acc[0]);
  acc[1] = cx_fma_f32(cx_widen_bf16(A[((int)threadIdx.x)]), 6.250000e-02f, -acc[0]);
  acc[1] = cx_fma_f32(cx_widen_f16(H[((int)threadIdx.x)]), cx_widen_f16(H[(255 - ((int)threadIdx.x))]), acc[1]);
  B[((int)threadIdx.x)] = (acc[0] + (cx_widen_bf16(A[((int)threadIdx.x)]) * 3.000000e+00f));
  C[((int)threadIdx.x)] = acc[1];
}
