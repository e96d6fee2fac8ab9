from collections.abc import Mapping, Sequence
from typing import Any, Literal, SupportsIndex, final

__version__: str

te: Any
"""Tensor expressions, schedules and functions, which `coulis.te`, `coulis.driver` and `coulis.script` spell."""

class AxisError(ValueError, IndexError):
    """An axis that the array does not have."""

@final
class Reducer:
    """A reducer of the caller's own, which `reduce` takes in place of a name. `coulis.reducer` makes it."""

    def __new__(
        cls,
        name: str,
        combine: Any,
        identity: Any,
        lift: Any,
        finish: Any,
        dtypes: Sequence[Any] | None,
        commutative: bool,
    ) -> Reducer: ...

    @property
    def name(self) -> str: ...
    def __copy__(self) -> Reducer: ...
    def __deepcopy__(self, _memo: Any, /) -> Reducer: ...

@final
class Export:
    """A row-major array of coulis, which other libraries take by DLPack."""

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def ops() -> list[tuple[str, int, str]]:
    """Name, number of inputs and summary of each statistic."""

def machine() -> dict[str, object]:
    """Device, threads, C compiler, cache folder, and what was found of CUDA."""

def normalizations() -> list[
    tuple[str, str, str, str, list[tuple[str, float | None, str]], list[tuple[str, str, str]], bool]
]:
    """Name and summary of each normalization."""

@final
class OwnNormalization:
    """A normalization of the caller's own; `coulis.normalization` makes it."""

    def __new__(
        cls, name: str, map: Any, statistics: Sequence[str], beside: Sequence[tuple[str, str]], left_out: float | None
    ) -> OwnNormalization: ...

def normalize(
    x: Any,
    name: str | OwnNormalization,
    axis: SupportsIndex | Sequence[SupportsIndex] | None = None,
    beside: dict[str, Any] | None = None,
    parameters: dict[str, float | None] | None = None,
    *,
    where: Any = None,
    nan: str = "propagate",
    ddof: float = 0.0,
    acc_dtype: Any = None,
    dtype: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    out: Any = None,
    fast_math: bool = False,
    reproducible: bool = False,
    device: Any = None,
    stream: Any = None,
    plan: Any = None,
    prologue: Any = None,
) -> Any:
    """The result of a normalization; `coulis.softmax` and its relatives call it."""

def reduce(
    x: Any,
    ops: str | Reducer | Sequence[str | Reducer],
    axis: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    keepdims: bool = False,
    where: Any = None,
    nan: Literal["propagate", "ignore"] = "propagate",
    ddof: float = 0.0,
    init: Any = None,
    acc_dtype: Any = None,
    dtype: Any = None,
    alpha: float | Mapping[str, float] | None = None,
    beta: float | Mapping[str, float] | None = None,
    out: Any = None,
    fast_math: bool = False,
    reproducible: bool = False,
    device: Any = None,
    stream: Any = None,
    plan: Any = None,
    prologue: Any = None,
) -> Any:
    """Reduces an array: one read of it, any set of statistics."""

def described(x: Any, x_dtype: Any) -> list[tuple[str, list[int], list[int], str | None, bool]]:
    """What is planned for, an entry an array: element type, shape, strides in elements, the device if not the host, and whether there
    are nulls."""

def described_beside(x: Any, name: str, x_dtype: Any) -> tuple[str, Sequence[int], Sequence[int], str | None, bool]:
    """What is planned for of an array beside the elements, or of its shape."""

def plan_of(
    x: Sequence[tuple[str, Sequence[int], Sequence[int], str | None, bool]],
    ops: Any,
    axis: Any,
    options: dict[str, Any],
    wants_source: bool,
    map: tuple[list[tuple[str, tuple[str, Sequence[int], Sequence[int], str | None, bool]]], dict[str, Any]] | None,
) -> dict[str, Any]:
    """Name, trace, reasons and predictions of a plan; and its source, where that is asked for. The plan of a normalization
    has what is planned for of the arrays beside the elements, and its numbers, both by name."""

def bench_of(
    x: Sequence[tuple[str, Sequence[int], Sequence[int], str | None, bool]],
    ops: Any,
    axis: Any,
    on: Any,
    seconds: float,
    verify: bool,
) -> dict[str, Any]:
    """Times a reduction of a made-up input."""

def results_of(x_dtype: Any, ops: str | Reducer | Sequence[str | Reducer]) -> list[tuple[str, str]]:
    """Names and types of the results of statistics of elements of a type."""

def steps_of(
    x_dtype: Any, ops: str | Reducer | Sequence[str | Reducer], nan: str, ddof: float, acc_dtype: Any
) -> dict[str, Any]:
    """The reducers of a reduction by parts, and what their states and results are."""

def step_of(
    step: str, x_dtype: Any, ops: str | Reducer | Sequence[str | Reducer], nan: str, ddof: float, acc_dtype: Any
) -> Any:
    """One of the reducers of `steps_of`, for processes to which it is sent."""
