typedef float f32;
static __device__ __forceinline__ float2 cx_add_f32x2(float2 a, float2 b)
{
#if __CUDA_ARCH__ >= 1000
    unsigned long long x, y;
    asm("mov.b64 %0, {%1, %2};" : "=l"(x) : "f"(a.x), "f"(a.y));
    asm("mov.b64 %0, {%1, %2};" : "=l"(y) : "f"(b.x), "f"(b.y));
    asm("add.rn.f32x2 %0, %0, %1;" : "+l"(x) : "l"(y));
    asm("mov.b64 {%0, %1}, %2;" : "=f"(a.x), "=f"(a.y) : "l"(x));
    return a;
#else
    return make_float2(a.x + b.x, a.y + b.y);
#endif
}
static __device__ __forceinline__ f32 cx_max3_f32(f32 a, f32 b, f32 c)
{
    f32 d;
#if __CUDA_ARCH__ >= 1000
    asm("max.NaN.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
#else
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(d) : "f"(c));
#endif
    return d;
}
static __device__ __forceinline__ f32 cx_min3_f32(f32 a, f32 b, f32 c)
{
    f32 d;
#if __CUDA_ARCH__ >= 1000
    asm("min.NaN.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
#else
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(d) : "f"(c));
#endif
    return d;
}
extern "C" __global__ void __launch_bounds__(64) three_inputs_kernel(float* __restrict__ A, float* __restrict__ B) {
  float acc[4];
  int row = ((((int)blockIdx.x) * 512) + (((int)threadIdx.x) * 8));
  float4 A_word = *(float4*)(A + row);
  acc[0] = A_word.x;
  acc[1] = A_word.y;
  acc[2] = A_word.z;
  acc[3] = A_word.w;
  float4 A_word_1 = *(float4*)(A + (row + 4));
  float2 pair = cx_add_f32x2(make_float2(acc[0], acc[1]), make_float2(A_word_1.x, A_word_1.y));
  float2 pair_1 = cx_add_f32x2(make_float2(acc[2], acc[3]), make_float2(A_word_1.z, A_word_1.w));
  acc[0] = pair.x;
  acc[1] = pair.y;
  acc[2] = pair_1.x;
  acc[3] = pair_1.y;
  B[((((int)blockIdx.x) * 256) + (((int)threadIdx.x) * 4))] = ((acc[0] + acc[1]) + (acc[2] + acc[3]));
  B[(((((int)blockIdx.x) * 256) + (((int)threadIdx.x) * 4)) + 1)] = cx_max3_f32(acc[0], acc[1], acc[2]);
  B[(((((int)blockIdx.x) * 256) + (((int)threadIdx.x) * 4)) + 2)] = cx_min3_f32(acc[1], acc[2], acc[3]);
  B[(((((int)blockIdx.x) * 256) + (((int)threadIdx.x) * 4)) + 3)] = acc[3];
}
