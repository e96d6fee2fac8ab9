"""From schedules and texts to listings and functions: ``coulis.lower``, ``coulis.build``, ``coulis.compile``."""

from __future__ import annotations

from typing import Any

from ._coulis import te as _te


def lower(inp: Any, args: Any, name: str = "main", binds: None = None, simple_mode: bool = False) -> Any:
    """What a schedule makes of its program, for those parameters; ``print`` shows it as text that coulis reads back.

    ``args``: the tensors that are the parameters, in order: every input, every output, and any computed tensor that the
    caller wants to keep. ``simple_mode`` shows the loops whole; else they are in parts, as they are compiled.

    Raises ``ValueError`` where the parameters do not fit or the schedule has no meaning.
    """
    _no_binds(binds)
    return _te.lower(inp, args, name, simple_mode)


def build(
    inputs: Any,
    args: Any = None,
    target: Any = None,
    target_host: Any = None,
    runtime: Any = None,
    name: str = "default_function",
    binds: None = None,
) -> Any:
    """The function of a schedule and its parameters, or of what ``lower`` gave.

    ``target``: ``"cpu"`` (the default; ``"llvm"`` and ``"c"`` are the same), ``"cuda"``, ``"cuda -arch=sm_90a"``, or
    ``"sim"``, which runs the threads of a GPU one after another, in warps of 32 lanes (``"sim64"``: of 64), and refuses results of
    kernels that it finds at fault.
    ``target_host`` and ``runtime`` are read and not used.

    The function is called with one array a parameter (functions from texts also take their integers): arrays of NumPy, of
    PyTorch, of ``coulis.nd``, or of any library with DLPack. Outputs are written in place. A wrong number of arguments is a ``TypeError``, a wrong dtype, shape
    or stride a ``ValueError``, and a GPU that is not there a ``RuntimeError``, when it is called.
    """
    _no_binds(binds)
    return _te.build(inputs, args, "cpu" if target is None else str(target), name)


def compile(func: Any, target: str = "cpu", arch: str | None = None, name: str | None = None) -> Any:
    """The function of a text, or of a Python function under ``@T.prim_func``.

    ``target``: ``"cpu"``, ``"cuda"``, ``"sim"`` or ``"sim64"``, as in ``build``; ``arch``: of a GPU, as ``"sm_90a"``; ``name``: of the
    function that is taken of a text with several. The result is called with arrays;
    ``.source(kind)`` shows its code (``"tir"``, ``"c"``, ``"cuda"``, ``"ptx"``, ``"sass"``), ``.explain()`` how it runs.

    Raises ``ValueError`` for a text without a meaning, ``NotImplementedError`` for one that the target cannot run.
    """
    text = func if isinstance(func, str) else getattr(func, "script", None)
    if callable(text):
        text = text()
    if not isinstance(text, str):
        raise TypeError(f"a text or a function under @T.prim_func is compiled, got {type(func).__name__}")
    return _te.compile_text(text, target, arch, name)


def _no_binds(binds: Any) -> None:
    if binds is not None:
        raise ValueError("buffers cannot be bound by hand; coulis makes them from the tensors")
