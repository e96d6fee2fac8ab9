# test: verify
@T.prim_func
def crowd(A: T.Buffer((32,), "float32")):
    bx = T.launch_thread("blockIdx.x", 16)
    by = T.launch_thread("blockIdx.y", 2)
    cx = T.launch_thread("clusterCtaIdx.x", 16)
    cy = T.launch_thread("clusterCtaIdx.y", 2)  # error V35: a cluster has at most 16 blocks, got 32
    A[by * 16 + bx] = T.float32(0)


@T.prim_func
def crowd_of_tiles(A: T.Buffer((32,), "float32")):
    T.device_entry()
    part = T.cta_id_in_cluster([17])  # error V35: a cluster has at most 16 blocks, got 17
    A[part] = T.float32(0)
