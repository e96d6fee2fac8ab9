"""Arrays of coulis' own, for programs written for TVM: ``coulis.nd.array(values, coulis.cuda(0))``.

Functions of coulis take the arrays of NumPy, PyTorch and others as they are; none needs these. An array of ``nd`` keeps
its elements in memory of the host. One that is on a GPU is sent there for each call, and its outputs come back.
"""

import numpy as _np

from ._device import Device, cpu, of_word


class NDArray:
    """An array with a device."""

    __slots__ = ("_coulis_array", "device")

    def __init__(self, values, device):
        device = of_word(device)
        device.check()
        if values.dtype.kind in "OSUMm":
            raise TypeError(f"an array of coulis.nd holds numbers, got elements of type `{values.dtype}`")
        self._coulis_array = values
        self.device = device

    @property
    def ctx(self):
        """The device."""
        return self.device

    @property
    def shape(self):
        """Lengths of the axes."""
        return self._coulis_array.shape

    @property
    def ndim(self):
        """Number of axes."""
        return self._coulis_array.ndim

    @property
    def dtype(self):
        """Element type, as a string."""
        return str(self._coulis_array.dtype)

    def numpy(self):
        """A copy as an array of NumPy."""
        return self._coulis_array.copy()

    def asnumpy(self):
        """A copy as an array of NumPy."""
        return self.numpy()

    def copyfrom(self, source):
        """Takes the values of an array of the same shape; gives the array itself."""
        values = source.numpy() if isinstance(source, NDArray) else _np.asarray(source)
        if values.shape != self.shape:
            raise ValueError(f"the array has the shape {self.shape}, and the values have {values.shape}")
        self._coulis_array[...] = values
        return self

    def copyto(self, target):
        """A copy on a device, or the values written to an array of the same shape."""
        if isinstance(target, NDArray):
            return target.copyfrom(self)
        if isinstance(target, Device):
            return NDArray(self.numpy(), target)
        raise TypeError(f"an array is copied to an array or a device, got {type(target).__name__}")

    def __getitem__(self, index):
        return self._coulis_array[index].copy()

    def __setitem__(self, index, value):
        self._coulis_array[index] = value.numpy() if isinstance(value, NDArray) else value

    def __len__(self):
        return len(self._coulis_array)

    def __array__(self, dtype=None, copy=None):
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __dlpack__(self, **options):
        return self._coulis_array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._coulis_array.__dlpack_device__()

    def __repr__(self):
        return f"<coulis.nd.NDArray shape={self.shape}, {self.device}>\n{self._coulis_array!r}"


def array(arr, device=None):
    """A copy of an array, on a device (``coulis.cuda(0)``, or its name, ``"cuda:0"``); the CPU where none is named.

    Raises ``RuntimeError`` where the device is not there, ``TypeError`` where the elements are no numbers.
    """
    values = arr.numpy() if isinstance(arr, NDArray) else _np.array(arr, order="C")
    return NDArray(values, cpu() if device is None else device)


def empty(shape, dtype="float32", device=None):
    """An array of zeros, on a device."""
    return NDArray(_np.zeros(shape, dtype), cpu() if device is None else device)
