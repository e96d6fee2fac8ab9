/* c: kernel `row_sum_16_bytes` */
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
typedef f32 f32x2 __attribute__((vector_size(8)));
typedef f64 f64x2 __attribute__((vector_size(16)));
typedef f32x2 f32x2_u __attribute__((aligned(4), may_alias));
typedef f64x2 f64x2_u __attribute__((aligned(8), may_alias));
static inline __attribute__((always_inline)) f64x2 cx_splat_f64x2(f64 a) { return (f64x2){a, a}; }
static inline __attribute__((always_inline)) void cx_store_f64x2(f64 *p, f64x2 v) { *(f64x2_u *)p = v; }
static inline __attribute__((always_inline)) f64x2 cx_load_f64x2(const f64 *p) { return *(const f64x2_u *)p; }
static inline __attribute__((always_inline)) f32x2 cx_load_f32x2(const f32 *p) { return *(const f32x2_u *)p; }
static inline __attribute__((always_inline)) f64x2 cx_convert_f32x2_f64(f32x2 a) { return __builtin_convertvector(a, f64x2); }

struct coulis_row_sum_16_bytes_context {
    i32 *const status;
    f32 *const A;
    f32 *const O;
    const i64 m;
};

static void coulis_row_sum_16_bytes_body(void *context, i64 begin, i64 end)
{
    const struct coulis_row_sum_16_bytes_context *const c = context;
    i32 *const status = c->status;
    f32 *const A = c->A;
    f32 *const O = c->O;
    const i64 m = c->m;
    for (i64 i = begin; i < end; ++i) {
        f64 S_rf[64] __attribute__((aligned(64)));
        f64 S_0 = 0;
        const f64x2 t = cx_splat_f64x2(0.0);
        cx_store_f64x2(S_rf, t);
        cx_store_f64x2(S_rf + 2, t);
        cx_store_f64x2(S_rf + 4, t);
        cx_store_f64x2(S_rf + 6, t);
        cx_store_f64x2(S_rf + 8, t);
        cx_store_f64x2(S_rf + 10, t);
        cx_store_f64x2(S_rf + 12, t);
        cx_store_f64x2(S_rf + 14, t);
        cx_store_f64x2(S_rf + 16, t);
        cx_store_f64x2(S_rf + 18, t);
        cx_store_f64x2(S_rf + 20, t);
        cx_store_f64x2(S_rf + 22, t);
        cx_store_f64x2(S_rf + 24, t);
        cx_store_f64x2(S_rf + 26, t);
        cx_store_f64x2(S_rf + 28, t);
        cx_store_f64x2(S_rf + 30, t);
        cx_store_f64x2(S_rf + 32, t);
        cx_store_f64x2(S_rf + 34, t);
        cx_store_f64x2(S_rf + 36, t);
        cx_store_f64x2(S_rf + 38, t);
        cx_store_f64x2(S_rf + 40, t);
        cx_store_f64x2(S_rf + 42, t);
        cx_store_f64x2(S_rf + 44, t);
        cx_store_f64x2(S_rf + 46, t);
        cx_store_f64x2(S_rf + 48, t);
        cx_store_f64x2(S_rf + 50, t);
        cx_store_f64x2(S_rf + 52, t);
        cx_store_f64x2(S_rf + 54, t);
        cx_store_f64x2(S_rf + 56, t);
        cx_store_f64x2(S_rf + 58, t);
        cx_store_f64x2(S_rf + 60, t);
        cx_store_f64x2(S_rf + 62, t);
        const i64 t_1 = m >> 6;
        f64x2 S_rf_0 = cx_load_f64x2(S_rf);
        f64x2 S_rf_0_1 = cx_load_f64x2(S_rf + 2);
        f64x2 S_rf_0_2 = cx_load_f64x2(S_rf + 4);
        f64x2 S_rf_0_3 = cx_load_f64x2(S_rf + 6);
        f64x2 S_rf_0_4 = cx_load_f64x2(S_rf + 8);
        f64x2 S_rf_0_5 = cx_load_f64x2(S_rf + 10);
        f64x2 S_rf_0_6 = cx_load_f64x2(S_rf + 12);
        f64x2 S_rf_0_7 = cx_load_f64x2(S_rf + 14);
        f64x2 S_rf_16 = cx_load_f64x2(S_rf + 16);
        f64x2 S_rf_16_1 = cx_load_f64x2(S_rf + 18);
        f64x2 S_rf_16_2 = cx_load_f64x2(S_rf + 20);
        f64x2 S_rf_16_3 = cx_load_f64x2(S_rf + 22);
        f64x2 S_rf_16_4 = cx_load_f64x2(S_rf + 24);
        f64x2 S_rf_16_5 = cx_load_f64x2(S_rf + 26);
        f64x2 S_rf_16_6 = cx_load_f64x2(S_rf + 28);
        f64x2 S_rf_16_7 = cx_load_f64x2(S_rf + 30);
        f64x2 S_rf_32 = cx_load_f64x2(S_rf + 32);
        f64x2 S_rf_32_1 = cx_load_f64x2(S_rf + 34);
        f64x2 S_rf_32_2 = cx_load_f64x2(S_rf + 36);
        f64x2 S_rf_32_3 = cx_load_f64x2(S_rf + 38);
        f64x2 S_rf_32_4 = cx_load_f64x2(S_rf + 40);
        f64x2 S_rf_32_5 = cx_load_f64x2(S_rf + 42);
        f64x2 S_rf_32_6 = cx_load_f64x2(S_rf + 44);
        f64x2 S_rf_32_7 = cx_load_f64x2(S_rf + 46);
        f64x2 S_rf_48 = cx_load_f64x2(S_rf + 48);
        f64x2 S_rf_48_1 = cx_load_f64x2(S_rf + 50);
        f64x2 S_rf_48_2 = cx_load_f64x2(S_rf + 52);
        f64x2 S_rf_48_3 = cx_load_f64x2(S_rf + 54);
        f64x2 S_rf_48_4 = cx_load_f64x2(S_rf + 56);
        f64x2 S_rf_48_5 = cx_load_f64x2(S_rf + 58);
        f64x2 S_rf_48_6 = cx_load_f64x2(S_rf + 60);
        f64x2 S_rf_48_7 = cx_load_f64x2(S_rf + 62);
        for (i64 k_o = 0; k_o < t_1; ++k_o) {
            const i64 t_2 = i * m + k_o * 64;
            S_rf_0 = S_rf_0 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2));
            S_rf_0_1 = S_rf_0_1 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2 + 2));
            S_rf_0_2 = S_rf_0_2 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2 + 4));
            S_rf_0_3 = S_rf_0_3 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2 + 6));
            S_rf_0_4 = S_rf_0_4 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2 + 8));
            S_rf_0_5 = S_rf_0_5 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2 + 10));
            S_rf_0_6 = S_rf_0_6 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2 + 12));
            S_rf_0_7 = S_rf_0_7 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_2 + 14));
            const i64 t_3 = t_2 + 16;
            S_rf_16 = S_rf_16 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3));
            S_rf_16_1 = S_rf_16_1 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3 + 2));
            S_rf_16_2 = S_rf_16_2 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3 + 4));
            S_rf_16_3 = S_rf_16_3 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3 + 6));
            S_rf_16_4 = S_rf_16_4 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3 + 8));
            S_rf_16_5 = S_rf_16_5 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3 + 10));
            S_rf_16_6 = S_rf_16_6 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3 + 12));
            S_rf_16_7 = S_rf_16_7 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_3 + 14));
            const i64 t_4 = t_2 + 32;
            S_rf_32 = S_rf_32 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4));
            S_rf_32_1 = S_rf_32_1 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4 + 2));
            S_rf_32_2 = S_rf_32_2 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4 + 4));
            S_rf_32_3 = S_rf_32_3 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4 + 6));
            S_rf_32_4 = S_rf_32_4 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4 + 8));
            S_rf_32_5 = S_rf_32_5 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4 + 10));
            S_rf_32_6 = S_rf_32_6 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4 + 12));
            S_rf_32_7 = S_rf_32_7 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_4 + 14));
            const i64 t_5 = t_2 + 48;
            S_rf_48 = S_rf_48 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5));
            S_rf_48_1 = S_rf_48_1 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5 + 2));
            S_rf_48_2 = S_rf_48_2 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5 + 4));
            S_rf_48_3 = S_rf_48_3 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5 + 6));
            S_rf_48_4 = S_rf_48_4 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5 + 8));
            S_rf_48_5 = S_rf_48_5 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5 + 10));
            S_rf_48_6 = S_rf_48_6 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5 + 12));
            S_rf_48_7 = S_rf_48_7 + cx_convert_f32x2_f64(cx_load_f32x2(A + t_5 + 14));
        }
        cx_store_f64x2(S_rf, S_rf_0);
        cx_store_f64x2(S_rf + 2, S_rf_0_1);
        cx_store_f64x2(S_rf + 4, S_rf_0_2);
        cx_store_f64x2(S_rf + 6, S_rf_0_3);
        cx_store_f64x2(S_rf + 8, S_rf_0_4);
        cx_store_f64x2(S_rf + 10, S_rf_0_5);
        cx_store_f64x2(S_rf + 12, S_rf_0_6);
        cx_store_f64x2(S_rf + 14, S_rf_0_7);
        cx_store_f64x2(S_rf + 16, S_rf_16);
        cx_store_f64x2(S_rf + 18, S_rf_16_1);
        cx_store_f64x2(S_rf + 20, S_rf_16_2);
        cx_store_f64x2(S_rf + 22, S_rf_16_3);
        cx_store_f64x2(S_rf + 24, S_rf_16_4);
        cx_store_f64x2(S_rf + 26, S_rf_16_5);
        cx_store_f64x2(S_rf + 28, S_rf_16_6);
        cx_store_f64x2(S_rf + 30, S_rf_16_7);
        cx_store_f64x2(S_rf + 32, S_rf_32);
        cx_store_f64x2(S_rf + 34, S_rf_32_1);
        cx_store_f64x2(S_rf + 36, S_rf_32_2);
        cx_store_f64x2(S_rf + 38, S_rf_32_3);
        cx_store_f64x2(S_rf + 40, S_rf_32_4);
        cx_store_f64x2(S_rf + 42, S_rf_32_5);
        cx_store_f64x2(S_rf + 44, S_rf_32_6);
        cx_store_f64x2(S_rf + 46, S_rf_32_7);
        cx_store_f64x2(S_rf + 48, S_rf_48);
        cx_store_f64x2(S_rf + 50, S_rf_48_1);
        cx_store_f64x2(S_rf + 52, S_rf_48_2);
        cx_store_f64x2(S_rf + 54, S_rf_48_3);
        cx_store_f64x2(S_rf + 56, S_rf_48_4);
        cx_store_f64x2(S_rf + 58, S_rf_48_5);
        cx_store_f64x2(S_rf + 60, S_rf_48_6);
        cx_store_f64x2(S_rf + 62, S_rf_48_7);
        S_0 = 0.0;
        S_0 = S_0 + S_rf[0];
        S_0 = S_0 + S_rf[1];
        S_0 = S_0 + S_rf[2];
        S_0 = S_0 + S_rf[3];
        S_0 = S_0 + S_rf[4];
        S_0 = S_0 + S_rf[5];
        S_0 = S_0 + S_rf[6];
        S_0 = S_0 + S_rf[7];
        S_0 = S_0 + S_rf[8];
        S_0 = S_0 + S_rf[9];
        S_0 = S_0 + S_rf[10];
        S_0 = S_0 + S_rf[11];
        S_0 = S_0 + S_rf[12];
        S_0 = S_0 + S_rf[13];
        S_0 = S_0 + S_rf[14];
        S_0 = S_0 + S_rf[15];
        S_0 = S_0 + S_rf[16];
        S_0 = S_0 + S_rf[17];
        S_0 = S_0 + S_rf[18];
        S_0 = S_0 + S_rf[19];
        S_0 = S_0 + S_rf[20];
        S_0 = S_0 + S_rf[21];
        S_0 = S_0 + S_rf[22];
        S_0 = S_0 + S_rf[23];
        S_0 = S_0 + S_rf[24];
        S_0 = S_0 + S_rf[25];
        S_0 = S_0 + S_rf[26];
        S_0 = S_0 + S_rf[27];
        S_0 = S_0 + S_rf[28];
        S_0 = S_0 + S_rf[29];
        S_0 = S_0 + S_rf[30];
        S_0 = S_0 + S_rf[31];
        S_0 = S_0 + S_rf[32];
        S_0 = S_0 + S_rf[33];
        S_0 = S_0 + S_rf[34];
        S_0 = S_0 + S_rf[35];
        S_0 = S_0 + S_rf[36];
        S_0 = S_0 + S_rf[37];
        S_0 = S_0 + S_rf[38];
        S_0 = S_0 + S_rf[39];
        S_0 = S_0 + S_rf[40];
        S_0 = S_0 + S_rf[41];
        S_0 = S_0 + S_rf[42];
        S_0 = S_0 + S_rf[43];
        S_0 = S_0 + S_rf[44];
        S_0 = S_0 + S_rf[45];
        S_0 = S_0 + S_rf[46];
        S_0 = S_0 + S_rf[47];
        S_0 = S_0 + S_rf[48];
        S_0 = S_0 + S_rf[49];
        S_0 = S_0 + S_rf[50];
        S_0 = S_0 + S_rf[51];
        S_0 = S_0 + S_rf[52];
        S_0 = S_0 + S_rf[53];
        S_0 = S_0 + S_rf[54];
        S_0 = S_0 + S_rf[55];
        S_0 = S_0 + S_rf[56];
        S_0 = S_0 + S_rf[57];
        S_0 = S_0 + S_rf[58];
        S_0 = S_0 + S_rf[59];
        S_0 = S_0 + S_rf[60];
        S_0 = S_0 + S_rf[61];
        S_0 = S_0 + S_rf[62];
        S_0 = S_0 + S_rf[63];
        for (i64 k_t = (m >> 6) * 64; k_t < m; ++k_t) {
            S_0 = S_0 + (f64)A[i * m + k_t];
        }
        O[i] = (f32)S_0;
    }
}

i32 coulis_row_sum_16_bytes(void *const *buf, const i64 *scalar, coulis_parallel_for pf, void *pool)
{
    f32 *const A = (f32 *)buf[0];
    f32 *const O = (f32 *)buf[1];
    const i64 n = (i64)scalar[0];
    const i64 m = (i64)scalar[1];
    i32 failed = 0, *const status = &failed;
    const struct coulis_row_sum_16_bytes_context context_1 = { status, A, O, m };
    if (n > 0) {
        pf(pool, n, coulis_row_sum_16_bytes_body, (void *)&context_1);
    }
    return failed;
}
