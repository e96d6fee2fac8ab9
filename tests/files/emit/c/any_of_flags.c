/* c: kernel `any_of_flags` */
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
typedef i32 i32x4 __attribute__((vector_size(16)));
typedef i32 i32x8 __attribute__((vector_size(32)));
typedef i32x4 i32x4_u __attribute__((aligned(4), may_alias));
typedef i32x8 i32x8_u __attribute__((aligned(4), may_alias));
static inline __attribute__((always_inline)) b8 cx_any_i32x8(const i32 *p)
{
    const i32x8 v = *(const i32x8_u *)p;
#ifdef CX_GCC_AVX2
    return __builtin_ia32_pmovmskb256((cx_chars32)(v != 0)) != 0;
#else
    return (v[0] | v[1] | v[2] | v[3] | v[4] | v[5] | v[6] | v[7]) != 0;
#endif
}
static inline __attribute__((always_inline)) b8 cx_any_i32x4(const i32 *p)
{
    const i32x4 v = *(const i32x4_u *)p;
#ifdef CX_GCC_AVX2
    return __builtin_ia32_pmovmskb128((cx_chars16)(v != 0)) != 0;
#else
    return (v[0] | v[1] | v[2] | v[3]) != 0;
#endif
}

i32 coulis_any_of_flags(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    i32 *const F = (i32 *)buf[0];
    i32 *const O = (i32 *)buf[1];
    i32 failed = 0, *const status = &failed;
    if (cx_any_i32x8(F)) {
        O[0] = 1;
    }
    if (cx_any_i32x4(F + 4)) {
        O[1] = 1;
    }
    const i32 t = F[0] | F[1] | F[2];
    if (t != 0) {
        O[2] = 1;
    }
    const i32 t_1 = F[4];
    if ((t | t_1) != 0) {
        O[3] = 1;
    }
    return failed;
}
