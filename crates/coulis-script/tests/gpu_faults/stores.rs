//! Stores of several threads to one element: cases of V27 and V28.

use super::Case;

pub(crate) const STORES: &[Case] = &[
    (
        "V27",
        "one thread of the block stores, and each block its own element",
        r#"bx = T.launch_thread("blockIdx.x", 64)
        tx = T.launch_thread("threadIdx.x", 32)
        if tx == 0:
            B[bx] = A[bx]"#,
        &[],
    ),
    (
        "V27",
        "all threads of the block store",
        r#"bx = T.launch_thread("blockIdx.x", 64)
        tx = T.launch_thread("threadIdx.x", 32)
        B[bx] = A[bx]"#,
        &[(
            "B[bx] = A[bx]",
            "V27: all values of `threadIdx.x` store to one element, `B[bx]`; store where `threadIdx.x` is 0 only, or \
             give each its own element",
        )],
    ),
    (
        "V27",
        "all blocks store",
        r#"bx = T.launch_thread("blockIdx.x", (n + 31) // 32)
        tx = T.launch_thread("threadIdx.x", 32)
        B[tx] = A[tx]"#,
        &[(
            "B[tx] = A[tx]",
            "V27: all values of `blockIdx.x` store to one element, `B[tx]`; store where `blockIdx.x` is 0 only, or \
             give each its own element",
        )],
    ),
    (
        "V27",
        "all threads of a block store to its own shared memory",
        r#"bx = T.launch_thread("blockIdx.x", 64)
        tx = T.launch_thread("threadIdx.x", 32)
        s = T.allocate([1], "float32", "shared")
        s[0] = A[bx]"#,
        &[(
            "s[0] = A[bx]",
            "V27: all values of `threadIdx.x` store to one element, `s[0]`; store where `threadIdx.x` is 0 only, or \
             give each its own element",
        )],
    ),
    (
        "V27",
        "the block that comes last, as memory says",
        r#"bx = T.launch_thread("blockIdx.x", 64)
        tx = T.launch_thread("threadIdx.x", 32)
        ticket = T.allocate([1], "uint32", "local")
        if tx == 0:
            ticket[0] = T.cuda.atomic_add(C[0], T.uint32(1))
            if ticket[0] == T.uint32(63):
                B[0] = A[0]"#,
        &[],
    ),
    (
        "V28",
        "rows of a tile",
        r#"tx = T.launch_thread("threadIdx.x", 8)
        ty = T.launch_thread("threadIdx.y", 8)
        B[ty * 8 + tx] = A[tx * 8 + ty]"#,
        &[],
    ),
    (
        "V28",
        "rows of a tile that overlap",
        r#"tx = T.launch_thread("threadIdx.x", 8)
        ty = T.launch_thread("threadIdx.y", 8)
        B[ty * 7 + tx] = A[tx * 8 + ty]"#,
        &[(
            "B[ty * 7 + tx] = A[tx * 8 + ty]",
            "V28: thread (7, 0, 0) of block (0, 0, 0) and thread (0, 1, 0) of block (0, 0, 0) store to one element, `B[7]`",
        )],
    ),
    (
        "V28",
        "rows that overlap, where only the first threads store",
        r#"tx = T.launch_thread("threadIdx.x", 8)
        ty = T.launch_thread("threadIdx.y", 8)
        if tx < 7:
            B[ty * 7 + tx] = A[tx * 8 + ty]"#,
        &[],
    ),
    (
        "V27",
        "a condition leaves one value of an index, and the other tells elements apart",
        r#"tx = T.launch_thread("threadIdx.x", 8)
        ty = T.launch_thread("threadIdx.y", 8)
        if tx < 1 and A[ty] > T.float32(0):
            B[ty] = A[ty]
        if tx == 3:
            B[8 + ty // 2 * 2 + ty % 2] = A[ty]"#,
        &[],
    ),
    (
        "V27",
        "a condition leaves one value of an index, and all of the other store",
        r#"tx = T.launch_thread("threadIdx.x", 8)
        ty = T.launch_thread("threadIdx.y", 8)
        if tx == 3:
            B[0] = A[ty]"#,
        &[(
            "B[0] = A[ty]",
            "V27: all values of `threadIdx.y` store to one element, `B[0]`; store where `threadIdx.y` is 0 only, or \
             give each its own element",
        )],
    ),
    (
        "V28",
        "a condition leaves two values of an index",
        r#"tx = T.launch_thread("threadIdx.x", 8)
        if tx < 2:
            B[0] = A[tx]"#,
        &[(
            "B[0] = A[tx]",
            "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (1, 0, 0) of block (0, 0, 0) store to one element, `B[0]`",
        )],
    ),
    (
        "V28",
        "the threads for which a condition on one value does not hold",
        r#"tx = T.launch_thread("threadIdx.x", 8)
        if tx == 0:
            B[1] = A[tx]
        else:
            B[0] = A[tx]"#,
        &[(
            "B[0] = A[tx]",
            "V28: thread (1, 0, 0) of block (0, 0, 0) and thread (2, 0, 0) of block (0, 0, 0) store to one element, `B[0]`",
        )],
    ),
    (
        "V28",
        "blocks further apart that meet",
        r#"bx = T.launch_thread("blockIdx.x", 4)
        tx = T.launch_thread("threadIdx.x", 2)
        if tx == 0:
            B[bx % 2] = A[bx]
        if tx == 0:
            B[T.min(bx, 2)] = A[bx]
        B[(bx % 2 + bx // 2 * 2) * 2 + tx] = A[bx]"#,
        &[
            (
                "B[bx % 2] = A[bx]",
                "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (2, 0, 0) store to one \
                 element, `B[0]`",
            ),
            (
                "B[T.min(bx, 2)] = A[bx]",
                "V28: thread (0, 0, 0) of block (2, 0, 0) and thread (0, 0, 0) of block (3, 0, 0) store to one \
                 element, `B[2]`",
            ),
        ],
    ),
    (
        "V28",
        "far blocks of a large grid that meet",
        r#"bx = T.launch_thread("blockIdx.x", 65536)
        tx = T.launch_thread("threadIdx.x", 64)
        if tx == 0:
            B[bx % 64] = A[0]"#,
        &[(
            "B[bx % 64] = A[0]",
            "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (64, 0, 0) store to one element, `B[0]`",
        )],
    ),
    (
        "V28",
        "rows of blocks that conditions end, and rows that reach into the next",
        r#"bx = T.launch_thread("blockIdx.x", 6)
        tx = T.launch_thread("threadIdx.x", 4)
        for k in range(3):
            if k * 4 + tx < 10:
                B[bx * 10 + k * 4 + tx] = A[k]
        for k in range(3):
            if (bx * 10 + 3) // 4 * 4 + k * 4 + tx - bx * 10 < 10:
                B[(bx * 10 + 3) // 4 * 4 + k * 4 + tx] = A[k]
        for k in range(3):
            if k * 4 + tx < 11:
                B[bx * 10 + k * 4 + tx] = A[k]"#,
        &[(
            "B[bx * 10 + k * 4 + tx] = A[k]",
            "V28: thread (0, 0, 0) of block (1, 0, 0) and thread (2, 0, 0) of block (0, 0, 0) store to one element, `B[10]`",
        )],
    ),
    (
        "V28",
        "blocks told by a quotient and a remainder, and by the quotient of one block in eight",
        r#"bx = T.launch_thread("blockIdx.x", 24)
        tx = T.launch_thread("threadIdx.x", 2)
        B[bx % 8 * 8 + bx // 8 * 2 + tx] = A[0]
        B[bx % 8 * 6 + bx // 8 * 2 + tx] = A[0]
        if bx % 8 == 0:
            B[bx // 8 * 2 + tx] = A[0]
        B[bx // 8 * 2 + tx] = A[0]
        B[bx % 8 * 4 + bx // 8 * 2 + tx] = A[0]"#,
        &[
            (
                "B[bx // 8 * 2 + tx] = A[0]",
                "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (1, 0, 0) store to one element, `B[0]`",
            ),
            (
                "B[bx % 8 * 4 + bx // 8 * 2 + tx] = A[0]",
                "V28: thread (0, 0, 0) of block (1, 0, 0) and thread (0, 0, 0) of block (16, 0, 0) store to one element, `B[4]`",
            ),
        ],
    ),
    (
        "V28",
        "iterations of two blocks that meet",
        r#"bx = T.launch_thread("blockIdx.x", 2)
        for k in range(2):
            B[bx + k] = A[k]
        for k in range(2):
            B[bx * 2 + k] = A[k]
        for k in range(n):
            B[bx + k * 2] = A[k]
        for k in range(2 - bx):
            B[bx * 2 + k] = A[k]
        for j in range(3):
            B[j] = T.float32(0)"#,
        &[
            (
                "B[bx + k] = A[k]",
                "V28: thread (0, 0, 0) of block (1, 0, 0) and thread (0, 0, 0) of block (0, 0, 0) store to one \
                 element, `B[1]`",
            ),
            (
                "B[j] = T.float32(0)",
                "V27: all values of `blockIdx.x` store to one element, `B[j]`; store where `blockIdx.x` is 0 only, \
                 or give each its own element",
            ),
        ],
    ),
    (
        "V28",
        "blocks and loops that make up for each other, far apart",
        r#"bx = T.launch_thread("blockIdx.x", 8000)
        by = T.launch_thread("blockIdx.y", 2000)
        tx = T.launch_thread("threadIdx.x", 32)
        if tx == 0:
            B[bx * 999 + by * 7] = A[bx]
        for k in range(3000):
            if tx == 0:
                if by == 0:
                    B[bx * 2503 + k] = A[k]
        for k in range(2503):
            if tx == 0:
                if by == 0:
                    B[bx * 2503 + k] = A[k]
        if tx == 0:
            if by < 999:
                B[bx * 999 + by * 7] = A[bx]
        if tx == 0:
            B[(bx - by) * 5003 + 10000997] = A[bx]"#,
        &[
            (
                "B[bx * 999 + by * 7] = A[bx]",
                "V28: thread (0, 0, 0) of block (7, 0, 0) and thread (0, 0, 0) of block (0, 999, 0) store to one element, `B[6993]`",
            ),
            (
                "B[bx * 2503 + k] = A[k]",
                "V28: thread (0, 0, 0) of block (1, 0, 0) and thread (0, 0, 0) of block (0, 0, 0) store to one element, `B[2503]`",
            ),
            (
                "B[(bx - by) * 5003 + 10000997] = A[bx]",
                "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (1, 1, 0) store to one element, `B[10000997]`",
            ),
        ],
    ),
    (
        "V28",
        "the first lanes of two warps",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        if tx % 32 == 0:
            B[0] = A[tx]"#,
        &[(
            "B[0] = A[tx]",
            "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (32, 0, 0) of block (0, 0, 0) store to one element, `B[0]`",
        )],
    ),
];
