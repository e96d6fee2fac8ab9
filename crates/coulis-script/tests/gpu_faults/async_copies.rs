//! Copies that are under way until a statement ends: cases of V37.

use super::Case;

pub(crate) const ASYNC_COPIES: &[Case] = &[
    (
        "V37",
        "words that are read behind the copy, by the thread that made it and by others behind a barrier",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
        B[tx] = s[tx * 4]
        T.cuda.cta_sync()
        B[16 + tx] = s[tx]"#,
        &[],
    ),
    (
        "V37",
        "a read before the copy ends",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
            B[tx] = s[tx * 4]"#,
        &[("B[tx] = s[tx * 4]", "V37: `s` is read where words are copied into it asynchronously")],
    ),
    (
        "V37",
        "a barrier among the copies",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
            T.cuda.cta_sync()
        B[tx] = s[tx]"#,
        &[(
            "T.cuda.cta_sync()",
            "V37: a barrier stands where words are copied asynchronously, which are there when that statement ends",
        )],
    ),
    (
        "V37",
        "an atomic update of what is copied",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        old = T.allocate([1], "float32", "local")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
            old[0] = T.cuda.atomic_add(s[tx * 4], T.float32(1))
        B[tx] = old[0]"#,
        &[(
            "old[0] = T.cuda.atomic_add(s[tx * 4], T.float32(1))",
            "V37: `s` is read where words are copied into it asynchronously",
        )],
    ),
];
