//! Copies that are under way until a barrier of the block: cases of V37.

use super::Case;

pub(crate) const ASYNC_COPIES: &[Case] = &[
    (
        "V37",
        "a copy that a barrier waits for before what it brought is read",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
        T.cuda.cta_sync()
        B[tx] = s[tx]"#,
        &[],
    ),
    (
        "V37",
        "a thread that reads its own words at once",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
        B[tx] = s[tx * 4]"#,
        &[(
            "B[tx] = s[tx * 4]",
            "V37: `s` is read while words are copied into it asynchronously; let a barrier of the block come first",
        )],
    ),
    (
        "V37",
        "a thread that stores to memory on its way",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
        s[tx * 4] = T.float32(0)
        T.cuda.cta_sync()
        B[tx] = s[tx]"#,
        &[(
            "s[tx * 4] = T.float32(0)",
            "V37: `s` is stored to while words are copied into it asynchronously; let a barrier of the block come first",
        )],
    ),
    (
        "V37",
        "the next iteration of a loop, whose barrier stands behind the read",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        s[T.Ramp(tx * 4, 1, 4)] = T.Broadcast(T.float32(0), 4)
        for i in range(2):
            T.cuda.cta_sync()
            B[i * 16 + tx] = s[tx * 4]
            T.cuda.cta_sync()
            with T.attr(None, "pragma_async_copy", 1):
                s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
        B[32 + tx] = s[tx * 4]"#,
        &[(
            "B[32 + tx] = s[tx * 4]",
            "V37: `s` is read while words are copied into it asynchronously; let a barrier of the block come first",
        )],
    ),
    (
        "V37",
        "a barrier on one path alone",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        s = T.allocate([64], "float32", "shared")
        with T.attr(None, "pragma_async_copy", 1):
            s[T.Ramp(tx * 4, 1, 4)] = A[T.Ramp(tx * 4, 1, 4)]
        if n > 4:
            T.cuda.cta_sync()
        B[tx] = s[tx * 4]"#,
        &[(
            "B[tx] = s[tx * 4]",
            "V37: `s` is read while words are copied into it asynchronously; let a barrier of the block come first",
        )],
    ),
];
