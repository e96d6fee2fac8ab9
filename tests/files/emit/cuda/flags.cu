#define uchar unsigned char
#define int64_t long long
typedef int i32;
typedef unsigned int u32;
static __device__ __forceinline__ i32 cx_nonzero_of_byte0(u32 a) { u32 set = ((a & 0x7f7f7f7fu) + 0x7f7f7f7fu) | a; i32 v; asm("prmt.b32 %0, %1, 0, 0x8888;" : "=r"(v) : "r"(set)); return v; }
static __device__ __forceinline__ i32 cx_nonzero_of_byte1(u32 a) { u32 set = ((a & 0x7f7f7f7fu) + 0x7f7f7f7fu) | a; i32 v; asm("prmt.b32 %0, %1, 0, 0x9999;" : "=r"(v) : "r"(set)); return v; }
static __device__ __forceinline__ i32 cx_nonzero_of_byte2(u32 a) { u32 set = ((a & 0x7f7f7f7fu) + 0x7f7f7f7fu) | a; i32 v; asm("prmt.b32 %0, %1, 0, 0xaaaa;" : "=r"(v) : "r"(set)); return v; }
static __device__ __forceinline__ i32 cx_nonzero_of_byte3(u32 a) { u32 set = ((a & 0x7f7f7f7fu) + 0x7f7f7f7fu) | a; i32 v; asm("prmt.b32 %0, %1, 0, 0xbbbb;" : "=r"(v) : "r"(set)); return v; }
static __device__ __forceinline__ u32 cx_ones_of_bytes(u32 a) { return (((a & 0x7f7f7f7fu) + 0x7f7f7f7fu) | a) >> 7 & 0x01010101u; }
extern "C" __global__ void __launch_bounds__(256) flags_kernel(uchar* __restrict__ A, signed char* __restrict__ B, uchar* __restrict__ C, int* __restrict__ D, int64_t* __restrict__ E) {
  int flag[8];
  uint2 A_word = *(uint2*)(A + (((int)threadIdx.x) * 8));
  flag[0] = cx_nonzero_of_byte0(A_word.x);
  flag[1] = cx_nonzero_of_byte1(A_word.x);
  flag[2] = cx_nonzero_of_byte2(A_word.x);
  flag[3] = cx_nonzero_of_byte3(A_word.x);
  flag[4] = cx_nonzero_of_byte0(A_word.y);
  flag[5] = cx_nonzero_of_byte1(A_word.y);
  flag[6] = cx_nonzero_of_byte2(A_word.y);
  flag[7] = cx_nonzero_of_byte3(A_word.y);
  uint2 B_word = *(uint2*)(B + (((int)threadIdx.x) * 8));
  flag[0] = (flag[0] & cx_nonzero_of_byte0(B_word.x));
  flag[1] = (flag[1] & cx_nonzero_of_byte1(B_word.x));
  flag[2] = (flag[2] & cx_nonzero_of_byte2(B_word.x));
  flag[3] = (flag[3] & cx_nonzero_of_byte3(B_word.x));
  flag[4] = (flag[4] & cx_nonzero_of_byte0(B_word.y));
  flag[5] = (flag[5] & cx_nonzero_of_byte1(B_word.y));
  flag[6] = (flag[6] & cx_nonzero_of_byte2(B_word.y));
  flag[7] = (flag[7] & cx_nonzero_of_byte3(B_word.y));
  uint2 A_word_1 = *(uint2*)(A + (((int)threadIdx.x) * 8));
  *(uint2*)(C + (((int)threadIdx.x) * 8)) = make_uint2(cx_ones_of_bytes(A_word_1.x), cx_ones_of_bytes(A_word_1.y));
  uint2 A_word_2 = *(uint2*)(A + (((int)threadIdx.x) * 8));
  *(int4*)(D + (((int)threadIdx.x) * 8)) = make_int4((-cx_nonzero_of_byte0(A_word_2.x) + ((int)flag[0])), (-cx_nonzero_of_byte1(A_word_2.x) + ((int)flag[1])), (-cx_nonzero_of_byte2(A_word_2.x) + ((int)flag[2])), (-cx_nonzero_of_byte3(A_word_2.x) + ((int)flag[3])));
  *(int4*)(D + ((((int)threadIdx.x) * 8) + 4)) = make_int4((-cx_nonzero_of_byte0(A_word_2.y) + ((int)flag[4])), (-cx_nonzero_of_byte1(A_word_2.y) + ((int)flag[5])), (-cx_nonzero_of_byte2(A_word_2.y) + ((int)flag[6])), (-cx_nonzero_of_byte3(A_word_2.y) + ((int)flag[7])));
  uint2 A_word_3 = *(uint2*)(A + (((int)threadIdx.x) * 8));
  *(longlong2*)(E + (((int)threadIdx.x) * 8)) = make_longlong2((((int64_t)-cx_nonzero_of_byte0(A_word_3.x)) + ((((uchar)A_word_3.x) != 0) ? (int64_t)3 : (int64_t)0)), (((int64_t)-cx_nonzero_of_byte1(A_word_3.x)) + ((((uchar)(A_word_3.x >> 8)) != 0) ? (int64_t)3 : (int64_t)0)));
  *(longlong2*)(E + ((((int)threadIdx.x) * 8) + 2)) = make_longlong2((((int64_t)-cx_nonzero_of_byte2(A_word_3.x)) + ((((uchar)(A_word_3.x >> 16)) != 0) ? (int64_t)3 : (int64_t)0)), (((int64_t)-cx_nonzero_of_byte3(A_word_3.x)) + ((((uchar)(A_word_3.x >> 24)) != 0) ? (int64_t)3 : (int64_t)0)));
  *(longlong2*)(E + ((((int)threadIdx.x) * 8) + 4)) = make_longlong2((((int64_t)-cx_nonzero_of_byte0(A_word_3.y)) + ((((uchar)A_word_3.y) != 0) ? (int64_t)3 : (int64_t)0)), (((int64_t)-cx_nonzero_of_byte1(A_word_3.y)) + ((((uchar)(A_word_3.y >> 8)) != 0) ? (int64_t)3 : (int64_t)0)));
  *(longlong2*)(E + ((((int)threadIdx.x) * 8) + 6)) = make_longlong2((((int64_t)-cx_nonzero_of_byte2(A_word_3.y)) + ((((uchar)(A_word_3.y >> 16)) != 0) ? (int64_t)3 : (int64_t)0)), (((int64_t)-cx_nonzero_of_byte3(A_word_3.y)) + ((((uchar)(A_word_3.y >> 24)) != 0) ? (int64_t)3 : (int64_t)0)));
}
