//! Clusters of blocks: cases of V12, V21, V27, V28, V35 and V36.

use super::Case;

pub(crate) const CLUSTERS: &[Case] = &[
    (
        "V35",
        "eight blocks in a cluster of two axes",
        r#"bx = T.launch_thread("blockIdx.x", 4)
        by = T.launch_thread("blockIdx.y", 4)
        cx = T.launch_thread("clusterCtaIdx.x", 4)
        cy = T.launch_thread("clusterCtaIdx.y", 2)
        tx = T.launch_thread("threadIdx.x", 4)
        B[by * 16 + bx * 4 + tx] = A[cy * 4 + cx]"#,
        &[],
    ),
    (
        "V35",
        "nine blocks in a cluster",
        r#"bx = T.launch_thread("blockIdx.x", 9)
        cx = T.launch_thread("clusterCtaIdx.x", 9)
        B[bx] = A[cx]"#,
        &[(
            "cx = T.launch_thread(\"clusterCtaIdx.x\", 9)",
            "V35: a cluster has 1 to 8 blocks on sm_90a, got 9",
        )],
    ),
    (
        "V35",
        "six blocks in clusters of four",
        r#"bx = T.launch_thread("blockIdx.x", 6)
        cx = T.launch_thread("clusterCtaIdx.x", 4)
        B[bx] = A[cx]"#,
        &[(
            "cx = T.launch_thread(\"clusterCtaIdx.x\", 4)",
            "V35: a grid is whole clusters, and 6 blocks along x are no multiple of 4",
        )],
    ),
    (
        "V35",
        "clusters of a size that an argument says",
        r#"bx = T.launch_thread("blockIdx.x", 8)
        cx = T.launch_thread("clusterCtaIdx.x", n)
        B[bx] = A[bx]"#,
        &[("cx = T.launch_thread(\"clusterCtaIdx.x\", n)", "V35: the extents of a cluster are constants")],
    ),
    (
        "V36",
        "a read of the next block's memory between barriers of the cluster",
        r#"bx = T.launch_thread("blockIdx.x", 2)
        cx = T.launch_thread("clusterCtaIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        s = T.allocate([32], "float32", "shared")
        r = T.allocate([1], "float32", "local")
        s[tx] = A[bx * 32 + tx]
        T.cuda.cluster_sync()
        r[0] = T.cuda.cluster_load(s[tx], 1 - cx)
        T.cuda.cluster_sync()
        B[bx * 32 + tx] = r[0]"#,
        &[],
    ),
    (
        "V36",
        "a read that no barrier of the cluster follows on one way",
        r#"bx = T.launch_thread("blockIdx.x", 2)
        cx = T.launch_thread("clusterCtaIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        s = T.allocate([32], "float32", "shared")
        r = T.allocate([1], "float32", "local")
        s[tx] = A[bx * 32 + tx]
        T.cuda.cluster_sync()
        r[0] = T.cuda.cluster_load(s[tx], 1 - cx)
        if n > 3:
            T.cuda.cluster_sync()
        B[bx * 32 + tx] = r[0]"#,
        &[(
            "r[0] = T.cuda.cluster_load(s[tx], 1 - cx)",
            "V36: another block's shared memory is read, and that block may end before; let a \
             `T.cuda.cluster_sync()` that all blocks reach follow",
        )],
    ),
    (
        "V36",
        "reads in a loop with a barrier of the cluster at its end",
        r#"bx = T.launch_thread("blockIdx.x", 2)
        cx = T.launch_thread("clusterCtaIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        s = T.allocate([32], "float32", "shared")
        r = T.allocate([1], "float32", "local")
        for i in range(4):
            s[tx] = A[bx * 32 + tx]
            T.cuda.cluster_sync()
            r[0] = T.cuda.cluster_load(s[tx], i % 2)
            T.cuda.cluster_sync()
        B[bx * 32 + tx] = r[0]"#,
        &[],
    ),
    (
        "V36",
        "a read in a launch without clusters, of memory that no block shares",
        r#"tx = T.launch_thread("threadIdx.x", 32)
        r = T.allocate([1], "float32", "local")
        r[0] = T.cuda.cluster_load(A[tx], 0)
        T.cuda.cluster_sync()
        B[tx] = r[0]"#,
        &[
            (
                "r[0] = T.cuda.cluster_load(A[tx], 0)",
                "V36: `cuda.cluster_load` stands in a launch without `clusterCtaIdx.x`, whose blocks are in no cluster",
            ),
            (
                "r[0] = T.cuda.cluster_load(A[tx], 0)",
                "V36: `cuda.cluster_load` reads shared memory, and `A` is global memory",
            ),
        ],
    ),
    (
        "V12",
        "a read of a block that the cluster has not, and of an element that the memory has not",
        r#"bx = T.launch_thread("blockIdx.x", 2)
        cx = T.launch_thread("clusterCtaIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        s = T.allocate([32], "float32", "shared")
        r = T.allocate([1], "float32", "local")
        s[tx] = A[bx * 32 + tx]
        T.cuda.cluster_sync()
        r[0] = T.cuda.cluster_load(s[tx + 1], cx + 1)
        T.cuda.cluster_sync()
        B[bx * 32 + tx] = r[0]"#,
        &[
            (
                "r[0] = T.cuda.cluster_load(s[tx + 1], cx + 1)",
                "V12: index `tx + 1` of `s` comes to 32, and legal ones are 0 to 31",
            ),
            (
                "r[0] = T.cuda.cluster_load(s[tx + 1], cx + 1)",
                "V12: block `cx + 1` of the cluster comes to 2, and legal ones are 0 to 1",
            ),
        ],
    ),
    (
        "V21",
        "a barrier of the cluster that some clusters reach whole",
        r#"bx = T.launch_thread("blockIdx.x", 8)
        cx = T.launch_thread("clusterCtaIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 8)
        if bx // 2 < 3:
            T.cuda.cluster_sync()
        B[bx * 8 + tx] = A[tx]"#,
        &[],
    ),
    (
        "V21",
        "a barrier of the cluster that one of its blocks reaches",
        r#"bx = T.launch_thread("blockIdx.x", 8)
        cx = T.launch_thread("clusterCtaIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 8)
        if cx == 1:
            T.cuda.cluster_sync()
        B[bx * 8 + tx] = A[tx]"#,
        &[(
            "T.cuda.cluster_sync()",
            "V21: cluster barrier that thread (0, 0, 0) of block (1, 0, 0) reaches and thread (0, 0, 0) of block (0, \
             0, 0) does not",
        )],
    ),
    (
        "V21",
        "a barrier of the cluster that some threads reach",
        r#"bx = T.launch_thread("blockIdx.x", 8)
        cx = T.launch_thread("clusterCtaIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 8)
        if tx < 4:
            T.cuda.cluster_sync()
        B[bx * 8 + tx] = A[tx]"#,
        &[("T.cuda.cluster_sync()", "V21: cluster barrier under a condition that differs between threads")],
    ),
    (
        "V27",
        "the first block of each cluster stores its own element",
        r#"bx = T.launch_thread("blockIdx.x", 8)
        cx = T.launch_thread("clusterCtaIdx.x", 4)
        if cx == 0:
            B[bx // 4] = A[bx]"#,
        &[],
    ),
    (
        "V28",
        "the first block of each cluster stores one element of all",
        r#"bx = T.launch_thread("blockIdx.x", 8)
        cx = T.launch_thread("clusterCtaIdx.x", 4)
        if cx == 0:
            B[0] = A[bx]"#,
        &[(
            "B[0] = A[bx]",
            "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (4, 0, 0) store to one element, `B[0]`",
        )],
    ),
    (
        "V28",
        "all blocks of a cluster store one element",
        r#"bx = T.launch_thread("blockIdx.x", 8)
        cx = T.launch_thread("clusterCtaIdx.x", 4)
        B[bx - cx] = A[bx]"#,
        &[(
            "B[bx - cx] = A[bx]",
            "V28: thread (0, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (1, 0, 0) store to one element, `B[0]`",
        )],
    ),
];
