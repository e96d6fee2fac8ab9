# test: parse form=tiled
# What one thread holds of a tile has the layout that the tile has without its thread axes.
@T.prim_func
def f(B: T.Buffer((32, 2), "float32")):
    T.device_entry(); T.cta_id([1]); t = T.lane_id([32]); T.thread_id([32])
    tile = T.alloc_buffer((32, 2), "float32", scope="local", layout=TileLayout(S[(32, 2) : (1 @ laneid, 3)]))
    mine = tile.local(2, layout=tile.layout.storage())
    mine[1] = T.float32(2)
    B[t, 1] = mine[1]

# prints:
#   @T.prim_func
#   def f(B: T.Buffer((32, 2), "float32")):
#       T.device_entry()
#       T.cta_id([1])
#       t = T.lane_id([32])
#       T.thread_id([32])
#       tile = T.alloc_buffer((32, 2), "float32", scope="local", layout=TileLayout(S[(32, 2) : (1 @ laneid, 3)]))
#       mine = tile.local(2, layout=TileLayout(S[2 : 3]))
#       mine[1] = T.float32(2)
#       B[t, 1] = mine[1]
