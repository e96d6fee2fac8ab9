#define ushort unsigned short
#define int64_t long long
typedef unsigned short u16;
typedef float f32;
static __device__ __forceinline__ f32 cx_widen_f16(u16 a) { f32 v; asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(a)); return v; }
static __device__ __forceinline__ f32 cx_max_f32(f32 a, f32 b) { return a > b ? a : b; }
static __device__ __forceinline__ void cx_let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
static __device__ __forceinline__ void cx_wait_for_launch()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ __forceinline__ u16 cx_narrow_f16(f32 a) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(a)); return h; }
extern "C" __global__ void __launch_bounds__(128) argmax_kernel(ushort* __restrict__ A, float* __restrict__ best, int64_t* __restrict__ where, int m, int n) {
  float v[1];
  int64_t i[1];
  v[0] = __uint_as_float(0xff800000u);
  i[0] = (int64_t)0;
  if (((((int)blockIdx.x) * 128) + ((int)threadIdx.x)) < m) {
    for (int k = 0; k < ((n + 7) >> 3); ++k) {
      if (((k * 8) + ((int)blockIdx.y)) < n) {
        float t = cx_widen_f16(A[(((((k * 8) + ((int)blockIdx.y)) * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))]);
        if (t > v[0]) {
          i[0] = ((int64_t)((k * 8) + ((int)blockIdx.y)));
        }
        v[0] = cx_max_f32(t, v[0]);
      }
    }
    best[(((((int)blockIdx.y) * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))] = v[0];
    where[(((((int)blockIdx.y) * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))] = i[0];
  }
  cx_let_next_begin();
}

extern "C" __global__ void __launch_bounds__(128) argmax_kernel_1(float* best, int64_t* __restrict__ index, ushort* __restrict__ value, int64_t* where, int m) {
  cx_wait_for_launch();
  float v[1];
  int64_t i[1];
  if (((((int)blockIdx.x) * 128) + ((int)threadIdx.x)) < m) {
    v[0] = best[((((int)blockIdx.x) * 128) + ((int)threadIdx.x))];
    i[0] = where[((((int)blockIdx.x) * 128) + ((int)threadIdx.x))];
    for (int part = 1; part < 8; ++part) {
      if ((best[(((part * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))] > v[0]) || ((best[(((part * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))] == v[0]) && (where[(((part * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))] < i[0]))) {
        v[0] = best[(((part * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))];
        i[0] = where[(((part * m) + (((int)blockIdx.x) * 128)) + ((int)threadIdx.x))];
      }
    }
    value[((((int)blockIdx.x) * 128) + ((int)threadIdx.x))] = cx_narrow_f16(v[0]);
    index[((((int)blockIdx.x) * 128) + ((int)threadIdx.x))] = i[0];
  }
}
