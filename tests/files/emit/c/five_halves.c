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
typedef u16 u16x4 __attribute__((vector_size(8)));
typedef f32 f32x4 __attribute__((vector_size(16)));
typedef u16x4 u16x4_u __attribute__((aligned(2), may_alias));
typedef f32x4 f32x4_u __attribute__((aligned(4), may_alias));
static inline __attribute__((always_inline)) f32 cx_load_f16(const u16 *p)
{
#if defined(__F16C__)
    return __builtin_ia32_vcvtph2ps((i16x8){(i16)*p})[0];
#else
    union { u32 u; f32 f; } v = { (u32)(*p & 0x7fff) << 13 };
    v.f *= 0x1p112f;
    if ((*p & 0x7c00) == 0x7c00) v.u |= 0x7f800000;
    v.u |= (u32)(*p & 0x8000) << 16;
    return v.f;
#endif
}
static inline __attribute__((always_inline)) f32x4 cx_load_f16x4(const u16 *p) { 
#if defined(__F16C__)
    return __builtin_ia32_vcvtph2ps((i16x8)__builtin_shufflevector(*(const u16x4_u *)p, (u16x4){0}, 0, 1, 2, 3, 4, 5, 6, 7));
#else
    f32x4 v; for (int i = 0; i < 4; ++i) v[i] = cx_load_f16(p + i); return v;
#endif
 }
static inline __attribute__((always_inline)) void cx_store_f32x4(f32 *p, f32x4 v) { *(f32x4_u *)p = v; }

i32 coulis_five_halves(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    u16 *const A = (u16 *)buf[0];
    f32 *const S = (f32 *)buf[1];
    i32 failed = 0, *const status = &failed;
    cx_store_f32x4(S, cx_load_f16x4(A));
    S[4] = cx_load_f16(A + 4);
    return failed;
}
