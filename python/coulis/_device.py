"""Devices by name: ``coulis.cpu()`` and ``coulis.cuda(0)``."""

from __future__ import annotations

from typing import Any

from ._coulis import te as _te


class Device:
    """A CPU, or a GPU by its number. That it is named does not say that it is there: see ``exist``."""

    __slots__ = ("index", "kind")

    def __init__(self, kind: str, index: int = 0) -> None:
        if kind in ("llvm", "c"):
            kind = "cpu"
        if kind not in ("cpu", "cuda"):
            raise ValueError(f"there is no device {kind!r}; legal are cpu and cuda")
        if not isinstance(index, int) or index < 0:
            raise ValueError(f"devices are counted from 0, got {index!r}")
        self.kind, self.index = kind, index

    @property
    def device_type(self) -> int:
        """The number of the kind in DLPack: 1 for a CPU, 2 for a GPU of CUDA."""
        return 1 if self.kind == "cpu" else 2

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return self.index

    @property
    def exist(self) -> bool:
        """Whether the device is there."""
        try:
            self.check()
        except RuntimeError:
            return False
        return True

    def check(self) -> None:
        """Raises ``RuntimeError`` where the device is not there, with what is missing."""
        _te.check_device(self.kind, self.index)

    def sync(self) -> None:
        """Does nothing: calls with arrays of ``coulis.nd`` are done when they return."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self) -> int:
        return hash((self.kind, self.index))

    def __repr__(self) -> str:
        return f"{self.kind}({self.index})"


def cpu(index: int = 0) -> Device:
    """The CPU."""
    return Device("cpu", index)


def cuda(index: int = 0) -> Device:
    """The GPU of that number."""
    return Device("cuda", index)


def device(kind: str, index: int = 0) -> Device:
    """The device of that kind and number."""
    return Device(kind, index)


def of_word(given: Any) -> Device:
    """A device, or the one of that name: ``cpu``, ``cuda:1``."""
    if isinstance(given, Device):
        return given
    if not isinstance(given, str):
        raise TypeError(f"a device is `coulis.cpu()`, `coulis.cuda(N)` or its name, got an object of type `{type(given).__name__}`")
    kind, _, index = given.partition(":")
    if ":" in given and not index.isdecimal():
        raise ValueError(f"there is no device `{given}`; legal are cpu, cuda and cuda:N")
    return Device(kind, int(index or 0))
