/* c: kernel `every_few` */
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
typedef i8 i8x8 __attribute__((vector_size(8)));
typedef i16 i16x8 __attribute__((vector_size(16)));
typedef i32 i32x8 __attribute__((vector_size(32)));
typedef i64 i64x2 __attribute__((vector_size(16)));
typedef u8 u8x8 __attribute__((vector_size(8)));
typedef u16 u16x8 __attribute__((vector_size(16)));
typedef u32 u32x8 __attribute__((vector_size(32)));
typedef f32 f32x8 __attribute__((vector_size(32)));
typedef i8 m8x8 __attribute__((vector_size(8)));
#ifdef CX_GCC_AVX512
typedef u8 m32x8;
#else
typedef i32 m32x8 __attribute__((vector_size(32)));
#endif
typedef i8x8 i8x8_u __attribute__((aligned(1), may_alias));
typedef u8x8 u8x8_u __attribute__((aligned(1), may_alias));
typedef u16x8 u16x8_u __attribute__((aligned(2), may_alias));
typedef f32x8 f32x8_u __attribute__((aligned(4), may_alias));
static inline __attribute__((always_inline)) i8x8 cx_load_every2_i8x8(const i8 *p) { i8x8 v = *(const i8x8_u *)p; v = __builtin_shufflevector(v, *(const i8x8_u *)(p + 7), 0, 2, 4, 6, 9, 11, 13, 15); return v; }
static inline __attribute__((always_inline)) i32x8 cx_convert_i8x8_i32(i8x8 a) {
#ifdef CX_GCC_AVX2
    return (i32x8)__builtin_ia32_pmovsxbd256((cx_chars16)(i64x2){(i64)a, 0});
#else
    return __builtin_convertvector(a, i32x8);
#endif
}
static inline __attribute__((always_inline)) f32x8 cx_convert_i32x8_f32(i32x8 a) { return __builtin_convertvector(a, f32x8); }
static inline __attribute__((always_inline)) f32x8 cx_load_backevery1_f32x8(const f32 *p) { f32x8 v = *(const f32x8_u *)(p - 7); v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0); return v; }
static inline __attribute__((always_inline)) u32x8 cx_convert_u16x8_u32(u16x8 a) {
#ifdef CX_GCC_AVX2
    return (u32x8)__builtin_ia32_pmovzxwd256((i16x8)a);
#else
    return __builtin_convertvector(a, u32x8);
#endif
}
static inline __attribute__((always_inline)) f32x8 cx_widen_f16x8(u16x8 a) { 
#if defined(__F16C__)
    return __builtin_ia32_vcvtph2ps256((i16x8)a);
#else
    const u32x8 w = cx_convert_u16x8_u32(a), finite = (u32x8)((f32x8)((w & 0x7fff) << 13) * 0x1p112f);
    const u32x8 widest = (u32x8)((w & 0x7c00) == 0x7c00) & 0x7f800000u;
    return (f32x8)(finite | widest | (w & 0x8000) << 16);
#endif
 }
static inline __attribute__((always_inline)) f32x8 cx_load_every3_f16x8(const u16 *p) { u16x8 v = *(const u16x8_u *)p; v = __builtin_shufflevector(v, *(const u16x8_u *)(p + 8), 0, 3, 6, 9, 12, 15, -1, -1); v = __builtin_shufflevector(v, *(const u16x8_u *)(p + 14), 0, 1, 2, 3, 4, 5, 12, 15); return cx_widen_f16x8(v); }
static inline __attribute__((always_inline)) m8x8 cx_load_backevery2_boolx8(const u8 *p) { u8x8 v = *(const u8x8_u *)(p - 14); v = __builtin_shufflevector(v, *(const u8x8_u *)(p - 7), 15, 13, 11, 9, 6, 4, 2, 0); return (m8x8)(v != 0); }
static inline __attribute__((always_inline)) m32x8 cx_convert_m8x8_m32(m8x8 a)
{
#ifdef CX_GCC_AVX512
    return __builtin_ia32_cvtd2mask256((i32x8)__builtin_ia32_pmovsxbd256((cx_chars16)(i64x2){(i64)a, 0}));
#elif defined CX_GCC_AVX2
    return (m32x8)__builtin_ia32_pmovsxbd256((cx_chars16)(i64x2){(i64)a, 0});
#else
    return __builtin_convertvector(a, m32x8);
#endif
}
static inline __attribute__((always_inline)) f32x8 cx_splat_f32x8(f32 a) { return (f32x8){a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x8 cx_select_f32x8(m32x8 m, f32x8 a, f32x8 b)
{
#if defined CX_GCC_AVX512
    return (f32x8)__builtin_ia32_blendmps_256_mask((f32x8)b, (f32x8)a, m);
#elif defined CX_GCC_AVX2
    return (f32x8)__builtin_ia32_blendvps256((f32x8)b, (f32x8)a, (f32x8)m);
#else
    return (f32x8)(((i32x8)a & m) | ((i32x8)b & ~m));
#endif
}
static inline __attribute__((always_inline)) void cx_store_f32x8(f32 *p, f32x8 v) { *(f32x8_u *)p = v; }

i32 coulis_every_few(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    i8 *const A = (i8 *)buf[0];
    f32 *const B = (f32 *)buf[1];
    u16 *const C = (u16 *)buf[2];
    u8 *const D = (u8 *)buf[3];
    f32 *const S = (f32 *)buf[4];
    i32 failed = 0, *const status = &failed;
    const f32x8 t = cx_convert_i32x8_f32(cx_convert_i8x8_i32(cx_load_every2_i8x8(A))) + cx_load_backevery1_f32x8(B + 7);
    const f32x8 t_1 = cx_select_f32x8(cx_convert_m8x8_m32(cx_load_backevery2_boolx8(D + 14)), cx_splat_f32x8(1.0f), cx_splat_f32x8(0.0f));
    const f32x8 t_2 = t + cx_load_every3_f16x8(C) + t_1 + (f32x8){B[0], B[5], B[10], B[15], B[20], B[25], B[30], B[35]};
    cx_store_f32x8(S, t_2);
    return failed;
}
