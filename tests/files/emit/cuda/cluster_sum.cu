#define uchar unsigned char
#define ushort unsigned short
typedef int i32;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
static __device__ __forceinline__ f32 cx_widen_f16(u16 a) { f32 v; asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(a)); return v; }
static __device__ __forceinline__ u16 cx_narrow_f16(f32 a) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(a)); return h; }
static __device__ __forceinline__ u16 cx_cluster_load_f16(const u16 *p, i32 block)
{
    u16 v;
    asm volatile("{ .reg .u64 own; .reg .u32 at; cvta.to.shared.u64 own, %1; cvt.u32.u64 at, own; mapa.shared::cluster.u32 at, at, %2; ld.shared::cluster.u16 %0, [at]; }" : "=h"(v) : "l"(p), "r"(block) : "memory");
    return (u16)v;
}
static __device__ __forceinline__ u8 cx_cluster_load_bool(const u8 *p, i32 block)
{
    u32 v;
    asm volatile("{ .reg .u64 own; .reg .u32 at; cvta.to.shared.u64 own, %1; cvt.u32.u64 at, own; mapa.shared::cluster.u32 at, at, %2; ld.shared::cluster.u8 %0, [at]; }" : "=r"(v) : "l"(p), "r"(block) : "memory");
    return (u8)v;
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(32) cluster_sum_kernel(ushort* __restrict__ A, ushort* __restrict__ B, uchar* __restrict__ C) {
  __shared__ ushort s[1];
  __shared__ uchar t[1];
  ushort x[1];
  uchar y[1];
  ushort total[1];
  if (((int)threadIdx.x) == 0) {
    float t_1 = cx_widen_f16(A[(((int)blockIdx.x) * 64)]);
    s[0] = cx_narrow_f16(t_1);
    t[0] = (t_1 > 0.000000e+00f);
  }
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (((((int)blockIdx.x) % 4) == 0) && (((int)threadIdx.x) == 0)) {
    total[0] = cx_narrow_f16(0.000000e+00f);
    for (int block = 0; block < 4; ++block) {
      x[0] = cx_cluster_load_f16(&s[0], block);
      total[0] = cx_narrow_f16((cx_widen_f16(total[0]) + cx_widen_f16(x[0])));
    }
    y[0] = (cx_cluster_load_bool(&t[0], 3) != 0);
    B[(((int)blockIdx.x) >> 2)] = total[0];
    C[(((int)blockIdx.x) >> 2)] = (y[0] != 0);
  }
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
