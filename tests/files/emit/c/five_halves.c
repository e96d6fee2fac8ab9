/* c: kernel `five_halves` */
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
typedef i16 i16x4 __attribute__((vector_size(8)));
typedef i16 i16x8 __attribute__((vector_size(16)));
typedef i32 i32x4 __attribute__((vector_size(16)));
typedef i64 i64x2 __attribute__((vector_size(16)));
typedef u16 u16x4 __attribute__((vector_size(8)));
typedef u32 u32x4 __attribute__((vector_size(16)));
typedef f32 f32x4 __attribute__((vector_size(16)));
typedef u16x4 u16x4_u __attribute__((aligned(2), may_alias));
typedef f32x4 f32x4_u __attribute__((aligned(4), may_alias));
static inline __attribute__((always_inline)) u32x4 cx_convert_u16x4_u32(u16x4 a) {
#ifdef CX_GCC_AVX2
    return (u32x4)__builtin_ia32_pmovzxwd128((i16x8)(i64x2){(i64)a, 0});
#else
    return __builtin_convertvector(a, u32x4);
#endif
}
static inline __attribute__((always_inline)) f32x4 cx_widen_f16x4(u16x4 a) { 
#if defined(__F16C__)
    return __builtin_ia32_vcvtph2ps((i16x8)(i64x2){(i64)a, 0});
#else
    const u32x4 w = cx_convert_u16x4_u32(a), finite = (u32x4)((f32x4)((w & 0x7fff) << 13) * 0x1p112f);
    const u32x4 widest = (u32x4)((w & 0x7c00) == 0x7c00) & 0x7f800000u;
    return (f32x4)(finite | widest | (w & 0x8000) << 16);
#endif
 }
static inline __attribute__((always_inline)) f32x4 cx_load_f16x4(const u16 *p) { return cx_widen_f16x4(*(const u16x4_u *)p); }
static inline __attribute__((always_inline)) void cx_store_f32x4(f32 *p, f32x4 v) { *(f32x4_u *)p = v; }
static inline __attribute__((always_inline)) f32 cx_load_f16(const u16 *p) { return cx_widen_f16x4((u16x4){*p})[0]; }

i32 coulis_five_halves(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    u16 *const A = (u16 *)buf[0];
    f32 *const S = (f32 *)buf[1];
    i32 failed = 0, *const status = &failed;
    cx_store_f32x4(S, cx_load_f16x4(A));
    S[4] = cx_load_f16(A + 4);
    return failed;
}
