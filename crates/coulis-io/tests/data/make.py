"""Writes the files beside it with NumPy, ml_dtypes and safetensors: what other programs write, coulis must read."""

import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

here = pathlib.Path(__file__).parent
grid = np.arange(6).reshape(2, 3)

np.save(here / "row_major_f4.npy", grid.astype("<f4"))
np.save(here / "fortran_f8.npy", np.asfortranarray(grid.astype("<f8")))
np.save(here / "big_endian_i4.npy", (grid - 3).astype(">i4"))
np.save(here / "bool.npy", grid % 2 == 0)
np.save(here / "f2.npy", grid.astype("<f2"))
np.save(here / "bfloat16.npy", grid.astype(ml_dtypes.bfloat16))
np.save(here / "float8_e5m2.npy", grid.astype(ml_dtypes.float8_e5m2))
np.save(here / "float8_e4m3.npy", grid.astype(ml_dtypes.float8_e4m3fn))
np.save(here / "scalar_u8.npy", np.array(7, "u1"))
np.save(here / "empty_i8.npy", np.zeros((0, 4), "<i8"))
np.save(here / "complex.npy", grid.astype("<c16"))
np.save(here / "longdouble.npy", grid.astype(np.longdouble))
np.save(here / "structured.npy", np.zeros(2, [("a", "<f4"), ("b", "<i4", (2,))]))
np.save(here / "text.npy", np.array(["a", "bc"]))
np.save(here / "object.npy", np.array([{}, None]), allow_pickle=True)
for version in ((2, 0), (3, 0)):
    with open(here / f"version_{version[0]}.npy", "wb") as file:
        np.lib.format.write_array(file, grid.astype("<u2"), version=version)
np.savez(here / "two_stored.npz", a=grid.astype("<f4"), b=(grid % 2).astype("i1"))
np.savez_compressed(here / "one_deflated.npz", only=np.tile(grid, (10, 1)).astype("<f8"))
save_file(
    {"a": grid.astype("<f4"), "b": grid.astype(ml_dtypes.bfloat16), "mask": grid > 2},
    here / "three.safetensors",
)
