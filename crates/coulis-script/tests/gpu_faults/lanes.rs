//! Barriers, shuffles, votes and atomics: cases of V21 and V30 to V34.

use super::Case;

pub(crate) const BARRIERS: &[Case] = &[
    (
        "V21",
        "a barrier under what thread 0 left in shared memory",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        s = T.allocate([1], "float32", "shared")
        if tx == 0:
            s[0] = A[0]
        T.cuda.cta_sync()
        if s[0] < T.float32(1):
            T.cuda.cta_sync()"#,
        &[],
    ),
    (
        "V21",
        "a barrier under what each thread keeps",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        t[0] = A[tx]
        if t[0] < T.float32(1):
            T.cuda.cta_sync()"#,
        &[("T.cuda.cta_sync()", "V21: cta barrier under a condition that differs between threads")],
    ),
    (
        "V21",
        "a barrier in a loop whose length each thread computes, by name",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "int32", "local")
        t[0] = 0
        for i in range(3):
            length: T.int32 = t[0]
            for k in range(length):
                T.cuda.cta_sync()
            t[0] = t[0] + tx"#,
        &[("T.cuda.cta_sync()", "V21: cta barrier under a condition that differs between threads")],
    ),
    (
        "V21",
        "a warp barrier in the first of two warps",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        if tx < 32:
            T.cuda.warp_sync()"#,
        &[],
    ),
    (
        "V21",
        "a warp barrier in one and a half warps",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        if tx < 48:
            T.cuda.warp_sync()"#,
        &[("T.cuda.warp_sync()", "V21: warp barrier that lane 0 of warp 1 reaches and lane 16 does not")],
    ),
    (
        "V21",
        "a named barrier of two warps, which three reach",
        r#"tx = T.launch_thread("threadIdx.x", 128)
        if tx < 96:
            T.cuda.named_barrier_sync(1, 64)"#,
        &[(
            "T.cuda.named_barrier_sync(1, 64)",
            "V21: named barrier 1 that waits for 64 threads is reached by 96",
        )],
    ),
    (
        "V21",
        "a barrier of a warpgroup, and of one after the other",
        r#"tx = T.launch_thread("threadIdx.x", 256)
        if tx < 128:
            T.cuda.warpgroup_sync(1)
        T.cuda.warpgroup_sync(2)"#,
        &[],
    ),
    (
        "V21",
        "a barrier of a warpgroup that the block has three warps of",
        r#"tx = T.launch_thread("threadIdx.x", 96)
        T.cuda.warpgroup_sync(1)"#,
        &[(
            "T.cuda.warpgroup_sync(1)",
            "V21: warpgroup barrier 1 that waits for 128 threads is reached by 96 of warpgroup 0",
        )],
    ),
    (
        "V21",
        "a barrier of a warpgroup that half of it reaches",
        r#"tx = T.launch_thread("threadIdx.x", 256)
        if tx >= 64:
            if tx < 192:
                T.cuda.warpgroup_sync(1)"#,
        &[(
            "T.cuda.warpgroup_sync(1)",
            "V21: warpgroup barrier 1 that waits for 128 threads is reached by 64 of warpgroup 0",
        )],
    ),
    (
        "V34",
        "a named barrier of two warps",
        r#"tx = T.launch_thread("threadIdx.x", 128)
        if tx < 64:
            T.cuda.named_barrier_sync(15, 64)"#,
        &[],
    ),
    (
        "V34",
        "a named barrier of half a warp",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        T.cuda.named_barrier_sync(1, 16)"#,
        &[(
            "T.cuda.named_barrier_sync(1, 16)",
            "V34: a named barrier waits for whole warps of 32 threads, up to 1024, got 16 threads",
        )],
    ),
    (
        "V34",
        "a named barrier with the number of all",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        T.cuda.named_barrier_sync(0, 64)"#,
        &[("T.cuda.named_barrier_sync(0, 64)", "V34: named barriers are 1 to 15, got 0")],
    ),
    (
        "V34",
        "a barrier of warpgroups that the machine has not",
        r#"tx = T.launch_thread("threadIdx.x", 128)
        T.cuda.warpgroup_sync(16)"#,
        &[("T.cuda.warpgroup_sync(16)", "V34: named barriers are 1 to 15, got 16")],
    ),
];

pub(crate) const LANES: &[Case] = &[
    (
        "V30",
        "the lanes of each half of a warp",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        mask = T.allocate([1], "uint32", "local")
        mask[0] = T.shift_left(T.uint32(65535), T.Cast("uint32", tx % 32 // 16 * 16))
        t[0] = T.tvm_warp_shuffle_down(mask[0], A[tx], 8, 32, 32)
        B[tx] = t[0]"#,
        &[],
    ),
    (
        "V30",
        "a mask that is shifted one lane short",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        ty = T.launch_thread("threadIdx.y", 4)
        t = T.allocate([1], "float32", "local")
        mask = T.allocate([1], "uint32", "local")
        mask[0] = T.uint32(65535) << T.Cast("uint32", ty % 2 * 15)
        t[0] = T.tvm_warp_shuffle_down(mask[0], A[ty * 16 + tx], 8, 32, 32)
        B[ty * 16 + tx] = t[0]"#,
        &[(
            "t[0] = T.tvm_warp_shuffle_down(mask[0], A[ty * 16 + tx], 8, 32, 32)",
            "V30: the mask `mask[0]` of `tvm_warp_shuffle_down` is 0x7fff8000 in lane 31 of warp 0, which does not \
             name the caller",
        )],
    ),
    (
        "V30",
        "the shift of seed 003's mask, which goes past the last lane",
        r#"tx = T.launch_thread("threadIdx.x", 16)
        ty = T.launch_thread("threadIdx.y", 4)
        t = T.allocate([1], "float32", "local")
        t[0] = T.tvm_warp_shuffle_down(T.uint32(65535) << T.Cast("uint32", ty * 16), A[ty * 16 + tx], 8, 32, 32)
        B[ty * 16 + tx] = t[0]"#,
        &[(
            "t[0] = T.tvm_warp_shuffle_down(T.uint32(65535) << T.Cast(\"uint32\", ty * 16), A[ty * 16 + tx], 8, 32, 32)",
            "V30: the mask `T.uint32(65535) << T.Cast(\"uint32\", ty * 16)` of `tvm_warp_shuffle_down` is 0x0 in \
             lane 0 of warp 1, which does not name the caller",
        )],
    ),
    (
        "V30",
        "all lanes of a warp, of which half come",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        if tx < 16:
            t[0] = T.tvm_warp_shuffle_down(T.uint32(4294967295), A[tx], 8, 32, 32)
            B[tx] = t[0]"#,
        &[(
            "t[0] = T.tvm_warp_shuffle_down(T.uint32(4294967295), A[tx], 8, 32, 32)",
            "V30: the mask `T.uint32(4294967295)` of `tvm_warp_shuffle_down` is 0xffffffff in lane 0 of warp 0, and \
             lane 16, which it names, does not come here",
        )],
    ),
    (
        "V30",
        "all lanes of a warp in a block of 20 threads",
        r#"tx = T.launch_thread("threadIdx.x", 20)
        v = T.allocate([1], "bool", "local")
        v[0] = T.cuda.any_sync(T.uint32(4294967295), A[tx] < T.float32(0))"#,
        &[(
            "v[0] = T.cuda.any_sync(T.uint32(4294967295), A[tx] < T.float32(0))",
            "V30: the mask `T.uint32(4294967295)` of `cuda.any_sync` is 0xffffffff in lane 0 of warp 0, and lane 20, \
             which it names, does not come here",
        )],
    ),
    (
        "V30",
        "lanes that memory chooses, by a ballot",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        mask = T.allocate([1], "uint32", "local")
        mask[0] = T.cuda.ballot_sync(T.uint32(4294967295), A[tx] < T.float32(0))
        if A[tx] < T.float32(0):
            t[0] = T.tvm_warp_shuffle_down(mask[0], A[tx], 8, 32, 32)
            B[tx] = t[0]"#,
        &[],
    ),
    (
        "V30",
        "lanes that memory chooses, by all",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        if A[tx] < T.float32(0):
            t[0] = T.tvm_warp_shuffle_down(T.uint32(4294967295), A[tx], 8, 32, 32)
            B[tx] = t[0]"#,
        &[(
            "t[0] = T.tvm_warp_shuffle_down(T.uint32(4294967295), A[tx], 8, 32, 32)",
            "V30: the mask `T.uint32(4294967295)` of `tvm_warp_shuffle_down` names lanes 0 and 1, and `A[tx] < \
             T.float32(0)` may differ between them",
        )],
    ),
    (
        "V31",
        "active lanes, counted",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        mask = T.allocate([1], "uint32", "local")
        mask[0] = T.tvm_warp_activemask()
        B[tx] = T.Cast("float32", T.popcount(mask[0]))"#,
        &[],
    ),
    (
        "V31",
        "active lanes as those that take part",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        mask = T.allocate([1], "uint32", "local")
        mask[0] = T.tvm_warp_activemask()
        mask[0] = T.bitwise_and(mask[0], T.uint32(65535))
        t[0] = T.tvm_warp_shuffle_down(mask[0], A[tx], 8, 32, 32)
        B[tx] = t[0]"#,
        &[(
            "t[0] = T.tvm_warp_shuffle_down(mask[0], A[tx], 8, 32, 32)",
            "V31: the mask of `tvm_warp_shuffle_down` is made of the lanes that happen to be active; name the lanes \
             that take part, by the number of the lane",
        )],
    ),
    (
        "V32",
        "a width of 16",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        t[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), A[tx], 8, 16, 32)
        B[tx] = t[0]"#,
        &[],
    ),
    (
        "V32",
        "a width of 20",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        t[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), A[tx], 8, 20, 32)
        B[tx] = t[0]"#,
        &[(
            "t[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), A[tx], 8, 20, 32)",
            "V32: the width of `tvm_warp_shuffle_xor` is a constant power of two up to 32, got `20`",
        )],
    ),
    (
        "V32",
        "a warp of 64 lanes",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        t[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), A[tx], 8, 32, 64)
        B[tx] = t[0]"#,
        &[(
            "t[0] = T.tvm_warp_shuffle_xor(T.uint32(4294967295), A[tx], 8, 32, 64)",
            "V32: `tvm_warp_shuffle_xor` takes the lanes of a warp last, 32 on sm_90a, got `64`",
        )],
    ),
    (
        "V33",
        "atomic sums of integers and of floats",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        T.cuda.atomic_add(C[0], T.uint32(1))
        T.cuda.atomic_add(B[0], A[tx])"#,
        &[],
    ),
    (
        "V33",
        "an atomic maximum of floats",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        T.cuda.atomic_max(B[0], A[tx])"#,
        &[(
            "T.cuda.atomic_max(B[0], A[tx])",
            "V33: `cuda.atomic_max` does not work on float32, the type of `B`",
        )],
    ),
    (
        "V33",
        "an atomic sum in memory of one thread",
        r#"tx = T.launch_thread("threadIdx.x", 64)
        t = T.allocate([1], "float32", "local")
        t[0] = T.float32(0)
        T.cuda.atomic_add(t[0], A[tx])"#,
        &[(
            "T.cuda.atomic_add(t[0], A[tx])",
            "V33: `cuda.atomic_add` works on memory that threads share, and `t` is local memory",
        )],
    ),
];
