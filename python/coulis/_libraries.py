"""What coulis asks of the libraries whose arrays it takes.

An adapter has ``view(x, what)`` (the array as DLPack exports it, or its bytes and the element type that they hold; it refuses what
has no elements to be read, calling it by `what`) and ``written(x, what)`` (called before the elements of an array are
overwritten; it refuses those that are not to be, calling them by `what`), and then, where arrays of the library can be made unwritten,
``empty(like, shape, dtype, order)`` (an unwritten array without gaps, whose axes lie in that order, the outermost first, and its
address), ``compact(x, order)`` (the elements in such an array), ``assign(out, value)``,
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
    def dense(x, what):
        torch = sys.modules["torch"]
        kinds = {"nested": x.is_nested, "quantized": x.is_quantized, "sparse": x.layout is not torch.strided}
        kind = next((kind for kind, is_so in kinds.items() if is_so), None)
        if kind is not None:
            raise TypeError(f"`{what}` is a {kind} tensor, which is not read; legal are dense ones ({Torch._DENSE[kind]})")

    @staticmethod
    def view(x, what):
        torch = sys.modules["torch"]
        Torch.dense(x, what)
        if x.is_meta:
            raise TypeError(f"`{what}` is a tensor on the device `meta`, which has no elements; legal are the CPU and CUDA")
        name = str(x.dtype).removeprefix("torch.")
        if name.removeprefix("u") in Torch._NARROW:
            # DLPack calls them integers of 8 bits.
            raise NotImplementedError(f"`{what}` is of the element type `{name}`, which is not read; legal are integers from 8 bits")
        x = x.detach().resolve_conj().resolve_neg()
        # Zeros that PyTorch has not made yet, as gradients of what is not differentiated are.
        x = x.clone() if x._is_zerotensor() else x
        Torch.backed(x, what)
        # DLPack of older versions knows no such types.
        return (x.view(torch.uint8), name) if name in ("float8_e4m3fn", "float8_e5m2") else x

    _NARROW = {f"int{bits}" for bits in range(1, 8)}

    _DENSE = {
        "sparse": "`x.to_dense()`",
        "nested": "`x.to_padded_tensor(0)`, or each of `x.unbind()`",
        "quantized": "`x.dequantize()`",
    }

    @staticmethod
    def backed(x, what):
        """Refuses a tensor that has a shape and no memory; of a view of one DLPack gives an address near 0."""
        if x.numel() == 0:
            return
        torch = sys.modules["torch"]
        if torch._C._functorch.is_functorch_wrapped_tensor(x):
            raise TypeError(
                f"`{what}` is wrapped by a transform of PyTorch (torch.func, torch.vmap), so that it has no elements to read; "
                "legal are tensors outside of transformed functions"
            )
        if isinstance(x, torch._subclasses.FakeTensor) or torch._is_functional_tensor(x):
            raise TypeError(
                f"`{what}` is traced by PyTorch (a `FakeTensor`, torch.export, make_fx), so that it has no elements to read; "
                "legal are tensors with memory, and in traced functions those of `coulis.torch`"
            )
        if x.untyped_storage().data_ptr() == 0:
            raise ValueError(f"`{what}` has no memory: its shape is {tuple(x.shape)}, and its storage has been emptied")

    @staticmethod
    def written(x, what):
        torch = sys.modules["torch"]
        if x._is_zerotensor():
            raise ValueError(f"{what} is a tensor of zeros that has no memory; legal is `x.clone()`")
        if x.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{what} requires a gradient, and what is written there has none; "
                "legal are tensors that require none, and calls under `torch.no_grad()`"
            )
        if x.is_neg():
            raise ValueError(f"{what} is a view of negated elements, which is not written; legal is `x.resolve_neg()`")
        if not x.is_inference():
            # What the graph of another tensor has kept of this one is found to be overwritten.
            torch.autograd.graph.increment_version(x)
        elif not torch.is_inference_mode_enabled():
            raise ValueError(f"{what} was made in `torch.inference_mode()`, outside of which it is not written; legal is `x.clone()`")

    @staticmethod
    def empty(like, shape, dtype, order):
        torch = sys.modules["torch"]
        name = {"float8_e4m3": "float8_e4m3fn"}.get(dtype, dtype)
        made = torch.empty_permuted(shape, order, dtype=getattr(torch, name), device=like.device)
        return made, made.data_ptr()

    @staticmethod
    def compact(x, order):
        return x.detach().permute(order).contiguous()

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
    def view(x, what):
        return x

    @staticmethod
    def written(x, what):
        pass

    @staticmethod
    def empty(like, shape, dtype, order):
        cupy = sys.modules["cupy"]
        with like.device:
            made = cupy.empty([shape[axis] for axis in order], cupy.dtype(dtype))
        places = [order.index(axis) for axis in range(len(order))]
        return made.transpose(places), made.data.ptr

    @staticmethod
    def compact(x, order):
        return sys.modules["cupy"].ascontiguousarray(x.transpose(order))

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
    def view(x, what):
        if isinstance(x, sys.modules["jax"].core.Tracer):
            raise TypeError(
                f"`{what}` is traced by JAX (jit, grad, vmap), so that it has no elements to read; "
                "legal are concrete arrays, outside of traced functions"
            )
        if sys.modules["jax"].numpy.issubdtype(x.dtype, sys.modules["jax"].dtypes.extended):
            raise TypeError(f"`{what}` has elements of type `{x.dtype}`, which are no numbers; legal for keys is `jax.random.key_data(x)`")
        if x.is_deleted():
            raise ValueError(f"`{what}` has no memory: JAX has deleted it, or a function that took it as donated has")
        return x

    @staticmethod
    def written(x, what):
        raise TypeError(f"{what} is an array of JAX, which cannot be written; legal are those of NumPy, PyTorch and CuPy")

    @staticmethod
    def adopt(export):
        import jax.dlpack
        import jax.experimental

        # Where JAX is not asked for types of 64 bits, it cuts what it adopts to 32.
        wide = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
        with wide(True):
            return jax.dlpack.from_dlpack(export)

    @staticmethod
    def settle(like, array):
        return array

    @staticmethod
    def broadcast(x, shape):
        return sys.modules["jax"].numpy.broadcast_to(x, shape)


class Arrow:
    """Arrow, whose arrays have one dimension: results are its scalars."""

    @staticmethod
    def written(x, what):
        raise TypeError(f"{what} is an array of Arrow, which cannot be written; legal are those of NumPy, PyTorch and CuPy")

    @staticmethod
    def adopt(like, value):
        if type(like).__module__.partition(".")[0] != "pyarrow":
            return value
        return sys.modules["pyarrow"].scalar(value)


class Dask:
    """Dask, whose arrays are made when they are asked for, and may be larger than memory."""

    @staticmethod
    def view(x, what):
        raise TypeError(
            f"`{what}` is of Dask, and would be loaded whole; `coulis.dask.reduce` reads an array chunk by chunk, and "
            "`compute()` gives one in memory"
        )


class Other:
    """Any library that follows the Array API standard, and NumPy's arrays for one that does not."""

    @staticmethod
    def written(x, what):
        pass

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



ADAPTERS = {"numpy": NumPy, "torch": Torch, "cupy": CuPy, "jax": Jax, "pyarrow": Arrow, "dask": Dask, "other": Other}
