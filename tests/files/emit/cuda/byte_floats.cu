#define uint unsigned int
#define uchar unsigned char
typedef unsigned char u8;
typedef unsigned int u32;
typedef float f32;
static __device__ __forceinline__ f32 cx_widen_f8e4m3(u8 a)
{
#if __CUDA_ARCH__ >= 890
    u32 pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)a));
    f32 v;
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(v) : "r"(pair));
    return v;
#else
    const u32 magnitude = a & 0x7f;
    const f32 m = magnitude == 0x7f ? __uint_as_float(0x7fc00000u) : __uint_as_float(magnitude << 20) * 0x1p120f;
    return a & 0x80 ? -m : m;
#endif
}
static __device__ __forceinline__ float2 cx_widen_f8e4m3x2(u32 a)
{
#if __CUDA_ARCH__ >= 890
    u32 pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)a));
    float2 v;
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(v.x), "=f"(v.y) : "r"(pair));
    return v;
#else
    return make_float2(cx_widen_f8e4m3((u8)a), cx_widen_f8e4m3((u8)(a >> 8)));
#endif
}
#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ u32 cx_narrow_f8e5m2x2(f32 a, f32 b)
{
    unsigned short h;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(h) : "f"(b), "f"(a));
    return (u32)h + (fabsf(a) >= 61440.0f ? 1u : 0u) + (fabsf(b) >= 61440.0f ? 0x100u : 0u);
}
#else
static __device__ __forceinline__ u32 cx_narrow_f8e5m2x2_low(f32 a)
{
    const u32 raw = __float_as_uint(a), sign = raw >> 24 & 0x80, bits = raw & 0x7fffffff;
    u32 h;
    if (bits > 0x7f800000) h = 0x7f;
    else if (bits < 0x38800000) h = __float_as_uint(__uint_as_float(bits) + __uint_as_float(0x43000000)) - 0x43000000;
    else {
        h = (bits - 0x38000000 + 0xfffff + (bits >> 21 & 1)) >> 21;
        if (h > 0x7b || bits == 0x7f800000) h = 0x7c;
    }
    return sign | h;
}
static __device__ __forceinline__ u32 cx_narrow_f8e5m2x2(f32 a, f32 b) { return cx_narrow_f8e5m2x2_low(a) | cx_narrow_f8e5m2x2_low(b) << 8; }
#endif
#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ u32 cx_narrow_f8e4m3x2(f32 a, f32 b)
{
    unsigned short h;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(b), "f"(a));
    return (u32)h | (fabsf(a) > 464.0f ? 0x7fu : 0u) | (fabsf(b) > 464.0f ? 0x7f00u : 0u);
}
#else
static __device__ __forceinline__ u32 cx_narrow_f8e4m3x2_low(f32 a)
{
    const u32 raw = __float_as_uint(a), sign = raw >> 24 & 0x80, bits = raw & 0x7fffffff;
    u32 h;
    if (bits > 0x7f800000) h = 0x7f;
    else if (bits < 0x3c800000) h = __float_as_uint(__uint_as_float(bits) + __uint_as_float(0x46800000)) - 0x46800000;
    else {
        h = (bits - 0x3c000000 + 0x7ffff + (bits >> 20 & 1)) >> 20;
        if (h > 0x7e || bits == 0x7f800000) h = 0x7f;
    }
    return sign | h;
}
static __device__ __forceinline__ u32 cx_narrow_f8e4m3x2(f32 a, f32 b) { return cx_narrow_f8e4m3x2_low(a) | cx_narrow_f8e4m3x2_low(b) << 8; }
#endif
static __device__ __forceinline__ u8 cx_narrow_f8e4m3(f32 a) { return (u8)cx_narrow_f8e4m3x2(a, 0.0f); }
extern "C" __global__ void __launch_bounds__(256) halves_kernel(uchar* __restrict__ A, uchar* __restrict__ B, uchar* __restrict__ C, uchar* __restrict__ D, int rows) {
  uchar own[8];
  if (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) < rows) {
    uint2 A_1_word = *(uint2*)(A + (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 8));
    float2 A_1_word_pair = cx_widen_f8e4m3x2(A_1_word.x);
    float2 A_1_word_pair_1 = cx_widen_f8e4m3x2((A_1_word.x >> 16));
    float2 A_1_word_pair_2 = cx_widen_f8e4m3x2(A_1_word.y);
    float2 A_1_word_pair_3 = cx_widen_f8e4m3x2((A_1_word.y >> 16));
    own[0] = ((uchar)A_1_word.x);
    own[1] = ((uchar)(A_1_word.x >> 8));
    own[2] = ((uchar)(A_1_word.x >> 16));
    own[3] = ((uchar)((A_1_word.x >> 16) >> 8));
    own[4] = ((uchar)A_1_word.y);
    own[5] = ((uchar)(A_1_word.y >> 8));
    own[6] = ((uchar)(A_1_word.y >> 16));
    own[7] = ((uchar)((A_1_word.y >> 16) >> 8));
    uint2 A_1_word_1 = *(uint2*)(A + (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 8));
    float2 A_1_word_1_pair = cx_widen_f8e4m3x2(A_1_word_1.x);
    float2 A_1_word_1_pair_1 = cx_widen_f8e4m3x2((A_1_word_1.x >> 16));
    float2 A_1_word_1_pair_2 = cx_widen_f8e4m3x2(A_1_word_1.y);
    float2 A_1_word_1_pair_3 = cx_widen_f8e4m3x2((A_1_word_1.y >> 16));
    *(uint2*)(B + (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 8)) = make_uint2((((uint)(A_1_word_1.x & 0xffff)) | (((uint)((A_1_word_1.x >> 16) & 0xffff)) << 16)), (((uint)(A_1_word_1.y & 0xffff)) | (((uint)((A_1_word_1.y >> 16) & 0xffff)) << 16)));
    float2 own_pair = cx_widen_f8e4m3x2((((uint)own[0]) | (((uint)own[1]) << 8)));
    float2 own_pair_1 = cx_widen_f8e4m3x2((((uint)own[2]) | (((uint)own[3]) << 8)));
    float2 own_pair_2 = cx_widen_f8e4m3x2((((uint)own[4]) | (((uint)own[5]) << 8)));
    float2 own_pair_3 = cx_widen_f8e4m3x2((((uint)own[6]) | (((uint)own[7]) << 8)));
    *(uint2*)(C + (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 8)) = make_uint2((((uint)cx_narrow_f8e5m2x2((own_pair.x * 5.000000e-01f), (own_pair.y * 5.000000e-01f))) | (((uint)cx_narrow_f8e5m2x2((own_pair_1.x * 5.000000e-01f), (own_pair_1.y * 5.000000e-01f))) << 16)), (((uint)cx_narrow_f8e5m2x2((own_pair_2.x * 5.000000e-01f), (own_pair_2.y * 5.000000e-01f))) | (((uint)cx_narrow_f8e5m2x2((own_pair_3.x * 5.000000e-01f), (own_pair_3.y * 5.000000e-01f))) << 16)));
    D[((((int)blockIdx.x) * 256) + ((int)threadIdx.x))] = cx_narrow_f8e4m3((cx_widen_f8e4m3(own[0]) + cx_widen_f8e4m3(own[7])));
  }
}
