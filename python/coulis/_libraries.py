"""What coulis asks of the libraries whose arrays it takes.

An adapter has ``view(x)`` (the array as DLPack exports it), and then, where arrays of the library can be written,
``empty(like, shape, dtype)`` (an unwritten row-major array and its address), ``row_major(x)``, ``assign(out, value)``,
``stream(x)`` (the handle of the current stream of its device); else ``adopt(export)`` (an array over memory of coulis) and
``settle(like, array)``. ``broadcast(x, shape)`` is asked for arrays of a device.
"""

from __future__ import annotations

import sys


class NumPy:
    """Arrays of the host that can be written."""

    @staticmethod
    def assign(out, value):
        out[...] = value


class Torch:
    """PyTorch. Tensors of a graph are read without it: gradients are those of ``coulis.torch``."""

    @staticmethod
    def view(x):
        return x.detach().resolve_conj().resolve_neg()

    @staticmethod
    def empty(like, shape, dtype):
        torch = sys.modules["torch"]
        name = {"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype)
        made = torch.empty(shape, dtype=getattr(torch, name), device=like.device)
        return made, made.data_ptr()

    @staticmethod
    def row_major(x):
        return x.detach().contiguous()

    @staticmethod
    def assign(out, value):
        out.detach().copy_(value)

    @staticmethod
    def broadcast(x, shape):
        return x.detach().expand(shape)

    @staticmethod
    def stream(x):
        return sys.modules["torch"].cuda.current_stream(x.device).cuda_stream



class CuPy:
    """CuPy."""

    @staticmethod
    def view(x):
        return x

    @staticmethod
    def empty(like, shape, dtype):
        cupy = sys.modules["cupy"]
        with like.device:
            made = cupy.empty(shape, cupy.dtype(dtype))
        return made, made.data.ptr

    @staticmethod
    def row_major(x):
        return sys.modules["cupy"].ascontiguousarray(x)

    @staticmethod
    def assign(out, value):
        out[...] = value

    @staticmethod
    def broadcast(x, shape):
        return sys.modules["cupy"].broadcast_to(x, shape)

    @staticmethod
    def stream(x):
        cupy = sys.modules["cupy"]
        with x.device:
            return cupy.cuda.get_current_stream().ptr



class Jax:
    """JAX, whose arrays are not written: it adopts memory of coulis."""

    @staticmethod
    def view(x):
        return x

    @staticmethod
    def adopt(export):
        import jax.dlpack

        return jax.dlpack.from_dlpack(export)

    @staticmethod
    def settle(like, array):
        return array

    @staticmethod
    def broadcast(x, shape):
        return sys.modules["jax"].numpy.broadcast_to(x, shape)


        return numpy.asarray(x).tobytes()


class Arrow:
    """Arrow, whose arrays have one dimension: results are its scalars."""

    @staticmethod
    def view(x):
        return x

    @staticmethod
    def adopt(like, value):
        if type(like).__module__.partition(".")[0] != "pyarrow":
            return value
        return sys.modules["pyarrow"].scalar(value)


class Other:
    """Any library that follows the Array API standard, and NumPy's arrays for one that does not."""

    @staticmethod
    def adopt(export):
        return export

    @staticmethod
    def settle(like, export):
        namespace = getattr(like, "__array_namespace__", None)
        if namespace is not None:
            return namespace().from_dlpack(export)
        if export.__dlpack_device__()[0] != 1:
            return export
        import numpy

        return numpy.from_dlpack(export)

    @staticmethod
    def broadcast(x, shape):
        namespace = getattr(x, "__array_namespace__", None)
        if namespace is None:
            raise NotImplementedError("masks of this library are not broadcast on a device; give `where` in the shape of `x`")
        return namespace().broadcast_to(x, shape)

    @staticmethod
    def assign(out, value):
        out[...] = value



ADAPTERS = {"numpy": NumPy, "torch": Torch, "cupy": CuPy, "jax": Jax, "pyarrow": Arrow, "other": Other}
