# test: parse canonical
@T.prim_func
def argmax(V: T.Buffer((32,), "float32"), D: T.Buffer((1,), "float32"), E: T.Buffer((1,), "int64")):
    T.device_entry()
    Tx.cta.reduce((D, E), V, reducer=T.comm_reducer(lambda x, i, y, j: (T.Select(x >= y, x, y), T.Select(x >= y, i, j)), [T.float32("-inf"), T.int64(-1)], name="argmax", fields=(("value", "float32"), ("index", "int64")), inputs=("float32", "int64"), lift=lambda e, position: (e, position), idempotent=True, nan="ignore", ties="first", error="exact"), axes=(0,), accum=False, dispatch="serial")
