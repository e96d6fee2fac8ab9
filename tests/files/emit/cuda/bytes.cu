typedef int i32;
typedef unsigned int u32;
static __device__ __forceinline__ i32 cx_i8_of_byte0(u32 a) { i32 v; asm("prmt.b32 %0, %1, 0, 0x8880;" : "=r"(v) : "r"(a)); return v; }
static __device__ __forceinline__ i32 cx_i8_of_byte1(u32 a) { i32 v; asm("prmt.b32 %0, %1, 0, 0x9991;" : "=r"(v) : "r"(a)); return v; }
static __device__ __forceinline__ i32 cx_i8_of_byte2(u32 a) { i32 v; asm("prmt.b32 %0, %1, 0, 0xaaa2;" : "=r"(v) : "r"(a)); return v; }
static __device__ __forceinline__ i32 cx_i8_of_byte3(u32 a) { i32 v; asm("prmt.b32 %0, %1, 0, 0xbbb3;" : "=r"(v) : "r"(a)); return v; }
static __device__ __forceinline__ i32 cx_max_i8(i32 a, i32 b) { return a > b ? a : b; }
static __device__ __forceinline__ i32 cx_add_i32(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
extern "C" __global__ void __launch_bounds__(256) extrema_kernel(signed char* __restrict__ A, signed char* __restrict__ B, int* __restrict__ C, int rows) {
  int most[8];
  signed char both[8];
  if (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) < rows) {
    most[0] = (signed char)-128;
    most[1] = (signed char)-128;
    most[2] = (signed char)-128;
    most[3] = (signed char)-128;
    most[4] = (signed char)-128;
    most[5] = (signed char)-128;
    most[6] = (signed char)-128;
    most[7] = (signed char)-128;
    uint2 A_1_word = *(uint2*)(A + (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 8));
    most[0] = cx_max_i8(most[0], cx_i8_of_byte0(A_1_word.x));
    most[1] = cx_max_i8(most[1], cx_i8_of_byte1(A_1_word.x));
    most[2] = cx_max_i8(most[2], cx_i8_of_byte2(A_1_word.x));
    most[3] = cx_max_i8(most[3], cx_i8_of_byte3(A_1_word.x));
    most[4] = cx_max_i8(most[4], cx_i8_of_byte0(A_1_word.y));
    most[5] = cx_max_i8(most[5], cx_i8_of_byte1(A_1_word.y));
    most[6] = cx_max_i8(most[6], cx_i8_of_byte2(A_1_word.y));
    most[7] = cx_max_i8(most[7], cx_i8_of_byte3(A_1_word.y));
    both[0] = ((signed char)(most[0] + (signed char)1));
    both[1] = ((signed char)(most[1] + (signed char)1));
    both[2] = ((signed char)(most[2] + (signed char)1));
    both[3] = ((signed char)(most[3] + (signed char)1));
    both[4] = ((signed char)(most[4] + (signed char)1));
    both[5] = ((signed char)(most[5] + (signed char)1));
    both[6] = ((signed char)(most[6] + (signed char)1));
    both[7] = ((signed char)(most[7] + (signed char)1));
    C[(((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 2)] = cx_add_i32(((int *)both)[0], ((int)most[0]));
    C[((((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 2) + 1)] = ((int *)both)[1];
    uint2 A_1_word_1 = *(uint2*)(A + (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 8));
    *(uint2*)(B + (((((int)blockIdx.x) * 256) + ((int)threadIdx.x)) * 8)) = make_uint2(A_1_word_1.x, A_1_word_1.y);
  }
}
