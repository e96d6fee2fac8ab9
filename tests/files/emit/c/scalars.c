/* c: kernel `scalars` */
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
static inline __attribute__((always_inline)) f32 cx_max_f32(f32 a, f32 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) f32 cx_min_f32(f32 a, f32 b) { return a < b ? a : b; }
#if defined(__FMA__) || defined(__FP_FAST_FMA) || !defined(__x86_64__)
static inline __attribute__((always_inline)) f32 cx_fma_f32(f32 a, f32 b, f32 c)
{
    return __builtin_fmaf(a, b, c);
}
#else
static __attribute__((noinline)) f32 cx_fma_f32(f32 a, f32 b, f32 c)
{
    const f64 p = (f64)a * b, s = p + c, part = s - p;
    const f64 rest = (p - (s - part)) + (c - part);
    union { f64 value; u64 bits; } odd = { s }, sign = { rest };
    if (rest < 0.0 || rest > 0.0) odd.bits = (odd.bits - ((sign.bits ^ odd.bits) >> 63)) | 1;
    return (f32)odd.value;
}
#endif
static inline __attribute__((always_inline)) f32 cx_exp_f32(f32 a)
{
    const f32 x = cx_max_f32(-104.0f, cx_min_f32(89.0f, a));
    const f32 shifted = cx_fma_f32(x, 1.442695f, 12582912.0f);
    const f32 n = shifted - 12582912.0f;
    const i32 k = ((union { f32 f; i32 i; }){ .f = shifted }).i - 0x4b400000;
    const f32 r = cx_fma_f32(n, -0.00027608682f, cx_fma_f32(n, -0.6928711f, x));
    f32 q = 0.0013926268f;
    q = cx_fma_f32(r, q, 0.008363247f);
    q = cx_fma_f32(r, q, 0.041666552f);
    q = cx_fma_f32(r, q, 0.16666576f);
    q = cx_fma_f32(r, q, 0.5f);
    q = cx_fma_f32(r, q, 1.0f);
    const f32 p = cx_fma_f32(r, q, 1.0f);
    const i32 half = k >> 1;
    return p * ((union { i32 i; f32 f; }){ .i = (half + 127) << 23 }).f * (a < -104.0f ? 0.0f : ((union { i32 i; f32 f; }){ .i = (k - half + 127) << 23 }).f);
}

i32 coulis_scalars(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    f32 *const for_1 = (f32 *)buf[0];
    f32 *const f32_ = (f32 *)buf[1];
    const i32 n = (i32)scalar[0];
    const i32 stride = (i32)scalar[1];
    i32 failed = 0, *const status = &failed;
    for (i32 i = 0; i < n; ++i) {
        if (for_1[i * stride] > 0.0f) {
            const f32 t = for_1[i * stride];
            f32_[i * stride] = cx_exp_f32(t - cx_max_f32(t, i < n - 1 ? for_1[(i + 1) * stride] : -__builtin_inff())) * t;
        }
    }
    return failed;
}
