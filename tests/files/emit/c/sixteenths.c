/* c: kernel `sixteenths` */
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
typedef i16 i16x16 __attribute__((vector_size(32)));
typedef i32 i32x16 __attribute__((vector_size(64)));
typedef u16 u16x16 __attribute__((vector_size(32)));
typedef u32 u32x16 __attribute__((vector_size(64)));
typedef f32 f32x8 __attribute__((vector_size(32)));
typedef f32 f32x16 __attribute__((vector_size(64)));
typedef f64 f64x8 __attribute__((vector_size(64)));
typedef u16x16 u16x16_u __attribute__((aligned(2), may_alias));
typedef f32x8 f32x8_u __attribute__((aligned(4), may_alias));
typedef f32x16 f32x16_u __attribute__((aligned(4), may_alias));
typedef f64x8 f64x8_u __attribute__((aligned(8), may_alias));
static inline __attribute__((always_inline)) u32x16 cx_convert_u16x16_u32(u16x16 a) {
#ifdef CX_GCC_AVX512
    return (u32x16)__builtin_ia32_pmovzxwd512_mask((i16x16)a, (i32x16){0}, -1);
#else
    return __builtin_convertvector(a, u32x16);
#endif
}
static inline __attribute__((always_inline)) f32x16 cx_widen_bf16x16(u16x16 a) { const u32x16 w = cx_convert_u16x16_u32(a); return (f32x16)(w << 16); }
static inline __attribute__((always_inline)) f32x16 cx_load_bf16x16(const u16 *p) { return cx_widen_bf16x16(*(const u16x16_u *)p); }
static inline __attribute__((always_inline)) f32x16 cx_splat_f32x16(f32 a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 cx_load_f32x16(const f32 *p) { return *(const f32x16_u *)p; }
static inline __attribute__((always_inline)) f32x16 cx_add_exact_f32x16(f32x16 a, f32x16 b, f32x16 c) {
#if defined(CX_GCC_AVX512)
    return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#else
    return a * b + c;
#endif
}
static inline __attribute__((always_inline)) void cx_keep_f32x16(f32x16 *a) {
#ifdef CX_GCC_AVX512
    __asm__("" : "+m"(*a));
#endif
}
static inline __attribute__((always_inline)) f64x8 cx_convert_f32x8_f64(f32x8 a) {
#ifdef CX_GCC_AVX512
    return (f64x8)__builtin_ia32_cvtps2pd512_mask((f32x8)a, (f64x8){0}, -1, 4);
#else
    return __builtin_convertvector(a, f64x8);
#endif
}
static inline __attribute__((always_inline)) f32x8 cx_kept0_of16_f32x8(const f32x16 *a)
{
#ifdef CX_GCC_AVX512
    return *(const f32x8_u *)((const f32 *)a + 0);
#else
    return __builtin_shufflevector(*a, *a, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}
static inline __attribute__((always_inline)) f32x8 cx_kept1_of16_f32x8(const f32x16 *a)
{
#ifdef CX_GCC_AVX512
    return *(const f32x8_u *)((const f32 *)a + 8);
#else
    return __builtin_shufflevector(*a, *a, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
}
static inline __attribute__((always_inline)) f64x8 cx_load_f64x8(const f64 *p) { return *(const f64x8_u *)p; }
static inline __attribute__((always_inline)) f64x8 cx_add_exact_f64x8(f64x8 a, f64x8 b, f64x8 c) {
#if defined(CX_GCC_AVX512)
    return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4);
#else
    return a * b + c;
#endif
}
static inline __attribute__((always_inline)) void cx_store_f64x8(f64 *p, f64x8 v) { *(f64x8_u *)p = v; }
static inline __attribute__((always_inline)) void cx_store_f32x16(f32 *p, f32x16 v) { *(f32x16_u *)p = v; }

i32 coulis_sixteenths(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    u16 *const A = (u16 *)buf[0];
    f32 *const S = (f32 *)buf[1];
    f64 *const Q = (f64 *)buf[2];
    i32 failed = 0, *const status = &failed;
    const f32x16 t = cx_load_bf16x16(A);
    const f32x16 t_1 = cx_load_f32x16(S);
    f32x16 t_2 = cx_add_exact_f32x16(t, cx_splat_f32x16(0.0625f), -t_1);
    cx_keep_f32x16(&t_2);
    const f64x8 t_3 = cx_convert_f32x8_f64(cx_kept0_of16_f32x8(&t_2));
    const f64x8 t_4 = cx_convert_f32x8_f64(cx_kept1_of16_f32x8(&t_2));
    const f64x8 t_5 = t_3;
    const f64x8 t_6 = t_4;
    cx_store_f64x8(Q, cx_add_exact_f64x8(t_5, t_5, cx_load_f64x8(Q)));
    cx_store_f64x8(Q + 8, cx_add_exact_f64x8(t_6, t_6, cx_load_f64x8(Q + 8)));
    cx_store_f32x16(S, cx_add_exact_f32x16(t, cx_splat_f32x16(0.0625f), t_1));
    return failed;
}
