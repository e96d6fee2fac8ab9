/* c: kernel `upper_halves` */
typedef _Bool b8;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef void (*coulis_body)(void *ctx, i64 begin, i64 end);
typedef void (*coulis_parallel_for)(void *pool, i64 extent, coulis_body body, void *ctx);
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__) && defined(__AVX512BW__) \
    && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define CX_GCC_AVX512 1
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX2__)
#define CX_GCC_AVX2 1
typedef char cx_chars16 __attribute__((vector_size(16)));
typedef char cx_chars32 __attribute__((vector_size(32)));
#endif
#if defined(__x86_64__) && !defined(__AVX512DQ__)
#define CX_LONG_BY_PARTS 1
#endif
typedef i16 i16x8 __attribute__((vector_size(16)));
typedef i32 i32x4 __attribute__((vector_size(16)));
typedef i32 i32x8 __attribute__((vector_size(32)));
typedef i64 i64x2 __attribute__((vector_size(16)));
typedef u16 u16x4 __attribute__((vector_size(8)));
typedef u16 u16x8 __attribute__((vector_size(16)));
typedef u32 u32x4 __attribute__((vector_size(16)));
typedef u32 u32x8 __attribute__((vector_size(32)));
typedef f32 f32x4 __attribute__((vector_size(16)));
typedef f32 f32x8 __attribute__((vector_size(32)));
typedef u16x4 u16x4_u __attribute__((aligned(2), may_alias));
typedef u16x8 u16x8_u __attribute__((aligned(2), may_alias));
typedef f32x4 f32x4_u __attribute__((aligned(4), may_alias));
typedef f32x8 f32x8_u __attribute__((aligned(4), may_alias));
static inline __attribute__((always_inline)) u32x8 cx_convert_u16x8_u32(u16x8 a) {
#ifdef CX_GCC_AVX2
    return (u32x8)__builtin_ia32_pmovzxwd256((i16x8)a);
#else
    return __builtin_convertvector(a, u32x8);
#endif
}
static inline __attribute__((always_inline)) f32x8 cx_widen_bf16x8(u16x8 a) { 
#if defined(CX_GCC_AVX2)
    return (f32x8)__builtin_ia32_pshufb256((cx_chars32)__builtin_ia32_vbroadcastsi256((i64x2)a), (cx_chars32){-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15});
#else
    const u32x8 w = cx_convert_u16x8_u32(a); return (f32x8)(w << 16);
#endif
 }
static inline __attribute__((always_inline)) f32x8 cx_load_bf16x8(const u16 *p) { return cx_widen_bf16x8(*(const u16x8_u *)p); }
static inline __attribute__((always_inline)) void cx_store_f32x8(f32 *p, f32x8 v) { *(f32x8_u *)p = v; }
static inline __attribute__((always_inline)) u32x4 cx_convert_u16x4_u32(u16x4 a) {
#ifdef CX_GCC_AVX2
    return (u32x4)__builtin_ia32_pmovzxwd128((i16x8)(i64x2){(i64)a, 0});
#else
    return __builtin_convertvector(a, u32x4);
#endif
}
static inline __attribute__((always_inline)) f32x4 cx_widen_bf16x4(u16x4 a) { 
#if defined(CX_GCC_AVX2)
    return (f32x4)__builtin_ia32_pshufb128((cx_chars16)(i64x2){(i64)a, 0}, (cx_chars16){-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7});
#else
    const u32x4 w = cx_convert_u16x4_u32(a); return (f32x4)(w << 16);
#endif
 }
static inline __attribute__((always_inline)) f32x4 cx_load_bf16x4(const u16 *p) { return cx_widen_bf16x4(*(const u16x4_u *)p); }
static inline __attribute__((always_inline)) void cx_store_f32x4(f32 *p, f32x4 v) { *(f32x4_u *)p = v; }

i32 coulis_upper_halves(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    u16 *const A = (u16 *)buf[0];
    f32 *const O = (f32 *)buf[1];
    i32 failed = 0, *const status = &failed;
    cx_store_f32x8(O, cx_load_bf16x8(A));
    cx_store_f32x4(O + 8, cx_load_bf16x4(A + 8));
    return failed;
}
